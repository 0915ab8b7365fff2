# SPDX-License-Identifier: BSD-3-Clause
"""Figures of the frames of ``tributary.run``, ``read`` and ``sweep``, by matplotlib. Each function returns the Axes that it drew on.

A series is what rows with the same conf, collective, ranks, algorithm, type, op, faults... have in common; those of these that differ
within the frame make its label: the first its colour, the second its line, the third its marker. Rows of a series that differ in nothing
but their seed are one point: its line is the median, its band what ``band`` says. Sizes are bytes, on a scale of powers of 2.
Colours are those of Okabe and Ito, which those who see fewer can tell apart; markers differ too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from . import results
from ._plot_timeline import timeline as timeline
from ._sizes import Size, size_bytes, size_text
from ._trib import need

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
WIDE_LABEL = 36  # characters
LINES = ("-", "--", ":", "-.")
BY = ("algo", "faults", "type", "ranks", "conf", "collective", "op", "payload", "clock", "in_place")
UNITS = {
    "busbw_GBps": "bus bandwidth (GB/s)",
    "algbw_GBps": "algorithm bandwidth (GB/s)",
    "time_us": "time (µs)",
    "predicted_us": "predicted time (µs)",
    "speedup": "speed-up (times)",
    "link_utilisation": "utilisation of the busiest link",
}
Band = Union[str, Tuple[float, float], None]


class Look(NamedTuple):
    """How series are drawn, the same in all panels of a figure."""

    by: Sequence[str]
    values: Mapping[str, Sequence[Any]]

    def style(self, series: Sequence[Any]) -> dict[str, Any]:
        at = [list(self.values[name]).index(value) for name, value in zip(self.by, series)] + [0, 0, 0]
        third = 0  # all further dimensions together
        for name, i in zip(self.by[2:], at[2:]):
            third = third * len(self.values[name]) + i
        marker = (third if len(self.by) > 2 else at[0]) + at[1] // len(LINES)  # lines begin anew: other markers
        return {
            "color": COLOURS[at[0] % len(COLOURS)],
            "linestyle": LINES[at[1] % len(LINES)],
            "marker": MARKERS[marker % len(MARKERS)],
        }

    def label(self, series: Sequence[Any]) -> str:
        return ", ".join(self._text(name, value) for name, value in zip(self.by, series))

    def _text(self, name: str, value: Any) -> str:
        others = [str(v).split(",") for v in self.values[name]] if name == "conf" else []
        varied = [part for part in str(value).split(",")[1:] if any(part not in other for other in others)]
        if varied and all("=" in part for part in varied) and len({other[0] for other in others}) == 1:
            return ", ".join(".".join(part.split(".")[-2:]) if part.count(".") > 1 else part for part in varied)  # of trib-sweep --vary: keys that differ
        return value_text(name, value)


def value_text(name: str, value: Any) -> str:
    """A value of a column in words, as in legends and titles."""
    if name == "ranks":
        return f"{value} ranks"
    if name == "faults":
        return str(value).replace("_", " ") or "no faults"
    if name == "in_place":
        return "in place" if value else "out of place"
    if name == "payload":
        return f"payload {value}"
    if name == "clock":
        return f"{value} time"
    if name == "size_bytes":
        return size_text(float(value))
    return str(value).replace("_", " ") if name == "collective" else str(value)


def prepared(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with the algorithm that was asked for in algo, so that `auto` is one series. ValueError: it has no rows."""
    if len(frame) == 0:
        raise ValueError("found no rows, expected some to draw")
    if "asked" in frame:
        frame = frame.assign(algo=frame["asked"].fillna(frame["algo"]))
    return frame


def _distinct(column: Any) -> list[Any]:
    """Distinct values: numbers in order, others in the order of the rows."""
    found = list(dict.fromkeys(column.tolist()))
    numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in found)
    return sorted(found) if numbers else found


