# SPDX-License-Identifier: BSD-3-Clause
"""Work objects of tributary.torch, and what releases of PyTorch make of them.

C++ (DDP's reducer) calls get_future() and wait() of a Work that is written in Python through the Python object; 1.13
does not keep that object, and a Work whose Python half is gone waits for ever. So a Work is pinned here until it has
ended and somebody has asked for it. An error reaches C++ as the exception of a future that a callback has raised:
Future.set_exception() of Python stores it as a value, which DDP takes for tensors. So C++ gets a future of torch's,
Python one whose callbacks may call collectives (_torch_callbacks).
"""

from __future__ import annotations

import collections
import sys
import threading
from datetime import timedelta
from typing import Optional

import torch
import torch.futures
from torch._C._distributed_c10d import Work as _BaseWork

from ._torch_callbacks import Future, Thread

_PINNED = 256  # Works that have ended and that nobody has asked for

_pins: "collections.OrderedDict[int, Work]" = collections.OrderedDict()
_pins_lock = threading.Lock()


class Work(_BaseWork):
    """A running operation as torch.distributed knows it; also its algorithm and fabric time."""

    def __init__(
        self, name: str, result: list[torch.Tensor], timeout_s: float, level: int, completer: Thread
    ) -> None:
        super().__init__()
        self.name = name
        self.algo = ""  # "sharp", "ring", ... once it has ended
        self._result = result
        self._timeout_s = timeout_s
        self._error: Optional[str] = None
        self._ended = threading.Event()
        self._asked = False
        self._level, self._completer = level, completer
        self._lock = threading.Lock()
        self._future: Optional[Future] = None  # Python's
        self._base: Optional[torch.futures.Future[list[torch.Tensor]]] = None  # C++'s waits for it
        self._native: Optional[torch.futures.Future[list[torch.Tensor]]] = None  # C++'s
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
        with self._lock:
            if not _asked_by_python():
                if self._native is None:
                    self._base = torch.futures.Future()
                    self._native = self._base.then(self._value)
                    if self._ended.is_set():
                        self._base.set_result(self._result)
                return self._native
            if self._future is None:
                self._future = Future(self._level, self._ended)
                if self._ended.is_set():
                    self._complete(self._future)
            return self._future

    # ---- for the engine ----

    def end(self, error: Optional[str] = None) -> None:
        """Once; afterwards the tensors are the program's."""
        with self._lock:
            self._error = error
            self._ended.set()
            future, base = self._future, self._base  # who asks later gets one that is complete
        # Whoever completes a future runs what C++ and torch.futures have hung on it.
        if future is not None or base is not None:
            self._completer.put(lambda: self._complete_all(future, base))
        with _pins_lock:
            if self._asked:
                _pins.pop(id(self), None)
            while len(_pins) > _PINNED and next(iter(_pins.values())).is_completed():
                _pins.popitem(last=False)

    def forget(self) -> None:
        """Its call has failed in the caller's hands, so nobody asks for it."""
        self._unpin()

    def _complete_all(
        self, future: Optional[Future], base: "Optional[torch.futures.Future[list[torch.Tensor]]]"
    ) -> None:
        if future is not None:
            self._complete(future)
        if base is not None:
            base.set_result(self._result)

    def _complete(self, future: Future) -> None:
        if self._error is not None:
            future.set_exception(RuntimeError(self._error))
        else:
            future.set_result(self._result)

    def _value(self, _base: object) -> list[torch.Tensor]:
        if self._error is not None:
            raise RuntimeError(self._error)
        return self._result

    def _unpin(self) -> None:
        with _pins_lock:
            self._asked = True
            if self._ended.is_set():
                _pins.pop(id(self), None)


def _asked_by_python() -> bool:
    """Of get_future(): a function of Python names it. C++ calls it from below one that does not, or from none."""
    try:
        return "get_future" in sys._getframe(2).f_code.co_names
    except ValueError:
        return False
