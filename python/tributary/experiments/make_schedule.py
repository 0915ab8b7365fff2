# SPDX-License-Identifier: BSD-3-Clause
"""Writes schedules of published algorithms, as in conf/schedules; docs/schedules.md says what each is.

usage: scripts/make_schedule ring|allpairs|bruck|tree|doubling RANKS
"""
from __future__ import annotations

import sys
from typing import Callable, Optional, TextIO

from .._cli import ended


class Schedule:
    """Steps by rank; a step may follow others of its rank, named by their numbers."""

    def __init__(
        self, name: str, collective: str, ranks: int, chunks: int, scratch: int = 0, place: str = "both", about: Optional[str] = ""
    ) -> None:
        self.head = [f"schedule {name}", f"collective {collective}", f"ranks {ranks}", f"chunks {chunks}"]
        if scratch:
            self.head.append(f"scratch {scratch}")
        if place != "both":
            self.head.append(f"place {place}")
        self.about = about or ""
        self.steps: list[list[str]] = [[] for _ in range(ranks)]

    def add(self, rank: int, text: str, *after: Optional[int]) -> int:
        steps = self.steps[rank]
        named = sorted({a for a in after if a is not None})
        steps.append(f"{len(steps)} {text}" + (f" after {','.join(map(str, named))}" if named else ""))
        return len(steps) - 1

    def write(self, out: TextIO) -> None:
        print("# SPDX-License-Identifier: BSD-3-Clause", file=out)
        for line in self.about.strip().splitlines():
            print("# " + line.strip(), file=out)
        print("\n".join(self.head), file=out)
        for rank, steps in enumerate(self.steps):
            print(f"\nrank {rank}", *steps, sep="\n", file=out)


def ring(n: int) -> Schedule:
    """All-reduce in a ring (Patarasuk and Yuan, 2009): N - 1 steps of reduce-scatter, N - 1 of all-gather. It is what
    --algo ring does."""
    s = Schedule(f"ring-{n}", "all_reduce", n, n, about=ring.__doc__)
    for me in range(n):
        left, right, came = (me - 1) % n, (me + 1) % n, None
        for i in range(n - 1):
            s.add(me, f"send {right} {'out' if i else 'in'}:{(me - i) % n}", came)
            k = (me - i - 1) % n
            came = s.add(me, f"recv_reduce {left} in:{k} out:{k}")
        for i in range(n - 1):
            s.add(me, f"send {right} out:{(me + 1 - i) % n}", came)
            came = s.add(me, f"recv {left} out:{(me - i) % n}")
    return s


def allpairs(n: int) -> Schedule:
    """All-pairs all-reduce, as in MSCCL's and MSCCL++'s collections: every rank sends chunk k of its vector to rank k, which adds
    them in order of rank, and sends the sum to all. Two steps, whatever the number of ranks: for vectors too short for a
    ring."""
    s = Schedule(f"allpairs-{n}", "all_reduce", n, n, scratch=n, about=allpairs.__doc__)
    for me in range(n):
        others = [(me + d) % n for d in range(1, n)]
        for p in others:
            s.add(me, f"send {p} in:{p}")
        came = {p: s.add(me, f"recv {p} scratch:{p}") for p in others}
        before = f"in:{me}" if me == 0 else "scratch:0"
        done = came.get(0)
        for p in range(1, n):
            other = f"in:{me}" if p == me else f"scratch:{p}"
            to = f"out:{me}" if p == n - 1 else f"scratch:{me}"
            done, before = s.add(me, f"reduce {before} {other} {to}", done, came.get(p)), to
        for p in others:
            s.add(me, f"send {p} out:{me}", done)
        for p in others:
            s.add(me, f"recv {p} out:{p}")
    return s


