# SPDX-License-Identifier: BSD-3-Clause
"""A figure of each class: points are published, lines are predicted."""

from __future__ import annotations

import os
import sys
from typing import Sequence

from .published import Series


def plots(series: Sequence[Series], where: str) -> None:
    try:
        import matplotlib
        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError:
        print("validate: no matplotlib, no plots", file=sys.stderr)
        return
    os.makedirs(where, exist_ok=True)
    for c in sorted({s["class"] for s in series}):
        fig, ax = plt.subplots(figsize=(9, 5.5))
        for i, s in enumerate(x for x in series if x["class"] == c):
            rows = sorted(s["rows"], key=lambda r: int(r["size"]))
            colour = "C%d" % (i % 10)
            ax.plot([r["size"] for r in rows], [r["bus"] for r in rows], "o", ms=3, color=colour, label=s["id"])
            ax.plot([r["size"] for r in rows], [r["bus"] * r["us"] / r["model"] for r in rows], "-", lw=1, color=colour)
        ax.set_xscale("log", base=2)
        ax.set(xlabel="size (bytes)", ylabel="bus bandwidth (GB/s)", title=c + ": points are published, lines are predicted")
        ax.legend(fontsize=7)
        fig.savefig(os.path.join(where, c + ".svg"))
        plt.close(fig)
