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


def htsim(program, folder, counts):
    """Bytes by node, and collectives by kind; those of the file are of one operation, ours of every member."""
    for want in counts["matrices"]:
        found = said(program, os.path.join(folder, want["file"]))
        if "error" in found:
            yield want["file"], [found["error"]]
            continue
        wrong = [] if found["ranks"] == want["nodes"] else [f"found {found['ranks']} ranks, expected {want['nodes']}"]
        for word in ("send", "recv"):
            is_ = {str(rank["rank"]): kind(rank, word, "bytes") for rank in found["per_rank"] if kind(rank, word, "bytes")}
            expected = {node: size for node, size in want.get(word + "_bytes_by_node", {}).items() if size}
            if is_ != expected:
                wrong.append(f"{word}: found {is_}, expected {expected}")
        members = len(found["groups"][0]) if found["groups"] else 0
        expected = {GOAL_COLLS[name]: {"count": members * v["count"], "bytes": members * v["bytes"]} for name, v in want.get("collectives", {}).items()}
        if found["totals"]["collectives"] != expected:
            wrong.append(f"found {found['totals']['collectives']}, expected {expected}")
        if "collectives" not in want and kind(found["totals"], "send", "count") != want["connections"]:
            wrong.append(f"found {kind(found['totals'], 'send', 'count')} sends, expected {want['connections']}")
        if found["wrong"]:
            wrong.append(f"found {found['wrong']}, expected nothing wrong")
        yield want["file"], wrong


TEXT_COLLS = {"ALLREDUCE": "all_reduce", "ALLTOALL": "alltoall", "ALLGATHER": "all_gather", "REDUCESCATTER": "reduce_scatter", "BROADCAST": "broadcast"}


def updates(path):
    """Updates that run, one behind each communication: columns of the file."""
    with open(path, encoding="utf-8") as file:
        head, _, rest = file.read().split("\n", 2)
    words = rest.split()
    width = 13 if head.startswith("HYBRID_CUSTOMIZED") else 12
    rows = [words[i : i + width] for i in range(0, len(words), width)]
    return sum(int(row[11]) * sum(row[i] != "NONE" for i in (3, 6, 9)) for row in rows)


def text(program, folder, counts):
    for want in counts["workloads"]:
        path = os.path.join(folder, want["file"])
        found = said(program, path)
        if "error" in found:
            yield want["file"], [found["error"]]
            continue
        colls = {}
        for phase in ("fwd", "ig", "wg"):
            for name, value in want[phase]["comm"].items():
                row = colls.setdefault(TEXT_COLLS[name.split("_")[0]], {"count": 0, "bytes": 0})
                row["count"] += value["count"]
                row["bytes"] += value["bytes"]
        wrong = [] if found["totals"]["collectives"] == colls else [f"found {found['totals']['collectives']}, expected {colls}"]
        ns = sum(want[phase]["compute"] for phase in ("fwd", "ig", "wg")) + updates(path)
        if kind(found["totals"], "compute", "ns") != ns:
            wrong.append(f"found {kind(found['totals'], 'compute', 'ns')} ns of computation, expected {ns}")
        layers = next((row["first"][0] for row in found["wrong"] if row["kind"] == "count"), "")
        if (want["layers"] != want["layers_declared"]) != bool(layers):
            wrong.append(f"found \"{layers}\" for {want['layers']} layers of {want['layers_declared']}")
        yield want["file"], wrong


KERNELS = {"allreduce": "all_reduce", "broadcast": "broadcast", "ncclKernel_AllReduce_RING_LL_Sum_float": "all_reduce",
           "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t": "untyped"}


def kineto(program, folder, counts):
    """The device's kernels of each file."""
    for want in counts["per_rank"]:
        found = said(program, os.path.join(folder, want["file"]))
        if "error" in found:
            yield want["file"], [found["error"]]
            continue
        is_ = {"ranks": found["ranks"], "kernels": kind(found["totals"], "compute", "count"), "colls": found["totals"]["collectives"]}
        is_["us"] = round(kind(found["totals"], "compute", "ns") / 1000)
        is_["groups"] = len(found["groups"])
        colls = {KERNELS[name]: value for name, value in want["nccl_kernels"].items()}
        expected = {"ranks": want["world_size"], "kernels": want["compute_kernels"], "colls": colls, "us": round(want["compute_kernel_micros"])}
        expected["groups"] = want["pg_config"]
        yield want["file"], [] if is_ == expected else [f"found {is_}, expected {expected}"]


NCCL = {"AllReduce": "all_reduce", "AllGather": "all_gather", "ReduceScatter": "reduce_scatter", "Broadcast": "broadcast", "Reduce": "reduce"}


def nccl(program, folder, counts):
    """Operations of each process, over its communicators; its rank is that in the largest."""
    found = said(program, folder)
    if "error" in found:
        yield "", [found["error"]]
        return
    worlds = {(row["host"], row["pid"]): row["rank"] for row in sorted(counts["per_communicator"], key=lambda row: row["nranks"])}
    want = {rank: {} for rank in worlds.values()}
    for row in counts["per_communicator"]:
        for name, value in row["ops"].items():
            one = want[worlds[row["host"], row["pid"]]].setdefault(NCCL.get(name, name.lower()), {"count": 0, "bytes": 0})
            one["count"] += value["count"]
            one["bytes"] += value["bytes"]
    is_ = {}
    for rank in found["per_rank"]:
        is_[rank["rank"]] = dict(rank["collectives"])
        for word in ("send", "recv"):
            if kind(rank, word, "count"):
                is_[rank["rank"]][word] = {"count": kind(rank, word, "count"), "bytes": kind(rank, word, "bytes")}
    yield "", [f"rank {rank}: found {is_.get(rank)}, expected {row}" for rank, row in want.items() if is_.get(rank) != row] + [str(row) for row in found["wrong"]]


READERS = {"kineto": kineto, "nccl-log": nccl, "htsim-cm": htsim, "text-workload": text, "goal": goal, "goal-coll": goal, "chakra-et": chakra, "chakra-json": chakra}


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
