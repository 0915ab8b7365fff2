# SPDX-License-Identifier: BSD-3-Clause
"""A direction of a link, as a time line has it: when it was busy and paused, and whose bytes it carried."""

from __future__ import annotations

import bisect
from typing import Any, Mapping


class Intervals:
    """Times that follow each other; how much of [a, b] they cover."""

    def __init__(self) -> None:
        self.begin: list[float] = []
        self.end: list[float] = []
        self.sum = [0.0]

    def add(self, a: float, b: float) -> None:
        if self.end and a < self.end[-1]:
            a = self.end[-1]
        if b > a:
            self.begin.append(a)
            self.end.append(b)
            self.sum.append(self.sum[-1] + b - a)

    def until(self, t: float) -> float:
        i = bisect.bisect_right(self.begin, t)
        return self.sum[i] - max(0.0, self.end[i - 1] - t) if i else 0.0

    def within(self, a: float, b: float) -> float:
        return self.until(b) - self.until(a) if b > a else 0.0


class Link:
    """A direction of a link."""

    # as the file has them
    link: str
    to: str
    pid: int
    tid: int
    tiers: list[int]
    in_node: bool
    rate_Gbps: float
    latency_us: float
    bytes: float
    frames: int
    busy_us: float
    paused_us: float
    buffer_bytes: int
    queue_peak_bytes: int
    lost: int
    corrupted: int
    link_down: int
    queue_full: int
    flows: list[dict[str, Any]]

    def __init__(self, j: Mapping[str, Any], time_us: float) -> None:
        self.__dict__.update(j)
        self.name = "%s to %s" % (self.__dict__["from"], self.to)
        self.source: str = self.__dict__["from"]
        self.util, self.paused = self.busy_us / time_us, self.paused_us / time_us
        self.busy, self.pause = Intervals(), Intervals()
        self.sent: list[tuple[float, float, int]] = []  # runs of frames: begin, end, bytes of the operation
        self.counted = self.__dict__.get("measured") == "counters"  # in real time: no flows, no runs of frames
        self.between: set[tuple[str, ...]] = set()  # (host, host) whose messages cross it, where flows are not known
        self.own: float = self.bytes if self.counted else sum(f["bytes"] for f in self.flows if not f["background"])
        self.others: float = sum(f["bytes"] for f in self.flows if f["background"])
        self.of_host = 0 in self.tiers

    def busy_within(self, a: float, b: float) -> float:
        """Exact where runs of frames were recorded, else in proportion."""
        return self.busy.within(a, b) if self.busy.begin else min(self.util, 1.0) * (b - a)

    def paused_within(self, a: float, b: float) -> float:
        return self.pause.within(a, b) if not self.counted else min(self.paused, 1.0) * (b - a)

    def carries(self, a: str, b: str) -> bool:
        return (a, b) in self.between or any(f["from"] == a and f["to"] == b and not f["background"] for f in self.flows)
