# SPDX-License-Identifier: BSD-3-Clause
"""Causes at hosts: groups that were refused, ranks that come late, hosts that are slow, windows that are small."""

from __future__ import annotations

import statistics
from typing import Iterator

from . import backlog
from .cause import Cause
from .limits import LEAST
from .path import Path
from .text import percent, us
from .timeline import Step, Timeline


def refused(t: Timeline, path: Path) -> Iterator[Cause]:
    why = t.op["fell_back"]
    if why:
        name = "refused group" if "refused" in why or "grants" in why or "quota" in why else "failover"
        yield Cause(name, 2.0, "%s was asked for and %s ran: %s" % (t.op["algorithm"], t.op["ran_by"], why))


def straggling_rank(t: Timeline, path: Path) -> Iterator[Cause]:
    entered: dict[int, float] = {p: r["entered_us"] for p, r in t.ranks.items() if r["entered_us"] is not None}
    if len(entered) < 2:
        return
    usual, last = statistics.median(entered.values()), max(entered, key=lambda p: entered[p])
    late = entered[last] - usual
    others = max(v for p, v in entered.items() if p != last) - usual
    if late >= LEAST * t.time:
        yield Cause("straggling rank", late / t.time, "%s enters %s after the others (%s of the time)%s" % (
            t.rank(last), us(late), percent(late / t.time), ", the next one %s" % us(others) if others > LEAST * t.time else ""))  # fmt: skip


def slow_host(t: Timeline, path: Path) -> Iterator[Cause]:
    idle = backlog.by_host(t)
    if len(idle) < 2 or any(link.lost + link.corrupted + link.queue_full + link.link_down for link in t.links) or backlog.by_window(t, idle):
        return
    host = max(idle, key=lambda h: idle[h])
    others = statistics.median(v for h, v in idle.items() if h != host)
    if idle[host] - others >= 2 * LEAST * t.time and idle[host] >= 2 * others:
        yield Cause("slow host", (idle[host] - others) / t.time, "%s has messages to send for %s more than its link is busy with them (%s of the time; other hosts: %s)" % (
            host, us(idle[host]), percent(idle[host] / t.time), us(others)))  # fmt: skip


def late_host(t: Timeline, path: Path) -> Iterator[Cause]:
    """In real time: a process that did not take the frames that waited for it, by what its NIC logged."""
    slow: dict[str, float] = {}
    for r in t.ranks.values():
        if r.get("slow_of_us"):
            slow[r["host"]] = max(slow.get(r["host"], 0.0), r["slow_us"] / r["slow_of_us"])
    if len(slow) < 2:
        return
    host = max(slow, key=lambda h: slow[h])
    others = [v for h, v in slow.items() if h != host]
    if slow[host] >= LEAST and slow[host] >= 3 * max(others):
        yield Cause("slow host", slow[host], "frames wait for the process of %s %s of the time, because it does not run: it is stopped, or this machine is too busy (other hosts: at most %s)" % (
            host, percent(slow[host]), percent(max(others))))  # fmt: skip


def full_share(posts: list[tuple[float, float, int]], window: int) -> float:
    """The share of their time for which the next message would not fit into the window. posts: when, until when, packets."""
    events = sorted([(a, n) for a, _, n in posts] + [(b, -n) for _, b, n in posts])
    most, out, full = max(n for _, _, n in posts), 0, 0.0
    for (a, n), (b, _) in zip(events, events[1:]):
        out += n
        if out + most > window:
            full += b - a
    return full / (events[-1][0] - events[0][0]) if events[-1][0] > events[0][0] else 0.0


def small_window(t: Timeline, path: Path) -> Iterator[Cause]:
    tr = t.op["transport"]
    needed = backlog.needed_window(t)
    busiest = max((link.util for link in t.used), default=0.0)
    window = t.granted.get("window")
    lanes: dict[tuple[int, int], list[Step]] = {}
    for s in t.steps.values():
        if s.kind == "switch" and s.bytes:
            lanes.setdefault((s.rank, s.tid), []).append(s)
    if window and lanes and window < needed and busiest < 0.8:
        full = statistics.median(full_share([(s.posted, s.done, -(-(s.bytes + 32) // tr["mtu"])) for s in lane], window) for lane in lanes.values())
        if full >= 0.5:
            yield Cause("small window", full * (1 - busiest), "the window of the group, %d packets (asked for: %s), is full %s of the time; a round trip needs %.0f, and links are busy %s at most" % (
                window, t.granted.get("window_asked"), percent(full), needed, percent(busiest)))  # fmt: skip
    idle = backlog.by_host(t) if any(s.kind == "send" for s in t.steps.values()) else {}
    if idle and busiest < 0.8 and backlog.by_window(t, idle):
        host = max(idle, key=lambda h: idle[h])
        if idle[host] >= LEAST * t.time:
            yield Cause("small window", idle[host] / t.time, "the window of a queue pair, %d packets, is less than the %.0f of a round trip: %s has messages to send while its link is idle, %s of the time" % (
                tr["window_packets"], needed, host, percent(idle[host] / t.time)))  # fmt: skip
