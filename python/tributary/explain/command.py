# SPDX-License-Identifier: BSD-3-Clause
"""trib-explain: options, and what is printed of a file."""

from __future__ import annotations

import getopt
import json
import sys
from typing import Mapping, Optional, Sequence

from .._cli import HELP, Command, Option, clean
from .._input import whole
from . import report
from .causes import causes
from .path import Path
from .timeline import Timeline

COMMAND = Command(
    "trib-explain",
    "say why an operation is slow, from its time line",
    "[OPTION...] FILE",
    """\
Reads the time line of an operation, which trib sim and trib perf write with --timeline, and prints what stands out:
a slow host, a straggling rank, a lossy, slow, long or oversubscribed link, an incast, a victim of PFC, a background
flow, a window that is too small, a refused group; each with its figures, the one that costs most first. Then the critical
path: where the time went between the start and the last rank's end.

It knows what the file says and nothing else, and names no cause where none stands out.""",
    (Option("json", "", "", "", "print the causes and the critical path as JSON"), *HELP),
    (("0", "the file was read, whatever it says"), ("1", "it cannot be read; the reason is on stderr"), ("2", "the command line is wrong")),
    "trib(1), trib-sim(1), trib-perf(1)",
)


def explain(path: str, as_json: bool = False) -> str:
    """What is printed of a time line. Refused, WrongFile: the file is none."""
    with whole(path, "what --timeline wrote", "a time line"):
        t = Timeline(path)
        way = Path(t)
        found = causes(t, way)
        return json.dumps(report.as_json(t, way, found), indent=1) if as_json else "\n".join(report.lines(t, way, found))


def work(given: Mapping[str, str], args: Sequence[str]) -> None:
    if len(args) != 1:
        found = f"'{clean(args[1])}' too" if args else "no FILE"
        raise getopt.GetoptError(f"found {found}, expected one FILE (-h shows all)")
    print(explain(args[0], "json" in given))


def main(argv: Optional[Sequence[str]] = None) -> int:
    return COMMAND.run(sys.argv[1:] if argv is None else argv, work)
