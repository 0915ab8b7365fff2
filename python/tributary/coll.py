# SPDX-License-Identifier: BSD-3-Clause
"""Collectives on a Tributary fabric, in the switches or by the hosts.

    from tributary import coll

    store = coll.Store("127.0.0.1:4711", rank, size)
    comm = coll.Communicator(store, algo="sharp,ring")
    request = comm.all_reduce(gradients, op="sum")      # in place
    ...
    request.wait()

Buffers are contiguous objects with the buffer protocol: NumPy arrays, ``array.array``, ``bytearray``,
ctypes arrays. Their element type is theirs; ``type=`` names another (``"bfloat16"`` has no format of its
own). Every rank calls the same operations of a communicator in the same order.

Units: counts are elements, times picoseconds of fabric time unless they say seconds.
Ownership: a request keeps its buffers alive until it has ended; their contents are the operation's
until then.
Threads: any. Operations proceed while some thread is in ``Request.wait``, ``Request.test`` or
``Communicator.progress``, which leave Python's lock to other threads.
Errors: ``Error``, a ``RuntimeError`` with ``errno``, and ValueError or TypeError for what cannot be called.
"""

from __future__ import annotations

import ctypes as c
import errno as errnos
import os
import time
from typing import Collection, Optional, Union

from . import _lib
from ._oob import Error as Error, Oob as Oob, OobCalls
from ._oob import PmixStore as PmixStore, Store as Store  # "as": also for the users of this module

# enum trib_type, with bytes of an element, and the reductions (tributary/types.h, tributary/coll.h)
TYPES: dict[str, tuple[int, int]] = {
    "int8": (0, 1),
    "uint8": (1, 1),
    "int32": (2, 4),
    "uint32": (3, 4),
    "int64": (4, 8),
    "uint64": (5, 8),
    "float16": (6, 2),
    "float32": (7, 4),
    "float64": (8, 8),
    "bfloat16": (9, 2),
    "int16": (14, 2),
    "uint16": (15, 2),
}
OPS: dict[str, int] = {
    "sum": 0,
    "prod": 1,
    "min": 2,
    "max": 3,
    "avg": 4,
    "band": 5,
    "bor": 6,
    "bxor": 7,
    "land": 10,
    "lor": 11,
    "lxor": 12,
}
# Whether an operation has a reduction, and whether it has a root; in order of the C call's arguments.
KINDS: dict[str, tuple[bool, bool]] = {
    "all_reduce": (True, False),
    "reduce": (True, True),
    "reduce_scatter": (True, False),
    "broadcast": (False, True),
    "all_gather": (False, False),
    "gather": (False, True),
    "scatter": (False, True),
    "all_to_all": (False, False),
    "barrier": (False, False),
}
_SLICE_S = 0.1  # of waiting, between looks at Python's signals
_PyBUF_WRITABLE, _PyBUF_FORMAT, _PyBUF_C_CONTIGUOUS = 0x1, 0x4, 0x38


def time_ps() -> int:
    """Fabric time now in picoseconds, for differences; 0 before the first communicator."""
    return int(_lib.load().trib_time_ps())


# ---- buffers ----


class _PyBuffer(c.Structure):
    """Py_buffer of CPython"""

    _fields_ = [
        ("buf", c.c_void_p),
        ("obj", c.py_object),
        ("len", c.c_ssize_t),
        ("itemsize", c.c_ssize_t),
        ("readonly", c.c_int),
        ("ndim", c.c_int),
        ("format", c.c_char_p),
        ("shape", c.c_void_p),
        ("strides", c.c_void_p),
        ("suboffsets", c.c_void_p),
        ("internal", c.c_void_p),
    ]


_get_buffer = c.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes, _get_buffer.restype = (c.py_object, c.POINTER(_PyBuffer), c.c_int), c.c_int
_release_buffer = c.pythonapi.PyBuffer_Release
_release_buffer.argtypes, _release_buffer.restype = (c.POINTER(_PyBuffer),), None


class _View:
    """Address, bytes and element type of a contiguous buffer, which stays where it is while this lives."""

    def __init__(self, what: object, writable: bool) -> None:
        self._view = _PyBuffer()
        flags = _PyBUF_FORMAT | _PyBUF_C_CONTIGUOUS | (_PyBUF_WRITABLE if writable else 0)
        _get_buffer(c.py_object(what), c.byref(self._view), flags)
        self.address: int = self._view.buf or 0
        self.bytes: int = self._view.len
        self._format = (self._view.format or b"B").decode()
        self._itemsize: int = self._view.itemsize

    def type_name(self) -> str:
        code = self._format.lstrip("@=<") or "B"
        base = {"e": "float", "f": "float", "d": "float"}.get(code)
        if base is None and code in "bhilqn":
            base = "int"
        elif base is None and code in "BHILQN":
            base = "uint"
        name = f"{base}{8 * self._itemsize}"
        if name not in TYPES or self._format[0] in "!>":
            raise TypeError(
                f"found elements of format '{self._format}', {self._itemsize} bytes, expected one of "
                f"{', '.join(TYPES)}"
            )
        return name

    def __del__(self) -> None:
        _release_buffer(c.byref(self._view))


