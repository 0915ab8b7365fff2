# SPDX-License-Identifier: BSD-3-Clause
"""Tables of the Intel MPI Benchmarks, part MPI-1: the mean time over processes (t_avg)."""

from __future__ import annotations

import re
from typing import NamedTuple, Optional, Sequence

from .._cli import clean
from .launchers import FOREIGN
from .rows import Row, Series, bad, cut_off, number, size_text, whole


class Test(NamedTuple):
    collective: str
    kind: str = "time"
    per_rank: bool = False  # sizes are of a peer


TESTS = {
    "Allreduce": Test("all_reduce"),
    "Allgather": Test("all_gather", per_rank=True),
    "Reduce_scatter": Test("reduce_scatter"),
    "Alltoall": Test("alltoall", per_rank=True),
    "Bcast": Test("broadcast"),
    "Reduce": Test("reduce"),
    "PingPong": Test("sendrecv", "latency"),
}
_PART = re.compile(r"#\s+Intel\s*\(R\) MPI Benchmark\w*.*?,\s*(\S+) part")
_NOT_DONE = re.compile(r"\s*(\d+)\s+(out-of-mem|int-overflow|time-out)\.;")
_COLUMN = re.compile(r"#?\w+(?:\[\w+\]|/sec)?")


def is_imb(lines: Sequence[str]) -> bool:
    return any(re.match(r"#\s+Intel\s*\(R\) MPI Benchmark|\s*#bytes\s+#repetitions\b", line) for line in lines)


class _Reader:
    def __init__(self, path: str) -> None:
        self.path = path
        self.series: list[Series] = []
        self.skipped: list[tuple[int, str]] = []  # tests that are none of ours
        self.test: Optional[Test] = None
        self.name = ""
        self.ranks = 0
        self.columns: list[str] = []
        self.now: Optional[Series] = None

    def comment(self, line: str, at: int) -> None:
        part, name, ranks = _PART.match(line), re.match(r"#\s+Benchmarking\s+(\S+)", line), re.match(r"#\s+#processes\s*=\s*(\d+)", line)
        groups = re.match(r"#\s*\(?\s*(\d+) groups of (\d+) processes", line)
        if part and part[1] != "MPI-1":
            raise bad(self.path, at, f"the part {clean(part[1])} of the Intel MPI Benchmarks", "MPI-1")
        if name:
            self.name, self.test, self.ranks, self.columns, self.now = name[1], TESTS.get(name[1]), 0, [], None
            if self.test is None:
                self.skipped.append((at, name[1]))
        elif ranks:
            self.ranks = int(ranks[1])
        elif groups and self.test:
            raise bad(self.path, at, f"{groups[1]} groups of {groups[2]} processes at a time", "one group (IMB without -multi)")

    def head(self, line: str, at: int) -> None:
        if not self.name:
            raise bad(self.path, at, "a table without a benchmark's name", "# Benchmarking NAME above it")
        if self.test is None:
            return
        self.columns = _COLUMN.findall(line)
        if "Group" in self.columns:
            raise bad(self.path, at, "a table of several groups", "one group (IMB without -multi)")
        if self._time() is None:
            raise bad(self.path, at, f"the columns '{clean(line.strip())}'", "t_avg[usec], or t[usec]")
        if not self.ranks:
            raise bad(self.path, at, "a table without a number of processes", "# #processes = N above it")
        two = self.test.kind != "time"
        if two and self.ranks != 2:
            raise bad(self.path, at, f"{self.name} of {self.ranks} processes", "2")
        self.now = Series(self.path, self.test.collective, "direct" if two else None, self.ranks, None, self.test.kind)
        self.now.per_rank = self.test.per_rank
        self.series.append(self.now)

    def _time(self) -> Optional[int]:
        return next((i for want in ("t_avg[usec]", "t[usec]") for i, c in enumerate(self.columns) if c == want), None)

    def row(self, line: str, at: int, lines: Sequence[str]) -> None:
        words, s, column = line.split(), self.now, self._time()
        if s is None or column is None or FOREIGN.search(line):
            return
        left = _NOT_DONE.match(line)
        if left:
            s.notes.append(f"{s.where(at)}: {size_text(int(left[1]))} left out: {left[2]}")
            return
        if not re.fullmatch(r"\d+", words[0]):
            raise bad(self.path, at, f"'{clean(line.strip())}'", f"a row of {len(self.columns)} columns, bytes first")
        if len(words) != len(self.columns):
            cut = cut_off(self.path, at, lines) if len(words) < len(self.columns) else ""
            if not cut:
                raise bad(self.path, at, f"{len(words)} columns", f"{len(self.columns)}: {' '.join(self.columns)}")
            s.notes.append(cut)
            return
        size, us = whole(words[0], self.path, at, "bytes"), number(words[column], self.path, at, self.columns[column])
        if "defects" in self.columns and number(words[self.columns.index("defects")], self.path, at, "defects"):
            s.notes.append(f"{s.where(at)}: {size_text(size)} left out: it has defects")
        elif size and us:
            s.rows.append(Row(size, us, at))


def read(path: str, lines: Sequence[str]) -> list[Series]:
    reader = _Reader(path)
    for at, line in enumerate(lines, 1):
        if line.lstrip().startswith("#bytes"):
            reader.head(line, at)
        elif line.startswith("#"):
            reader.comment(line, at)
        elif line.strip():
            reader.row(line, at, lines)
    if reader.series:
        reader.series[0].notes += [f"{clean(path)}:{at}: {clean(name)} left out, expected one of {', '.join(TESTS)}" for at, name in reader.skipped]
    elif reader.skipped:
        raise bad(path, reader.skipped[0][0], f"the benchmark {clean(reader.skipped[0][1])}", f"one of {', '.join(TESTS)}")
    return reader.series