def look_of(frame: pd.DataFrame, by: Optional[Sequence[str]] = None, without: Sequence[str] = ()) -> Look:
    """The look of a frame's series: by these columns, else by those of BY that differ. ValueError: it has no such column."""
    frame = prepared(frame)
    for name in by or ():
        if name not in frame:
            raise ValueError(f"found by {name!r}, expected columns of {', '.join(map(str, frame.columns))}")
    names = [n for n in BY if n in frame and n not in without and frame[n].nunique(dropna=False) > 1]
    chosen = list(by) if by is not None else names or ["algo"]
    return Look(chosen, {n: _distinct(frame[n]) for n in chosen})


def _axes(ax: Optional[Axes]) -> Axes:
    if ax is not None:
        return ax
    pyplot = need("matplotlib.pyplot", "python3-matplotlib")
    return pyplot.subplots(figsize=(7.5, 4.2), layout="constrained")[1]


def _legend(ax: Axes, legend: bool) -> None:
    """Beside the data, never on it; below where it would leave the data no room."""
    labels = ax.get_legend_handles_labels()[1]
    figure = ax.figure
    if legend and labels and max(map(len, labels)) > WIDE_LABEL and len(figure.axes) == 1:
        figure.set_figheight(figure.get_figheight() + 0.24 * len(labels))
        ax.legend(loc="upper left", bbox_to_anchor=(0.0, -0.2), borderaxespad=0.0, frameon=False, handlelength=3.0)
    elif legend:
        ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0, frameon=False, handlelength=3.0)


def _title(frame: pd.DataFrame, look: Look, without: Sequence[str] = ()) -> str:
    """What all rows have in common."""
    same = ("collective", "conf", "ranks", "algo", "type", "op", "faults")
    names = [n for n in same if n in frame and n not in look.by and n not in without and frame[n].nunique(dropna=False) == 1]
    words = [value_text(n, frame[n].iloc[0]) for n in names if n != "faults" or frame[n].iloc[0]]
    if "seed" in frame and frame["seed"].nunique() > 1:
        words.append(f"{frame['seed'].nunique()} seeds")
    return ", ".join(words)


def _limits(band: Band) -> Optional[Tuple[float, float]]:
    """Quantiles of a band."""
    if band is None:
        return None
    if band == "minmax":
        return 0.0, 1.0
    if isinstance(band, tuple) and len(band) == 2 and 0 <= band[0] < band[1] <= 100:
        return band[0] / 100, band[1] / 100
    raise ValueError(f'found band={band!r}, expected "minmax", a pair of percentiles such as (5, 95), or None')


def _series(frame: pd.DataFrame, look: Look) -> Iterator[Tuple[Tuple[Any, ...], pd.DataFrame]]:
    """Each series of a frame: its values of look.by, and its rows."""
    for values, rows in frame.groupby(look.by[0] if len(look.by) == 1 else list(look.by), sort=False, dropna=False):
        yield values if isinstance(values, tuple) else (values,), rows


def _draw(ax: Axes, frame: pd.DataFrame, x: str, y: str, look: Look, band: Band) -> None:
    """The median of y by x for each series, with its band."""
    limits = _limits(band)
    for of, rows in _series(frame, look):
        points = rows.dropna(subset=[y]).groupby(x)[y]
        middle = points.median()
        style = look.style(of)
        ax.plot(middle.index, middle, label=look.label(of), markersize=4.5, linewidth=1.6, **style)
        if limits is not None:
            low, high = points.quantile(limits[0]), points.quantile(limits[1])
            ax.fill_between(middle.index, low, high, color=style["color"], alpha=0.2, linewidth=0)


