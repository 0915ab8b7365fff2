# SPDX-License-Identifier: BSD-3-Clause
"""Frames of several links in the order of their times."""

from __future__ import annotations

import collections
from typing import Sequence

from .links import Frame

FAR_ROUNDS = 5  # that frames wait for earlier ones of other machines


class Merge:
    """Frames of a round go out some rounds later, so that links agree on their order: a link's two directions may differ by some ns, other
    machines by what their pipes take."""

    def __init__(self, far: bool) -> None:
        self.held: list[Frame] = []
        self.recent: collections.deque[int] = collections.deque(maxlen=FAR_ROUNDS if far else 1)

    def round(self, fresh: Sequence[Frame], last: bool) -> list[Frame]:
        """The frames that are to be written now; the last time all."""
        self.recent.append(len(fresh))
        self.held = sorted([*self.held, *fresh])
        ready = len(self.held) - (0 if last else sum(self.recent))
        out, self.held = self.held[:ready], self.held[ready:]
        return out
