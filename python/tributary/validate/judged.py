# SPDX-License-Identifier: BSD-3-Clause
"""Errors of predictions, in percent of bus bandwidth on rows that were not fitted, by series and by class."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any, Iterator, Mapping, Optional, Sequence

from .._files import write_whole
from .published import HUGE, M, Series, algo_of, conf_of, size_text, table, tuned
from .simulated import LARGE, Sim

SMALL = 1 * M
MEDIAN, WORST, SMALL_MEDIAN, STRICT = 5, 10, 25, 3  # percent

Row = dict[str, Any]
Figures = dict[str, Any]


def compare(sim: Sim, s: Series) -> None:
    conf = conf_of(s)
    for r in s["rows"]:
        r["model"] = sim.predict(conf, s, algo_of(s, r["size"]), r["size"])
        # Of bus bandwidths, as people compare them.
        r["error"] = 100 * (r["us"] / r["model"] - 1)


def spread(series: Sequence[Series]) -> None:
    """gives each row its limit: WORST, or the spread between publications where that is larger

    A publication is a source's first two parts (owner/repository); publications are of one thing where class, ranks, collective, the
    algorithm that stands for it and the size are the same. The spread is the highest bus bandwidth over the lowest, in percent more."""
    def thing(s: Series, r: Row) -> tuple[Any, ...]:
        return s["class"], s["ranks"], s["collective"], algo_of(s, r["size"]), r["size"]
    seen: dict[tuple[Any, ...], list[tuple[str, float]]] = {}
    for s in series:
        for r in s["rows"]:
            seen.setdefault(thing(s, r), []).append(("/".join(s["source"].split("/")[:2]), r["bus"]))
    for s in series:
        for r in s["rows"]:
            who, buses = zip(*seen[thing(s, r)])
            r["limit"] = max(WORST, 100 * (max(buses) / min(buses) - 1)) if len(set(who)) > 1 else WORST


def held(rows: Sequence[Row], low: int, high: int = 1 << 62) -> list[Row]:
    return [r for r in rows if not r["fitted"] and low <= r["size"] < high]


def errors(rows: Sequence[Row]) -> list[float]:
    return [abs(r["error"]) for r in rows]


def figures(rows: Sequence[Row]) -> Figures:
    big, small = held(rows, LARGE), held(rows, 0, SMALL)
    return {"n": len(big), "median": statistics.median(errors(big)) if big else None, "worst": max(errors(big)) if big else None,
            "over": sum(abs(r["error"]) > r["limit"] for r in big),
            "nsmall": len(small), "small": statistics.median(errors(small)) if small else None}


def num(v: Optional[float]) -> str:
    return "-" if v is None else "%.1f" % v


def misses(f: Mapping[str, Any]) -> list[str]:
    return [n for n, v, limit in (("median", f["median"], MEDIAN), ("worst", f["over"], 0), ("small", f["small"], SMALL_MEDIAN))
            if v is not None and v > limit]


def strict(series: Sequence[Series]) -> Iterator[tuple[Series, str, float, float]]:
    """H100: ring with 2 to 8 GPUs and NVLS with 5 to 8, from 1 GiB"""
    for s in series:
        algo = algo_of(s, HUGE)
        if s["class"] == "h100-node" and s["collective"] == "all_reduce" and (algo == "ring" or int(s["ranks"]) >= 5):
            big = errors(held(s["rows"], HUGE))
            if big:
                yield s, algo, statistics.median(big), max(big)


def report(series: Sequence[Series], rows: bool) -> dict[str, Figures]:
    print("errors in percent of bus bandwidth on rows that were not fitted: from 16 MiB median, worst and the number of rows over their limit\n"
          "(%d %%, or the spread between publications where that is larger), below 1 MiB median" % WORST)
    line = "%-26s %-12s %5s %-14s %-15s %-8s %4s %7s %7s %4s %4s %7s  %s"
    print(line % ("series", "class", "ranks", "collective", "algorithm", "use", "rows", "median", "worst", "over", "rows", "small", "misses"))
    classes: dict[str, list[Row]] = {}
    for s in series:
        f = figures(s["rows"])
        bad = misses(f)
        print(line % (s["id"], s["class"], s["ranks"], s["collective"], s["algo"], s["use"], f["n"], num(f["median"]), num(f["worst"]),
                      f["over"], f["nsmall"], num(f["small"]), ", ".join(bad) + (": " + s["reason"] if bad else "")))
        if rows:
            for r in s["rows"]:
                choice = tuned(s, r["size"])
                print("    %-4s %6s %12.1f %12.1f us %10.2f %10.2f GB/s %+7.1f of %5.1f %% %-10s %-16s %s" % (
                    r["place"], size_text(r["size"]), r["us"], r["model"], r["bus"], r["bus"] * r["us"] / r["model"], r["error"], r["limit"],
                    algo_of(s, r["size"]), " ".join(choice) if choice else "-", "fitted" if r["fitted"] else ""))
        classes.setdefault(s["class"], []).extend(s["rows"])
    line = "%-16s %5s %7s %7s %5s %5s %7s  %s"
    print("\n" + line % ("class", "rows", "median", "worst", "over", "rows", "small", "misses"))
    result: dict[str, Figures] = {}
    for c, all_rows in classes.items():
        f = result[c] = figures(all_rows)
        print(line % (c, f["n"], num(f["median"]), num(f["worst"]), f["over"], f["nsmall"], num(f["small"]), ", ".join(misses(f))))
    print("\nH100 all-reduce from 1 GiB, at most %d %%:" % STRICT)
    for s, algo, median, worst in strict(series):
        print("%-26s %2s GPUs %-5s median %4.1f, worst %4.1f%s" % (s["id"], s["ranks"], algo, median, worst, "  MISSES" if worst > STRICT else ""))
    return result


def check(result: Mapping[str, Figures], path: str, update: bool) -> int:
    if update:
        head = "# SPDX-License-Identifier: BSD-3-Clause\n# validate --quick: errors of each class (percent)\nclass\tmedian\tsmall\n"
        write_whole(path, head + "".join("%s\t%s\t%s\n" % (c, num(v["median"]), num(v["small"])) for c, v in result.items()))
        return 0
    want = table(Path(path))
    failed = 0
    for w in want:
        for key in ("median", "small"):
            got = result.get(w["class"], {}).get(key)
            if w[key] != "-" and (got is None or got > float(w[key]) + 1):
                print("validate: %s: %s error is %s %%, expected at most %s + 1" % (w["class"], key, num(got), w[key]))
                failed = 1
    return failed
