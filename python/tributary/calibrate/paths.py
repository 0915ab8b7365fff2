# SPDX-License-Identifier: BSD-3-Clause
"""Where the traffic of results goes, and by which keys of a conf it is described."""

from __future__ import annotations

import re
from typing import Optional, Sequence

from .._cli import Refused
from .._conf_text import Conf
from .rows import Series

HOST_LINKS = ("gpu_nodes.nic", "leaf_spine.host_link", "single_switch.host_link", "full_mesh.host_link", "link_defaults")


def seconds(text: Optional[str]) -> float:
    m = re.fullmatch(r"([\d.]+)\s*(ps|ns|us|ms|s)", text or "")
    return float(m[1]) * {"ps": 1e-12, "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}[m[2]] if m else 0.0


class Path:
    """Where the traffic of a series goes, and the keys of its parameters."""

    def __init__(self, name: str, efficiency: Sequence[str], step: Optional[str]) -> None:
        self.name, self.efficiency, self.step = name, list(efficiency), step
        self.launch = "costs.%s.launch" % name


def path_of(conf: Conf, s: Series) -> Path:
    gpus = int(conf.get("gpu_nodes.gpus") or 0)
    if gpus and s.kind == "time" and s.algo == "nvls" and s.ranks <= gpus:
        return Path("multimem", ["costs.multimem.load", "costs.multimem.store"], None)
    if gpus and s.ranks <= gpus and s.kind == "time":
        return Path("nvlink", ["gpu_nodes.nvlink.efficiency"], "costs.nvlink.step")
    for link in HOST_LINKS:
        if link in conf.body:
            return Path("network", [link + ".efficiency"], "costs.network.step")
    raise Refused("found no gpu_nodes.nic, host_link or link_defaults in CONF itself, expected one of them: results over the network need its rate")
