# SPDX-License-Identifier: BSD-3-Clause
"""How ranks of a communicator find each other: stores, and calls of a program's own."""

from __future__ import annotations

import ctypes as c
import os
from typing import Any, Callable, Optional, Protocol

from . import _lib


class Error(RuntimeError):
    """An operation or a communicator has failed; ``errno`` is the library's number, positive."""

    def __init__(self, number: int, text: str) -> None:
        super().__init__(text or os.strerror(number))
        self.errno = number


class Oob(Protocol):
    """How the ranks of a new communicator find each other; every rank makes the same calls."""

    rank: int
    size: int

    def bcast(self, data: Optional[bytes], root: int) -> bytes:
        """The root's bytes, at every rank; data is None at the others."""

    def gather(self, data: bytes, root: int) -> Optional[list[bytes]]:
        """Every rank's bytes in order of ranks, at the root; None at the others."""

    def barrier(self) -> None:
        """Returns when every rank has called it."""


class Store:
    """Ranks meet over TCP: rank 0 listens at ADDRESS:PORT, the others connect for timeout_s at most.

    They know each other by a secret, which is found: the user's own on one machine, that of a fabric of several;
    TRIB_STORE_SECRET_FILE in the environment names another one, in a file of mode 0600.
    """

    def __init__(self, address: str, rank: int, size: int, timeout_s: float = 30) -> None:
        lib, err = _lib.load(), c.create_string_buffer(_lib.TEXT)
        self.rank, self.size = rank, size
        self._handle = c.c_void_p()
        rc = lib.trib_store_open(
            c.byref(self._handle), address.encode(), rank, size, timeout_s, err
        )
        if rc:
            raise Error(-rc, err.value.decode())

    def _oob(self) -> _lib.OobStruct:
        oob = _lib.OobStruct()
        _lib.load().trib_store_oob(self._handle, c.byref(oob))
        return oob

    def close(self) -> None:
        """After the communicators that use it."""
        if self._handle:
            _lib.load().trib_store_close(self._handle)
            self._handle = c.c_void_p()


class PmixStore(Store):
    """Ranks that mpirun, srun or another launcher with PMIx has started meet by it; it says rank and size."""

    def __init__(self, timeout_s: float = 30) -> None:
        lib, err = _lib.load(), c.create_string_buffer(_lib.TEXT)
        self._handle = c.c_void_p()
        rc = lib.trib_store_pmix(c.byref(self._handle), timeout_s, err)
        if rc:
            raise Error(-rc, err.value.decode())
        oob = self._oob()
        self.rank, self.size = oob.rank, oob.size


class OobCalls:
    """A program's own Oob as C callbacks; keeps the first exception of one."""

    def __init__(self, oob: Oob) -> None:
        self.error: Optional[BaseException] = None
        self._oob = oob
        self.struct = _lib.OobStruct(
            None,
            oob.rank,
            oob.size,
            _lib.Bcast(self._guard(self._bcast)),
            _lib.Gather(self._guard(self._gather)),
            _lib.Barrier(self._guard(self._barrier)),
        )

    def _guard(self, call: Callable[..., None]) -> Callable[..., int]:
        def guarded(_ctx: object, *args: Any) -> int:
            try:
                call(*args)
                return 0
            except BaseException as e:  # may not cross C
                self.error = self.error or e
                return -1

        return guarded

    def _bcast(self, buf: int, size: int, root: int) -> None:
        mine = c.string_at(buf, size) if self._oob.rank == root else None
        _copy(buf, self._oob.bcast(mine, root), size)

    def _gather(self, root: int, mine: int, every: int, size: int) -> None:
        parts = self._oob.gather(c.string_at(mine, size), root)
        if self._oob.rank == root:
            _copy(every, b"".join(parts or ()), size * self._oob.size)

    def _barrier(self) -> None:
        self._oob.barrier()


def _copy(to: int, data: bytes, size: int) -> None:
    if len(data) != size:
        raise ValueError(f"found {len(data)} bytes of an out-of-band call, expected {size}")
    c.memmove(to, data, size)