# ---- communicators ----


class Request:
    """An operation that runs. Its communicator keeps it, and it the buffers, until it has ended."""

    def __init__(self, comm: "Communicator", handle: c.c_void_p, keep: object, name: str) -> None:
        self._comm, self._handle, self._keep, self.name = comm, handle, keep, name
        self._status = 0  # as trib_test()
        self._why = ""
        self._algo = ""

    def test(self) -> bool:
        """Proceeds. True: it has ended well; False: it runs. Error: it has failed."""
        return self._look(0.0)

    def wait(self, timeout_s: Optional[float] = None) -> None:
        """Until it has ended. TimeoutError: it still runs after timeout_s; Error: it has failed."""
        end = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            left = _SLICE_S if end is None else min(_SLICE_S, end - time.monotonic())
            if self._look(max(left, 0.0)):
                return
            if left <= 0:
                raise TimeoutError(f"{self.name}: still runs after {timeout_s} s")

    @property
    def algo(self) -> str:
        """The algorithm that has run it, or would by now: "sharp", "ring", ..."""
        if self._handle:
            self._algo = _lib.load().trib_request_algo(self._handle).decode()
        return self._algo

    def _look(self, seconds: float) -> bool:
        if not self._status and self._handle:
            self._status = _lib.load().trib_wait_for(self._handle, seconds)
            if self._status:
                self._end()
        if self._status < 0:
            raise Error(-self._status, f"{self.name}: {self._why}")
        return self._status > 0

    def _end(self) -> None:
        self._why = self._comm.error if self._status < 0 else ""
        self._drop()

    def _drop(self) -> None:
        """Gives the handle back; nothing of the program's is used any more."""
        if self._handle:
            self._algo = _lib.load().trib_request_algo(self._handle).decode()
            _lib.load().trib_free(self._handle)
            self._handle = c.c_void_p()
        self._keep = None
        self._comm._running.discard(self)

    def _lost(self) -> None:
        """The communicator goes first."""
        if not self._status:
            self._status, self._why = -errnos.ECANCELED, "the communicator was closed"
        self._handle, self._keep = c.c_void_p(), None


