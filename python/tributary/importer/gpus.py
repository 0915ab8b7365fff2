# SPDX-License-Identifier: BSD-3-Clause
"""A conf of nodes of GPUs, alike, and of the leaf where their NICs meet."""

from __future__ import annotations

from typing import Sequence

from .._cli import Refused
from .network import listed
from .source import Line, Notes
from .topology import Machine


def _same(machines: Sequence[Machine]) -> None:
    first = machines[0]
    for m in machines[1:]:
        if m.shape() != first.shape():
            raise Refused(f"{m.path}: found other GPUs or links than in {first.path}, expected nodes alike")
        if sorted(m.rates) != sorted(first.rates):
            raise Refused(f"{m.path}: found NICs of {_gbps(m.rates)}, and in {first.path} of {_gbps(first.rates)}, expected nodes alike")


def _gbps(rates: Sequence[float]) -> str:
    return ", ".join(f"{r:g}" for r in sorted(rates)) + " Gb/s" if rates else "no speed"


def conf(machines: Sequence[Machine], latency: str, notes: Notes) -> tuple[list[Line], dict[str, str]]:
    """Lines of the conf, and where the input has each of its hosts."""
    _same(machines)
    first, n = machines[0], len(machines)
    here, alone = first.gpus[0].tag.where, not first.planes and not first.mesh
    nvlink = f'rate = "{first.link_GBps(notes) or 0:g}GB/s"; latency = "{latency}";'
    names = [[f"n{i}g{g}" for g in range(len(first.gpus))] for i in range(n)]
    where = {name: gpu.tag.where for m, row in zip(machines, names) for name, gpu in zip(row, m.gpus)}
    out: list[Line] = []
    nodes: list[Line] = []
    links: list[Line] = []
    if first.planes:
        planes = ", ".join(map(str, first.planes))
        out.append(Line(f"gpu_nodes = {{ nodes = {n}; gpus = {len(first.gpus)}; planes = ( {planes} ); nvlink = {{ {nvlink} }}; }};", here))
    else:
        quoted = ", ".join(f'"{g}"' for row in names for g in row)
        nodes.append(Line(f'    {{ name = ( {quoted} ); kind = "host"; }}', here))
        for row in names:
            links += [Line(f'    {{ a = "{row[i]}"; b = "{row[j]}"; cables = {count}; {nvlink} }}', first.gpus[i].tag.where) for (i, j), count in sorted(first.mesh.items())]
    if n > 1 or alone:
        if not first.rates:
            raise Refused(f"{first.path}: found no <net> with a speed, expected one to join nodes{' or GPUs without NVLink or xGMI' if alone else ''}")
        if alone:
            notes.add("GPUs without NVLink meet at the leaf: a conf has no PCIe", first.path)
        if len(first.rates) != len(first.gpus):
            notes.add(f"{len(first.rates)} NICs for {len(first.gpus)} GPUs: each GPU has its share of them", first.path)
        nodes.append(Line('    { name = "leaf0"; role = "leaf"; }', here))
        each = sum(first.rates) / len(first.gpus)
        for row in names:
            quoted = ", ".join(f'"{g}"' for g in row)
            links.append(Line(f'    {{ a = ( {quoted} ); b = "leaf0"; rate = "{each:g}Gb/s"; latency = "{latency}"; }}', here))
    return [*out, *listed("nodes", nodes), *listed("links", links)], where


def unlinked(machine: Machine, a: str, b: str) -> str:
    """Why two GPUs of a node have no path."""
    i, j = (int(name.split("g")[-1]) for name in (a, b))
    gpu, other = machine.gpus[i], machine.gpus[j]
    return (
        f"{gpu.tag.where}: found GPU {gpu.dev} without a link to GPU {other.dev} ({other.tag.where}), expected links between every two GPUs of a node "
        "that is alone: GPUs do not forward (--nodes joins nodes by their NICs)"
    )
