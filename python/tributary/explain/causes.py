# SPDX-License-Identifier: BSD-3-Clause
"""What stands out, by rules that each have a figure: the one that costs most first."""

from __future__ import annotations

from . import of_hosts, of_links, of_pauses
from .cause import Cause
from .limits import LEAST
from .path import Path
from .timeline import Timeline


RULES = (
    of_hosts.refused, of_hosts.straggling_rank, of_links.losses, of_pauses.background, of_pauses.victim, of_pauses.incast, of_hosts.slow_host, of_hosts.late_host,
    of_links.slow_link, of_links.oversubscribed, of_hosts.small_window, of_links.long_link,
)  # fmt: skip


def causes(t: Timeline, path: Path) -> list[Cause]:
    found = [c for rule in RULES for c in rule(t, path) if c.weight >= LEAST / 2]
    if any(c.name != "backpressure" for c in found):  # they say why the queue does not drain
        found = [c for c in found if c.name != "backpressure"]
    return sorted(found, key=lambda c: -c.weight)
