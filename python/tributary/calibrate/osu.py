# SPDX-License-Identifier: BSD-3-Clause
"""Tables of OSU's micro-benchmarks."""

from __future__ import annotations

import re
from typing import NamedTuple, Optional, Sequence

from .._cli import clean
from .launchers import FOREIGN
from .rows import Row, Series, bad, cut_off, number, size_text, whole


class Test(NamedTuple):
    collective: str
    kind: str = "time"
    per_rank: bool = False  # sizes are of a peer, trib's are of the whole vector


TESTS = {  # by the title, without what is before and after it
    "allreduce latency": Test("all_reduce"),
    "allgather latency": Test("all_gather", per_rank=True),
    "reduce_scatter latency": Test("reduce_scatter"),
    "all-to-all personalized exchange latency": Test("alltoall", per_rank=True),
    "alltoall latency": Test("alltoall", per_rank=True),
    "broadcast latency": Test("broadcast"),
    "bcast latency": Test("broadcast"),
    "reduce latency": Test("reduce"),
    "latency": Test("sendrecv", "latency"),
    "bandwidth": Test("sendrecv", "rate"),
}
_TITLE = re.compile(r"#\s+OSU (\S+) (.*?)(?: Test)?(?: v[\d.]+\S*)?\s*$")
_LIBRARY = re.compile(r"(MPI|NCCL|RCCL|XCCL)(-\w+)?(\(.*\))?", re.IGNORECASE)


def is_osu(lines: Sequence[str]) -> bool:
    return any(re.match(r"#\s+OSU ", line) for line in lines)


def read(path: str, lines: Sequence[str]) -> list[Series]:
    series: list[Series] = []
    columns = 0
    for at, line in enumerate(lines, 1):
        words = line.split()
        head = re.match(r"#\s+(?:Size|Message Size)\s+(.*)", line)
        title = _TITLE.match(line)
        if title:
            test = TESTS.get(title[2].lower()) if _LIBRARY.fullmatch(title[1]) else None
            if test is None:
                raise bad(path, at, f"'{clean(line)}'", f"an OSU benchmark out of {', '.join(sorted(TESTS))}")
            two = test.kind != "time"
            series.append(Series(path, test.collective, "direct" if two else None, 2 if two else 0, None, test.kind))
            series[-1].per_rank, columns = test.per_rank, 0
        elif head and series:
            columns = _head(series[-1], head[1], at)
        elif words and not line.startswith("#") and columns:
            _row(series[-1], line, columns, at, lines)
    return series


def _head(s: Series, text: str, at: int) -> int:
    """How many columns there are; the first after the size is read."""
    found = re.match(r"(?:Avg )?(?:Latency|Bandwidth)\s*\((\S+)\)", text)
    expected = "Bandwidth (MB/s)" if s.kind == "rate" else "Latency (us)"
    if found is None or found[1] != ("MB/s" if s.kind == "rate" else "us"):
        what = f"the unit '{clean(found[1])}'" if found else f"the columns '{clean(text.strip())}'"
        raise bad(s.path, at, what, expected)
    return len(re.findall(r"\([^)]*\)|Iterations|Validation", text)) + 1


def _row(s: Series, line: str, columns: int, at: int, lines: Sequence[str]) -> None:
    words = line.split()
    if not re.fullmatch(r"\d+", words[0]):
        if FOREIGN.search(line):
            return
        raise bad(s.path, at, f"'{clean(line.strip())}'", f"a row of {columns} columns, size first")
    if not 2 <= len(words) <= columns:
        cut: Optional[str] = cut_off(s.path, at, lines) if len(words) < 2 else ""
        if not cut:
            raise bad(s.path, at, f"{len(words)} columns", str(columns))
        s.notes.append(cut)
        return
    size, value = whole(words[0], s.path, at, "size in bytes"), number(words[1], s.path, at, "a time or rate")
    if words[-1].lower() == "fail":
        s.notes.append(f"{s.where(at)}: {size_text(size)} left out: its validation failed")
    elif size and value:
        s.rows.append(Row(size, size / value if s.kind == "rate" else value, at))
