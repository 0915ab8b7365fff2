# SPDX-License-Identifier: BSD-3-Clause
"""Results in JSON: of nccl-tests (-J), of trib (-J), of perftest (--out_json)."""

from __future__ import annotations

import json
import math
from typing import Any, Mapping, Optional

from .._cli import Refused, clean
from .._input import WrongFile, json_of_text, whole
from . import nccl_algo, perftest
from .nccl import TESTS, test_of
from .rows import Options, Series, bad, steps, take


EXPECTED = "JSON of nccl-tests, trib or perftest"


def read(path: str, text: str, o: Options) -> list[Series]:
    try:
        json.loads(text)
    except json.JSONDecodeError as e:
        why = "the end of the file: it is cut off" if e.pos >= len(text.rstrip()) else e.msg
        raise bad(path, e.lineno, why, "JSON") from None
    except (ValueError, RecursionError):
        pass  # said below
    try:
        top = json_of_text(text, path, EXPECTED)
        with whole(path, EXPECTED):
            return _series(path, top, o)
    except WrongFile as e:
        raise Refused(str(e)) from None


def _series(path: str, top: Any, o: Options) -> list[Series]:
    if isinstance(top, dict) and isinstance(top.get("test_info"), dict):
        return perftest.read_json(path, top)
    results = nested(top, path, "results")
    if not isinstance(results, list):
        raise Refused(f"{clean(path)}: results: found {clean(json.dumps(results))}, expected a list of rows")
    return _trib(path, top, results, o) if "ranks" in top else _nccl(path, top, results, o)


def nested(value: Any, path: str, *keys: str) -> Any:
    """value[keys...], which must be there."""
    for k in keys:
        if not isinstance(value, dict) or k not in value:
            raise Refused(f"{clean(path)}: found no field '{'.'.join(keys)}', expected it in nccl-tests' or trib's JSON")
        value = value[k]
    return value


def json_number(value: Any, path: str, what: str) -> float:
    """nccl-tests writes "nan" as a text."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
        raise Refused(f"{clean(path)}: {what}: found {clean(json.dumps(value))}, expected a number")
    return value


def _wrong(value: Any) -> str:
    return f"{value:g} elements are wrong" if isinstance(value, (int, float)) and value else ""


def _trib(path: str, top: Mapping[str, Any], results: list[Any], o: Options) -> list[Series]:
    series: dict[tuple[str, str], Series] = {}
    ranks = int(json_number(top["ranks"], path, "ranks"))
    known = (r for r in results if isinstance(r, dict) and not r.get("in_place"))
    out = {(r["size_bytes"], r["algo"]) for r in known if isinstance(r.get("size_bytes"), (int, float)) and isinstance(r.get("algo"), str)}
    for i, r in enumerate(results):
        where, algo, collective = f"results[{i}]", nested(r, path, "algo"), nested(r, path, "collective")
        if not isinstance(algo, str) or not isinstance(collective, str):
            raise Refused(f"{clean(path)}: {where}: found algo {clean(json.dumps(algo))} and collective {clean(json.dumps(collective))}, expected names")
        s = series.setdefault((collective, algo), Series(path, collective, algo, ranks))
        place = "in" if nested(r, path, "in_place") else "out"
        size, us = (json_number(nested(r, path, k), path, f"{where}.{k}") for k in ("size_bytes", "time_us"))
        alone = place == "in" and (size, algo) not in out
        if place == o.place or alone:
            take(s, int(size), {o.place: us}, i + 1, {o.place: _wrong(r.get("wrong"))}, o.place, f"{clean(path)}: {where}")
    return list(series.values())


def _nccl(path: str, top: Mapping[str, Any], results: list[Any], o: Options) -> list[Series]:
    devices, c = nested(top, path, "config", "devices"), top["config"]
    if not isinstance(devices, list) or not all(isinstance(d, dict) for d in devices):
        raise Refused(f"{clean(path)}: config.devices: found no list of devices, expected one a rank")
    args, env = (_words(top.get(k)) for k in ("args", "env"))
    collective = test_of(args)
    # Before several devices of a process were all listed there was one entry a process.
    ranks = max(len(devices), len(devices) * _count(c, "ngpus", 1) * _count(c, "nthreads", 1))
    s = Series(path, collective if collective in TESTS else None, None, ranks, len({str(d.get("hostname")) for d in devices}) or None)
    asked = nccl_algo.asked(env)
    if asked is not None:
        s.algo, s.not_ours = nccl_algo.ours(asked, collective, f"{clean(path)}: env")
    factor = "step_factor" in c
    s.expected = steps(_count(c, "minimum_bytes", 1), _count(c, "maximum_bytes", 0), _count(c, "step_factor" if factor else "step_bytes", 0), factor)
    failed = 0
    for i, r in enumerate(results):
        size = int(json_number(nested(r, path, "size"), path, f"results[{i}].size"))
        us: dict[str, float] = {}
        wrong: dict[str, str] = {}
        for p, key in (("out", "out_of_place"), ("in", "in_place")):
            part = r.get(key)
            if part is None:
                continue
            us[p] = json_number(_time(part, path, i), path, f"results[{i}].time")
            wrong[p] = _wrong(part.get("nwrong")) if isinstance(part, dict) else ""
            failed += bool(wrong[p])
        take(s, size, us, i + 1, wrong, o.place, f"{clean(path)}: results[{i}]")
    bounds: Optional[Any] = top.get("out_of_bounds")
    if isinstance(bounds, dict) and bounds.get("okay") is False and not failed:
        raise Refused(f"{clean(path)}: out_of_bounds: found {clean(json.dumps(bounds))}, expected rows that say which (nwrong)")
    return [s]


def _words(value: Any) -> str:
    """A list of words, or of names with values, as a line."""
    if isinstance(value, dict):
        value = [f"{k}={v}" for k, v in value.items()]
    return " ".join(map(str, value)) if isinstance(value, list) else ""


def _count(c: Mapping[str, Any], key: str, other: int) -> int:
    """A whole number of the configuration; other: it is none."""
    value = c.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else other


def _time(part: Any, path: str, i: int) -> Any:
    if isinstance(part, dict) and "time" not in part and "cpu_time" in part:
        raise Refused(f"{clean(path)}: results[{i}]: found cpu_time, expected time: what a CPU takes to start an operation is not what it takes")
    return part.get("time") if isinstance(part, dict) else part