def _size_axis(ax: Axes, values: Sequence[int]) -> None:
    """Powers of two with their units, as many as there is room for."""
    ticker = need("matplotlib.ticker", "python3-matplotlib")
    ax.set_xscale("log", base=2)
    first, last = min(values).bit_length() - 1, max(values).bit_length() - 1
    wide = max(2, int(ax.bbox.width / ax.figure.dpi / 0.9))  # labels that find room
    step = max(1, -(-(last - first) // wide))
    ticks = [1 << n for n in range(first, last + 1, step)]
    ax.xaxis.set_major_locator(ticker.FixedLocator([t for t in ticks if t >= min(values)] or [min(values)]))
    ax.xaxis.set_major_formatter(ticker.FuncFormatter(lambda v, _: size_text(v)))
    ax.xaxis.set_minor_locator(ticker.NullLocator())
    ax.set_xlabel("size")


def _finish(ax: Axes, y: str, title: str, log: bool, legend: bool) -> Axes:
    if log:
        ticker = need("matplotlib.ticker", "python3-matplotlib")
        ax.set_yscale("log")
        low, high = ax.get_ylim()
        ax.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0) if high < 300 * low else (1.0,)))
        ax.yaxis.set_major_formatter(ticker.FuncFormatter(lambda v, _: f"{v:g}"))
        ax.yaxis.set_minor_formatter(ticker.NullFormatter())
    else:
        ax.set_ylim(bottom=0)
    ax.set_ylabel(UNITS.get(y, y))
    ax.set_title(title, fontsize="medium", wrap=True)
    ax.grid(True, alpha=0.3)
    ax.spines[["top", "right"]].set_visible(False)
    _legend(ax, legend)
    return ax


def by_size(
    frame: pd.DataFrame,
    y: str = "busbw_GBps",
    *,
    by: Optional[Sequence[str]] = None,
    band: Band = "minmax",
    log: bool = False,
    model: bool = False,
    legend: bool = True,
    look: Optional[Look] = None,
    ax: Optional[Axes] = None,
) -> Axes:
    """A column by size, a line for each series. model: the predicted time as a thin grey line, where y is "time_us"."""
    frame, ax = prepared(frame), _axes(ax)
    look = look or look_of(frame, by)
    if y not in frame:
        raise ValueError(f"found y={y!r}, expected one of {', '.join(map(str, frame.columns))}")
    if model and y == "time_us":
        for _, rows in _series(frame, look):
            line = rows.groupby("size_bytes")["predicted_us"].median()
            ax.plot(line.index, line, color="#777777", linewidth=0.8, zorder=1)
    _draw(ax, frame, "size_bytes", y, look, band)
    _size_axis(ax, frame["size_bytes"].tolist())
    return _finish(ax, y, _title(frame, look), log, legend)


def busbw(frame: pd.DataFrame, **kwargs: Any) -> Axes:
    """Bus bandwidth in GB/s by size; arguments as of ``by_size``."""
    return by_size(frame, "busbw_GBps", **kwargs)


def time(frame: pd.DataFrame, **kwargs: Any) -> Axes:
    """Time of an operation in us of fabric time by size, both logarithmic; arguments as of ``by_size``."""
    kwargs.setdefault("log", True)
    return by_size(frame, "time_us", **kwargs)


def speedups(frame: pd.DataFrame, baseline: str) -> pd.DataFrame:
    """Rows of the other algorithms with a column ``speedup``: the baseline's time over theirs, with the same size, seed and all else.

    ValueError: no row is of the baseline.
    """
    frame = prepared(frame)
    of_baseline = frame[frame["algo"] == baseline]
    if len(of_baseline) == 0:
        raise ValueError(f"found the baseline {baseline!r}, expected one of {', '.join(_distinct(frame['algo']))}")
    keys = [k for k in (*BY, "size_bytes", "root", "seed") if k in frame and k != "algo"]
    base = of_baseline.groupby(keys, dropna=False)["time_us"].mean().rename("baseline_us").reset_index()
    others = frame[frame["algo"] != baseline].merge(base, on=keys, how="inner")
    return others.assign(speedup=others["baseline_us"] / others["time_us"])


