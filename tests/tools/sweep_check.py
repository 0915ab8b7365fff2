#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A sweep and the figures of it: sweep_check.py sweep DIR | read DIR | figures DIR OUT. Prints what the sweep found as JSON."""

import json
import sys

import tributary

GRID = {
    "ranks": [4, 8],
    "sizes": tributary.sizes("4K", "256K"),
    "algos": ["ring", "sharp"],
    "seeds": range(3),
    "faults": {"no loss": None, "loss 1 %": [{"link": "all", "loss": 0.01}]},
    "payload": "none",
    "warmup": 0,
}


def sweep(folder, **more):
    slow = tributary.Conf.load("leaf-spine-8", name="slow")
    slow["spine_link.rate"] = "100Gb/s"
    return tributary.sweep(["leaf-spine-8", slow], dir=folder, **{**GRID, **more})


def timeline(out):
    tributary.run("leaf-spine-8", algos="ring", sizes="64K", args=["--timeline", f"{out}/timeline.json"])
    return f"{out}/timeline.json"


def figures(folder, out):
    from matplotlib.colors import to_hex

    frame = tributary.read(folder)
    assert set(frame["faults"]) == {"no loss", "loss 1 %"}, f"labels of fault plans: {set(frame['faults'])}"
    one = frame[(frame["conf"] == "slow") & (frame["ranks"] == 8)]
    plot = tributary.plot
    lossy_link = [{"link": "h7-leaf1", "loss": 0.02}]
    several = tributary.run("leaf-spine-8", algos=["ring", "tree", "halving"], sizes="256K", faults=lossy_link, counters=True)
    drawn = {
        "busbw": plot.busbw(one),
        "percentiles": plot.busbw(one, band=(25, 75)),
        "time": plot.time(one, model=True),
        "speedup": plot.speedup(one, "ring"),
        "scaling": plot.scaling(frame[frame["conf"] == "slow"], size="256K"),
        "links": plot.links(tributary.run("leaf-spine-8", algos=["ring", "sharp"], sizes="64K", counters=True)),
        "few links": plot.links(several, top=3),
        "timeline": plot.timeline(timeline(out), links=4),
        "facets": plot.facets(frame, row="ranks", col=["conf", "faults"])[1, 3],
    }
    for name, ax in drawn.items():
        ax.figure.savefig(f"{out}/{name}.png", dpi=70)
    busbw = drawn["busbw"]
    assert busbw.get_ylabel() == "bus bandwidth (GB/s)" and drawn["time"].get_ylabel() == "time (µs)"
    assert drawn["speedup"].get_ylabel() == "speed-up over ring (times)" and drawn["links"].get_xlabel() == "utilisation (%)"
    # The busiest direction of each algorithm, and all that lost frames, however few there is room for.
    names = {t.get_text() for t in drawn["few links"].get_yticklabels()}
    found = tributary.links(several).assign(direction=lambda d: d["from"] + " → " + d["to"])
    of_each = found.loc[found.groupby("algo")["utilisation"].idxmax(), "direction"]
    lost = found.loc[found["drops.lost"].fillna(0) > 0, "direction"]
    assert len(lost) and set(of_each) | set(lost) <= names, "the bottleneck of each, and all that lost frames"
    busbw.figure.canvas.draw()
    assert [t.get_text() for t in busbw.get_xticklabels()][0] == "4 KiB", "sizes in binary units"
    # A line is the median of the seeds, its band from least to most.
    lossy = one[(one["algo"] == "sharp") & (one["faults"] != "no loss")].groupby("size_bytes")["busbw_GBps"]
    lines = {line.get_label(): line for line in busbw.get_lines()}
    assert list(lines["sharp, loss 1 %"].get_ydata()) == list(lossy.median()), "the median"
    bands = [c.get_paths()[0].get_extents() for c in busbw.collections]
    assert any(abs(b.y0 - lossy.min().min()) < 1e-9 and abs(b.y1 - lossy.max().max()) < 1e-9 for b in bands), "the band"
    colours = {to_hex(line.get_color()) for line in lines.values()}
    assert len(lines) == 4 and len(colours) == 2, "a colour for an algorithm"
    # A legend covers no data, and nothing is cut off.
    for name, ax in drawn.items():
        ax.figure.canvas.draw()
        legend = ax.get_legend()
        whole = ax.figure.bbox
        if legend is not None:
            at = legend.get_window_extent()
            assert not at.overlaps(ax.get_window_extent()) and at.x1 <= whole.x1 + 1, f"{name}: the legend"
        ticks = [label for axis in (ax.xaxis, ax.yaxis) for at, label in zip(axis.get_majorticklocs(), axis.get_majorticklabels())
                 if min(axis.get_view_interval()) <= at <= max(axis.get_view_interval())]  # others are not drawn
        texts = [t for t in (ax.xaxis.label, ax.yaxis.label, ax.title, *ticks) if t.get_text() and t.get_visible()]
        for text in texts:
            box = text.get_window_extent()
            assert box.x0 >= -1 and box.y0 >= -1 and box.x1 <= whole.x1 + 1 and box.y1 <= whole.y1 + 1, f"{name}: {text.get_text()!r} is cut off"
    # Speed-ups are ratios of times with the same seed.
    fast = plot.speedups(one, "ring").iloc[0]
    same = (one["size_bytes"] == fast["size_bytes"]) & (one["seed"] == fast["seed"]) & (one["faults"] == fast["faults"])
    ring = one[same & (one["algo"] == "ring")]["time_us"].iloc[0]
    assert fast["algo"] == "sharp" and fast["speedup"] == ring / fast["time_us"]


what, folder = sys.argv[1:3]
if what == "sweep":
    more = dict(a.split("=") for a in sys.argv[3:])
    algos = more.pop("algos", "ring,sharp").split(",")
    frame = sweep(folder, algos=algos, **{k: int(v) for k, v in more.items()})
    assert len(frame.attrs["runs"]) * 4 == len(frame), "four sizes a run"
    print(json.dumps(frame.attrs["sweep"]))
elif what == "read":
    print(tributary.read(folder).drop(columns="run").to_csv(index=False), end="")
else:
    figures(folder, sys.argv[3])
