# SPDX-License-Identifier: BSD-3-Clause
"""The file: an operation's ranks and steps, and the links that they used."""

from __future__ import annotations

import statistics
from typing import Any, Mapping

from .._cli import Refused
from .._input import json_of, shown
from .limits import CONTROL, OVERHEAD
from .links import Link

KIND = "tributary time line"
KINDS = ("send", "receive", "switch", "compute", "multimem", "protocol")  # of steps


class Step:
    def __init__(self, e: Mapping[str, Any]) -> None:
        a = e["args"]
        self.rank: int = e["pid"]
        self.tid: int = e["tid"]
        self.n: int = a["step"]
        self.kind: str = e["cat"]
        self.begin: float = e["ts"]
        self.done: float = e["ts"] + e["dur"]
        self.posted: float = a["posted_us"]
        self.bytes: int = a["bytes"]
        self.sent: int = a.get("sent_bytes", self.bytes)
        self.peer: Any = a.get("peer")
        self.channel, self.rail, self.after = a.get("channel", 0), a.get("rail", False), a.get("after", ())


class Timeline:
    def __init__(self, path: str) -> None:
        d = json_of(path, "a time line that --timeline wrote")
        if not isinstance(d.get("otherData"), dict) or d["otherData"].get("kind") != KIND:
            raise Refused("%s: found no otherData.kind \"%s\", expected a file that --timeline wrote" % (shown(path), KIND))
        self.read(d)

    def read(self, d: Mapping[str, Any]) -> None:
        other = d["otherData"]
        self.op: dict[str, Any] = other["operation"]
        self.granted: dict[str, Any] = other.get("granted", {})
        self.clock: str = other["clock"]
        self.ranks: dict[int, dict[str, Any]] = {r["pid"]: r for r in self.op["ranks"]}
        ended = [r["ended_us"] for r in self.op["ranks"] if r["ended_us"] is not None]
        self.time: float = max(ended) if ended else float(self.op["time_us"])
        if self.time <= 0:
            raise ValueError("no rank has ended")
        self.links = [Link(link, self.time) for link in other["links"]]
        for pair, way in other.get("paths", {}).items():
            for i in way:
                self.links[i].between.add(tuple(pair.split(">")))
        self.port = {(link.pid, link.tid): link for link in self.links}
        self.steps: dict[tuple[int, Any, int], Step] = {}
        self.lane_of: dict[tuple[Any, ...], int] = {}
        for e in d["traceEvents"]:
            self.event(e)
        self.share_counts(float(other.get("counted_us", 0)), bool(other.get("every_path")))
        entered = [r["entered_us"] for r in self.op["ranks"] if r["entered_us"] is not None]
        self.usual_entry: float = statistics.median(entered) if entered else 0.0
        self.hosts: set[str] = {r["host"] for r in self.op["ranks"]}
        self.used = [link for link in self.links if link.own]

    def share_counts(self, counted_us: float, every_path: bool) -> None:
        """Counters say neither whose bytes they are, nor when: those of messages between ranks are known, the rest went on for as long
        as was counted."""
        counted = [link for link in self.links if link.counted]
        again = sum(r["retransmits"] + r["timeouts"] + r["seq_naks"] for r in self.op["ranks"])
        if not counted or not counted_us or any(s.kind in ("switch", "multimem", "protocol") for s in self.steps.values()):
            return
        sent: dict[tuple[str, ...], int] = {}
        for s in self.steps.values():
            if s.kind == "send":
                between = self.ranks[s.rank]["host"], self.ranks[self.pid_of(s.peer)]["host"]
                sent[between] = sent.get(between, 0) + s.sent
        for link in counted:
            if link.paused_us > self.time:
                link.paused_us = min(link.paused_us / counted_us, 1.0) * self.time
                link.paused = link.paused_us / self.time
            if not every_path and not link.of_host:
                continue
            own = OVERHEAD * sum(n for pair, n in sent.items() if pair in link.between)
            own += CONTROL if own else 0
            if own and again:  # its messages crossed it more than once
                continue
            if link.bytes - own > 0.1 * link.bytes and counted_us > self.time:
                link.own, link.others = own, (link.bytes - own) * self.time / counted_us
                link.bytes = own + link.others
                link.busy_us = link.bytes * 8e-3 / link.rate_Gbps
                link.util = link.busy_us / self.time

    def event(self, e: Mapping[str, Any]) -> None:
        cat = e.get("cat")
        if cat == "link":
            link = self.port[e["pid"], e["tid"]]
            link.busy.add(e["ts"], e["ts"] + e["dur"])
            own = sum(b for f, b in e["args"]["flows"].items() if not f.endswith("(background)"))
            link.sent.append((e["ts"], e["ts"] + e["dur"], own))
        elif cat == "pause":
            self.port[e["pid"], e["tid"] - 10000].pause.add(e["ts"], e["ts"] + e["dur"])
        elif e["ph"] == "X" and cat in KINDS:
            s = Step(e)
            self.steps[s.rank, s.tid, s.n] = s
            self.lane_of[s.rank, s.kind, s.peer, s.channel, s.rail] = s.tid

    def rank(self, pid: int) -> str:
        return "rank %d (%s)" % (self.ranks[pid]["rank"], self.ranks[pid]["host"])

    def pid_of(self, rank: int) -> int:
        return next(p for p, r in self.ranks.items() if r["rank"] == rank)

    def peers(self, link: Link) -> list[Link]:
        """Links of its kind: between the same tiers, in nodes or between them."""
        return [x for x in self.links if x.tiers == link.tiers and x.in_node == link.in_node]

    def predicted(self) -> float:
        predicted: float = self.op["predicted_us"]
        return predicted

    def excess(self) -> float:
        """The share of the time that the model does not predict."""
        p = self.predicted()
        return max(0.0, 1 - p / self.time) if p else 0.5
