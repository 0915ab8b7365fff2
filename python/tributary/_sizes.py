# SPDX-License-Identifier: BSD-3-Clause
"""Sizes in bytes: as texts, as series, and as trib's -b, -e, -f and -i."""

from __future__ import annotations

import re
from typing import Iterable, Sequence, Union

Size = Union[int, str]

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
_TEXT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmg]?)(i?b)?\s*", re.IGNORECASE)


def size_bytes(size: Size) -> int:
    """Bytes of 4096, "4K", "4KiB" (2^10) or "4kB" (10^3). ValueError: it is none of these."""
    if isinstance(size, str):
        found = _TEXT.fullmatch(size)
        if found:
            number, unit, tail = found.group(1), found.group(2).lower(), (found.group(3) or "").lower()
            decimal = unit and tail == "b"
            value = float(number) * (_UNITS[unit] if decimal else 1 << 10 * " kmg".index(unit or " "))
            if value == int(value) and value > 0:
                return int(value)
    elif not isinstance(size, bool) and int(size) == size and size > 0:
        return int(size)
    raise ValueError(f'found the size {size!r}, expected bytes such as 4096, "4K" or "4KiB"')


def size_text(size: float) -> str:
    """1024 as "1 KiB"."""
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.4g} GiB"


def sizes(first: Size, last: Size, factor: int = 4) -> list[int]:
    """first, first * factor, first * factor^2, ... up to last, in bytes; as trib's -b, -e and -f."""
    at, end = size_bytes(first), size_bytes(last)
    if int(factor) != factor or factor < 2:
        raise ValueError(f"found the factor {factor!r}, expected an integer of 2 or more")
    if at > end:
        raise ValueError(f"found sizes from {first!r} to {last!r}, expected the smaller one first")
    series = []
    while at <= end:
        series.append(at)
        at *= int(factor)
    return series


def size_list(what: Union[Size, Iterable[Size]]) -> list[int]:
    """One size or several, sorted, each once."""
    found = sorted({size_bytes(s) for s in ([what] if isinstance(what, (int, str)) else what)})
    if not found:
        raise ValueError("found no sizes, expected one at least")
    return found


def _step(series: Sequence[int]) -> list[str]:
    """trib's option that makes this series from its first and last; empty: none does."""
    if len(series) == 1:
        return ["-f", "2"]
    pairs = list(zip(series, series[1:]))
    if all(b % a == 0 and b // a == series[1] // series[0] for a, b in pairs):
        return ["-f", str(series[1] // series[0])]
    if all(b - a == series[1] - series[0] for a, b in pairs):
        return ["-i", str(series[1] - series[0])]
    return []


def size_options(series: Sequence[int]) -> list[list[str]]:
    """The options of as few runs as have these sizes, in order."""
    runs, at = [], 0
    while at < len(series):
        end = len(series)
        while not _step(series[at:end]):
            end -= 1
        part = series[at:end]
        runs.append(["-b", str(part[0]), "-e", str(part[-1]), *_step(part)])
        at = end
    return runs
