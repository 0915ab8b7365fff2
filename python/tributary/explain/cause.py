# SPDX-License-Identifier: BSD-3-Clause
"""A cause: its name, the share of the time that it may have cost, and a sentence with figures."""

from __future__ import annotations

from typing import NamedTuple


class Cause(NamedTuple):
    name: str
    weight: float
    text: str
