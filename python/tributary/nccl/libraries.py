# SPDX-License-Identifier: BSD-3-Clause
"""NCCL and the CUDA driver by ctypes, as far as an all-reduce needs them. A rank has one GPU, one stream and one communicator."""

from __future__ import annotations

import ctypes
from typing import Any

FLOAT, SUM = 7, 0  # of ncclDataType_t and ncclRedOp_t
ID = 128


class NcclId(ctypes.Structure):
    _fields_ = (("text", ctypes.c_char * ID),)


class Failed(Exception):
    """A call of a library failed; the text has its name and the library's word."""


class Cuda:
    """The driver, with the context that NCCL's runtime uses."""

    def __init__(self) -> None:
        try:
            self.lib = ctypes.CDLL("libcuda.so.1")
        except OSError as e:
            raise Failed(f"no CUDA driver: {e}") from None
        self.call("cuInit", ctypes.c_uint(0))

    def call(self, name: str, *args: Any) -> None:
        status = getattr(self.lib, name)(*args)
        if status:
            text = ctypes.c_char_p()
            known = not self.lib.cuGetErrorName(status, ctypes.byref(text)) and text.value
            raise Failed(f"{name}: {(text.value or b'').decode() if known else f'error {status}'}")

    def gpus(self) -> int:
        n = ctypes.c_int()
        self.call("cuDeviceGetCount", ctypes.byref(n))
        return n.value

    def name(self, gpu: int) -> str:
        text = ctypes.create_string_buffer(128)
        self.call("cuDeviceGetName", text, 128, gpu)
        return text.value.decode(errors="replace")

    def use(self, gpu: int) -> None:
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), gpu)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def allocate(self, size: int) -> ctypes.c_void_p:
        at = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(at), ctypes.c_size_t(size))
        return ctypes.c_void_p(at.value)

    def stream(self) -> ctypes.c_void_p:
        stream = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(stream), ctypes.c_uint(1))  # it does not wait for the default stream
        return stream

    def synchronize(self, stream: ctypes.c_void_p) -> None:
        self.call("cuStreamSynchronize", stream)

    def staging(self, size: int) -> ctypes.Array[ctypes.c_char]:
        """Host memory that the GPU copies to and from."""
        memory = ctypes.create_string_buffer(size)
        self.call("cuMemHostRegister_v2", memory, ctypes.c_size_t(size), ctypes.c_uint(0))
        return memory

    def copy(self, to: Any, of: Any, size: int, stream: ctypes.c_void_p) -> None:
        """Each is an address of the GPU, or staging."""
        first, second = (ctypes.c_uint64(ctypes.cast(a, ctypes.c_void_p).value or 0) for a in (to, of))
        self.call("cuMemcpyAsync", first, second, ctypes.c_size_t(size), stream)
        self.synchronize(stream)


class Nccl:
    def __init__(self, path: str) -> None:
        try:
            self.lib = ctypes.CDLL(path)
        except OSError as e:
            raise Failed(f"no NCCL: {e}") from None
        self.comm = ctypes.c_void_p()
        for name in ("ncclGetVersion", "ncclGetUniqueId", "ncclCommInitRank", "ncclAllReduce", "ncclCommDestroy", "ncclGetErrorString", "ncclGetLastError"):
            if not hasattr(self.lib, name):
                raise Failed(f"{path}: found no {name}, expected NCCL's library")
        self.lib.ncclCommInitRank.argtypes = (ctypes.c_void_p, ctypes.c_int, NcclId, ctypes.c_int)
        self.lib.ncclAllReduce.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
        self.lib.ncclGetErrorString.restype = self.lib.ncclGetLastError.restype = ctypes.c_char_p
        self.lib.ncclGetLastError.argtypes = (ctypes.c_void_p,)
        self.lib.ncclCommDestroy.argtypes = (ctypes.c_void_p,)

    def call(self, name: str, *args: Any) -> None:
        status = getattr(self.lib, name)(*args)
        if status:
            more = (self.lib.ncclGetLastError(None) or b"").decode(errors="replace").strip()
            raise Failed(f"{name}: {self.lib.ncclGetErrorString(status).decode(errors='replace')}" + (f"; {more}" if more else ""))

    def version(self) -> tuple[int, int, int]:
        n = ctypes.c_int()
        self.call("ncclGetVersion", ctypes.byref(n))
        return (n.value // 10000, n.value // 100 % 100, n.value % 100) if n.value >= 10000 else (n.value // 1000, n.value // 100 % 10, n.value % 100)

    def new_id(self) -> bytes:
        own = NcclId()
        self.call("ncclGetUniqueId", ctypes.byref(own))
        return bytes(own)

    def join(self, ident: bytes, rank: int, ranks: int) -> None:
        self.call("ncclCommInitRank", ctypes.byref(self.comm), ranks, NcclId.from_buffer_copy(ident), rank)

    def all_reduce(self, send: ctypes.c_void_p, recv: ctypes.c_void_p, count: int, stream: ctypes.c_void_p) -> None:
        self.call("ncclAllReduce", send, recv, count, FLOAT, SUM, self.comm, stream)

    def leave(self) -> None:
        self.call("ncclCommDestroy", self.comm)
