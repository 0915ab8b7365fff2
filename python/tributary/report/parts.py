# SPDX-License-Identifier: BSD-3-Clause
"""A training step (``trib sim --workload``) and jobs (``--jobs``) as figures and tables in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence

from .. import plot
from .._sizes import size_text
from .._trib import need
from .html import number, table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Draw = Callable[[Callable[[], "Axes"], str], str]  # a figure on the page, with its label
WAYS = (("hosts", "hosts"), ("nvswitches", "NVSwitches"), ("switches", "NVSwitches and switches"))  # who adds up


def is_step(found: Mapping[str, Any]) -> bool:
    return isinstance(found.get("collectives"), list) and any(isinstance(found.get(key), dict) and "step_us" in found[key] for key, _ in WAYS)


def is_jobs(found: Mapping[str, Any]) -> bool:
    return isinstance(found.get("jobs"), list) and all(isinstance(job, dict) for job in found["jobs"])


def title_of(found: Mapping[str, Any]) -> str:
    """What ran, and where; "": it is neither."""
    where = found.get("fabric", "")
    if is_step(found):
        return f"a training step of {found.get('workload', '')} on {where}, {found.get('gpus', '')} GPUs"
    return f"jobs on {where}" if is_jobs(found) else ""


def _ms(us: Any) -> float:
    return round(float(us or 0), 6) / 1000  # to the picosecond


def _bars(names: Sequence[str], parts: Sequence[tuple[str, str, Sequence[float]]], unit: str, title: str) -> Axes:
    """Bars of stacked parts, each (label, colour, values)."""
    pyplot = need("matplotlib.pyplot", "python3-matplotlib")
    ax: Axes = pyplot.subplots(figsize=(7.5, 1.3 + 0.5 * len(names)), layout="constrained")[1]
    left = [0.0] * len(names)
    for label, colour, values in parts:
        ax.barh(range(len(names)), values, left=left, color=colour, label=label, height=0.6)
        left = [a + b for a, b in zip(left, values)]
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.set_xlim(left=0)
    ax.set_xlabel(unit)
    ax.set_title(title, fontsize="medium", wrap=True)
    ax.grid(True, axis="x", alpha=0.3)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0, frameon=False)
    return ax


def step(found: Mapping[str, Any], name: str, draw: Draw) -> str:
    """A training step: where its time goes, by who adds up; then each collective."""
    ways = [(key, text) for key, text in WAYS if isinstance(found.get(key), dict)]
    axes = list(found.get("theory_us", {}))
    parts = [("computing", "#777777", [_ms(found.get("math_us"))] * len(ways)), ("pipeline bubble", "#BBBBBB", [_ms(found.get("pipeline_us"))] * len(ways))]
    for axis, colour in zip(axes, plot.COLOURS):
        parts.append((f"exposed: {axis}", colour, [_ms(found[key].get("exposed_by_us", {}).get(axis)) for key, _ in ways]))
    together = [_together(found[key], axes) for key, _ in ways]
    if any(together):
        parts.append(("exposed: several at once", plot.COLOURS[len(axes) % len(plot.COLOURS)], together))
    title = title_of(found)
    label = f"Where the time of {title} goes, ms: computing, and what communication adds to it, by who adds up: {'; '.join(text for _, text in ways)}"
    body = draw(lambda: _bars([text for _, text in ways], parts, "time (ms)", title), label)
    heads: Sequence[str] = ("who adds up", "computing (ms)", "pipeline bubble (ms)", "communication (ms)", "exposed of it (ms)", "step (ms)", "what binds")
    rows = [
        (text, _ms(found.get("math_us")), _ms(found.get("pipeline_us")), _ms(found[key].get("comms_us")), _ms(found[key].get("exposed_us")), _ms(found[key].get("step_us")), str(found[key].get("binds", "")))
        for key, text in ways
    ]
    body += table(f"The step, {name}", heads, rows)
    heads = ("parallelism", "communication by theory (ms)", *(f"exposed, {text} (ms)" for _, text in ways))
    body += table(f"By parallelism, {name}", heads, [(a, _ms(found["theory_us"][a]) or None, *(_ms(found[k].get("exposed_by_us", {}).get(a)) for k, _ in ways)) for a in axes])
    heads = ("parallelism", "collective", "GPUs", "size", "a step", *(f"{text}: {what}" for _, text in ways for what in ("by", "time (ms)")))
    rows_of = [_collective(c, [key for key, _ in ways]) for c in found["collectives"] if isinstance(c, dict)]
    return body + table(f"Collectives of a GPU, {name}; a second time is the most that it may be", heads, rows_of, numbers_from=2)


def _together(way: Mapping[str, Any], axes: Sequence[str]) -> float:
    """What the step gains by no parallelism's communication alone, since another's takes its place, in ms; 0: next to nothing."""
    alone = sum(float(way.get("exposed_by_us", {}).get(axis) or 0) for axis in axes)
    rest = _ms(float(way.get("exposed_us") or 0) - alone)
    return rest if rest > 1e-3 * _ms(way.get("step_us")) else 0.0


def _collective(c: Mapping[str, Any], ways: Sequence[str]) -> tuple[Any, ...]:
    cells: list[Any] = []
    for key in ways:
        way: Mapping[str, Any] = c[key] if isinstance(c.get(key), dict) else {}
        low, high = _ms(way.get("time_us")), _ms(way.get("high_us"))
        cells += [str(way.get("algo", "")), number(low) + (f" to {number(high)}" if high > 1.001 * low else "")]
    kind = str(c.get("parallel", "")) + (" (experts)" if c.get("experts") else "")
    return kind, str(c.get("collective", "")).replace("_", " "), c.get("group"), size_text(float(c.get("size_bytes") or 0)), c.get("times"), *cells


def jobs(found: Mapping[str, Any], name: str, draw: Draw) -> str:
    """Jobs that share a fabric: the time of each, alone and together."""
    all_jobs = found["jobs"]
    timed = [job for job in all_jobs if job.get("time_us") and job.get("alone_us")]
    body = ""
    if timed:
        alone = [float(job["alone_us"]) for job in timed]
        more = [max(0.0, float(job["time_us"]) - a) for job, a in zip(timed, alone)]
        title = title_of(found) + ", an iteration of each"
        parts = [("alone", plot.COLOURS[0], alone), ("more beside the others", plot.COLOURS[1], more)]
        body = draw(lambda: _bars([str(job.get("name", "")) for job in timed], parts, "time (µs)", title), f"Time of an iteration of each job of {name}, µs: alone, and what the others add")
    heads = ("job", "operations", "ranks", "iterations", "ended", "time (µs)", "alone (µs)", "slow-down", "wrong elements", "fell back")
    rows = []
    for job in all_jobs:
        operations = "; ".join(_operation(o) for o in job.get("operations") or [] if isinstance(o, dict))
        ended = str(job.get("end", "")) + (f": {job['why']}" if job.get("why") else "")
        rows.append((
            str(job.get("name", "")), operations, job.get("ranks"), job.get("iterations"), ended,
            job.get("time_us"), job.get("alone_us"), job.get("slowdown"), job.get("wrong"), str(job.get("fell_back") or ""),
        ))  # fmt: skip
    return body + table(f"jobs of {name}", heads, rows, numbers_from=2)


def _operation(o: Mapping[str, Any]) -> str:
    what = str(o.get("collective", "")).replace("_", " ")
    by = o.get("ran_by") or o.get("algo") or ""
    return f"{what} by {by}, {size_text(float(o.get('size_bytes') or 0))}"
