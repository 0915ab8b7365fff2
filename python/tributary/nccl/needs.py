# SPDX-License-Identifier: BSD-3-Clause
"""What trib nccl needs of the machine: NCCL, a GPU, a plug-in. Each is found, or it is said what is missing."""

from __future__ import annotations

import ctypes.util
import glob
import os
import sys
from typing import NamedTuple, Optional, Sequence

from .._trib import trib
from .libraries import Cuda, Failed, Nccl

OLDEST = (2, 20)  # the first that knows a plug-in's tables v8
PLUGIN = "libnccl-net-tributary.so"


class Found(NamedTuple):
    nccl: str
    version: str
    gpus: Sequence[str]  # their names
    plugin: Optional[str]


class Missing(Exception):
    """Lines: what was looked for where."""


def _nccl(named: Optional[str]) -> str:
    """A path, or what the loader knows. PyTorch's packages have their own."""
    if named:
        return named
    for folder in sys.path:
        for at in sorted(glob.glob(os.path.join(glob.escape(folder), "nvidia", "nccl", "lib", "libnccl.so.2"))):
            return at
    return ctypes.util.find_library("nccl") or "libnccl.so.2"


def _plugin(named: Optional[str]) -> str:
    if named:
        at = named
    else:
        top = trib().parent.parent
        places = [os.path.join(f, PLUGIN) for f in (os.environ.get("TRIB_BUILD"), top / "build", top / "lib" / "tributary") if f]
        at = next((p for p in places if os.path.isfile(p)), str(places[-1]))
    if not os.path.isfile(at):
        raise Failed(f"no plug-in for SHARP: found no file {at}")
    return os.path.realpath(at)


def _version(path: str) -> str:
    try:
        number = Nccl(path).version()
    except Failed as e:
        raise Failed(f"{e}; --nccl names another libnccl.so.2, PyTorch's package nvidia-nccl has one") from None
    text = ".".join(map(str, number))
    if number[:2] < OLDEST:
        raise Failed(f"found NCCL {text} ({path}), expected {'.'.join(map(str, OLDEST))} or newer")
    return text


def find(nccl: Optional[str], plugin: Optional[str], own: bool, sharp: bool) -> Found:
    """own: NCCL is called here, not by a program. Missing: something is not there; all of it is listed."""
    lacks: list[str] = []
    version, gpus, path, at = "", [], _nccl(nccl), None
    try:
        version = _version(path) if own else ""
    except Failed as e:
        lacks.append(str(e))
    try:
        cuda = Cuda()
        gpus = [cuda.name(i) for i in range(cuda.gpus())]
        if not gpus:
            lacks.append("the CUDA driver has no GPU, and NCCL needs one; all ranks may share it")
    except Failed as e:
        lacks.append(f"{e}; NCCL needs a GPU, which all ranks may share")
    if sharp:
        try:
            at = _plugin(plugin)
        except Failed as e:
            lacks.append(str(e))
    if lacks:
        raise Missing("\n".join(lacks))
    return Found(path, version, gpus, at)
