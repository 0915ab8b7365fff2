# SPDX-License-Identifier: BSD-3-Clause
"""What NCCL's tuner would take: for each algorithm and protocol, latency + bytes / bandwidth; the least time wins.

usage: nccl_tuner.py GPU NODES GPUS_A_NODE [all_reduce|all_gather|reduce_scatter [NIC_GBPS [NICS_A_NODE]]]

Constants are those of NCCL 2.30 (its graph/tuning.cc, topo.h and search.cc), times in us, rates in GB/s (1e9). GPU: a100, h100, b200.
Its search for channels is replaced by the best product of a rate that it tries and the channels that links have room for. Not modelled: PCIe in
a node, CollNet, PAT, more than 32 GPUs a node, and the latency of NICs beyond the constants.
"""

from __future__ import annotations

import math
import sys
from typing import Any, Mapping, Optional, Sequence

from .._cli import ended

PROTOCOLS = ("LL", "LL128", "Simple")
BASE = {"tree": (6.8, 14.0, 8.4), "ring": (6.6, 14.0, 8.4), "nvls": (0, 0, 0), "nvls_tree": (0, 0, 0)}
NVLINK = {"tree": (0.6, 1.25, 4.0), "ring": (0.6, 1.9, 3.4), "nvls": (0, 0, 25), "nvls_tree": (0, 0, 25)}
NETWORK = {"tree": (5.0, 8.5, 14), "ring": (2.7, 4.0, 14.0), "nvls": (0, 0, 18), "nvls_tree": (0, 0, 20.9)}
POST = 1.0  # a post to the network, at the least what a step in the node takes then; three times as much for Simple
PLATEAU = 1.4  # ring, Simple, several nodes, from 64 B for each channel and rank
# Share of a tree's bandwidth by size, powers of two from 64 B on; 1 beyond.
TREE = ((1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1),
        (1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1),
        (.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9))
# nvlink: of a GPU. Limits by number of nodes: one, two, more. ll2: of Intel and AMD hosts, the mean.
GPUS: Mapping[str, Mapping[str, Any]] = {
    "a100": {"nvlink": 12 * 20.0, "nvls": 0, "ll": 87.7, "ring128": 20.0, "tree": (24, 23.6, 17.8), "tree128": (20, 20, 20), "nvls_tree": (0, 0, 0),
             "intra": (40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3), "inter": (48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3)},
    "h100": {"nvlink": 18 * 20.6, "nvls": 0.85, "ll": 141.0, "ring128": 36.7, "tree": (38.7, 41.4, 36), "tree128": (36.7, 36.7, 29),
             "nvls_tree": (0, 57.7, 45.5),
             "intra": (60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3), "inter": (48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3)},
    "b200": {"nvlink": 18 * 40.1, "nvls": 0.74, "ll": 282.0, "ring128": 40.0, "tree": (70, 42.8, 24), "tree128": (55.6, 31.67, 20),
             "nvls_tree": (0, 96, 80),
             "intra": (90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18), "inter": (96, 86, 80, 48, 45.1, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3)},
}
LL_NODES = {2: (39.0 + 22.5) / 2, 3: (20.4 + 19.0) / 2}


def graph(gpu: Mapping[str, Any], nodes: int, ppn: int, nic: float, nics: int, algo: str) -> tuple[int, float]:
    """(channels, rate of one): the most that the links of a GPU, or a node's NICs, have room for"""
    room = gpu["nvlink"]
    if algo != "ring" and ppn > 1:
        room *= ppn / (ppn - 1)  # trees and NVLS do not come back to where they began
    if nodes > 1:
        rates = [r for r in gpu["inter"] if r <= nic and (ppn == 1 or r * nics <= room)]
        return (nics, rates[0]) if rates else (1, nic)
    if algo == "nvls":  # a channel for each GPU
        rates = [r for r in gpu["intra"] if r * min(ppn, 32) <= room]
        return (min(ppn, 32), rates[0]) if rates else (0, 0)
    # Trees have the channels of the ring.
    # Slower rates are tried down to about half of the first that fits.
    rate = max((r for r in gpu["intra"] if r > 0.49 * gpu["intra"][0]), key=lambda r: (math.floor(gpu["nvlink"] / r + 1e-9) * r, r))
    n = int(gpu["nvlink"] / rate + 1e-9)
    return (2 * n, rate / 2) if rate >= 25 else (n, rate)


