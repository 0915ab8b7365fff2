# SPDX-License-Identifier: BSD-3-Clause
"""Figures of a report as SVG that takes the page's colours: matplotlib's, and the fabric with its links by utilisation."""

from __future__ import annotations

import io
import re
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, Sequence

from .._files import write_whole
from .._trib import TribError, need, output
from .html import text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SVG = "http://www.w3.org/2000/svg"
INK = "#010203"  # stands for the page's colour of text
STYLE = {
    "svg.fonttype": "none", "svg.hashsalt": "tributary", "text.parse_math": False, "font.family": "sans-serif", "font.size": 10,
    "text.color": INK, "axes.edgecolor": INK, "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK,
    "figure.facecolor": "none", "axes.facecolor": "none", "savefig.facecolor": "none",
}  # fmt: skip
# Utilisation of a link from which on it has a look: wider and redder. All are seen on white and on black.
HEAT = ((0.0, "#8a8f98", 1.5), (0.2, "#3d8fd1", 2.0), (0.4, "#2f9e6e", 2.75), (0.6, "#d98a1f", 3.75), (0.8, "#d1432f", 5.0))


def drawn(make: Callable[[], Axes], name: str, label: str) -> str:
    """The figure of the Axes that make() returns. name: unique on the page."""
    matplotlib = need("matplotlib", "python3-matplotlib")
    matplotlib.use("agg")
    pyplot = need("matplotlib.pyplot", "python3-matplotlib")
    out = io.StringIO()
    with matplotlib.rc_context(STYLE):
        axes = make()
        axes.figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
        pyplot.close(axes.figure)
    svg = out.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    svg = re.sub(r'\bid="([^"]*)"', rf'id="{name}-\1"', svg)  # ids are the page's
    svg = re.sub(r'(url\(#|href="#)', rf"\g<1>{name}-", svg)
    svg = svg.replace(INK, "currentColor").replace("#000000", "currentColor")
    svg = re.sub(r"<style[^>]*>.*?</style>", "", svg, flags=re.S)  # *{stroke-linejoin...} would be the page's
    return svg.replace("<svg ", f'<svg role="img" aria-label="{text(label)}" stroke-linejoin="round" ', 1)


def _heat(used: float) -> tuple[str, float]:
    colour, width = HEAT[0][1:]
    for least, c, w in HEAT:
        if used >= least:
            colour, width = c, w
    return colour, width


def fabric(conf: str, links: Sequence[Mapping[str, Any]], label: str) -> Optional[str]:
    """The fabric of a conf's text as ``trib plan --svg`` draws it, each link by the busier of its directions. None: it cannot be drawn."""
    used: dict[str, list[Mapping[str, Any]]] = {}
    for link in links:
        used.setdefault(link["link"], []).append(link)
    with tempfile.TemporaryDirectory(prefix="trib-") as folder:
        path = Path(folder) / "fabric.conf"
        write_whole(path, conf)
        try:
            plan = output(["plan", "--svg", str(path)])
        except (TribError, OSError):
            return None
    ElementTree.register_namespace("", SVG)
    root = ElementTree.fromstring(plan)
    for parent in list(root.iter()):
        for child in list(parent):
            kind = child.get("class", "")
            if child.tag == f"{{{SVG}}}style" or kind in ("tree", "key", "background", "name", "count") or (kind == "link" and not child.get("data-link")):
                parent.remove(child)
    for path_of in root.iter(f"{{{SVG}}}path"):
        names = path_of.attrib.pop("data-links", path_of.get("data-link", "")).split()
        found = [d for name in names for d in used.get(name, [])]
        if len(names) > 1:
            found.sort(key=lambda d: -float(d["utilisation"] or 0))
        colour, width = _heat(max((float(d["utilisation"] or 0) for d in found), default=0.0))
        path_of.set("stroke", colour)
        path_of.set("stroke-width", f"{width:g}")
        title = path_of.find(f"{{{SVG}}}title")
        if title is not None and found:
            title.text = "; ".join(f"{d['from']} to {d['to']}: {100 * float(d['utilisation'] or 0):.1f} %" for d in found[:8])
            if found[8:]:
                title.text += f"; {len(found) - 8} more directions, not busier"
    _crop(root)
    root.attrib.pop("aria-label", None)
    root.set("role", "img")
    root.set("class", "fabric")
    svg = ElementTree.tostring(root, encoding="unicode")
    return svg.replace("<svg ", f'<svg aria-label="{text(label)}" ', 1)


def _crop(root: ElementTree.Element) -> None:
    """To the drawing: the plan's name was above it, its legend below."""
    width = root.get("viewBox", "0 0 512 392").split()[2]
    bottom = max((float(r.get("y", 0)) for r in root.iter(f"{{{SVG}}}rect")), default=0.0) + 40 + 24 + 12
    root.set("viewBox", f"0 40 {width} {bottom - 40:g}")
    root.set("height", f"{bottom - 40:g}")


def legend() -> str:
    """What the looks of links mean, as a list beside the drawing: its text keeps its size where the drawing is scaled."""
    items = []
    for i, (least, colour, width) in enumerate(HEAT):
        until = HEAT[i + 1][0] if i + 1 < len(HEAT) else 1.0
        items.append(f'<li><span style="border-top: {width:g}px solid {colour}"></span>{100 * least:.0f} to {100 * until:.0f} %</li>')
    return f'<ul class="heat" aria-label="Utilisation of links, the busier direction">{"".join(items)}</ul>\n'
