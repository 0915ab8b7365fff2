# SPDX-License-Identifier: BSD-3-Clause
"""Collectives on a Tributary fabric, for Python programs.

Experiments, which start ``trib`` (they need pandas; plots matplotlib, confs libconf):

``tributary.run``    one run of ``trib sim`` or ``trib perf``, as a DataFrame
``tributary.read``   the same from files of results alone
``tributary.sweep``  many simulations over the cores of a machine or of a cluster, resumable
``tributary.Conf``   a fabric's conf file as an object
``tributary.plot``   figures

Programs that run as a host of a fabric that is up (``trib exec CONF HOST -- python3 PROGRAM``):

``tributary.coll``   communicators and operations on arrays (anything with the buffer protocol)
``tributary.torch``  the backend "trib" of ``torch.distributed``

Importing ``tributary`` imports none of these; the first use does.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import conf as conf, plot as plot
    from ._sizes import sizes as sizes
    from ._trib import TribError as TribError
    from .conf import Conf as Conf
    from .results import links as links, read as read, run as run
    from .sweeps.grid import sweep as sweep

__version__ = "0.2.0"

_HOMES = {
    "Conf": "conf",
    "TribError": "_trib",
    "links": "results",
    "read": "results",
    "run": "results",
    "sizes": "_sizes",
    "sweep": "sweeps.grid",
}
_MODULES = ("conf", "plot")


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module("." + _HOMES[name], __name__), name)
    if name in _MODULES:
        return importlib.import_module("." + name, __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES, *_MODULES])