def speedup(frame: pd.DataFrame, baseline: str = "ring", *, ax: Optional[Axes] = None, **kwargs: Any) -> Axes:
    """How many times as fast as the baseline the other algorithms are, by size; arguments as of ``by_size``. ValueError: as of ``speedups``."""
    rows = speedups(frame, baseline)
    if len(rows) == 0:
        raise ValueError(f"found no rows of other algorithms that have conf, size, seed and all else in common with {baseline!r}, expected some to compare")
    ax = by_size(rows, "speedup", ax=ax, **kwargs)
    ax.axhline(1.0, color="#777777", linewidth=0.8, zorder=1)
    ax.set_ylabel(f"speed-up over {baseline} (times)")
    return ax


def _of_size(frame: pd.DataFrame, size: Optional[Size]) -> pd.DataFrame:
    """Rows of one size; None: the largest."""
    wanted = int(frame["size_bytes"].max()) if size is None else size_bytes(size)
    rows = frame[frame["size_bytes"] == wanted]
    if len(rows) == 0:
        have = ", ".join(size_text(s) for s in sorted(frame["size_bytes"].unique()))
        raise ValueError(f"found the size {size!r}, expected one of {have}")
    return rows


def scaling(
    frame: pd.DataFrame,
    y: str = "busbw_GBps",
    *,
    size: Optional[Size] = None,
    by: Optional[Sequence[str]] = None,
    band: Band = "minmax",
    log: bool = False,
    legend: bool = True,
    look: Optional[Look] = None,
    ax: Optional[Axes] = None,
) -> Axes:
    """A column by ranks, for one size (None: the largest), a line for each series. ValueError: no row has the size."""
    ticker = need("matplotlib.ticker", "python3-matplotlib")
    rows, ax = _of_size(prepared(frame), size), _axes(ax)
    look = look or look_of(rows, by, without=("ranks",))
    _draw(ax, rows, "ranks", y, look, band)
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_locator(ticker.FixedLocator(sorted(rows["ranks"].unique())))
    ax.xaxis.set_major_formatter(ticker.FuncFormatter(lambda v, _: f"{v:.0f}"))
    ax.xaxis.set_minor_locator(ticker.NullLocator())
    ax.set_xlabel("ranks")
    title = ", ".join(filter(None, [_title(rows, look, without=("ranks",)), size_text(rows["size_bytes"].iloc[0])]))
    return _finish(ax, y, title, log, legend)


def _in_trouble(found: pd.DataFrame) -> pd.Series[bool]:
    """Directions that lost frames, or in which they were marked or held back."""
    counts = [c for c in found if c in ("ecn_marks", "pauses_sent", "pauses_received", "paused_us") or str(c).startswith(("drops.", "faults."))]
    return found[counts].fillna(0).gt(0).any(axis=1)


def links(
    frame: pd.DataFrame,
    *,
    size: Optional[Size] = None,
    top: int = 16,
    by: Optional[Sequence[str]] = None,
    legend: bool = True,
    look: Optional[Look] = None,
    ax: Optional[Axes] = None,
) -> Axes:
    """Utilisation in percent of the links that are busiest, by direction, for one size (None: the largest); of several seeds the
    median, with a whisker from least to most. ``top`` directions: the busiest of each series before the second of any; and beside
    them all that had drops, pauses or ECN marks. Rows must have been measured with counters=True. ValueError: they were not."""
    rows = _of_size(prepared(frame), size)
    look = look or look_of(rows, by)
    found = results.links(rows)
    found["direction"] = found["from"] + " → " + found["to"]
    found["percent"] = 100 * found["utilisation"]
    most = found.groupby("direction", sort=False)["percent"].max().sort_values(ascending=False, kind="stable")
    groups = list(_series(found, look))
    ranks = [of.groupby("direction")["percent"].max().rank(ascending=False, method="first") for _, of in groups]
    best = need("pandas", "python3-pandas").concat(ranks).groupby(level=0).min()
    first = set(best.reindex(most.index).sort_values(kind="stable").index[:top]) | set(found.loc[_in_trouble(found), "direction"])
    names = [n for n in most.index if n in first]
    pyplot = need("matplotlib.pyplot", "python3-matplotlib")
    height = 0.8 / len(groups)
    if ax is None:
        tall = 1.4 + len(names) * max(0.24, 0.13 * len(groups))
        ax = pyplot.subplots(figsize=(7.5, tall), layout="constrained")[1]
    for i, (key, of) in enumerate(groups):
        percent = of.groupby("direction")["percent"]
        middle, low, high = (getattr(percent, f)().reindex(names) for f in ("median", "min", "max"))
        at = [n + (i - (len(groups) - 1) / 2) * height for n in range(len(names))]
        error = [(middle - low).tolist(), (high - middle).tolist()] if percent.size().max() > 1 else None
        ax.barh(at, middle, height, xerr=error, color=look.style(key)["color"], label=look.label(key), error_kw={"linewidth": 0.8})
    ax.set_yticks(range(len(names)), names, fontsize="small")
    ax.invert_yaxis()
    ax.set_xlim(0, max(100.0, float(found["percent"].max()) * 1.02))
    ax.set_xlabel("utilisation (%)")
    left = len(most) - len(names)
    title = ", ".join(filter(None, [_title(rows, look), size_text(rows["size_bytes"].iloc[0])]))
    ax.set_title(title + (f"\n{len(names)} of {len(most)} directions of links: the busiest of each, and all with drops, pauses or marks" if left > 0 else ""), fontsize="medium")
    ax.grid(True, axis="x", alpha=0.3)
    ax.spines[["top", "right"]].set_visible(False)
    _legend(ax, legend)
    return ax


