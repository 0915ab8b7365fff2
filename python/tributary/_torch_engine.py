# SPDX-License-Identifier: BSD-3-Clause
"""What runs behind tributary.torch: operations, and the thread that drives them.

A group of processes has one engine: a thread that owns the group's communicator, creates it with the first
operation, starts operations in the order of their calls, and completes their Work objects (_torch_work). It waits
inside the library, without Python's lock, so that backward passes go on meanwhile. Nobody else calls the communicator.

A call that one rank cannot make (its output's elements overlap, its memory cannot be registered) must not leave the
others waiting. That rank tells those whose results depend on it, by the store, waits until they have heard, and then
takes part with memory of its own; the call fails at each of them, with the reason, and the group goes on. Ranks look
for such notes only while an operation keeps them waiting, so what goes well pays nothing.

Calls that differ between ranks end the communicator, at all of them. They meet again, agree on the last call that
any of them has made by then, which fails everywhere as those before it, and create another communicator.
"""

from __future__ import annotations

import collections
import dataclasses
import json
import logging
import threading
import time
from typing import Callable, Deque, Optional

import torch

from . import coll
from ._torch_callbacks import Thread
from ._torch_store import StoreOob
from ._torch_work import Work

log = logging.getLogger("tributary.torch")

_AHEAD = 8  # operations that the library has at once; it runs one after the other
_SLICE_S = 0.05  # of waiting, between looks at new calls, at close() and for notes
_ANSWER_S = 0.005  # between looks for answers to a note
_MEET_S = 10  # until all ranks have left calls that differ


@dataclasses.dataclass
class Job:
    """An operation with flat buffers; finish copies its results to where the program wants them."""

    kind: str
    work: Work
    count: int = 0  # elements, as tributary.coll counts them; 0: there is nothing to send
    type: int = 0
    op: int = 0
    root: int = 0
    send: Optional[torch.Tensor] = None
    recv: Optional[torch.Tensor] = None
    finish: Optional[Callable[[], None]] = None
    request: Optional[coll.Request] = None
    started: float = 0.0  # by the monotonic clock
    number: int = 0  # of the group's calls, the same at all ranks
    refused: str = ""  # why this rank cannot make the call

    def start(self, comm: coll.Communicator) -> None:
        if not self.count and self.kind != "barrier":
            return
        self.request = comm.start(
            self.kind,
            self.send.data_ptr() if self.send is not None else 0,
            self.recv.data_ptr() if self.recv is not None else 0,
            self.count,
            self.type,
            self.op,
            self.root,
            (self.send, self.recv),
        )

    def poll(self, seconds: float) -> bool:
        """True: it has ended well, and its results are in place."""
        if self.request is not None:
            try:
                self.request.wait(seconds)
            except TimeoutError:
                return False
            self.work.algo = self.request.algo
        return True

    def bring(self) -> None:
        """Results to where the program wants them."""
        inference = any(t.is_inference() for t in self.work._result)
        if self.finish:
            with torch.inference_mode() if inference else torch.no_grad():
                self.finish()

    def substitute(self) -> None:
        """It takes part with memory of its own, whose results nobody sees."""
        in_place = self.send is self.recv
        self.send = None if self.send is None else self.send.clone()
        if self.recv is not None:
            self.recv = self.send if in_place else torch.empty_like(self.recv)
        self.finish = None

    def waited_for_by(self, rank: int, size: int) -> list[int]:
        """The ranks whose results need this one's part."""
        others = [r for r in range(size) if r != rank]
        if self.kind in ("broadcast", "scatter"):
            return others if rank == self.root else []
        if self.kind in ("reduce", "gather"):
            return [self.root] if rank != self.root else []
        return others

    def end(self, error: str) -> None:
        """error: why it has failed, in words; "": it has not. Its buffers are no longer used."""
        self.request = self.send = self.recv = self.finish = None
        name = f"{self.work.name}: "
        self.work.end((error if error.startswith(name) else name + error) if error else None)


@dataclasses.dataclass
class Refusal:
    """A call that this rank cannot make, while others are told."""

    job: Job
    note: int = 0
    answers: int = 0  # to wait for
    next_look: float = 0.0


