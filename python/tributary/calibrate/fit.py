# SPDX-License-Identifier: BSD-3-Clause
"""Launch, step and efficiency of a path, by least squares of relative errors over the rows that are no outliers."""

from __future__ import annotations

import re
from typing import Iterable, Mapping, Optional, Sequence

from .._cli import Refused
from .._conf_text import Conf
from .paths import Path, seconds
from .predict import Simulator, predicted
from .rows import Row, Series, size_text


def median(values: Iterable[float]) -> float:
    v = sorted(values)
    return (v[(len(v) - 1) // 2] + v[len(v) // 2]) / 2


def solve(a: Sequence[Sequence[float]], b: Sequence[float]) -> Optional[list[float]]:
    """Gaussian elimination with pivots; None where a is singular."""
    n = len(b)
    m = [list(a[i]) + [b[i]] for i in range(n)]
    for c in range(n):
        p = max(range(c, n), key=lambda i: abs(m[i][c]))
        if abs(m[p][c]) < 1e-12:
            return None
        m[c], m[p] = m[p], m[c]
        for i in range(n):
            if i != c:
                k = m[i][c] / m[c][c]
                m[i] = [x - k * y for x, y in zip(m[i], m[c])]
    return [m[i][n] / m[i][i] for i in range(n)]


def least_squares(rows: Sequence[Sequence[float]]) -> Optional[list[float]]:
    """rows of (coefficients..., right side), columns scaled; None where they do not tell the unknowns apart."""
    n = len(rows[0]) - 1
    scale = [max(max(abs(r[j]) for r in rows), 1e-300) for j in range(n)]
    a = [[sum(r[i] * r[j] for r in rows) / scale[i] / scale[j] / len(rows) for j in range(n)] for i in range(n)]
    b = [sum(r[i] * r[n] for r in rows) / scale[i] / len(rows) for i in range(n)]
    x = solve(a, b)
    return [v / k for v, k in zip(x, scale)] if x else None


def far(residuals: Sequence[float], least: float) -> tuple[float, float]:
    """How far is too far, from the median of the others."""
    middle = median(residuals)
    return middle, max(4 * 1.4826 * median(abs(r - middle) for r in residuals), least)


def line_of(rows: Sequence[Row], kind: str) -> tuple[float, float]:
    """The line floor + size/rate with the least median of relative errors, of all through two rows: as many as half may be wrong."""
    if kind == "rate":
        return 0.0, median(r.us / r.size for r in rows)
    some = rows if len(rows) <= 64 else rows[::len(rows) // 64 + 1]
    best: Optional[tuple[float, float, float]] = None
    for i, a in enumerate(some):
        for b in some[i + 1:]:
            if a.size == b.size:
                continue
            slope = (b.us - a.us) / (b.size - a.size)
            floor = a.us - slope * a.size
            if slope <= 0 or floor < -0.05 * min(a.us, b.us):
                continue
            off = sorted(abs((floor + slope * r.size) / r.us - 1) for r in rows)
            key = off[len(off) // 2 + (1 if len(off) > 4 else 0)]
            if best is None or key < best[0]:
                best = (key, floor, slope)
    if best is None:
        raise Refused("found times that do not grow with the size, expected floor + size / rate")
    return best[1], best[2]


def find_outliers(s: Series, rows: Sequence[Row]) -> None:
    """First by the rows alone, before anything is predicted."""
    floor, slope = line_of(rows, s.kind)
    off = [r.us / (floor + slope * r.size) - 1 for r in rows]
    middle, most = far(off, 0.30)  # times need not be a line: these are the gross ones
    for r, x in zip(rows, off):
        if abs(x - middle) > most:
            r.use = "outlier"


class Fit:
    """launch, step and efficiency of one path, from all its series."""

    def __init__(self, conf: Conf, path: Path, series: Sequence[Series], sim: Simulator) -> None:
        self.conf, self.path, self.series, self.sim = conf, path, series, sim
        floors = [s for s in series if s.kind != "rate"]
        self.unknown = ["slowness"]
        if floors:
            self.unknown.append("launch")
        if path.step and len({s.ranks for s in floors}) > 1:
            self.unknown.append("step")
        now = conf.get(path.efficiency[0])
        efficiency = float(now) if now and re.fullmatch(r"[\d.]+", now) else 1.0
        # Times are nearly linear in these: 1 / efficiency, and us.
        self.value = {"slowness": 1 / min(max(efficiency, 0.01), 1.0), "launch": 0.0, "step": (seconds(conf.get(path.step)) if path.step else 0.0) * 1e6}
        if "step" in self.unknown:  # a little one hides behind transfers: begin with what shows
            self.value["step"] = max(self.value["step"], 10.0)
        self.at_bound: list[str] = []
        self.least, self.wanted = 0.10, 1.0

    def with_keys(self, comment: Optional[str] = None, **changed: float) -> Conf:
        """The conf with the values, of those some changed."""
        conf, v = self.conf, {**self.value, **changed}
        for key in self.path.efficiency:
            conf = conf.set(key, "%.*f" % (4 if comment else 8, 1 / v["slowness"]), comment)
        for name, of in (("launch", self.path.launch), ("step", self.path.step)):
            if name in self.unknown and of:
                conf = conf.set(of, '"%.0fns"' % (v[name] * 1e3), comment)
        return conf

    def prediction(self, s: Series, **changed: float) -> list[float]:
        """Of the rows that count, without a launch: of several paths the greatest counts, so without that of the others, too."""
        conf = self.with_keys(None, **{"launch": 0.0, **changed})
        for key in ("costs.%s.launch" % name for name in ("nvlink", "multimem", "network")):
            conf = conf.set(key, '"0ns"', None) if conf.get(key) else conf
        return predicted(s, self.sim.times(conf, s, s.sizes), [r for r in s.rows if r.counts()])

    def missing(self, value: Mapping[str, float]) -> list[tuple[Row, float]]:
        """What is missing of each row with these values, relative to its time."""
        out: list[tuple[Row, float]] = []
        for s in self.series:
            rows = [r for r in s.rows if r.counts()]
            launch = 0.0 if s.kind == "rate" else value["launch"]
            out += [(r, (r.us - p - launch) / r.us) for r, p in zip(rows, self.prediction(s, slowness=value["slowness"], step=value["step"]))]
        return out

    def slopes(self) -> list[list[float]]:
        """Of each row, relative to its time: what a change of each unknown makes of it."""
        out: list[list[float]] = []
        bend = {"slowness": self.value["slowness"] * 1.05, "step": self.value["step"] * 1.1 + 0.5}
        for s in self.series:
            rows, base = [r for r in s.rows if r.counts()], self.prediction(s)
            columns: list[list[float]] = []
            for name in self.unknown:
                if name == "launch":
                    columns.append([0.0 if s.kind == "rate" else 1.0] * len(rows))
                else:
                    columns.append([(a - b) / (bend[name] - self.value[name]) for a, b in zip(self.prediction(s, **{name: bend[name]}), base)])
            out += [[c[i] / r.us for c in columns] for i, r in enumerate(rows)]
        return out

    def weigh(self, off: Sequence[tuple[Row, float]]) -> None:
        """Which rows are outliers of the prediction; a bad one in the beginning calls few so."""
        middle, most = far([o for r, o in off if r.use == "used"], self.least)
        for r, o in off:
            r.use = "outlier" if abs(o - middle) > most else "used"

    def change(self) -> list[float]:
        """Gauss and Newton: by how much each value changes."""
        slopes, off = self.slopes(), self.missing(self.value)
        for _ in range(6):  # an outlier of the rows alone may be none of the prediction, and the other way round
            x = self.solution([e + [o] for e, (r, o) in zip(slopes, off) if r.use == "used"])
            before = [r.use for r, _ in off]
            self.weigh([(r, o - sum(a * b for a, b in zip(e, x))) for e, (r, o) in zip(slopes, off)])
            if before == [r.use for r, _ in off]:
                break
        return x

    def run(self) -> Fit:
        for self.least in (0.4, 0.25, 0.15) + (0.10,) * 6:
            change, before = self.change(), dict(self.value)
            error = sum(o * o for r, o in self.missing(before) if r.use == "used")
            for stride in (1.0, 0.4, 0.15):  # prediction is no line of the values: not so far that it gets worse
                value = {**before, **{n: max(before[n] + stride * c, 0.2 * before[n]) for n, c in zip(self.unknown, change)}}
                value["slowness"] = max(min(value["slowness"], 3 * before["slowness"]), 1.0)
                if sum(o * o for r, o in self.missing(value) if r.use == "used") <= error:
                    self.value = value
                    break
            if self.least == 0.10 and all(abs(self.value[n] - before[n]) <= 1e-3 * before[n] + 1e-9 for n in self.unknown):
                break
        if self.wanted < 0.97:
            raise Refused("the results are %s faster than CONF at %s = 1: expected another rate of the link, or another algorithm (--algo)" % (
                "%.0f %%" % (100 / self.wanted - 100) if self.wanted > 0.2 else "far", self.path.efficiency[0]))
        self.value.update({n: 0.0 for n in self.at_bound if n != "slowness"})
        self.weigh(self.missing(self.value))
        return self

    def solution(self, used: Sequence[Sequence[float]]) -> list[float]:
        """Changes of the unknowns; launch and step stay at 0 or more, an efficiency at most 1: at its bound one is fixed, the others are
        fitted again."""
        s, self.wanted = self.series[0], 1.0
        fixed: dict[int, float] = {}
        if max(abs(e[0]) for e in used) * self.value["slowness"] < 0.02:
            raise Refused("%s hardly changes what trib sim predicts of %s by %s, %d ranks: something else limits it" % (
                self.path.efficiency[0], s.collective, s.algo, s.ranks))
        low = [(1.0 if n == "slowness" else 0.0) - self.value[n] for n in self.unknown]
        x = [0.0] * len(low)
        while len(fixed) < len(low):
            free = [j for j in range(len(x)) if j not in fixed]
            part = least_squares([[e[j] for j in free] + [e[-1] - sum(e[j] * v for j, v in fixed.items())] for e in used])
            if part is None:
                raise Refused("the rows do not tell %s of %s apart, expected sizes from about 1 MiB to several 100 MiB" % (
                    " and ".join("efficiency" if n == "slowness" else n for n in self.unknown), self.path.name))
            for j, v in zip(free, part):
                x[j] = v
            hit = [j for j in free if x[j] < low[j] - 1e-9]
            if not hit:
                break
            if hit[0] == 0:
                self.wanted = self.value["slowness"] + x[0]
            fixed.update({j: low[j] for j in hit})
            x = [fixed.get(j, 0.0) for j in range(len(x))]
        self.at_bound = [self.unknown[j] for j in fixed]
        return x

    def comment(self) -> str:
        """From which files and rows."""
        parts = []
        for s in self.series:
            used = [r for r in s.rows if r.use == "used"]
            parts.append("%s, %d of %d rows (%s to %s), %s %s, %d ranks" % (
                s.name(), len(used), len(s.rows), size_text(min(r.size for r in used)), size_text(max(r.size for r in used)), s.collective,
                s.algo, s.ranks))
        return "from " + "; ".join(parts)
