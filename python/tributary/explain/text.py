# SPDX-License-Identifier: BSD-3-Clause
"""Figures as texts."""

from __future__ import annotations


def percent(share: float) -> str:
    return "%.0f %%" % (100 * share)


def us(t: float) -> str:
    return "%.2f us" % t if t < 100 else "%.1f us" % t if t < 10000 else "%.2f ms" % (t / 1000)


def count(n: int, what: str) -> str:
    return "%d %s%s" % (n, what, "" if n == 1 else "s")
