# SPDX-License-Identifier: BSD-3-Clause
"""Algorithms that NCCL names, and which of ours they are."""

from __future__ import annotations

import re
from typing import Mapping, Optional

OURS = {"ring": "ring", "tree": "tree", "nvls": "nvls"}
NUMBERS = ("Tree", "Ring", "CollnetDirect", "CollnetChain", "NVLS", "NVLSTree", "PAT")  # of NCCL's log
_SET = re.compile(r"\bNCCL_ALGO\b(?: set by environment to |=|: +)\s*['\"]?([^'\"\s]+)")
_CHOSEN = re.compile(r"\b(\d+) Bytes -> Algo (\w+) proto\b")


def asked(line: str) -> Optional[str]:
    """The value of NCCL_ALGO in a line; None: it is not in it."""
    found = _SET.search(line)
    return found.group(1) if found else None


def chosen(line: str) -> Optional[tuple[int, str]]:
    """Size and algorithm of a line in which NCCL tells its choice."""
    found = _CHOSEN.search(line)
    if found is None:
        return None
    name = found.group(2)
    return int(found.group(1)), NUMBERS[int(name)] if name.isdigit() and int(name) < len(NUMBERS) else name


def ours(value: str, collective: Optional[str], where: str) -> tuple[Optional[str], str]:
    """Our algorithm of NCCL_ALGO's value, or why there is none."""
    for entry in value.rstrip(";").split(";"):
        function, _, names = entry.rpartition(":")
        if function and function.lower() != (collective or "").replace("_", ""):
            continue
        if names.lower() in OURS:
            return OURS[names.lower()], ""
        return None, f"{where}: found NCCL_ALGO {value}, expected Ring, Tree or NVLS alone, or --algo with what of ours is like it"
    return None, ""  # it is of other functions


def of_choices(sizes: Mapping[int, str], least: int, where: str) -> tuple[Optional[str], str]:
    """The same of what NCCL chose for each size, from least on."""
    names = list(dict.fromkeys(name for size, name in sorted(sizes.items()) if size >= least))
    if len(names) == 1 and names[0].lower() in OURS:
        return OURS[names[0].lower()], ""
    return (None, f"{where}: found NCCL's algorithms {', '.join(names)}, expected Ring, Tree or NVLS alone, or --algo with what of ours is like them") if names else (None, "")
