# SPDX-License-Identifier: BSD-3-Clause
"""Data rates of InfiniBand links, by width and speed."""

from __future__ import annotations

import re

from .._cli import Refused

# Data rate of a lane in Gb/s, less the line code where the name has it (8b/10b up to QDR, 64b/66b of FDR and FDR10).
LANE = {"SDR": 2.0, "DDR": 4.0, "QDR": 8.0, "FDR10": 10.0, "FDR": 13.64, "EDR": 25.0, "HDR": 50.0, "NDR": 100.0, "XDR": 200.0}
WIDTHS = (1, 2, 4, 8, 12)
# Signalling rate of a lane in Gb/s, as tools print it, exact or rounded.
SIGNAL = {
    2.5: "SDR", 5.0: "DDR", 10.0: "QDR", 10.3125: "FDR10", 14.0: "FDR", 14.0625: "FDR", 25.0: "EDR", 25.78125: "EDR",
    50.0: "HDR", 53.125: "HDR", 100.0: "NDR", 106.25: "NDR", 200.0: "XDR", 212.5: "XDR",
}  # fmt: skip
_NAMED = re.compile(r"\b(\d+)x([A-Z]+DR\d*)\b")
_SIGNALLED = re.compile(r"\s*(\d+)X\s+(\d+(?:\.\d+)?)\s+Gbps(?:\s+\(([^)]*)\))?\s")


def _rate(width: int, speed: str, where: str) -> float:
    if speed not in LANE or width not in WIDTHS:
        raise Refused(f"{where}: found {width}x{speed}, expected 1, 2, 4, 8 or 12 times one of {', '.join(LANE)}")
    return width * LANE[speed]


def rate_of_name(comment: str, where: str) -> float:
    """Gb/s of a comment that ends as "... lid 5 4xHDR". Descriptions of nodes, in quotes, may have any text."""
    found = _NAMED.findall(re.sub(r'".*"', '""', comment))
    if not found:
        raise Refused(f"{where}: found a link without its rate, expected one as 4xHDR at its end")
    return _rate(int(found[-1][0]), found[-1][1], where)


def rate_of_signal(state: str, where: str) -> float:
    """Gb/s of "4X 53.125 Gbps Active/ LinkUp"; 10 Gb/s are QDR, or FDR10 where it says so: "10.0 Gbps (FDR10)"."""
    found = _SIGNALLED.match(state + " ")
    speed = SIGNAL.get(float(found.group(2))) if found else None
    named = found.group(3) if found else None
    if found and named is not None:
        speed = named if named == speed or (named, speed) == ("FDR10", "QDR") else None
    if found is None or speed is None:
        raise Refused(f"{where}: found {state.strip()[:40]!r}, expected lanes and the signalling rate of each, as 4X 53.125 Gbps")
    return _rate(int(found.group(1)), speed, where)
