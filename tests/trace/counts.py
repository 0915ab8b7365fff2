#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""counts.py PROGRAM FOLDER...: operations and bytes by rank as trib-trace (PROGRAM) says them, against counts.json of an independent reader in each
folder FORMAT/SAMPLE. Prints a line for each trace; ends with 1 where they differ."""
import json
import os
import subprocess
import sys

GOAL_COLLS = {"bcast": "broadcast", "reduce": "reduce", "allreduce": "all_reduce", "reduce_scatter": "reduce_scatter", "allgather": "all_gather"}


def said(program, path):
    """What the program says of a trace, as JSON."""
    done = subprocess.run([program, path, "-J", "-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        return {"error": done.stderr.strip()}
    return json.loads(done.stdout)


def kind(rank, name, what):
    return rank["operations"].get(name, {}).get(what, 0)


def goal_rank(rank):
    """A rank in the words of counts.json."""
    row = {"rank": rank["rank"], "requires": rank["dependencies"], "irequires": rank["start_dependencies"]}
    for word, name in (("send", "send"), ("recv", "recv")):
        row[word + "s"] = kind(rank, name, "count")
        row[word + "_bytes"] = kind(rank, name, "bytes")
    row["calcs"] = kind(rank, "compute", "count")
    row["calc_units"] = kind(rank, "compute", "ns")
    if rank["collectives"]:
        row["colls"] = rank["collectives"]
    return row


def goal_expected(rank):
    row = {key: value for key, value in rank.items() if key not in ("acyclic", "colls")}
    if rank.get("colls"):
        row["colls"] = {GOAL_COLLS[name]: value for name, value in rank["colls"].items()}
    return row


def goal(program, folder, counts):
    """Each file of a sample, with what differs."""
    for name in sorted(key for key in counts if key.endswith((".goal", ".bin"))):
        want = counts[name]
        found = said(program, os.path.join(folder, name))
        if "error" in found:
            yield name, [found["error"]]
            continue
        wrong = [] if found["ranks"] == want["ranks"] else [f"ranks: found {found['ranks']}, expected {want['ranks']}"]
        for is_, expected in zip(found["per_rank"], want["per_rank"]):
            if goal_rank(is_) != goal_expected(expected):
                wrong.append(f"found {goal_rank(is_)}, expected {goal_expected(expected)}")
        if "collective_instances" in want["totals"] and found["collectives"] != want["totals"]["collective_instances"]:
            wrong.append(f"found {found['collectives']} collectives, expected {want['totals']['collective_instances']}")
        # the independent reader lets wildcards match nobody
        if not want["totals"]["wildcard_recvs"]:
            alone = {row["kind"]: row["count"] for row in found["wrong"]}
            sends = alone.get("no_receiver", 0) + found["totals"]["marks"]
            if sends != want["totals"]["unmatched_sends"] or alone.get("no_sender", 0) != want["totals"]["unmatched_recvs"]:
                wrong.append(f"found {alone} without another end, expected {want['totals']['unmatched_sends']}, {want['totals']['unmatched_recvs']}")
        yield name, wrong


CHAKRA_COLLS = {name.upper(): name for name in ("broadcast", "reduce", "all_reduce", "reduce_scatter", "all_gather", "gather", "scatter", "barrier")}
CHAKRA_COLLS["ALL_TO_ALL"] = "alltoall"


def chakra_rank(rank):
    row = {"rank": rank["rank"], "data_deps": rank["dependencies"], "comp_nodes": kind(rank, "compute", "count")}
    row["comp_micros"] = kind(rank, "compute", "ns") // 1000
    row["coll"] = {name: value for name, value in rank["collectives"].items() if name != "untyped"}
    row["untyped"] = rank["collectives"].get("untyped", {}).get("count", 0)
    row["p2p"] = {name: [kind(rank, name, "count"), kind(rank, name, "bytes")] for name in ("send", "recv")}
    return row


def chakra_expected(rank):
    """Dependencies on what is not there are left out of the graph."""
    coll = rank.get("coll", {})
    row = {"rank": rank["rank"], "data_deps": rank["data_deps"] - rank["dangling_data_deps"], "comp_nodes": rank["comp_nodes"]}
    row["comp_micros"] = rank["comp_micros"]
    row["coll"] = {CHAKRA_COLLS[name]: value for name, value in coll.items() if "UNTYPED" not in name}
    row["untyped"] = sum(value["count"] for name, value in coll.items() if "UNTYPED" in name)
    row["p2p"] = {name: list(rank.get("p2p", {}).get(name, {"count": 0, "bytes": 0}).values()) for name in ("send", "recv")}
    return row


def chakra(program, folder, counts):
    """The folder as one trace."""
    found = said(program, folder)
    if "error" in found:
        yield "", [found["error"]]
        return
    wrong = [] if found["ranks"] == counts["ranks"] else [f"ranks: found {found['ranks']}, expected {counts['ranks']}"]
    for is_, expected in zip(found["per_rank"], counts["per_rank"]):
        if chakra_rank(is_) != chakra_expected(expected):
            wrong.append(f"found {chakra_rank(is_)}, expected {chakra_expected(expected)}")
    alone = {row["kind"]: row["count"] for row in found["wrong"]}
    if alone.get("dependency", 0) != sum(rank["dangling_data_deps"] for rank in counts["per_rank"]):
        wrong.append(f"found {alone} wrong")
    yield "", wrong


READERS = {"goal": goal, "goal-coll": goal, "chakra-et": chakra, "chakra-json": chakra}


def main():
    bad = seen = 0
    for folder in sys.argv[2:]:
        with open(os.path.join(folder, "counts.json"), encoding="utf-8") as file:
            counts = json.load(file)
        if counts["format"] not in READERS:
            continue
        for name, wrong in READERS[counts["format"]](sys.argv[1], folder, counts):
            seen += 1
            bad += bool(wrong)
            print(f"{'FAILED' if wrong else 'ok':6}  {counts['format']}/{counts['sample']}/{name}")
            for line in wrong[:5]:
                print("        " + line)
    print(f"{seen} traces, {bad} differ")
    return 1 if bad or not seen else 0


if __name__ == "__main__":
    sys.exit(main())
