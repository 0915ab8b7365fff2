# SPDX-License-Identifier: BSD-3-Clause
"""Secrets in confs, as base/secret.h has them: what is shown or published is without them, and files that have one are their owner's alone."""

from __future__ import annotations

import re
from typing import Any, Mapping

_NAMES = re.compile(r"[_*-]*".join("trunkkey"), re.IGNORECASE)
HIDDEN = "*" * 16


def named(text: str) -> bool:
    """Whether a text has the name of a secret, however it is spelt."""
    return _NAMES.search(text) is not None


def hidden(value: Any) -> Any:
    """A copy of groups and lists in which the secrets are hidden."""
    if isinstance(value, Mapping):
        return {k: HIDDEN if named(str(k)) else hidden(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(hidden(v) for v in value)
    return value


def has(value: Any) -> bool:
    """Whether groups and lists have a secret in them."""
    if isinstance(value, Mapping):
        return any(named(str(k)) or has(v) for k, v in value.items())
    return isinstance(value, (list, tuple)) and any(has(v) for v in value)
