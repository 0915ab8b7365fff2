# SPDX-License-Identifier: BSD-3-Clause
"""How the package reads files that users name: the one place that does (scripts/one_helper.py finds who else does).

Neither a FIFO nor a device in the place of a file is waited for, none is read without an end, and what is no text or no JSON of a sound size
is refused by one sentence. A pipe is read where somebody writes to it: /dev/stdin, and what a shell makes of <(command).
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import stat
from typing import Any, Iterator, Union

PathLike = Union[str, "os.PathLike[str]"]

MOST_BYTES = 1 << 30
MOST_DEPTH = 64  # of JSON; trib writes less than ten
MOST = 10.0**60  # of a number: products of a few are numbers still
SILENT_S = 10
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class WrongFile(ValueError):
    """A file is not what it should be; the text says what was found, what is expected and where."""


def shown(text: object) -> str:
    """A name or a message of somebody else, for a line of a terminal: control characters and the like are written as \\x1b."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))


def _read(fd: int, most: int, path: str) -> bytes:
    parts: list[bytes] = []
    n = 0
    while True:
        try:
            part = os.read(fd, 1 << 20)
        except BlockingIOError:
            ready, _, _ = select.select([fd], [], [], None if os.isatty(fd) else SILENT_S)
            if not ready:
                raise WrongFile(f"{shown(path)}: found nothing within {SILENT_S} s from who writes to it, expected a file") from None
            continue
        if not part:
            return b"".join(parts)
        parts.append(part)
        n += len(part)
        if n > most:
            raise WrongFile(f"{shown(path)}: found more than {most >> 20} MiB, expected less")


def data_of(path: PathLike, most: int = MOST_BYTES) -> bytes:
    """What is in a plain file, a pipe or a terminal. WrongFile: it is another kind, too long, or nobody writes to it; OSError: it cannot be read."""
    name = os.fspath(path)
    if "\0" in name:
        raise WrongFile(f"{shown(name)}: found a name with a byte of value 0, expected the name of a file")
    fd = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        kind = os.fstat(fd).st_mode
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(21, os.strerror(21), name)
        if stat.S_ISBLK(kind) or (stat.S_ISCHR(kind) and not os.isatty(fd)):
            raise WrongFile(f"{shown(name)}: found no plain file, expected one or a pipe")
        found = _read(fd, most, name)
    finally:
        os.close(fd)
    if not found and stat.S_ISFIFO(kind):
        raise WrongFile(f"{shown(name)}: found a FIFO to which nobody writes, expected a file")
    return found


def text_of(path: PathLike, most: int = MOST_BYTES, expected: str = "text in UTF-8") -> str:
    """A file of UTF-8. WrongFile: it is none."""
    found = data_of(path, most)
    if b"\0" in found:
        raise WrongFile(f"{shown(os.fspath(path))}: found a byte of value 0, expected {expected}")
    try:
        return found.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        raise WrongFile(f"{shown(os.fspath(path))}: found a byte of value 0x{found[e.start]:02x} in line {found[: e.start].count(10) + 1}, expected {expected}") from None


def _check(top: Any, name: str, expected: str) -> None:
    """What Python's reader takes and nobody can use: numbers beyond all measure, and nesting that ends in its stack."""
    todo = [(top, 1)]
    while todo:
        at, depth = todo.pop()
        if depth > MOST_DEPTH:
            raise WrongFile(f"{name}: found JSON nested more than {MOST_DEPTH} deep, expected {expected}")
        for v in at.values() if type(at) is dict else at:
            kind = type(v)
            if kind is dict or kind is list:
                todo.append((v, depth + 1))
            elif (kind is float or kind is int) and not -MOST < v < MOST:
                raise WrongFile(f"{name}: found the number {str(float(v)) if kind is float else 'of more than 60 digits'}, expected {expected}")


def json_of_text(text: str, path: PathLike, expected: str) -> Any:
    """Any JSON value. WrongFile: it is none, or has what no program of ours writes."""
    name = shown(os.fspath(path))
    try:
        top = json.loads(text)
        if _SURROGATE.search(text):
            json.dumps(top, ensure_ascii=False).encode()
    except json.JSONDecodeError as e:
        raise WrongFile(f"{name}: found no JSON ({e.msg}, line {e.lineno}), expected {expected}") from None
    except UnicodeEncodeError:
        raise WrongFile(f"{name}: found half of a character, expected {expected}") from None
    except RecursionError:
        raise WrongFile(f"{name}: found JSON nested more than {MOST_DEPTH} deep, expected {expected}") from None
    except ValueError:  # Python's limit of the digits of an integer
        raise WrongFile(f"{name}: found a number of more than 60 digits, expected {expected}") from None
    if isinstance(top, (dict, list)):
        _check(top, name, expected)
    return top


def json_of(path: PathLike, expected: str) -> dict[str, Any]:
    """The object that a file of JSON is. WrongFile: it is none."""
    top = json_of_text(text_of(path, MOST_BYTES, expected), path, expected)
    if not isinstance(top, dict):
        raise WrongFile(f"{shown(os.fspath(path))}: found no object, expected {expected}")
    return top


@contextlib.contextmanager
def whole(path: PathLike, expected: str, kind: str = "a file") -> Iterator[None]:
    """Where a file's fields are used: one that is missing or of another kind is the file's mistake, and becomes WrongFile."""
    try:
        yield
    except ValueError as e:
        if isinstance(e, WrongFile) or "expected" in str(e):
            raise
        raise WrongFile(f"{shown(os.fspath(path))}: found {shown(e)[:80]}, expected {expected}") from None
    except (KeyError, IndexError, TypeError, AttributeError, ArithmeticError, RecursionError, StopIteration) as e:
        what = f"no {shown(e)}" if isinstance(e, KeyError) else shown(e)[:80] or type(e).__name__
        raise WrongFile(f"{shown(os.fspath(path))}: found {kind} that is not whole ({what}), expected {expected}") from None
