# SPDX-License-Identifier: BSD-3-Clause
"""What is printed: sentences and a table, or JSON."""

from __future__ import annotations

from typing import Any, Sequence

from .._sizes import size_text
from . import of_pauses
from .cause import Cause
from .limits import BUSY
from .path import Path
from .text import count, percent, us
from .timeline import Timeline

NAMES = {"refused group": "Refused group", "PFC victim": "PFC victim"}


def head(t: Timeline) -> str:
    o, p = t.op, t.predicted()
    model = "" if not p else "; the model says %s" % us(p) if abs(t.time / p - 1) < 0.05 else ", %.2f times the %s of the model" % (t.time / p, us(p))
    return "%s by %s, %s, %s on %s, in %s time: %s%s" % (
        o["collective"], o["ran_by"], size_text(o["size_bytes"]), count(len(o["ranks"]), "rank"), o["fabric"], t.clock, us(t.time), model)  # fmt: skip


def nothing(t: Timeline, path: Path) -> str:
    """What limits a run in which nothing stands out."""
    busy = [x for x in t.used if t.time and x.util >= BUSY]
    if busy:
        hosts = sorted({x.name for x in busy if x.of_host}) or sorted(x.name for x in busy)
        top = max(busy, key=lambda x: x.util)
        found = of_pauses.of_its_own(t)
        waits = ""
        if found:
            root, _, most = found
            waits = "; %s is paused %s of it, because %s does not drain faster" % (most.name, percent(most.paused_us / t.time), root.name)
        return "links are busy %s of the time at most (%s%s)%s" % (
            percent(top.util), top.name, ", and %d more above %s" % (len(hosts) - 1, percent(BUSY)) if len(hosts) > 1 else "", waits)  # fmt: skip
    busiest = max(t.used, key=lambda x: x.util, default=None)
    return "no link is busy for more than %s of the time, and messages are on their way over idle links for %s of it" % (
        percent(busiest.util) if busiest else "0 %", percent(path.share("flight")))  # fmt: skip


def lines(t: Timeline, path: Path, found: Sequence[Cause]) -> list[str]:
    """The sentences, then the table of the critical path."""
    out = [head(t)]
    if t.op.get("error"):
        out.append("It failed: %s" % t.op["error"])
    left = t.op["left_out"]
    if left["events"] or left["ranks"]:
        out.append("The file leaves out %s and the steps of %s." % (count(left["events"], "event"), count(left["ranks"], "rank")))
    out.append("")
    out += ["%s: %s." % (NAMES.get(c.name, c.name.capitalize()), c.text) for c in found]
    if t.op.get("fidelity", "ok") != "ok":
        out.append("The emulation lagged at dilation %d: times are not to be relied on." % t.op["dilation"])
    if not found:
        out.append("Nothing stands out: %s." % nothing(t, path))
    items = path.lines()
    if items:
        out.append("\nThe critical path, to the end of %s:" % t.rank(path.end["pid"]))
        out += ["  %5s  %11s  %s" % (percent(share), us(length), text) for share, length, text in items[:8] if share >= 0.01]
    return out


def as_json(t: Timeline, path: Path, found: Sequence[Cause]) -> dict[str, Any]:
    return {
        "operation": {**{k: t.op[k] for k in ("collective", "algorithm", "ran_by", "size_bytes", "predicted_us")}, "time_us": t.time, "clock": t.clock},
        "causes": [{"cause": c.name, "weight": round(c.weight, 6), "text": c.text} for c in found],
        "critical_path": [{"share": round(s, 6), "us": round(u, 6), "text": x} for s, u, x in path.lines()],
    }
