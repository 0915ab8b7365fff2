# SPDX-License-Identifier: BSD-3-Clause
"""Files that are read, names that are made, and what is left out."""

from __future__ import annotations

import re
from typing import NamedTuple

from .._cli import Refused
from .._input import WrongFile, data_of, shown

MOST_BYTES = 64 << 20
MOST_LINE = 16384  # characters


class Line(NamedTuple):
    """A line of the conf, and where in the input what it says comes from."""

    text: str
    where: str = ""


class Notes:
    """What is left out or assumed, by its reason; each is told once, with the first line and how many there are."""

    def __init__(self) -> None:
        self.of: dict[str, list[str]] = {}

    def add(self, why: str, where: str) -> None:
        found = self.of.setdefault(why, [])
        if where not in found:
            found.append(where)

    def lines(self) -> list[str]:
        return [f"{where[0]}: {why}" + (f" (and {len(where) - 1} more)" if len(where) > 1 else "") for why, where in self.of.items()]


class Names:
    """Names as confs have them, each once."""

    def __init__(self) -> None:
        self.used: set[str] = set()

    def make(self, text: str, other: str) -> str:
        base = re.sub(r"[^A-Za-z0-9._]+", "_", text).strip("._") or other
        if len(base) > 24:  # without a domain; of what is longer still, the ends tell machines apart
            base = base.split(".")[0]
            base = base if len(base) <= 24 else f"{base[:8].rstrip('_')}_{base[-15:].lstrip('_')}"
        if not base[0].isalpha():
            base = "n" + base
        name, n = base, 2
        while name in self.used:
            name, n = f"{base}_{n}", n + 1
        self.used.add(name)
        return name


def text_of(path: str) -> str:
    if re.search(r"[\x00-\x1f\x7f-\x9f]", path):
        raise Refused(f"{shown(path)}: found a name with control characters, expected one without: it is told in the conf")
    try:
        data = data_of(path, MOST_BYTES)
    except WrongFile as e:
        raise Refused(str(e)) from None
    if data[:2] in (b"\x1f\x8b", b"\xff\xfe", b"\xfe\xff") or b"\0" in data:
        what = "a file that gzip has compressed" if data[:2] == b"\x1f\x8b" else "a binary file or one in UTF-16"
        raise Refused(f"{path}: found {what}, expected text in UTF-8")
    text = data.decode("utf-8-sig", "replace")
    if max(map(len, text.split("\n"))) > MOST_LINE:
        raise Refused(f"{path}: found a line of more than {MOST_LINE} characters, expected what ibnetdiscover or NCCL writes")
    return text
