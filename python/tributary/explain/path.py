# SPDX-License-Identifier: BSD-3-Clause
"""The critical path: from the last step that ended back to the start."""

from __future__ import annotations

from typing import Optional, Sequence, Union

from .limits import EPS, LEAST, UNEVEN
from .links import Link
from .timeline import Step, Timeline

FORMS = {
    "link": "{0.name} is busy",
    "paused": "{0.name} is paused",
    "flight": "on the way over idle links",
    "hosts": "{0} has nothing to wait for but itself",
    "lost": "not known: the file has no step that ends then",
    "entry": "until {0} enters",
    "compute": "{0} computes",
    "between": "between {0}, while links were idle",
}


def way_back(t: Timeline, way: Sequence[Link]) -> list[Link]:
    """The way of the acknowledgements."""
    ends = {(f["to"], f["from"]) for link in way[:1] for f in link.flows if not f["background"]} | {(b, a) for link in way[:1] for a, b in link.between}
    return [link for link in t.used if any(link.carries(a, b) for a, b in ends)]


class Path:
    """Walks back from the last step that ended. Every piece of the time goes to a link that was busy or paused, to the flight over
    links, to a wait for a rank or a window, or to hosts."""

    def __init__(self, t: Timeline) -> None:
        self.t = t
        self.items: dict[tuple[str, Union[str, Link]], float] = {}  # (what, where) -> us
        self.flight: dict[Link, float] = {}  # link -> us of its latency
        self.long_way = [link for link in t.used if not self.between_ranks(link)]
        self.walk()

    def between_ranks(self, link: Link) -> bool:
        return not link.counted and all(f["from"] in self.t.hosts and f["to"] in self.t.hosts for f in link.flows if not f["background"])

    def add(self, what: str, where: Union[str, Link], length: float) -> None:
        if length > EPS:
            self.items[what, where] = self.items.get((what, where), 0.0) + length

    def last(self, steps: Sequence[Step]) -> Optional[Step]:
        return max(steps, key=lambda s: (s.done, s.n)) if steps else None

    def walk(self) -> None:
        t = self.t
        ended = [r for r in t.op["ranks"] if r["ended_us"] is not None]
        if not ended or not t.steps:
            return
        self.end = max(ended, key=lambda r: float(r["ended_us"]))
        at = self.end["ended_us"]
        step = self.last([s for s in t.steps.values() if s.rank == self.end["pid"]])
        seen = set()
        while step and (step.rank, step.tid, step.n) not in seen:
            seen.add((step.rank, step.tid, step.n))
            if at - step.done > EPS:
                self.add("hosts", t.rank(step.rank), at - step.done)
            at = min(at, step.done)
            step, at = self.before(step, at)
        if step is None and at > EPS:
            self.add("lost", "", at)

    def before(self, s: Step, at: float) -> tuple[Optional[Step], float]:
        """What the step waited for, and until when; what was between goes to its place."""
        t = self.t
        if s.kind == "receive":
            return self.before_receive(s, at)
        if s.kind in ("switch", "protocol"):
            return self.before_switch(s, at)
        if s.kind == "multimem":
            way = [link for link in t.used if t.ranks[s.rank]["host"] in (link.source, link.to)]
            return self.crossed(s, s, at, way, t.rank(s.rank), "NVSwitches")
        if s.kind == "send":  # that it was acknowledged
            way = [link for link in t.used if link.carries(t.ranks[s.rank]["host"], t.ranks[t.pid_of(s.peer)]["host"])]
            self.transfer(way, s.posted, at, t.rank(s.rank), "rank %d" % s.peer, False)
            return self.posted(s, s.posted)
        self.add("compute", t.rank(s.rank), at - max(s.begin, s.posted))
        return self.posted(s, max(s.begin, s.posted))

    def before_receive(self, s: Step, at: float) -> tuple[Optional[Step], float]:
        t = self.t
        lane = t.lane_of.get((t.pid_of(s.peer), "send", t.ranks[s.rank]["rank"], s.channel, False))
        sent = t.steps.get((t.pid_of(s.peer), lane, s.n))
        if not sent:
            return None, at
        way = [link for link in t.used if link.carries(t.ranks[sent.rank]["host"], t.ranks[s.rank]["host"])]
        return self.crossed(s, sent, at, way, t.rank(sent.rank), t.rank(s.rank))

    def before_switch(self, s: Step, at: float) -> tuple[Optional[Step], float]:
        """Switches wait for the last of all ranks."""
        t = self.t
        everybodys = (t.steps.get((p, t.lane_of.get((p, s.kind, s.peer, s.channel, s.rail)), s.n)) for p in t.ranks)
        late = s if s.rail else max((x for x in everybodys if x), key=lambda x: x.posted)
        return self.crossed(s, late, at, self.long_way, t.rank(late.rank), "the switches", "the hosts")

    def crossed(self, s: Step, sent: Step, at: float, way: Sequence[Link], source: str, to: str, behind: Optional[str] = None) -> tuple[Optional[Step], float]:
        """What came by these links when it was sent, or right behind the message before. behind: who sends then, if not source."""
        previous = self.t.steps.get((s.rank, s.tid, s.n - 1))
        if previous and self.follows(s, previous, sent.posted, at, way):
            self.transfer(way, previous.done, at, behind or source, to, True)
            return previous, previous.done
        self.transfer(way, sent.posted, at, source, to, False)
        return self.posted(sent, sent.posted)

    def follows(self, s: Step, previous: Step, posted: float, at: float, way: Sequence[Link]) -> bool:
        """Did it come right behind the message before, as fast as the slowest link of the way lets it?"""
        slowest = min((link.rate_Gbps for link in way), default=0)
        return bool(previous.done > posted + EPS and slowest and at - previous.done <= 1.5 * s.bytes * 8e-3 / slowest + 0.01)

    def posted(self, s: Step, at: float) -> tuple[Optional[Step], float]:
        """Why the step was not handed on before: a step that it depends on, a window of its lane, its rank's entry."""
        t = self.t
        reasons = [t.steps[s.rank, tid, n] for tid, n in s.after if (s.rank, tid, n) in t.steps]
        reason = self.last([r for r in reasons if r.done <= at + EPS])
        if reason and at - reason.done <= EPS:
            return reason, reason.done
        own = self.last([x for x in self.lane(s) if x.n < s.n and x.done <= at + EPS])
        entered = t.ranks[s.rank]["entered_us"] or 0.0
        if own and own.done > entered + EPS and at - own.done <= EPS:
            return own, own.done
        if at - entered <= EPS:
            self.add("entry", t.rank(s.rank) if entered > t.usual_entry + LEAST * t.time else "", at)
            return None, 0.0
        wait = max([entered] + [r.done for r in (reason, own) if r])
        other = t.pid_of(s.peer) if s.kind == "send" else None
        if other and wait < (t.ranks[other]["entered_us"] or 0.0) <= at:
            self.add("hosts", t.rank(other), at - t.ranks[other]["entered_us"])
            self.add("entry", t.rank(other), t.ranks[other]["entered_us"])
            return None, 0.0
        self.add("hosts", t.rank(s.rank), at - wait)
        if not reason and not own:
            self.add("entry", t.rank(s.rank) if entered > t.usual_entry + LEAST * t.time else "", wait)
            return None, 0.0
        return (reason if not own or (reason and reason.done >= own.done) else own), wait

    def lane(self, s: Step) -> list[Step]:
        return [self.t.steps[s.rank, s.tid, n] for n in range(max(0, s.n - 300), s.n) if (s.rank, s.tid, n) in self.t.steps]

    def transfer(self, way: Sequence[Link], a: float, b: float, source: str, to: str, follows: bool) -> None:
        """From a to b something crossed these links; follows: right behind what came before."""
        if b - a <= EPS:
            return
        left = b - a
        both = [*way, *(link for link in way_back(self.t, way) if link not in way)]
        paused = max(both, key=lambda link: link.paused_within(a, b), default=None)
        if paused and paused.paused_within(a, b) > 0.1 * left:
            self.add("paused", paused, paused.paused_within(a, b))
            left -= paused.paused_within(a, b)
        busy = max(way, key=lambda link: link.busy_within(a, b), default=None)
        if busy:
            self.add("link", busy, min(left, busy.busy_within(a, b)))
            left -= min(left, busy.busy_within(a, b))
        if not follows:
            for link in way:
                if self.is_way(link, source, to):
                    self.flight[link] = self.flight.get(link, 0.0) + min(link.latency_us, b - a)
            flight = min(left, self.latency(way, to))
            self.add("flight", "", flight)
            left -= flight
        self.add("between", "%s and %s" % (source, to), left)

    def is_way(self, link: Link, source: str, to: str) -> bool:
        return to != "the switches" or 0 not in link.tiers or link.source in source or link.to in source

    def latency(self, way: Sequence[Link], to: str) -> float:
        """Of the path; to the root of a tree and back: the longest of each tier and direction."""
        if to != "the switches":
            return sum(link.latency_us for link in way)
        return sum(max(link.latency_us for link in way if tuple(link.tiers) == k) for k in {tuple(link.tiers) for link in way})

    def share(self, what: str) -> float:
        return sum(v for (w, _), v in self.items.items() if w == what) / self.t.time

    def lines(self) -> list[tuple[float, float, str]]:
        """(share, us, text), the most first."""
        out = []
        for (what, where), length in sorted(self.items.items(), key=lambda x: -x[1]):
            text = FORMS[what].format(where) if where or what in ("flight", "lost") else "before the first step"
            if what == "link" and isinstance(where, Link):
                peers = [link.bytes for link in self.t.peers(where)]
                mean = sum(peers) / len(peers)
                if not where.of_host and where.bytes > UNEVEN * mean:
                    text += ", which carries %.1f times the mean of its kind" % (where.bytes / mean)
            out.append((length / self.t.time, length, text))
        return out
