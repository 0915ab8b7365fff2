# SPDX-License-Identifier: BSD-3-Clause
"""Published series and their rows, as tests/validate has them, and which algorithm stands for one.

The sizes of a series at index 1, 4, 7, ... of those with use = fit were fitted (fit:1 names them); all others are held out.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any, Optional

from .._input import text_of
from . import tuner

K, M, G = 1 << 10, 1 << 20, 1 << 30
HUGE = 1 * G
# Where algorithm is tuner: what the tuner is told of a class (GPU, GB/s and number of a node's NICs).
TUNED = {"a100-node": ("a100", 0, 0), "h100-node": ("h100", 0, 0), "h200-node": ("h100", 0, 0), "b200-node": ("b200", 0, 0),
         "gb200-nvl72": ("b200", 0, 0), "gh200-node": ("h100", 0, 0), "a100-2-nodes": ("a100", 24, 8), "h100-2-nodes": ("h100", 48, 8),
         "network-400g": ("h100", 48, 1), "h100-4-nodes": ("h100", 48, 8), "b200-2-nodes": ("b200", 48, 8),
         "h200-2-nodes": ("h100", 48, 8), "a100-16-nodes": ("a100", 12, 8)}

Series = dict[str, Any]


def root() -> Path:
    """Of the checkout."""
    return Path(__file__).resolve().parents[3]


def table(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader((line for line in text_of(path).splitlines(True) if not line.startswith("#")), delimiter="\t"))


def bus(collective: str, n: int) -> float:
    return {"all_reduce": 2 * (n - 1) / n, "all_gather": (n - 1) / n, "reduce_scatter": (n - 1) / n, "alltoall": (n - 1) / n}.get(collective, 1)


def load() -> list[Series]:
    """the series with their rows: size, us, busbw, fitted"""
    data = root() / "tests" / "validate"
    series: list[Series] = [*table(data / "series.tsv")]
    rows: dict[str, list[dict[str, str]]] = {}
    for r in table(data / "measured.tsv"):
        rows.setdefault(r["id"], []).append(r)
    for s in series:
        n = 0 if s["ranks"] == "-" else int(s["ranks"])
        mine = rows.get(s["id"], [])
        use = s["use"].split(":")
        only = [int(i) for i in use[1].split(",")] if use[1:] else None
        order = {z: i for i, z in enumerate(sorted({int(r["size"]) for r in mine}))}
        s["rows"] = []
        for r in mine:
            size = int(r["size"])
            factor = bus(s["collective"], n)
            us = float(r["time"]) if r["time"] != "-" else size * factor / float(r["busbw"]) / 1e3 if float(r["busbw"]) else 0
            if us > 0:
                s["rows"].append({"size": size, "place": r["place"], "us": us, "bus": size * factor / us / 1e3,
                                  "fitted": use[0] == "fit" and (order[size] in only if only else order[size] % 3 == 1)})
        s["least"] = min((r["size"] for r in s["rows"]), default=0)
        s["most"] = max((r["size"] for r in s["rows"]), default=0)
    return series


def nodes_of(s: Series) -> int:
    nics = TUNED[s["class"]][2]
    return int(s["ranks"]) // (1 if nics == 1 else 8) if nics else 1


def tuned(s: Series, size: int) -> Optional[tuple[str, str]]:
    """(algorithm, protocol) that NCCL's tuner would take, None where it is not asked or not known"""
    if s["class"] not in TUNED or s["collective"] not in ("all_reduce", "all_gather", "reduce_scatter"):
        return None
    gpu, nic, nics = TUNED[s["class"]]
    nodes = nodes_of(s)
    return tuner.choose(gpu, nodes, int(s["ranks"]) // nodes, s["collective"], size, nic, nics)[:2]


def stands_for(algo: str, nodes: int, ppn: int) -> str:
    """what of ours stands for an algorithm of NCCL"""
    if algo in ("ring", "tree") and nodes > 1 and ppn > 1:
        return "rings" if algo == "ring" else "hier"
    return "nvls_sharp" if algo == "nvls_tree" and nodes == 2 else algo


def algo_of(s: Series, size: int) -> str:
    """ring:2M:nvls is ring below 2 MiB and nvls from there on; tuner is what stands for NCCL's choice"""
    a: list[str] = s["algo"].split(":")
    if a[0] == "tuner":
        nodes = nodes_of(s)
        choice = tuned(s, size)
        assert choice, "series.tsv says tuner of a class of TUNED alone"
        return stands_for(choice[0], nodes, int(s["ranks"]) // nodes)
    return a[0] if len(a) == 1 or size < int(a[1][:-1]) * M else a[2]


def conf_of(s: Series) -> str:
    """the preset's text; with :N after it, for N nodes and as many spines as keep its ratio of links down and up"""
    name, _, nodes = s["conf"].partition(":")
    text = text_of(root() / "conf" / name)
    if not nodes:
        return text
    was, spines = (int(re.findall(r"(?m)^ *%s *= (\d+);" % key, text)[0]) for key in ("nodes", "spines"))
    text = re.sub(r"(?m)^( *nodes *= )\d+;", r"\g<1>%s;" % nodes, text)
    return re.sub(r"(?m)^( *spines *= )\d+;", r"\g<1>%d;" % -(-spines * int(nodes) // was), text)


def size_text(z: int) -> str:
    return "%dG" % (z // G) if z >= G and z % G == 0 else "%dM" % (z // M) if z >= M and z % M == 0 else "%dK" % (z // K) if z >= K else str(z)