def bruck(n: int) -> Schedule:
    """All-gather of Bruck et al. (1997): in step k a rank sends all blocks that it has, at most 2^k of them, to the rank 2^k
    before it: ceil(log2 N) steps. The blocks lie in scratch memory in the order in which they came, and are copied to their
    places at the end."""
    s = Schedule(f"bruck-{n}", "all_gather", n, 1, scratch=n, about=bruck.__doc__)
    for me in range(n):
        came, have = [s.add(me, "copy in:0 scratch:0")], 1
        while have < n:
            k = min(have, n - have)
            s.add(me, f"send {(me - have) % n} scratch:0{f'-{k - 1}' if k > 1 else ''}", *came)
            at = f"scratch:{have}" + (f"-{have + k - 1}" if k > 1 else "")
            came.append(s.add(me, f"recv {(me + have) % n} {at}"))
            have += k
        for i in range(n):
            s.add(me, f"copy scratch:{i} out:{(me + i) % n}", *came)
    return s


def tree(n: int) -> Schedule:
    """Broadcast along a binomial tree from rank 0, in 4 chunks: ceil(log2 N) steps, the farthest half first."""
    s = Schedule(f"tree-{n}", "broadcast", n, 4, about=tree.__doc__)
    s.head.append("root 0")
    top = 1
    while top < n:
        top *= 2
    for me in range(n):
        low = me & -me if me else top
        for c in range(4):
            came = s.add(me, f"copy in:{c} out:{c}") if not me else s.add(me, f"recv {me - low} out:{c}")
            d = low // 2
            while d:
                if me + d < n:
                    s.add(me, f"send {me + d} {'out' if me else 'in'}:{c}", came if me else None)
                d //= 2
    return s


def doubling(n: int) -> Schedule:
    """All-reduce by recursive doubling, as MPI libraries do it for short vectors: in step k ranks 2^k apart swap their whole sums:
    log2 N steps. Ranks beyond a power of two hand their vector to a neighbour first, and get the sum from it last."""
    top = 1 << (n.bit_length() - 1)
    extra = n - top
    s = Schedule(f"doubling-{n}", "all_reduce", n, 1, scratch=2 * top.bit_length(), about=doubling.__doc__)
    # The first 2 * extra ranks are pairs of which the even one takes part; all ranks beyond them do.
    part = [r for r in range(n) if r >= 2 * extra or r % 2 == 0]
    for me in range(n):
        if me not in part:
            s.add(me, f"recv {me - 1} out:0", s.add(me, f"send {me - 1} in:0"))
            continue
        mine, at = "in:0", part.index(me)
        done: Optional[int] = None
        sent: list[int] = []
        swaps = [part[at ^ (1 << k)] for k in range(top.bit_length() - 1)]
        for i, p in enumerate(([me + 1] if me < 2 * extra else []) + swaps):
            if p in swaps:
                sent.append(s.add(me, f"send {p} {mine}", done))
            came = s.add(me, f"recv {p} scratch:{2 * i}")
            last = p == swaps[-1]
            low, high = (mine, f"scratch:{2 * i}") if me < p else (f"scratch:{2 * i}", mine)
            mine = "out:0" if last else f"scratch:{2 * i + 1}"
            done = s.add(me, f"reduce {low} {high} {mine}", came, done, *(sent if last else []))
        if me < 2 * extra:
            s.add(me, f"send {me + 1} out:0", done)
    return s


MAKERS: dict[str, Callable[[int], Schedule]] = {f.__name__: f for f in (ring, allpairs, bruck, tree, doubling)}


def work(args: list[str]) -> int:
    if len(args) != 2 or args[0] not in MAKERS or not args[1].isdigit() or int(args[1]) < 2:
        print((__doc__ or "").strip().splitlines()[-1], file=sys.stderr)
        return 2
    MAKERS[args[0]](int(args[1])).write(sys.stdout)
    return 0


def main() -> int:
    return ended(lambda what: print(f"make_schedule: {what}", file=sys.stderr), lambda: work(sys.argv[1:]))
