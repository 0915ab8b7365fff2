# SPDX-License-Identifier: BSD-3-Clause
"""The folder of a sweep, by which ``tributary.sweep`` and ``trib-sweep`` go on with each other's.

DIR has ``list``, a simulation a line; of line I ``IIIII.json`` (results) and ``IIIII.out`` (first the line itself, then what was printed). Empty
lines of a list and those that begin with # do not count. A line is finished where its .out begins with it and its .json is one object without
"error" (trib writes "not finished" until the end) whose rows are objects.
"""

from __future__ import annotations

import os
from typing import Any, Optional

from .._input import data_of, json_of


def lines_of(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.strip() and not line.lstrip().startswith("#")]


def base_of(folder: str, number: int) -> str:
    """What the names of line NUMBER's files begin with; the first line is 0."""
    return os.path.join(folder, f"{number:05d}")


def head_of(line: str) -> str:
    """The first line of its .out."""
    return f"# trib sim {line}\n"


def result_of(base: str, line: str) -> Optional[dict[str, Any]]:
    """What the files BASE.json and BASE.out have of this very line; None: it is not finished."""
    try:
        if not data_of(f"{base}.out").startswith(os.fsencode(head_of(line))):
            return None
        result = json_of(f"{base}.json", "results")
    except (OSError, ValueError):
        return None
    rows = result.get("results", [])
    return result if "error" not in result and isinstance(rows, list) and all(isinstance(r, dict) for r in rows) else None
