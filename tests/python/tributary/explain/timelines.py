# SPDX-License-Identifier: BSD-3-Clause
"""Time lines for tests: two hosts, or several, at one switch. What a test is about, it changes."""
from tributary.explain.path import Path
from tributary.explain.timeline import Timeline

BASE_LINK = {
    "in_node": False, "rate_Gbps": 400, "latency_us": 0.3, "bytes": 0, "frames": 10, "busy_us": 0.0, "paused_us": 0.0, "buffer_bytes": 65536,
    "queue_peak_bytes": 0, "lost": 0, "corrupted": 0, "link_down": 0, "queue_full": 0,
}  # fmt: skip


def flow(a, b, n, background=False):
    return {"from": a, "to": b, "bytes": n, "background": background}


def link(a, b, tid, flows=(), **keys):
    tiers = [0, 1] if a.startswith("h") or b.startswith("h") else [1, 2]
    total = sum(f["bytes"] for f in flows)
    return {**BASE_LINK, "from": a, "to": b, "pid": 100, "tid": tid, "link": "-".join(sorted((a, b))), "tiers": tiers, "flows": list(flows), "bytes": total, **keys}


def rank(n, ended, **keys):
    return {"pid": n + 1, "rank": n, "host": f"h{n}", "entered_us": 0.0, "ended_us": ended, "retransmits": 0, "timeouts": 0, "seq_naks": 0, **keys}


def step(pid, kind, n, begin, done, posted=None, peer=None, size=4096, tid=1, **args):
    return {"ph": "X", "cat": kind, "pid": pid, "tid": tid, "ts": begin, "dur": done - begin,
            "args": {"step": n, "posted_us": begin if posted is None else posted, "bytes": size, "peer": peer, **args}}  # fmt: skip


def file_of(ranks, links, events=(), **other):
    op = {
        "collective": "all_reduce", "algorithm": "ring", "ran_by": "ring", "size_bytes": 4096, "fabric": "f", "predicted_us": 10.0, "time_us": 10.0, "fell_back": None,
        "ranks": list(ranks), "left_out": {"events": 0, "ranks": 0}, "dilation": 1, "transport": {"mtu": 4096, "round_trip_us": 2.0, "window_packets": 256},
    }  # fmt: skip
    op.update(other.pop("op", {}))
    return {"otherData": {"kind": "tributary time line", "operation": op, "clock": "virtual", "links": list(links), **other}, "traceEvents": list(events)}


def timeline_of(*args, **other):
    t = Timeline.__new__(Timeline)
    t.read(file_of(*args, **other))
    return t


def path_of(t):
    return {(what, getattr(where, "name", where)): round(us, 6) for (what, where), us in Path(t).items.items()}
