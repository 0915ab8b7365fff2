# SPDX-License-Identifier: BSD-3-Clause
"""Causes at links: frames that are lost, links that are slow, long, oversubscribed or unevenly loaded."""

from __future__ import annotations

import statistics
from typing import Iterator

from .._sizes import size_text
from .cause import Cause
from .limits import BEYOND_HOSTS, BUSY, LEAST, LONG, LONG_US, SLOW_RATE, UNEVEN
from .links import Link
from .path import Path
from .text import count, percent, us
from .timeline import Timeline


def again(t: Timeline) -> str:
    """Of ranks; an aggregation node's are not in the file."""
    n, late = sum(r["retransmits"] for r in t.op["ranks"]), sum(r["timeouts"] for r in t.op["ranks"])
    naks = sum(r["seq_naks"] for r in t.op["ranks"])
    if n or (late and not naks):
        return "; ranks sent %s again after %s" % (count(n, "packet"), count(late, "timeout"))
    return "; ranks had %s and %s" % (count(naks, "sequence error"), count(late, "timeout")) if naks else ""


def losses(t: Timeline, path: Path) -> Iterator[Cause]:
    weight = t.excess()
    lossy = sorted((x for x in t.links if x.lost + x.corrupted), key=lambda x: -(x.lost + x.corrupted))
    if lossy and weight >= LEAST / 2:
        link = lossy[0]
        n = link.lost + link.corrupted
        back = [x for x in lossy[1:] if x.link == link.link]
        also = " (and %d the other way)" % (back[0].lost + back[0].corrupted) if back else ""
        more = len({x.link for x in lossy}) - 1
        yield Cause("lossy link", weight, "%s %s %s of %d%s%s%s" % (
            link.name, "loses" if link.lost else "corrupts", count(n, "frame"), link.frames, also, ", %s too" % count(more, "other link") if more else "", again(t)))  # fmt: skip
    down = max(t.links, key=lambda x: x.link_down)
    if down.link_down and weight >= LEAST / 2:
        yield Cause("link down", weight, "%s was down and dropped %s%s" % (down.name, count(down.link_down, "frame"), again(t)))
    full = max(t.links, key=lambda x: x.queue_full)
    if full.queue_full and weight >= LEAST / 2:
        yield Cause("full queue", weight, "%s dropped %s, because its queue of %s was full and nothing paused the senders%s" % (
            full.name, count(full.queue_full, "frame"), size_text(full.buffer_bytes), again(t)))  # fmt: skip


def _slow_links(t: Timeline) -> list[Link]:
    return [x for x in t.used if x.rate_Gbps < SLOW_RATE * statistics.median(p.rate_Gbps for p in t.peers(x)) and x.util >= BUSY]


def slow_link(t: Timeline, path: Path) -> Iterator[Cause]:
    slow = _slow_links(t)
    if slow:
        link = max(slow, key=lambda x: x.util)
        usual = statistics.median(p.rate_Gbps for p in t.peers(link))
        busiest = max((p.util for p in t.peers(link) if p.rate_Gbps >= usual), default=0.0)
        yield Cause("slow link", link.util, "%s has %g Gb/s, where others of its kind have %g; it is busy %s of the time, they at most %s" % (
            link.name, link.rate_Gbps, usual, percent(link.util), percent(busiest)))  # fmt: skip


def oversubscribed(t: Timeline, path: Path) -> Iterator[Cause]:
    hosts = max((x.util for x in t.used if x.of_host), default=0.0)
    slow = _slow_links(t)
    inner = [x for x in t.used if not x.of_host and x.util >= BUSY and x.util >= BEYOND_HOSTS * hosts and x not in slow and x.others < 0.1 * x.bytes]
    if not inner:
        return
    link = max(inner, key=lambda x: x.util)
    peers = t.peers(link)
    mean = sum(p.bytes for p in peers) / len(peers)
    if link.bytes >= UNEVEN * mean:
        yield Cause("uneven load", link.util, "%s carries %.1f times the mean of the %d links of its kind; it is busy %s of the time, hosts' links at most %s" % (
            link.name, link.bytes / mean, len(peers), percent(link.util), percent(hosts)))  # fmt: skip
    else:
        yield Cause("oversubscribed", link.util, "%s is busy %s of the time, and the %d links of its kind alike; hosts' links at most %s" % (
            link.name, percent(link.util), len(peers), percent(hosts)))  # fmt: skip


def long_link(t: Timeline, path: Path) -> Iterator[Cause]:
    found = []
    for link, flight in path.flight.items():
        usual = statistics.median(p.latency_us for p in t.peers(link))
        if (link.latency_us >= LONG * usual or link.latency_us >= LONG_US) and flight >= 2 * LEAST * t.time:
            found.append((flight, link, usual))
    if found:
        _, link, usual = max(found, key=lambda x: x[0])
        share = min(1.0, sum(f for f, x, _ in found if x.link == link.link) / t.time)
        yield Cause("long link", share, "%s has a latency of %s, where others of its kind have %s; messages were on their way there for %s of the time" % (
            link.name, us(link.latency_us), us(usual), percent(share)))  # fmt: skip