def facets(
    frame: pd.DataFrame,
    draw: Callable[..., Axes] = busbw,
    *,
    row: Optional[str] = None,
    col: Optional[Union[str, Sequence[str]]] = None,
    by: Optional[Sequence[str]] = None,
    share_y: Union[bool, str] = "row",
    panel: Tuple[float, float] = (3.4, 2.7),
    **kwargs: Any,
) -> NDArray[Any]:
    """A panel for each value of the column row and of col (one or several columns), drawn by draw(rows, ax=, look=, ...) with one
    legend below all. Returns the Axes as a 2-D array; ``facets(...)[0, 0].figure`` is the figure. panel: its width and height in inches."""
    pyplot = need("matplotlib.pyplot", "python3-matplotlib")
    frame = prepared(frame)
    columns = [] if col is None else [col] if isinstance(col, str) else list(col)
    split = [*([row] if row else []), *columns]
    look = look_of(frame, by, without=split)
    rows = _distinct(frame[row]) if row else [None]
    cols = list(dict.fromkeys(zip(*(frame[c] for c in columns)))) if columns else [()]
    entries = frame.groupby(list(look.by), dropna=False).ngroups
    per_line = max(1, min(entries, int(panel[0] * len(cols) / 2.0)))
    below = 0.15 + 0.25 * -(-entries // per_line)  # inches of the legend
    tall = panel[1] * len(rows) + below
    figure, grid = pyplot.subplots(
        len(rows), len(cols), figsize=(panel[0] * len(cols), tall), squeeze=False, sharex=True, sharey=share_y, layout="constrained"
    )
    figure.get_layout_engine().set(rect=(0, below / tall, 1, 1 - below / tall), w_pad=0.1)
    for r, in_row in enumerate(rows):
        for c, in_col in enumerate(cols):
            wanted = {**({row: in_row} if row else {}), **dict(zip(columns, in_col))}
            part, ax = frame, grid[r, c]
            for name, value in wanted.items():
                part = part[part[name] == value]
            if len(part) == 0:
                ax.set_visible(False)
                continue
            draw(part, ax=ax, look=look, legend=False, **kwargs)
            ax.set_title(", ".join(value_text(n, v) for n, v in wanted.items()), fontsize="medium")
            ax.label_outer()
    shown = {label: line for ax in grid.flat for line, label in zip(*ax.get_legend_handles_labels())}
    figure.legend(shown.values(), shown.keys(), loc="lower center", ncol=per_line, frameon=False, handlelength=3.0)
    return grid  # type: ignore[no-any-return]