def bandwidth(gpu: Mapping[str, Any], nodes: int, ppn: int, nic: float, nics: int, collective: str, algo: str, p: int) -> float:
    """GB/s of the algorithm; 0: it is not a choice"""
    at, proto = min(nodes, 3) - 1, PROTOCOLS[p]
    reduce_all = collective == "all_reduce"
    n, bw = graph(gpu, nodes, ppn, nic, nics, algo)
    if algo in ("nvls", "nvls_tree"):
        # Over several nodes NVLS needs CollNet, and NVLSTree is of all-reduce.
        if proto != "Simple" or not gpu["nvls"] or n < 2 or (algo == "nvls") != (nodes == 1) or (nodes > 1 and not reduce_all):
            return 0
        intra = bw * gpu["nvls"] * (n - 1) / n * (2 if reduce_all else (ppn - 1) / ppn)
        busbw = n * (min(intra, bw) if algo == "nvls" else min(intra, bw * (2 if nodes == 2 else 1), gpu["nvls_tree"][at]))
        return float(busbw * nodes * ppn / (2 * (nodes * ppn - 1)) if reduce_all else busbw)
    if algo == "tree" and not reduce_all:
        return 0
    busbw, ll = n * bw, gpu["ll"] if nodes == 1 else LL_NODES[at + 1]
    if algo == "ring":
        busbw = {"LL": min(ll, busbw * 0.5), "LL128": min(busbw * 0.92, n * gpu["ring128"]), "Simple": busbw}[proto]
        return float(busbw * nodes * ppn / ((2 if reduce_all else 1) * (nodes * ppn - 1)))
    busbw = min(busbw * 0.92, n * gpu["tree"][at])
    busbw = {"LL": min(busbw / 3.8, ll), "LL128": min(busbw * (7 / 9 if nodes == 1 else 120 / 128), n * gpu["tree128"][at]), "Simple": busbw}[proto]
    return float(busbw * 0.5)


def latency(nodes: int, ppn: int, collective: str, algo: str, p: int) -> float:
    intra, inter = NVLINK[algo][p], (NETWORK["tree"] if ppn == 1 else NETWORK[algo])[p]
    if algo == "ring":
        half = 2 if collective == "all_reduce" else 1
        if nodes > 1:
            intra = max(intra, POST * (3 if p == 2 else 1))
        return BASE[algo][p] + half * ((nodes * ppn - nodes) * intra + (nodes - 1) * inter if nodes > 1 else (ppn - 1) * intra)
    log = int(math.log2(nodes))
    return BASE[algo][p] + (2 * ((ppn - 1) * intra + log * inter) if algo == "tree" else intra + (2 * log * inter if nodes > 1 else 0))


def table(gpu: str, nodes: int, ppn: int, collective: str = "all_reduce", nic: float = 48.0, nics: int = 8) -> dict[tuple[str, str], tuple[float, float]]:
    """{(algorithm, protocol): (us of latency, GB/s)} of the choices there are"""
    g: Mapping[str, Any] = GPUS[gpu]
    t: dict[tuple[str, str], tuple[float, float]] = {}
    for algo in BASE:
        for p, proto in enumerate(PROTOCOLS):
            bw = bandwidth(g, nodes, ppn, nic, nics, collective, algo, p)
            if bw:
                t[algo, proto] = latency(nodes, ppn, collective, algo, p), bw
    return t


def choose(gpu: str, nodes: int, ppn: int, collective: str, size: int, nic: float = 48.0, nics: int = 8) -> tuple[str, str, float]:
    """(algorithm, protocol, us) of the least time for size bytes, those of all ranks for all_gather and reduce_scatter"""
    best: Optional[tuple[str, str, float]] = None
    for (algo, proto), (lat, bw) in table(gpu, nodes, ppn, collective, nic, nics).items():
        log = int(math.log2(size >> 6)) if size >= 64 else -1
        if algo == "tree" and 0 <= log < 23:
            bw *= TREE[PROTOCOLS.index(proto)][log]
        if algo == "ring" and proto == "Simple" and nodes > 1 and collective == "all_reduce":
            if size / (graph(GPUS[gpu], nodes, ppn, nic, nics, "ring")[0] * nodes * ppn) >= 64:
                lat *= PLATEAU
        us = lat + size / 1e3 / bw
        if not best or us < best[2]:
            best = algo, proto, us
    assert best, "there is a ring of any number of GPUs"
    return best


def show(args: Sequence[str]) -> int:
    try:
        gpu, nodes, ppn = args[0], int(args[1]), int(args[2])
        collective, nic_Gbps, number = [*args, *("all_reduce", "400", "8")[len(args) - 3 :]][3:]
        nic, nics = float(nic_Gbps) * 0.12, int(number)
        if gpu not in GPUS or nodes < 1 or ppn < 1 or nodes * ppn < 2 or nic <= 0 or nics < 1 or collective not in ("all_reduce", "all_gather", "reduce_scatter"):
            raise ValueError
    except (ValueError, IndexError):
        print("\n".join(line for line in (__doc__ or "").splitlines() if line.startswith("usage")), file=sys.stderr)
        return 2
    print("%-10s %-7s %8s %8s" % ("algorithm", "proto", "us", "GB/s"))
    for (algo, proto), (lat, bw) in table(gpu, nodes, ppn, collective, nic, nics).items():
        print("%-10s %-7s %8.1f %8.1f" % (algo, proto, lat, bw))
    print("\n%-12s %-10s %-7s %10s" % ("from bytes", "algorithm", "proto", "us there"))
    before = None
    for z in range(3, 35):
        algo, proto, us = choose(gpu, nodes, ppn, collective, 1 << z, nic, nics)
        if (algo, proto) != before:
            print("%-12d %-10s %-7s %10.1f" % (1 << z, algo, proto, us))
        before = algo, proto
    return 0


def main() -> int:
    return ended(lambda what: print(f"nccl_tuner.py: {what}", file=sys.stderr), lambda: show(sys.argv[1:]))
