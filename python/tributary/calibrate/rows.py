# SPDX-License-Identifier: BSD-3-Clause
"""Rows of results, and what all readers of them need."""

from __future__ import annotations

import os
import re
from typing import Mapping, Optional, Sequence

from .._cli import Refused, clean

MIB = 1 << 20
UNITS = ((1 << 30, "GiB"), (MIB, "MiB"), (1024, "KiB"))


class Options:
    """What of the command line readers need."""

    def __init__(self) -> None:
        self.output: Optional[str] = None
        self.algo: Optional[str] = None
        self.collective: Optional[str] = None
        self.ranks: Optional[int] = None
        self.place = "out"
        self.least: Optional[int] = None  # bytes


class Row:
    """One size: us is its time; `line` is where it is in its file."""

    def __init__(self, size: int, us: float, line: int) -> None:
        self.size, self.us, self.line, self.use = size, us, line, "used"

    def counts(self) -> bool:
        return self.use in ("used", "outlier")


class Series:
    """Rows of one collective, algorithm and number of ranks.

    kind       "time", "latency" of messages (every size counts) or "rate" (bandwidth of a stream of messages: no floor)
    ranks      0: the file does not say
    per_rank   sizes are of a peer, not of the whole vector
    not_ours   why the algorithm that the file names is none of ours; "": it is, or the file names none
    """

    def __init__(
        self, path: str, collective: Optional[str] = None, algo: Optional[str] = None, ranks: int = 0, hosts: Optional[int] = None, kind: str = "time"
    ) -> None:
        self.path, self.collective, self.algo, self.ranks, self.hosts, self.kind = path, collective, algo, ranks, hosts, kind
        self.per_rank, self.not_ours = False, ""
        self.rows: list[Row] = []
        self.expected: list[int] = []
        self.notes: list[str] = []
        self.sizes = (0, 0, 2)  # what is simulated: first, last, factor

    def name(self) -> str:
        return clean(os.path.basename(self.path))

    def where(self, line: int) -> str:
        return f"{clean(self.path)}:{line}"


def size_text(n: int) -> str:
    for unit, name in UNITS:
        if n >= unit and n % unit == 0:
            return f"{n // unit} {name}"
    return f"{n} B"


def bad(path: str, line: int, found: str, expected: str) -> Refused:
    return Refused(f"{clean(path, 200)}:{line}: found {found}, expected {expected}")


def number(text: str, path: str, line: int, what: str) -> float:
    """A positive number or 0, with a decimal point."""
    if re.fullmatch(r"\d{1,18}(\.\d+)?([eE][+-]?\d{1,2})?", text):
        return float(text)
    raise _no_number(text, path, line, what)


def whole(text: str, path: str, line: int, what: str) -> int:
    if re.fullmatch(r"\d{1,18}", text):
        return int(text)
    raise _no_number(text, path, line, what)


def _no_number(text: str, path: str, line: int, what: str) -> Refused:
    why = "; a comma is no decimal point (set LC_ALL=C)" if re.fullmatch(r"[\d.]+,[\d.,]+", text) else ""
    return bad(path, line, f"'{clean(text)}'", f"{what}, a number{why}")


def take(series: Series, size: int, us: Mapping[str, float], line: int, wrong: Mapping[str, str], choice: str, where: str) -> None:
    """Adds what a row has for the place that is asked for: us is {place: value}, wrong {place: what its check found}."""
    place = next((p for p in (choice, "in" if choice == "out" else None) if p and us.get(p)), None)
    if place is None:
        return
    if wrong.get(place):
        series.notes.append(f"{where}: {size_text(size)} {'out of place' if place == 'out' else 'in place'} left out: {wrong[place]}")
    elif size > 0:
        series.rows.append(Row(size, us[place], line))


def cut_off(path: str, line: int, lines: Sequence[str]) -> str:
    """What is told of a last row that has too little; "": rows follow."""
    return "" if any(rest.strip() for rest in lines[line:]) else f"{clean(path)}:{line}: the last row is cut off and left out"


def steps(size: int, most: int, step: int, factor: bool) -> list[int]:
    """Sizes that a benchmark announces."""
    out: list[int] = []
    while size <= most and len(out) < 4096 and step > (1 if factor else 0):
        out.append(size)
        size = size * step if factor and size else size + step
    return out