class Communicator:
    """All ranks of oob, which every rank creates; if one cannot, all fail with its reason.

    algo: a list as ``trib perf --policy`` takes it, or "auto". window: slots to ask of switches.
    """

    def __init__(
        self, oob: Union[Store, Oob], algo: str = "sharp,ring", window: int = 0
    ) -> None:
        lib, err = _lib.load(), c.create_string_buffer(_lib.TEXT)
        self._comm = c.c_void_p()
        self._running: set[Request] = set()
        self._calls = None if isinstance(oob, Store) else OobCalls(oob)
        self._oob = oob._oob() if isinstance(oob, Store) else self._calls.struct  # type: ignore[union-attr]
        self.rank, self.size = oob.rank, oob.size
        options = _lib.OptionsStruct(algo.encode(), window)
        rc = lib.trib_comm_create(c.byref(self._comm), c.byref(self._oob), c.byref(options), err)
        if rc:
            cause = self._calls.error if self._calls else None
            text = err.value.decode()
            raise Error(-rc, f"{text}: {cause}" if cause else text) from cause

    @property
    def error(self) -> str:
        """Why it has failed; "": it has not."""
        return _lib.load().trib_comm_error(self._open()).decode()  # type: ignore[no-any-return]

    @property
    def fell_back(self) -> str:
        """Why parts of the in-network path are no longer used; "": all are."""
        return _lib.load().trib_comm_fell_back(self._open()).decode()  # type: ignore[no-any-return]

    def trees(self) -> tuple[int, str]:
        """Aggregation trees that the switches granted to all ranks, and what they refused."""
        err = c.create_string_buffer(_lib.TEXT)
        return int(_lib.load().trib_comm_trees(self._open(), err)), err.value.decode()

    def progress(self) -> None:
        """Proceeds without asking for one operation."""
        _lib.load().trib_progress(self._open())

    def close(self) -> None:
        """Every rank calls it; operations that have not ended fail. No thread may be in a call."""
        if self._comm:
            for request in list(self._running):
                request._lost()
            self._running.clear()
            _lib.load().trib_comm_destroy(self._comm)
            self._comm = c.c_void_p()

    def __enter__(self) -> "Communicator":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> c.c_void_p:
        if not self._comm:
            raise Error(errnos.EBADF, "the communicator is closed")
        return self._comm

    # ---- operations ----

    def start(
        self,
        kind: str,
        send: int,
        recv: int,
        count: int,
        type: int,
        op: int = 0,
        root: int = 0,
        keep: object = None,
    ) -> Request:
        """An operation by addresses and the library's numbers; keep: what lives until it has ended."""
        reduces, rooted = KINDS[kind]
        err, handle = c.create_string_buffer(_lib.TEXT), c.c_void_p()
        arguments: list[object] = [self._open()]
        if kind == "broadcast":
            arguments += [send or recv, count, type]
        elif kind != "barrier":
            arguments += [send or None, recv or None, count, type]
        arguments += ([op] if reduces else []) + ([root] if rooted else [])
        rc = getattr(_lib.load(), f"trib_{kind}")(*arguments, c.byref(handle), err)
        if rc:
            raise Error(-rc, f"{kind}: {err.value.decode() or os.strerror(-rc)}")
        request = Request(self, handle, keep, kind)
        self._running.add(request)
        return request

    def _call(
        self,
        kind: str,
        send: object,
        recv: object,
        op: str = "sum",
        root: int = 0,
        type: Optional[str] = None,
    ) -> Request:
        into = None if recv is None else _View(recv, True)
        out = into if send is recv or send is None else _View(send, False)
        some = out or into
        if some is None:
            raise ValueError(f"{kind}: found no buffer")
        name = type or some.type_name()
        names: tuple[tuple[str, str, Collection[str]], ...] = (("type", name, TYPES), ("reduction", op, OPS))
        for what, found, known in names:
            if found not in known:
                raise ValueError(
                    f"{kind}: found {what} {found}, expected one of {', '.join(known)}"
                )
        number, size = TYPES[name]
        count = self._count(kind, out, into, size, root)
        return self.start(
            kind,
            out.address if out else 0,
            into.address if into else 0,
            count,
            number,
            OPS[op],
            root,
            (out, into, send, recv),
        )

    def _count(
        self, kind: str, out: Optional[_View], into: Optional[_View], size: int, root: int
    ) -> int:
        """Elements of the call, from the buffers that this rank uses; both must agree."""
        many_out = kind in ("reduce_scatter", "scatter", "all_to_all")
        many_in = kind in ("all_gather", "gather", "all_to_all")
        counts = []
        for view, many, used in (
            (out, many_out, kind != "scatter" or self.rank == root),
            (into, many_in, kind not in ("gather", "reduce") or self.rank == root),
        ):
            if view is None and used:
                raise ValueError(f"{kind}: a buffer is missing")
            if view is None or not used:
                continue
            block = size * (self.size if many else 1)
            if view.bytes % block:
                raise ValueError(
                    f"{kind}: found {view.bytes} bytes, expected a multiple of {block}: elements of "
                    f"{size} bytes" + (f" for {self.size} ranks" if many else "")
                )
            counts.append(view.bytes // block)
        if out is not into and len(counts) == 2 and counts[0] != counts[1]:
            raise ValueError(
                f"{kind}: found buffers for {counts[0]} and {counts[1]} elements, expected the same"
            )
        return counts[0]

    def all_reduce(
        self, send: object, recv: object = None, op: str = "sum", type: Optional[str] = None
    ) -> Request:
        """Without recv in place."""
        return self._call("all_reduce", send, send if recv is None else recv, op, 0, type)

    def reduce(
        self,
        send: object,
        recv: object = None,
        op: str = "sum",
        root: int = 0,
        type: Optional[str] = None,
    ) -> Request:
        """recv: at the root; without it in place there."""
        if recv is None and self.rank == root:
            recv = send
        return self._call("reduce", send, recv, op, root, type)

    def reduce_scatter(
        self, send: object, recv: object, op: str = "sum", type: Optional[str] = None
    ) -> Request:
        """recv: this rank's block of the reduced send."""
        return self._call("reduce_scatter", send, recv, op, 0, type)

    def broadcast(self, buf: object, root: int = 0, type: Optional[str] = None) -> Request:
        """The root's buffer to all."""
        return self._call("broadcast", buf, buf, root=root, type=type)

    def all_gather(self, send: object, recv: object, type: Optional[str] = None) -> Request:
        """recv: every rank's send, in order of ranks."""
        return self._call("all_gather", send, recv, type=type)

    def gather(
        self, send: object, recv: object = None, root: int = 0, type: Optional[str] = None
    ) -> Request:
        """recv: at the root, every rank's send."""
        return self._call("gather", send, recv, root=root, type=type)

    def scatter(
        self, send: object, recv: object, root: int = 0, type: Optional[str] = None
    ) -> Request:
        """send: at the root, a block for each rank."""
        return self._call("scatter", send, recv, root=root, type=type)

    def all_to_all(self, send: object, recv: object, type: Optional[str] = None) -> Request:
        """Block i of send becomes block of this rank at rank i."""
        return self._call("all_to_all", send, recv, type=type)

    def barrier(self) -> Request:
        """Ends when every rank has called it."""
        return self.start("barrier", 0, 0, 0, TYPES["uint8"][0])
