# SPDX-License-Identifier: BSD-3-Clause
"""Callbacks of futures, which may call collectives themselves and wait for them, as DDP's PowerSGD does.

They run one after the other, in the order in which the program has hung them on futures, and in no thread that
drives a communicator. Ranks differ in whether an operation has ended when then() is called. So a callback never runs
inside of then(), and collectives that are called in callbacks have a communicator of their own, a level: the
program's own calls are level 0, those of callbacks of its futures level 1, and so on. Both together give the
operations of every communicator the same order at all ranks.

Rejected: callbacks in the thread that completes the future (a wait in one is a deadlock), and one communicator for all
levels (its order would depend on who was faster, and vectors of one length would be added to the wrong ones).
"""

from __future__ import annotations

import collections
import logging
import threading
from typing import Any, Callable, Deque, Optional

import torch.futures

log = logging.getLogger("tributary.torch")

_here = threading.local()


def level() -> int:
    """Of the calling thread."""
    return getattr(_here, "level", 0)


class Thread:
    """Makes calls one after the other in a thread of a level, which the first call starts."""

    def __init__(self, name: str, of_level: int) -> None:
        self._name, self._level = name, of_level
        self._changed = threading.Condition()
        self._calls: Deque[Callable[[], None]] = collections.deque()
        self._closed = False
        self._thread: Optional[threading.Thread] = None

    def put(self, call: Callable[[], None]) -> None:
        with self._changed:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            self._calls.append(call)
            self._changed.notify()

    def close(self) -> None:
        """It ends after the calls that it has."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def _run(self) -> None:
        _here.level = self._level
        while True:
            with self._changed:
                while not self._calls and not self._closed:
                    self._changed.wait()
                if not self._calls:
                    self._thread = None  # a call that comes later starts another
                    return
                call = self._calls.popleft()
            try:
                call()
            except Exception as e:
                log.error("a callback of a future has failed: %s", e)
            del call


_runners: dict[int, Thread] = {}
_runners_lock = threading.Lock()


def _runner(of_level: int) -> Thread:
    with _runners_lock:
        if of_level not in _runners:
            _runners[of_level] = Thread(f"trib callbacks {of_level}", of_level)
        return _runners[of_level]


class Future(torch.futures.Future):  # type: ignore[misc]  # torch has no types here (pyproject.toml)
    """Of an operation of a level, or of a callback that was hung on one. ended: is set once the value is on its way."""

    def __init__(self, of_level: int, ended: Optional[threading.Event] = None) -> None:
        super().__init__()
        self._level, self._ended = of_level, ended

    def then(self, callback: Callable[[Any], Any]) -> "Future":
        at = max(self._level, level())  # never the thread that is to wait for it
        out = Future(at)
        _runner(at + 1).put(lambda: out._take(self, callback))
        return out

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        def call() -> None:
            self._wait()
            callback(self)

        _runner(max(self._level, level()) + 1).put(call)

    def done(self) -> bool:
        return super().done() or (self._ended is not None and self._ended.is_set())

    def value(self) -> Any:
        if self.done():
            self._wait()
        return super().value()

    def _wait(self) -> None:
        try:
            super().wait()
        except Exception:
            pass  # the callback asks for the value, and gets it

    def _take(self, before: "Future", callback: Callable[[Any], Any]) -> None:
        before._wait()
        try:
            self.set_result(callback(before))
        except Exception as e:
            self.set_exception(e)
