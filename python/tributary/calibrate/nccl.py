# SPDX-License-Identifier: BSD-3-Clause
"""nccl-tests' table of all ages, whose head names the columns; trib perf's and trib sim's has the same ones."""

from __future__ import annotations

import re
from typing import Optional, Sequence

from .._cli import Refused, clean
from . import nccl_algo
from .launchers import FOREIGN
from .rows import MIB, Options, Series, bad, number, size_text, steps, take, whole

TESTS = ("all_reduce", "all_gather", "reduce_scatter", "alltoall", "broadcast", "reduce", "sendrecv")
# Above these the column "error" of old versions says that a check failed.
MOST_ERROR = {"double": 1e-12, "float": 1e-5, "half": 1e-2, "bfloat16": 1e-2, "float16": 1e-2, "float32": 1e-5, "float64": 1e-12}
_UNITS = {"(B)", "(elements)", "(us)", "(GB/s)", "(%)", "%Y-%m-%d", "%H:%M:%S"}  # of a time stamp, its format
_OWN_HEAD = re.compile(r"# trib-\w+ \S+ (\w+) on .*?, (\d+) ranks")
_RANK = re.compile(r"#\s+Rank\s+(\d+)\s+(?:Group\s+(\d+)\s+)?Pid\s+\d+ on\s+(\S+)")
_BROKEN = re.compile(r"\s+\d+\s+\d+\s+[a-z]\w*\s")
_SIZES = re.compile(r"minBytes (\d+) maxBytes (\d+) step: (\d+)\((factor|bytes)\)")


def test_of(text: str) -> Optional[str]:
    """The collective of a program that the text names."""
    found = re.search(rf"\b({'|'.join(TESTS)})_perf(_mpi)?\b", text)
    return found.group(1) if found else None


