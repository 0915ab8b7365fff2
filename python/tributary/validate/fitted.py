# SPDX-License-Identifier: BSD-3-Clause
"""What the fitted rows of a class ask for, against the fabric without costs."""

from __future__ import annotations

import re
import statistics
from typing import Sequence

from .judged import Row
from .published import G, K, M, Series, algo_of, conf_of
from .simulated import LARGE, Sim

Points = Sequence[tuple[float, float]]  # size, us


def slope(points: Points) -> float:
    """b of a + b size, least squares of relative errors"""
    sw = sx = sy = sxx = sxy = 0.0
    for x, y in points:
        w = 1 / y / y
        sw, sx, sy, sxx, sxy = sw + w, sx + w * x, sy + w * y, sxx + w * x * x, sxy + w * x * y
    det = sw * sxx - sx * sx
    return (sw * sxy - sx * sy) / det if det > 1e-9 * sw * sxx else sxy / sxx


def line_fit(points: Points) -> tuple[float, float]:
    """a + b size: the rate where it is reached (from 256 MiB), then the floor that suits all rows best"""
    b = slope([p for p in points if p[0] >= 256 * M] or points)
    return sum((y - b * x) / y / y for x, y in points) / sum(1 / y / y for _, y in points), b


def ideal(conf: str) -> str:
    """the same fabric without costs"""
    return re.sub(r"(?ms)^costs = \{.*?^\};|^costs = \{[^\n]*\};", "", re.sub(r"efficiency = [0-9.]+; ?", "", conf))


def step_error(sim: Sim, s: Series, rows: Sequence[Row], us: float) -> float:
    conf = re.sub(r'(nvlink += \{[^\n]*?step = )"[^"]*"', r'\1"%gus"' % us, conf_of(s))
    return float(statistics.mean(100 * abs(r["us"] / sim.predict(conf, s, algo_of(s, r["size"]), r["size"]) - 1) for r in rows if r["size"] >= LARGE))


def fit(sim: Sim, series: Sequence[Series], name: str) -> None:
    print("# what the fitted rows of class %s ask for, against the fabric without costs" % name)
    for s in series:
        if s["class"] != name or not s["use"].startswith("fit"):
            continue
        conf = ideal(conf_of(s))
        rows = [r for r in s["rows"] if r["fitted"]]
        points = [(r["size"], r["us"]) for r in rows if r["size"] >= LARGE]
        algo = algo_of(s, G)
        z = sim.sizes(int(s["ranks"]), s["least"], algo)[-2:]
        t = [sim.time(conf, s, algo, v) for v in z]
        b0 = (t[1] - t[0]) / (z[1] - z[0])
        a0 = t[0] - b0 * z[0]
        a, b = line_fit(points)
        print("%s: %s, %d of %d rows: floor %.1f us, rate share %.4f" % (s["id"], algo, len(rows), len(s["rows"]), a - a0, b0 / b))
        small = [r for r in rows if r["size"] <= 64 * K]
        if small:
            low = algo_of(s, 1)
            print("    up to 64 KiB: %.1f us more than %s on it" % (
                statistics.median(r["us"] - sim.predict(conf, s, low, r["size"]) for r in small), low))
        if algo == "ring" and "nvlink" in conf:
            print("    mean error of fitted rows from 16 MiB by the preset's step: " + ", ".join(
                "%g us %.1f %%" % (v, step_error(sim, s, rows, v)) for v in (2, 3.4, 5, 8, 12)))
