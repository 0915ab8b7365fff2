# SPDX-License-Identifier: BSD-3-Clause
"""Causes behind queues that do not drain: flows of others, and PFC, which stops the links that lead to such a queue."""

from __future__ import annotations

from typing import Iterator, Optional

from .._sizes import size_text
from .cause import Cause
from .limits import BUSY, LEAST, STOPPED
from .links import Link
from .path import Path
from .text import count, percent
from .timeline import Timeline


def stranger(link: Link) -> str:
    """The greatest flow that is not of the operation; where only counters are known, some flow."""
    f = max((f for f in link.flows if f["background"]), key=lambda f: float(f["bytes"]), default=None)
    return "%s>%s" % (f["from"], f["to"]) if f else "a flow"


def background(t: Timeline, path: Path) -> Iterator[Cause]:
    shared = [x for x in t.used if x.others >= 0.1 * x.bytes and x.util >= BUSY]
    if shared:
        link = max(shared, key=lambda x: x.others / x.bytes * x.util)
        yield Cause("background flow", link.util * link.others / link.bytes, "%s, which is not of the operation, takes %s of %s's bytes; the link is busy %s of the time" % (
            stranger(link), percent(link.others / link.bytes), link.name, percent(link.util)))  # fmt: skip


def root_of_pauses(t: Timeline, link: Link) -> Link:
    """From a paused direction on to the queue that does not drain: the longest one, until one is not paused itself."""
    seen: list[Link] = []
    while link not in seen:
        seen.append(link)
        onward = [x for x in t.links if x.source == link.to and x.to != link.source and x.frames]
        if not onward:
            break
        # in real time a queue's peak is known only where it was higher than ever before
        link = max(onward, key=lambda x: (x.paused_us >= LEAST * t.time, 0 if x.counted else x.queue_peak_bytes, x.util))
        if link.paused_us < LEAST * t.time:
            break
    return link


def victim(t: Timeline, path: Path) -> Iterator[Cause]:
    paused = [x for x in t.used if x.paused_us >= LEAST * t.time and any(y.to == x.source or x.of_host for y in t.links)]
    found = []
    for link in paused:
        root = root_of_pauses(t, link)
        if root is not link and root.own < 0.5 * (root.own + root.others):
            found.append((link, root))
    if found:
        link, root = max(found, key=lambda x: x[0].paused_us)
        yield Cause("PFC victim", link.paused_us / t.time, "%s is paused %s of the time, because %s (busy %s, queue %s) does not drain: %s, not of the operation, fills it" % (
            link.name, percent(link.paused_us / t.time), root.name, percent(root.util), size_text(root.queue_peak_bytes), stranger(root)))  # fmt: skip


def of_its_own(t: Timeline) -> Optional[tuple[Link, list[Link], Link]]:
    """The operation's own frames fill a queue, and PFC stops the links behind it: that queue's link, the links, the one that waits most."""
    behind: dict[Link, list[Link]] = {}
    for link in t.used:
        root = root_of_pauses(t, link) if link.paused_us >= LEAST * t.time else link
        if root is not link and root.util >= BUSY and root.own >= 0.5 * (root.own + root.others):
            behind.setdefault(root, []).append(link)
    if not behind:
        return None
    root = max(behind, key=lambda r: max(x.paused_us for x in behind[r]))
    return root, behind[root], max(behind[root], key=lambda x: x.paused_us)


def incast(t: Timeline, path: Path) -> Iterator[Cause]:
    found = of_its_own(t)
    if not found or found[2].paused_us < STOPPED * t.time:
        return
    root, behind, most = found
    sources = {f["from"] for f in root.flows if not f["background"]} | {a for a, b in root.between if b == root.to}
    sources |= {t.ranks[s.rank]["host"] for s in t.steps.values() if s.kind == "send" and t.ranks[t.pid_of(s.peer)]["host"] == root.to} - {root.to}
    to_host = root.to in t.hosts and len(sources) > 1
    yield Cause("incast" if to_host else "backpressure", most.paused_us / t.time, "%s is busy %s of the time and its queue has up to %s%s, so PFC pauses %s: %s %s of the time" % (
        root.name, percent(root.util), size_text(root.queue_peak_bytes), ", as %s send to %s at once" % (count(len(sources), "host"), root.to) if to_host else "",
        "%s behind it" % count(len(behind), "link"), most.name, percent(most.paused_us / t.time)))  # fmt: skip
