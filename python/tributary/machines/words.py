# SPDX-License-Identifier: BSD-3-Clause
"""Words for a program on another machine, between which and us may be a shell."""

from __future__ import annotations

import os
import re
import shutil
from typing import Sequence


def is_plain(word: str) -> bool:
    """Whether a shell, of whatever kind, reads nothing in it but the word."""
    return re.fullmatch(r"[A-Za-z0-9/._+,:-][A-Za-z0-9/._+,:=-]*", word) is not None


def plain_words(words: Sequence[str]) -> list[str]:
    """Words for another trib that mean the same whether the launcher hands them to a shell there, as ssh does, or to none, as srun does."""
    if all(is_plain(w) for w in words):
        return list(words)
    return ["--words=" + b"".join(os.fsencode(w) + b"\0" for w in words).hex()]


def name_of(trib: str) -> str:
    """How another machine finds trib: by its name where that means this one here, else by its path, which a checkout has on all machines."""
    named = shutil.which("trib")
    return "trib" if (named and os.path.realpath(named) == trib) or not is_plain(trib) else trib