class Text:
    def __init__(self, path: str, o: Options) -> None:
        self.path, self.o = path, o
        self.series: list[Series] = []
        self.columns: Optional[list[str]] = None
        self.hosts: set[str] = set()
        self.ranks: dict[int, int] = {}
        self.own = False
        self.collective: Optional[str] = None
        self.algo: Optional[str] = None  # of ours
        self.asked: Optional[tuple[str, int]] = None  # NCCL_ALGO and its line
        self.chosen: dict[int, str] = {}  # by NCCL, for each size
        self.chosen_at = 0
        self.expected: list[int] = []
        self.now: Optional[Series] = None
        self.early: list[str] = []
        self.failed = 0  # rows of the table whose check failed

    def comment(self, line: str, at: int) -> None:
        m = _OWN_HEAD.match(line)
        if m:
            self.own, self.collective, self.ranks, self.now = True, m[1], {r: 1 for r in range(int(m[2]))}, None
        m = _RANK.match(line)
        if m:
            self.rank(int(m[1]), int(m[2] or 0), m[3], at)
        m = re.match(r"# Algorithm: (\w+)", line)
        if m:
            self.algo, self.now = m[1], None
        m = _SIZES.search(line)
        if m:
            self.expected = steps(int(m[1]), int(m[2]), int(m[3]), m[4] == "factor") or self.expected
        m = re.match(r"#\s+Out of bounds values\s*:\s*(\d+)\s+(\w+)", line)
        if m and m[2] == "FAILED" and not self.failed:
            raise bad(self.path, at, f"{m[1]} values out of bounds", "rows that say which (#wrong or error)")
        words = line[1:].split()
        if words[:2] == ["size", "count"]:
            self.head(words, at)
        elif words[:1] == ["(B)"] and not _UNITS.issuperset(words):
            other = next(w for w in words if w not in _UNITS)
            raise bad(self.path, at, f"the unit {clean(other)}", f"one of {', '.join(sorted(_UNITS))}")

    def head(self, words: list[str], at: int) -> None:
        if "cputime" in words:
            raise bad(self.path, at, "the column cputime", "time: what a CPU takes to start an operation is not what it takes (nccl-tests without -C)")
        if "time" not in words:
            raise bad(self.path, at, "a head without the column time", "nccl-tests' columns size count type ... time algbw busbw")
        self.columns, self.now, self.failed = words, None, 0

    def rank(self, number: int, group: int, host: str, at: int) -> None:
        if group > 0:
            raise bad(self.path, at, f"group {group} of ranks", "one group: tests of several at a time are not fitted (NCCL_TESTS_SPLIT)")
        self.ranks[number] = self.ranks.get(number, 0) + 1
        self.hosts.add(host)
        if self.ranks[number] > 1:
            raise bad(self.path, at, f"rank {number} a second time", "each rank once: nccl-tests without MPI=1 runs apart on every node, or these are several outputs")

    def places(self) -> tuple[list[int], int, int]:
        """Columns of each place: from one time to the next, or to what only trib has."""
        words = self.columns or []
        begin = [i for i, w in enumerate(words) if w == "time"][:2]
        ends = [i for i, w in enumerate(words) if w in ("link", "timestamp")] or [len(words)]
        tail = (len(words) - ends[0]) + (1 if "timestamp" in words else 0)  # a date and a time
        return begin, (begin[1] if len(begin) > 1 else ends[0]) - begin[0], tail

    def row(self, line: str, at: int, last: bool) -> None:
        words, columns = line.split(), self.columns or []
        begin, width, tail = self.places()
        places = len(begin)
        least, most = 3 + places * width, begin[0] + places * width + tail
        if not re.fullmatch(r"\d+", words[0]):
            raise bad(self.path, at, f"'{clean(line.strip())}'", f"a row of {most} columns, size first, or a comment")
        if len(words) < least or (self.own and len(words) < most - 1):
            if last:
                self.note(f"{clean(self.path)}:{at}: the last row is cut off and left out (found {len(words)} columns, expected {most})")
                return
            raise bad(self.path, at, f"{len(words)} columns", f"{most}: {' '.join(columns)}")
        if len(words) > most + 2:
            raise bad(self.path, at, f"{len(words)} columns", f"{most}: {' '.join(columns)}")
        size = whole(words[0], self.path, at, "size in bytes")
        whole(words[1], self.path, at, "count of elements")
        body = words[begin[0] :] if self.own else words[len(words) - places * width - (2 if "timestamp" in columns else 0) :]
        us: dict[str, float] = {}
        wrong: dict[str, str] = {}
        for k, p in enumerate(("out", "in")[:places]):
            part = body[k * width : (k + 1) * width]
            if part[0] == "-":
                continue
            us[p] = number(part[0], self.path, at, "time in us of out of place" if p == "out" else "time in us in place")
            for w, what in zip(part[1:3], ("algbw", "busbw")):
                number(w, self.path, at, what)
            wrong[p] = self.check(part[3], columns[begin[0] + 3], words[2], at) if len(part) > 3 else ""
            self.failed += bool(wrong[p])
            if us[p] > 0:
                self.guess(size, words, us[p], float(part[2]))
        take(self.at(), size, us, at, wrong, self.o.place, f"{clean(self.path)}:{at}")

    def check(self, value: str, column: str, kind: str, at: int) -> str:
        """What the check of a row says against it; "": nothing."""
        if value in ("N/A", "-") or column not in ("#wrong", "error"):
            return ""
        found = number(value, self.path, at, column)
        if column == "#wrong":
            return f"{found:g} elements are wrong" if found else ""
        most = MOST_ERROR.get(kind, 0.0 if "int" in kind else 1e-2)
        return f"its error is {found:g}, above {most:g} of {clean(kind, 12)}" if found > most else ""

    def guess(self, size: int, words: Sequence[str], us: float, busbw: float) -> None:
        """busbw over algbw tells the collective, where nothing names it: 2(n-1)/n or (n-1)/n."""
        n = len(self.ranks)
        if self.collective or n < 2 or size < MIB:
            return
        ratio = busbw / (size / us / 1e3)
        if any(w in ("sum", "prod", "min", "max", "avg") for w in words):
            for name, expected in (("all_reduce", 2 * (n - 1) / n), ("reduce_scatter", (n - 1) / n)):
                if abs(ratio / expected - 1) < 0.02:
                    self.collective = name

    def note(self, text: str) -> None:
        (self.series[-1].notes if self.series else self.early).append(text)

    def at(self) -> Series:
        if self.now is None:
            self.now = Series(self.path)
            self.now.expected = self.expected
            self.series.append(self.now)
            self.now.notes += self.early
            self.early = []
        self.now.collective = self.now.collective or self.collective
        self.now.algo, self.now.ranks, self.now.hosts = self.algo, len(self.ranks), len(self.hosts) or None
        return self.now

    def log(self, line: str, at: int) -> None:
        """What lines of any kind tell of the test and of its algorithm."""
        if self.columns is None:
            self.collective = test_of(line) or self.collective
        value, choice = nccl_algo.asked(line), nccl_algo.chosen(line)
        if value is not None:
            self.asked = (value, at)
        if choice is not None:
            self.chosen[choice[0]], self.chosen_at = choice[1], at

    def read(self, lines: Sequence[str]) -> list[Series]:
        for at, line in enumerate(lines, 1):
            self.log(line, at)
            if line.startswith("#"):
                self.comment(line, at)
            elif self.columns and _BROKEN.match(line) and FOREIGN.search(line):
                self.note(f"{clean(self.path)}:{at}: the row of {size_text(int(line.split()[0]))} is left out: another process wrote into its line")
            elif self.columns and not FOREIGN.search(line) and not (self.own and at > 1 and re.match(r"\s+\d+\s+\w+\s+\w+\s+[\d.]+ ", line)):
                self.row(line, at, at >= len(lines) - 1 and not any(rest.strip() for rest in lines[at:]))
        if self.columns is None:
            raise Refused(f"{clean(self.path)}: found no head of columns (# size count type ... time algbw busbw), expected nccl-tests' output")
        for s in self.series:
            s.collective = s.collective or self.collective
            if not self.own:
                self.name_algo(s)
        return self.series

    def name_algo(self, s: Series) -> None:
        if self.asked:
            s.algo, s.not_ours = nccl_algo.ours(self.asked[0], s.collective, s.where(self.asked[1]))
        elif self.chosen:
            used = {size: name for size, name in self.chosen.items() if size in {r.size for r in s.rows}}
            s.algo, s.not_ours = nccl_algo.of_choices(used, MIB if self.o.least is None else self.o.least, s.where(self.chosen_at))
