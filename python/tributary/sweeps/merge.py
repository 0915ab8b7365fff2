# SPDX-License-Identifier: BSD-3-Clause
"""All results of a sweep as one JSON object: every row describes itself, and a training step is a row of its own."""

from __future__ import annotations

import json
from typing import Any, Mapping, Sequence


def rows_of(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    if "results" not in result:
        return [dict(result)]
    virtual = result.get("virtual") or {}
    of = {"conf": result.get("conf"), "ranks": result.get("ranks"), "seed": virtual.get("seed"), "payload": virtual.get("payload")}
    return [{**of, **row} for row in result["results"]]


def _plain(value: Any) -> Any:
    """Numbers as short as they are: 5.0 is 5."""
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e17 else value


def merged(results: Sequence[Mapping[str, Any]]) -> str:
    whole = {"simulations": len(results), "results": [row for result in results for row in rows_of(result)]}
    return json.dumps(_plain(whole), indent=2, ensure_ascii=False)
