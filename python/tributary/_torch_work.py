# SPDX-License-Identifier: BSD-3-Clause
"""What runs behind tributary.torch: operations, their Work objects, and the thread that drives them.

A group of processes has one engine: a thread that owns the group's communicator, creates it with the first
operation, starts operations in the order of their calls, and completes their futures. It waits inside the
library, without Python's lock, so that backward passes go on meanwhile. Nobody else calls the communicator.

Work objects, and what releases of PyTorch make of them. C++ (DDP's reducer) calls get_future() and wait() of a
Work that is written in Python through the Python object; 1.13 does not keep that object, and a Work whose Python
half is gone waits for ever. So a Work is pinned here until it has ended and somebody has asked for it. An error
reaches C++ as the exception of a future that a callback has raised: Future.set_exception() of Python stores it
as a value, which DDP takes for tensors.
"""

from __future__ import annotations

import collections
import dataclasses
import logging
import threading
import time
from datetime import timedelta
from typing import Callable, Deque, Optional

import torch
import torch.futures
from torch._C._distributed_c10d import Work as _BaseWork

from . import coll

log = logging.getLogger("tributary.torch")

_AHEAD = 8  # operations that the library has at once; it runs one after the other
_SLICE_S = 0.05  # of waiting, between looks at new calls and at close()
_PINNED = 256  # Works that have ended and that nobody has asked for

_pins: "collections.OrderedDict[int, Work]" = collections.OrderedDict()
_pins_lock = threading.Lock()


class Work(_BaseWork):
    """A running operation as torch.distributed knows it; also its algorithm and fabric time."""

    def __init__(self, name: str, result: list[torch.Tensor], timeout_s: float) -> None:
        super().__init__()
        self.name = name
        self.algo = ""  # "sharp", "ring", ... once it has ended
        self._result = result
        self._timeout_s = timeout_s
        self._error: Optional[str] = None
        self._ended = threading.Event()
        self._asked = False
        self._base: torch.futures.Future[list[torch.Tensor]] = torch.futures.Future()
        self._future = self._base.then(self._value)
        with _pins_lock:
            _pins[id(self)] = self

    # ---- for torch ----

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Until it has ended; RuntimeError with the reason if it has failed or is not done in time."""
        seconds = timeout.total_seconds() or self._timeout_s
        try:
            if not self._ended.wait(seconds):
                raise RuntimeError(f"{self.name}: not done after {seconds:g} s")
        finally:
            self._unpin()
        if self._error is not None:
            raise RuntimeError(self._error)
        return True

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        return self._ended.is_set()

    def is_success(self) -> bool:
        return self._ended.is_set() and self._error is None

    def exception(self) -> Optional[RuntimeError]:
        return None if self._error is None else RuntimeError(self._error)

    def result(self) -> list[torch.Tensor]:
        self.wait()
        return self._result

    def get_future(self) -> "torch.futures.Future[list[torch.Tensor]]":
        self._unpin()
        return self._future

    # ---- for the engine ----

    def end(self, error: Optional[str] = None) -> None:
        """Once; afterwards the tensors are the program's."""
        self._error = error
        self._ended.set()
        try:
            self._base.set_result(self._result)  # runs what the program hung on it, in this thread
        except Exception as e:
            log.error("%s: a callback of its future has failed: %s", self.name, e)
        with _pins_lock:
            if self._asked:
                _pins.pop(id(self), None)
            while len(_pins) > _PINNED and next(iter(_pins.values())).is_completed():
                _pins.popitem(last=False)

    def _value(self, _base: object) -> list[torch.Tensor]:
        if self._error is not None:
            raise RuntimeError(self._error)
        return self._result

    def _unpin(self) -> None:
        with _pins_lock:
            self._asked = True
            if self._ended.is_set():
                _pins.pop(id(self), None)


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
    before: Optional[Callable[[coll.Communicator], None]] = None  # in the engine's thread
    request: Optional[coll.Request] = None
    started: float = 0.0  # by the monotonic clock

    def start(self, comm: coll.Communicator) -> None:
        if self.before:
            self.before(comm)
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
        if self.finish:
            with torch.no_grad():
                self.finish()
        return True

    def drop(self) -> None:
        self.request = self.send = self.recv = self.finish = self.before = None


class Engine:
    """The thread of a communicator. submit() from any thread; close() once, by every rank."""

    def __init__(
        self, name: str, create: Callable[[], coll.Communicator], timeout_s: float
    ) -> None:
        self._name, self._create, self._timeout_s = name, create, timeout_s
        self._changed = threading.Condition()
        self._calls: Deque[Job] = collections.deque()
        self._failed = ""  # why nothing runs any more
        self._closing = False
        self._told = ""
        self._thread: Optional[threading.Thread] = None
        self.comm: Optional[coll.Communicator] = None

    def submit(self, job: Job) -> None:
        """RuntimeError: the group has failed before."""
        with self._changed:
            if self._failed or self._closing:
                job.work.end(f"{job.work.name}: {self._failed or 'the group was destroyed'}")
                job.work.wait()
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name=f"trib {self._name}", daemon=True
                )
                self._thread.start()
            self._calls.append(job)
            self._changed.notify()

    def close(self) -> None:
        """Operations that have not ended fail."""
        with self._changed:
            self._closing = True
            self._changed.notify()
            thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    # ---- the thread ----

    def _run(self) -> None:
        running: Deque[Job] = collections.deque()
        try:
            comm = self.comm = self._create()
        except Exception as e:
            self._fail(f"{self._name}: cannot create its communicator: {e}", running)
            return
        self._tell(comm)
        while True:
            with self._changed:
                if not self._calls and not running and not self._closing:
                    self._changed.wait(_SLICE_S)
                if self._closing:
                    break
                fresh = [
                    self._calls.popleft() for _ in range(min(len(self._calls), _AHEAD - len(running)))
                ]
            for job in fresh:
                if self._failed:
                    job.work.end(f"{job.work.name}: {self._failed}")
                else:
                    self._start(job, comm, running)
            if running:
                self._serve(running)
            else:
                comm.progress()  # others may need this rank's part of what it has done
            self._tell(comm)
        self._fail("the group was destroyed", running)
        comm.close()
        self.comm = None

    def _start(self, job: Job, comm: coll.Communicator, running: Deque[Job]) -> None:
        try:
            job.start(comm)
        except Exception as e:
            job.drop()
            job.work.end(str(e))
            if comm.error:
                self._fail(comm.error, running)
            return  # else refused, the same at every rank: others go on
        running.append(job)
        job.started = time.monotonic()

    def _serve(self, running: Deque[Job]) -> None:
        job = running[0]
        late = time.monotonic() - job.started > self._timeout_s
        try:
            if not job.poll(_SLICE_S) and not late:
                return
            error = f"{job.work.name}: not done after {self._timeout_s:g} s" if late else None
        except Exception as e:
            error = str(e)
        if error is not None:
            self._fail(error, running)
            return
        running.popleft()
        job.drop()
        job.work.end()

    def _fail(self, why: str, running: Deque[Job]) -> None:
        with self._changed:
            self._failed = self._failed or why
            lost = [*running, *self._calls]
            running.clear()
            self._calls.clear()
        for job in lost:
            job.drop()
            job.work.end(why if why.startswith(job.work.name) else f"{job.work.name}: {why}")

    def _tell(self, comm: coll.Communicator) -> None:
        """Once for each reason why it is hosts that reduce; by rank 0."""
        why = comm.fell_back or comm.trees()[1]
        if why != self._told and comm.rank == 0:
            log.warning("%s: not in the switches: %s", self._name, why)
        self._told = why
