# SPDX-License-Identifier: BSD-3-Clause
"""All-reduce by size, two algorithms beside the model, as SVG: simulates with `trib sim` and draws what it prints.

usage: plot_speedup [-o FILE] [CONF [ALGO,BASELINE]]    (leaf-spine-8 sharp,ring; the SVG goes to standard output without -o)

The picture is a function of the simulator and the conf alone: the same bytes on every machine.
"""

from __future__ import annotations

import getopt
import os
import subprocess
import sys
import tempfile
from math import log2
from typing import Any

from .._cli import ended
from .._files import write_whole
from .._input import json_of
from .._trib import trib

W, H, LEFT, RIGHT, TOP, BOTTOM = 760, 400, 62, 20, 56, 52
COLOURS = ("#0b6e4f", "#b3541e")


Rows = list[dict[str, Any]]


def simulate(conf: str, algos: list[str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as tmp:
        out = os.path.join(tmp, "rows.json")
        subprocess.run([str(trib()), "sim", conf, "all_reduce", "--algo", ",".join(algos), "-b", "4K", "-e", "64M", "-f", "4",
                        "-w", "0", "--place", "out", "--payload", "none", "-J", out],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return json_of(out, "results of trib sim")


def size_text(b: int) -> str:
    return "%d MiB" % (b >> 20) if b >= 1 << 20 else "%d KiB" % (b >> 10)


class Picture:
    """The axes, and the lines of the SVG so far."""

    def __init__(self, sizes: list[int], top: float) -> None:
        self.sizes = sizes
        self.out: list[str] = []
        self.step = next(s for s in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000) if top / s <= 8)
        self.y_max = self.step * (int(top * 1.12 / self.step) + 1)

    def x(self, b: int) -> float:
        first, last = log2(self.sizes[0]), log2(self.sizes[-1])
        return LEFT + 26 + (W - LEFT - RIGHT - 52) * (log2(b) - first) / (last - first)

    def y(self, v: float) -> float:
        return H - BOTTOM - (H - TOP - BOTTOM) * v / self.y_max

    def text(self, x: float, y: float, s: str, more: str = "") -> None:
        self.out.append('<text x="%.1f" y="%.1f" %s>%s</text>' % (x, y, more, s))

    def frame(self, title: str, legend: str) -> None:
        self.out.append('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12" fill="#222">' % (W, H))
        self.out.append('<rect width="%d" height="%d" fill="#fff"/>' % (W, H))
        self.text(LEFT, 20, title, 'font-size="14" font-weight="bold"')
        self.text(LEFT, 40, legend)
        for i in range(int(self.y_max / self.step) + 1):
            v = i * self.step
            self.out.append('<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ddd"/>' % (LEFT, W - RIGHT, self.y(v), self.y(v)))
            self.text(LEFT - 8, self.y(v) + 4, "%g" % v, 'text-anchor="end"')
        for b in self.sizes:
            self.text(self.x(b), H - BOTTOM + 20, size_text(b), 'text-anchor="middle"')
        self.text((LEFT + W - RIGHT) / 2, H - 10, "size of the vector", 'text-anchor="middle"')

    def curve(self, name: str, rows: Rows, colour: str) -> None:
        line = " ".join("%.1f,%.1f" % (self.x(r["size_bytes"]), self.y(r["size_bytes"] / r["predicted_us"] / 1e3)) for r in rows)
        self.out.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="1.5"/>' % (line, colour))
        for r in rows:
            self.out.append('<circle cx="%.1f" cy="%.1f" r="4" fill="%s"/>' % (self.x(r["size_bytes"]), self.y(r["algbw_GBps"]), colour))
        last = rows[-1]
        style = 'text-anchor="middle" font-weight="bold" fill="%s"' % colour
        self.text(self.x(last["size_bytes"]), self.y(last["algbw_GBps"]) + 20, name, style)


def draw(conf: str, algos: list[str], got: dict[str, Any]) -> str:
    rows: dict[str, Rows] = {a: [r for r in got["results"] if r["asked"] == a] for a in algos}
    picture = Picture([r["size_bytes"] for r in rows[algos[0]]], max(r["algbw_GBps"] for a in algos for r in rows[a]))
    name = os.path.splitext(os.path.basename(conf))[0]
    picture.frame("All-reduce of %d ranks on %s: points are simulated, lines are the model" % (got["ranks"], name),
                  "algorithm bandwidth (GB/s, fabric time); above the points of %s: how many times as fast as %s" % tuple(algos))
    for a, colour in zip(algos, COLOURS):
        picture.curve(a, rows[a], colour)
    for r, base in zip(rows[algos[0]], rows[algos[1]]):
        times = "%.2f x" % (base["time_us"] / r["time_us"])
        picture.text(picture.x(r["size_bytes"]) + 6, picture.y(r["algbw_GBps"]) - 10, times, 'text-anchor="end"')
    return "\n".join([*picture.out, "</svg>"]) + "\n"


def work() -> int:
    opts, args = getopt.gnu_getopt(sys.argv[1:], "o:h", ["help"])
    if any(o in ("-h", "--help") for o, _ in opts):
        print(__doc__)
        return 0
    conf = args[0] if args else "leaf-spine-8"
    algos = args[1].split(",") if len(args) > 1 else ["sharp", "ring"]
    svg = draw(conf, algos, simulate(conf, algos))
    target = dict(opts).get("-o")
    if target:
        write_whole(target, svg)
    else:
        sys.stdout.write(svg)
    return 0


def main() -> int:
    return ended(lambda what: print(f"plot_speedup: {what}", file=sys.stderr), work)
