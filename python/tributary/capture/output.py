# SPDX-License-Identifier: BSD-3-Clause
"""The file, or pipe, that grows as frames come."""

from __future__ import annotations

import os
import select
import stat

from .._cli import Refused


def open_output(path: str) -> int:
    """Follows no link and writes into nobody else's file."""
    out = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    of = os.fstat(out)
    if not stat.S_ISREG(of.st_mode) or of.st_uid != os.geteuid():
        raise Refused(f"cannot write {path}: found another user's file, or no plain file, there")
    os.ftruncate(out, 0)
    return out


def write(out: int, data: bytes) -> None:
    while data:
        data = data[os.write(out, data) :]


def is_gone(out: int) -> bool:
    """Whether nobody reads what is written there any more."""
    look = select.poll()
    look.register(out, 0)
    return bool(look.poll(0))
