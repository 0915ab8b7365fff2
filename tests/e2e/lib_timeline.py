# SPDX-License-Identifier: BSD-3-Clause
"""lib_timeline.py FILE...: checks time lines against the Trace Event Format, and what they say against itself."""
import collections
import json
import sys

NEEDED = {"ph", "pid", "tid", "ts", "name"}
PHASES = {"X": {"dur"}, "B": set(), "E": set(), "i": {"s"}, "C": {"args"}, "s": {"id"}, "f": {"id"}, "M": {"args"}}

IN_FLIGHT = 32768  # bytes that have been sent, and not arrived, at an end of the operation


def check_event(e):
    assert isinstance(e, dict) and e.get("ph") in PHASES, f"no such phase: {e}"
    missing = (NEEDED | PHASES[e["ph"]]) - set(e)
    assert not missing, f"without {missing}: {e}"
    assert type(e["pid"]) is int and type(e["tid"]) is int and isinstance(e["name"], str) and e["name"], f"types: {e}"
    assert isinstance(e["ts"], (int, float)) and e["ts"] >= -1e-6, f"time before the operation: {e}"
    assert e["ph"] != "X" or e["dur"] >= 0, f"negative duration: {e}"
    assert e["ph"] == "M" or e.get("cat"), f"no category: {e}"
    assert e["ph"] != "C" or all(isinstance(v, (int, float)) for v in e["args"].values()), f"a counter of no number: {e}"


def check_slices(thread, events):
    """Slices of a thread follow each other or are nested; B and E match."""
    depth, ends = 0, []
    for e in events:
        depth += {"B": 1, "E": -1}.get(e["ph"], 0)
        assert depth >= 0, f"E without B on {thread}"
    assert depth == 0, f"B without E on {thread}"
    for e in sorted((e for e in events if e["ph"] == "X"), key=lambda e: (e["ts"], -e["dur"])):
        while ends and ends[-1] <= e["ts"] + 1e-6:
            ends.pop()
        end = e["ts"] + e["dur"]
        assert not ends or end <= ends[-1] + 1e-6, f"slices overlap on {thread}: {e}"
        ends.append(end)


def check_order(events):
    """What is written as it happens is in order: slices of a thread, values of a counter."""
    last = {}
    for e in events:
        key = (e["ph"], e["pid"], e["name"] if e["ph"] == "C" else e["tid"])
        if e["ph"] in "XCB":
            assert e["ts"] >= last.get(key, 0) - 1e-6, f"out of order: {e}"
            last[key] = e["ts"]


def check_flows(events):
    starts = {}
    for e in (e for e in events if e["ph"] == "s"):
        assert e["id"] not in starts, f"an arrow begins twice: {e}"
        starts[e["id"]] = e["ts"]
    for e in (e for e in events if e["ph"] == "f"):
        assert e["id"] in starts, f"an arrow ends that has not begun: {e}"
        assert e["ts"] >= starts[e["id"]], f"an arrow backwards: {e}"


def check_names(events):
    named = {(e["name"], e["pid"], e["tid"]) for e in events if e["ph"] == "M"}
    for e in events:
        assert ("process_name", e["pid"], 0) in named, f"a process without a name: {e}"
        assert e["ph"] in "CM" or ("thread_name", e["pid"], e["tid"]) in named, f"a thread without a name: {e}"


def check_links(d):
    """Runs of frames on links are what their counters say, where nothing was left out or lost."""
    busy, sent = collections.Counter(), collections.Counter()
    for e in d["traceEvents"]:
        if e.get("cat") == "link":
            busy[e["pid"], e["tid"]] += e["dur"]
            sent[e["pid"], e["tid"]] += e["args"]["bytes"]
    for link in d["otherData"]["links"]:
        whole = not (link["lost"] or link["link_down"] or d["otherData"]["operation"]["left_out"]["events"])
        if whole and link["bytes"] > 100000 and link.get("measured", "frames") == "frames":
            got = sent[link["pid"], link["tid"]]
            assert abs(got - link["bytes"]) < 0.02 * link["bytes"] + IN_FLIGHT, f"bytes of {link['link']}: {got}, not {link['bytes']}"
            got = busy[link["pid"], link["tid"]]
            assert abs(got - link["busy_us"]) < 0.03 * link["busy_us"] + IN_FLIGHT * 8e-3 / link["rate_Gbps"], f"time of {link['link']}: {got}, not {link['busy_us']}"


def check(path):
    with open(path) as f:
        d = json.load(f)
    assert isinstance(d, dict) and d["displayTimeUnit"] in ("ns", "ms")
    assert d["otherData"]["kind"] == "tributary time line" and d["otherData"]["schema"] == 1
    events, threads = d["traceEvents"], collections.defaultdict(list)
    for e in events:
        check_event(e)
        threads[e["pid"], e["tid"]].append(e)
    for thread, own in threads.items():
        check_slices(thread, own)
    check_order(events)
    check_flows(events)
    check_names(events)
    check_links(d)
    ranks = d["otherData"]["operation"]["ranks"]
    assert len([e for e in events if e.get("cat") == "operation"]) == len([r for r in ranks if r["ended_us"] is not None])
    return len(events)


for name in sys.argv[1:]:
    try:
        n = check(name)
    except AssertionError as e:
        sys.exit(f"{name}: {e}")
    print(f"{name}: {n} events")