class Engine:
    """The thread of a communicator. submit() from any thread; close() once, by every rank."""

    def __init__(
        self,
        name: str,
        oob: StoreOob,
        create: Callable[[StoreOob], coll.Communicator],
        timeout_s: float,
        level: int,
    ) -> None:
        self._name, self._oob, self._create, self._timeout_s = name, oob, create, timeout_s
        self.level = level
        self.completer = Thread(f"trib {name} futures {level}", level + 1)
        self._changed = threading.Condition()
        self._calls: Deque[Job] = collections.deque()
        self._running: Deque[Job] = collections.deque()
        self._numbered = 0
        self._refusal: Optional[Refusal] = None
        self._heard: dict[int, tuple[int, str]] = {}  # by whom a call fails and why, by its number
        self._failed = ""  # why nothing runs any more
        self._differ = ""  # how ranks' calls do, which ends the communicator and not the group
        self._void = (0, "")  # the last call that this ends, and the reason
        self._closing = False
        self._told = ""
        self._deaf = ""  # why no notes can be heard any more
        self._thread: Optional[threading.Thread] = None
        self.comm: Optional[coll.Communicator] = None

    def submit(self, job: Job) -> None:
        """RuntimeError: the group has failed before."""
        with self._changed:
            if self._failed or self._closing:
                job.end(self._failed or "the group was destroyed")
                job.work.wait()
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name=f"trib {self._name} {self.level}", daemon=True
                )
                self._thread.start()
            self._numbered += 1
            job.number = self._numbered
            self._calls.append(job)
            self._changed.notify()

    def close(self) -> None:
        """Operations that have not ended fail."""
        with self._changed:
            self._closing = True
            self._oob.hurry = bool(self._differ)
            self._changed.notify()
            thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        self.completer.close()

    # ---- the thread ----

    def _run(self) -> None:
        try:
            self._oob.meet()
            comm = self.comm = self._create(self._oob)
        except Exception as e:
            self._fail(f"{self._name}: cannot create its communicator: {e}")
            return
        self._tell(comm)
        while True:
            with self._changed:
                idle = not self._calls and not self._running and not self._refusal
                if idle and not self._closing:
                    self._changed.wait(_SLICE_S)
                if self._closing:
                    break
            try:
                self._turn(comm)
                if self._differ:
                    comm = self.comm = self._renew(comm)
            except Exception as e:  # the store's: rank 0 has taken it along
                self._fail(self._differ or comm.error or f"{self._name}: its store: {e}")
            if self.comm is None:
                return
            self._tell(comm)
        self._fail("the group was destroyed")
        comm.close()
        self.comm = None

    def _turn(self, comm: coll.Communicator) -> None:
        while (job := self._next()) is not None:
            self._start(job, comm)
        if self._running:
            self._serve()
        else:
            comm.progress()  # others may need this rank's part of what it has done
            if comm.error:
                self._lose(comm.error)
        if self._refusal and not self._differ:
            self._refuse(self._refusal, comm)

    def _next(self) -> Optional[Job]:
        with self._changed:
            if not self._calls or len(self._running) >= _AHEAD or self._refusal:
                return None
            return self._calls.popleft()

    def _start(self, job: Job, comm: coll.Communicator) -> None:
        if self._failed or self._differ or job.number <= self._void[0]:
            job.end(self._failed or self._differ or self._void[1])
            return
        job.started = time.monotonic()
        try:
            if not job.refused:
                job.start(comm)
                self._running.append(job)
                return
        except Exception as e:
            job.refused = str(e).removeprefix(f"{job.kind}: ")
        self._refusal = Refusal(job)
        if comm.error:
            self._lose(comm.error)
            return
        whom = job.waited_for_by(comm.rank, comm.size)
        if whom:
            note = {"call": job.number, "by": comm.rank, "to": whom, "why": job.refused}
            self._refusal.note = self._oob.tell(json.dumps(note))
            self._refusal.answers = len(whom)

    def _serve(self) -> None:
        job = self._running[0]
        late = time.monotonic() - job.started > self._timeout_s
        try:
            ended = job.poll(_ANSWER_S if self._refusal else _SLICE_S)
            failed = f"{job.work.name}: not done after {self._timeout_s:g} s" if late else ""
        except Exception as e:
            ended, failed = True, str(e)
        if not ended and not late:
            self._listen()
            return
        if failed:
            if late and self._deaf:
                failed += f"; its store: {self._deaf}"
            self._lose(failed)
            return
        self._running.popleft()
        by, why = self._heard.pop(job.number, (0, ""))
        error = job.refused or (why and f"rank {by}: {why}")
        try:
            if not error:
                job.bring()
        except Exception as e:  # a tensor that cannot be written: the group is none the worse
            error = str(e)
        job.end(error)

    def _lose(self, why: str) -> None:
        """The communicator has failed: with the group, or with calls that differ."""
        if any(text in why for text in ("(E_OP_MISMATCH)", " disagrees on the ")):
            self._differ = self._differ or why
        else:
            self._fail(why)

    def _renew(self, comm: coll.Communicator) -> coll.Communicator:
        """A communicator in place of one that has failed because calls differ. What any rank has called by then has
        failed at all ranks. TimeoutError: a rank does not come, as one does that its error has ended."""
        with self._changed:
            called, why = self._numbered, self._differ
            if self._closing:
                raise RuntimeError("the group was destroyed")
        comm.close()
        self.comm = None
        self._oob.meet(_MEET_S)
        last = self._oob.greatest(called)
        comm = self._create(self._oob)
        with self._changed:
            self._differ, self._void = "", (last, why)
            refused = [self._refusal.job] if self._refusal else []
            lost = [*self._running, *refused]
            self._running.clear()
            self._refusal = None
        self._heard.clear()
        for job in lost:
            job.end(why)
        return comm

    def _fail(self, why: str) -> None:
        with self._changed:
            self._failed = self._failed or why
            self._differ = ""
            refused = [self._refusal.job] if self._refusal else []
            lost = [*self._running, *refused, *self._calls]
            self._running.clear()
            self._calls.clear()
            self._refusal = None
        for job in lost:
            job.end(why)

    def _tell(self, comm: coll.Communicator) -> None:
        """Once for each reason why it is hosts that reduce; by rank 0."""
        why = comm.fell_back or comm.trees()[1]
        if why != self._told and comm.rank == 0:
            log.warning("%s: not in the switches: %s", self._name, why)
        self._told = why

    # ---- calls that a rank cannot make ----

    def _hear(self) -> None:
        """Notes of others. Of several for one call the lowest rank's counts, everywhere."""
        for number, text in self._oob.hear():
            note = json.loads(text)
            if self._oob.rank not in note["to"]:
                continue
            by, why = self._heard.get(note["call"], (note["by"], note["why"]))
            self._heard[note["call"]] = min((by, why), (note["by"], note["why"]))
            self._oob.answer(number)

    def _listen(self) -> None:
        """Notes of others, as long as there is a store. Rank 0 may end and take it along before this rank knows why: what the
        communicator will say of its operations is the reason, and may be that they go well."""
        if self._deaf:
            return
        try:
            self._hear()
        except Exception as e:
            self._deaf = str(e)

    def _refuse(self, refusal: Refusal, comm: coll.Communicator) -> None:
        """Takes part in its call once all have heard who need to."""
        job, now = refusal.job, time.monotonic()
        if comm.error or now - job.started > self._timeout_s:
            self._lose(comm.error or f"{job.work.name}: not done after {self._timeout_s:g} s")
            return
        if now < refusal.next_look:
            return
        refusal.next_look = now + _ANSWER_S
        self._hear()  # others may refuse, too
        if refusal.answers and self._oob.answers(refusal.note) < refusal.answers:
            if not self._running:
                time.sleep(_ANSWER_S)
            return
        self._refusal = None
        job.substitute()
        try:
            job.start(comm)
            self._running.append(job)
        except Exception:  # nobody can make it
            self._heard.pop(job.number, None)
            job.end(job.refused)
