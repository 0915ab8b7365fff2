# SPDX-License-Identifier: BSD-3-Clause
"""How long hosts have messages to send while their links are idle, and whether the window of queue pairs says why."""

from __future__ import annotations

from typing import Mapping, Optional, Sequence

from .limits import EPS
from .links import Link
from .timeline import Timeline


def by_host(t: Timeline) -> dict[str, float]:
    """By host: the time for which it has messages to send and its links are idle and not paused."""
    out = {}
    for host in t.hosts:
        idle = _of_host(t, host)
        if idle is not None:
            out[host] = idle
    return out


def _of_host(t: Timeline, host: str) -> Optional[float]:
    """None: nothing is known of it."""
    pids = {p for p, r in t.ranks.items() if r["host"] == host}
    posts = sorted((s.posted, s.sent) for s in t.steps.values() if s.rank in pids and s.kind in ("send", "switch") and s.sent)
    ports = [link for link in t.links if link.source == host and link.sent]
    total, wire = sum(b for _, b in posts), sum(b for link in ports for _, _, b in link.sent)
    if not total or not wire:
        return None
    return _idle(posts, ports, total, wire, 2 * t.op["transport"]["mtu"] / total + 0.02)


def _idle(posts: Sequence[tuple[float, int]], ports: Sequence[Link], total: int, wire: int, slack: float) -> float:
    idle, sent, have, at, end = 0.0, 0, 0, 0, posts[0][0]
    for begin, stop, b in sorted(r for link in ports for r in link.sent):
        while at < len(posts) and posts[at][0] <= end + EPS:
            have += posts[at][1]
            at += 1
        since = end
        if begin > end and have / total - sent / wire <= slack and at < len(posts):
            since = max(end, posts[at][0])  # nothing to send until then
        if begin > since and ((at < len(posts) and posts[at][0] < begin) or have / total - sent / wire > slack):
            idle += begin - since - sum(link.pause.within(since, begin) for link in ports)
        sent += b
        end = max(end, stop)
    return max(0.0, idle)


def needed_window(t: Timeline) -> float:
    """Packets of a round trip at the rate of the fastest host's link."""
    rate = max((link.rate_Gbps for link in t.used if link.of_host), default=0)
    needed: float = rate * 1e3 * t.op["transport"]["round_trip_us"] / 8 / t.op["transport"]["mtu"]
    return needed


def by_window(t: Timeline, idle: Mapping[str, float]) -> bool:
    """Does the window of queue pairs, and not the slowest host, explain that its messages wait?"""
    tr, host = t.op["transport"], max(idle, key=lambda h: idle[h])
    sent = [link for link in t.links if link.source == host]
    rate = sum(link.own for link in sent) / (sum(link.busy_us for link in sent) + idle[host])
    return bool(tr["window_packets"] < needed_window(t) and rate > 0.5 * tr["window_packets"] * tr["mtu"] / tr["round_trip_us"])
