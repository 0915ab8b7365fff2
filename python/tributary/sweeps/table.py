# SPDX-License-Identifier: BSD-3-Clause
"""The table of --vary: a line for each row, with the keys' values and what was measured."""

from __future__ import annotations

import math
from typing import Any, Iterable, Mapping, Sequence

ROWS = ("collective", "algorithm", "bytes", "place", "us", "busbw GB/s")
STEPS = ("workload", "T_math ms", "T_comms: hosts", "NVSwitches", "switches", "T_step: hosts", "NVSwitches", "switches")
_PLACES = ("hosts", "nvswitches", "switches")  # where a step's reductions are


def _cell(value: Any) -> str:
    """Numbers with at most three digits behind the point."""
    if isinstance(value, float):
        value = math.floor(value * 1000 + 0.5) / 1000
        value = int(value) if value.is_integer() else value
    return "null" if value is None else str(value)


def cells_of(result: Mapping[str, Any], keys: Sequence[str], values: Sequence[str]) -> list[list[str]]:
    """The head, and the rows of one simulation. KeyError, TypeError: its results are not whole."""
    if "results" in result:
        head: Sequence[str] = ROWS
        rows = [[r["collective"], r["algo"], r["size_bytes"], "in" if r.get("in_place") else "out", 1.0 * r["time_us"], 1.0 * r["busbw_GBps"]] for r in result["results"]]
    else:
        head = STEPS
        rows = [[result["workload"], result["math_us"] / 1e3, *(result[p][of] / 1e3 for of in ("comms_us", "step_us") for p in _PLACES)]]
    return [[*keys, *head], *([*values, *map(_cell, row)] for row in rows)]


def aligned(lines: Iterable[Sequence[str]]) -> list[str]:
    """In columns, below one head: that of the first, where others are the same."""
    found = list(lines)
    found = found[:1] + [line for line in found[1:] if line != found[0]]
    wide: dict[int, int] = {}
    for line in found:
        for i, cell in enumerate(line):
            wide[i] = max(wide.get(i, 0), len(cell))
    return ["".join(f"  {cell:<{wide[i]}}" for i, cell in enumerate(line)).rstrip(" ") for line in found]
