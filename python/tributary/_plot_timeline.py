# SPDX-License-Identifier: BSD-3-Clause
"""The time line of an operation (``trib sim --timeline``, docs/explain.md) as a figure: what ranks do, and which links are busy."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Mapping, Optional, Sequence, Union

from ._input import json_of, shown, whole
from ._sizes import size_text
from ._trib import PathLike, need

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EXPECTED = "a time line of --timeline"
# A rank's lanes from the top: kinds of events, and what the legend calls them. Colours of Okabe and Ito.
LANES = (
    (("send",), "sends a message", "#0072B2"),
    (("receive",), "waits for a message", "#56B4E9"),
    (("switch", "rail switch"), "waits for the switches", "#56B4E9"),
    (("compute", "multimem", "protocol"), "reduces, copies", "#009E73"),
)
PAUSES = 10000  # a port's thread of pauses is so much above that of its frames
BUSY, PAUSED, OUTSIDE = "#D55E00", "#000000", "#DDDDDD"


def load(path: PathLike) -> Mapping[str, Any]:
    """A file of --timeline. ValueError: it is none."""
    name, found = shown(os.fspath(path)), json_of(path, EXPECTED)
    other = found.get("otherData")
    if not isinstance(other, dict) or "operation" not in other or not isinstance(found.get("traceEvents"), list):
        raise ValueError(f"{name}: found no operation and events, expected a time line of --timeline")
    return found


def _bars(events: Sequence[Mapping[str, Any]]) -> list[tuple[float, float]]:
    return [(e["ts"], e["dur"]) for e in events if e["dur"] > 0]


def _title(operation: Mapping[str, Any]) -> str:
    return (
        f"{operation['collective'].replace('_', ' ')} by {operation['ran_by']}, {size_text(operation['size_bytes'])}, "
        f"{len(operation['ranks'])} ranks on {operation['fabric']}: {operation['time_us']:.4g} µs"
    )


def timeline(
    path: PathLike, *, ranks: Optional[Sequence[int]] = None, links: Union[int, Sequence[str]] = 8, legend: bool = True
) -> Axes:
    """Draws a file of --timeline and returns the Axes.

    ranks  which ranks; None: all up to 16, else the 16 that end last
    links  how many of the busiest directions of links, or their names ("leaf0>spine1"); 0: none
    ValueError: the file is no time line, or has no such rank or link.
    """
    with whole(path, EXPECTED):
        return _timeline(load(path), ranks, links, legend)


def _timeline(found: Mapping[str, Any], ranks: Optional[Sequence[int]], links: Union[int, Sequence[str]], legend: bool) -> Axes:
    operation, events = found["otherData"]["operation"], [e for e in found["traceEvents"] if e.get("ph") == "X"]
    by_rank: dict[int, dict[str, Any]] = {r["rank"]: r for r in operation["ranks"]}
    if ranks is None:
        last = sorted(by_rank, key=lambda r: -float(by_rank[r]["ended_us"]))[:16]
        ranks = sorted(last)
    for rank in ranks:
        if rank not in by_rank:
            raise ValueError(f"found rank {rank}, expected ranks of 0 to {len(by_rank) - 1}")
    named: dict[str, dict[str, Any]] = {f"{k['from']}>{k['to']}": k for k in found["otherData"]["links"]}
    if isinstance(links, int):
        names = sorted(named, key=lambda n: -float(named[n].get("busy_us", 0.0)))[:links]
    else:
        names = list(links)
    for name in names:
        if name not in named:
            raise ValueError(f"found the link {name!r}, expected one such as {next(iter(named), 'none: it has no links')!r}")
    return _draw(operation, events, [by_rank[r] for r in ranks], [(n, named[n]) for n in names], legend)


def _draw(
    operation: Mapping[str, Any],
    events: Sequence[Mapping[str, Any]],
    ranks: Sequence[Mapping[str, Any]],
    links: Sequence[tuple[str, Mapping[str, Any]]],
    legend: bool,
) -> Axes:
    pyplot = need("matplotlib.pyplot", "python3-matplotlib")
    rows = len(ranks) + len(links)
    _, ax = pyplot.subplots(figsize=(9.0, 1.4 + 0.26 * rows), layout="constrained")
    drawn: dict[str, Any] = {}
    of_process: dict[int, list[Mapping[str, Any]]] = {}
    for e in events:
        of_process.setdefault(e["pid"], []).append(e)

    def bars(row: int, lane: int, lanes: int, what: Sequence[tuple[float, float]], colour: str, label: str) -> None:
        height = 0.8 / lanes
        if what:
            drawn[label] = ax.broken_barh(what, (row - 0.4 + lane * height, height), facecolors=colour, linewidth=0)

    end = float(operation["time_us"])
    for row, rank in enumerate(ranks):
        mine = of_process.get(rank["pid"], [])
        bars(row, 0, 1, [(0.0, rank["entered_us"])] * (rank["entered_us"] > 0), OUTSIDE, "not begun")
        lanes = [(_bars([e for e in mine if e["cat"] in kinds]), label, colour) for kinds, label, colour in LANES]
        lanes = [lane for lane in lanes if lane[0]]
        for i, (what, label, colour) in enumerate(lanes):
            bars(row, i, len(lanes), what, colour, label)
    for row, (_, link) in enumerate(links, len(ranks)):
        own = of_process.get(link["pid"], [])
        bars(row, 0, 1, _bars([e for e in own if e["tid"] == link["tid"]]), BUSY, "link is busy")
        bars(row, 0, 3, _bars([e for e in own if e["tid"] == link["tid"] + PAUSES]), PAUSED, "link is paused")
    ax.set_yticks(range(rows), [f"rank {r['rank']} ({r['host']})" for r in ranks] + [n.replace(">", " → ") for n, _ in links])
    ax.tick_params(axis="y", labelsize=8, length=0)
    ax.set(xlim=(0.0, end), ylim=(rows - 0.4, -0.6), xlabel="fabric time (µs)", title=_title(operation))
    ax.title.set_fontsize(10)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.grid(axis="x", color="#000000", alpha=0.12, linewidth=0.6)
    ax.set_axisbelow(True)
    if links:
        ax.axhline(len(ranks) - 0.5, color="#000000", linewidth=0.6)
    if legend and drawn:
        ax.legend(drawn.values(), drawn.keys(), loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0, frameon=False)
    return ax
