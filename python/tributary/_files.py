# SPDX-License-Identifier: BSD-3-Clause
"""How the package writes and removes files: the one place that does (scripts/one_helper.py finds who else does).

A file is written under a name that nobody can guess, in the directory that it goes to and with ``O_EXCL``, and is renamed over its target when it
is whole: nobody's link leads it astray, no reader sees half of it, and when writing fails nothing stays.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from typing import IO, Optional, Union

PathLike = Union[str, "os.PathLike[str]"]


def _is_special(path: PathLike) -> bool:
    """Whether the path is a device in /dev, or below /dev/fd, /dev/pts or /proc, as /dev/stdout leads to. /dev/shm is a place for files."""
    return re.fullmatch(r"/dev/(fd/|pts/)?[^/]+|/proc/.*", os.path.abspath(path)) is not None


def _append(name: bytes, data: bytes, folder: int) -> None:
    """What is no plain file, a FIFO or a terminal, is written to as it is. PermissionError: another user's."""
    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if found.st_uid not in (os.geteuid(), 0):
        raise PermissionError(1, f"found {stat.filemode(found.st_mode)} of user {found.st_uid}, expected a file of this user's", os.fsdecode(name))
    with open(os.open(name, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder), "wb") as f:
        f.write(data)


def _mode_of(name: bytes, folder: int) -> Optional[int]:
    """The permissions of a plain file; None: there is none, or a link, which is replaced."""
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(21, os.strerror(21), os.fsdecode(name))
    return stat.S_IMODE(found.st_mode) & 0o777 if stat.S_ISREG(found.st_mode) else -1 if not stat.S_ISLNK(found.st_mode) else None


def _replace(name: bytes, data: bytes, folder: int, mode: Optional[int]) -> None:
    old = _mode_of(name, folder)
    if old == -1:
        return _append(name, data, folder)
    new = b"." + name[:200] + b"." + secrets.token_hex(8).encode() + b".tmp"
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    wanted = mode if mode is not None else old
    fd = os.open(new, flags, 0o666 if wanted is None else 0o600, dir_fd=folder)
    try:
        with open(fd, "wb") as f:
            if wanted is not None:
                os.fchmod(fd, wanted)
            f.write(data)
        os.replace(new, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        os.unlink(new, dir_fd=folder)
        raise


def write_whole(path: PathLike, text: str, mode: Optional[int] = None) -> None:
    """Writes a file, all of it or nothing; OSError names path.

    A file that is replaced keeps its permissions, unless mode says others; a link is replaced, not followed.
    """
    data, at = text.encode(), os.fspath(path)
    try:
        if _is_special(at):
            with open(at, "ab") as f:
                f.write(data)
            return
        folder = os.open(os.path.dirname(at) or ".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _replace(os.fsencode(os.path.basename(at)), data, folder, mode)
        finally:
            os.close(folder)
    except OSError as e:
        raise OSError(e.errno, e.strerror, at) from None


def new_file(path: PathLike) -> IO[bytes]:
    """A file to write to as it grows, in place of the one that is there, whose links are not followed."""
    discard(path)
    return open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666), "wb")


def discard(path: PathLike) -> None:
    """Removes a file, or a link, if it is there."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
