# SPDX-License-Identifier: BSD-3-Clause
"""trib-report: options, and the files that they name."""

from __future__ import annotations

import getopt
import os
import sys
from typing import Mapping, Optional, Sequence

from .._cli import HELP, Command, Option, Refused, need_modules
from .._input import shown

COMMAND = Command(
    "trib-report",
    "results as one page of HTML",
    "RESULT... [OPTION...]",
    """\
Makes one page of HTML of files that trib sim and trib perf wrote (-J, --timeline): figures, what binds on a drawing of
the fabric, fidelity, all rows, and how to run it again. The page needs nothing else, and no network. Results with
--counters have every link. Several files are compared; a folder of trib-sweep is its files.""",
    (
        Option("output", "o", "FILE", "", "the page (report.html)"),
        Option("title", "", "TEXT", "", "its title; by default what ran, and on which fabric"),
        *HELP,
    ),
    (("0", "the page is written"), ("1", "a file cannot be read or written; the reason is on stderr"), ("2", "the command line is wrong")),
    "trib(1), trib-sim(1), trib-perf(1), trib-explain(1)",
)


def results_of(path: str) -> list[str]:
    """The files of a sweep's folder, in the order of its list; of another path, itself."""
    if not os.path.isdir(path):
        return [path]
    found = [f for f in os.listdir(path) if f.endswith(".json")]
    found = [f for f in found if f[0].isdigit()] or found
    if not found:
        raise Refused(f"{shown(path)}: found no *.json in it, expected files of trib's -J, as trib-sweep writes them")
    return [os.path.join(path, f) for f in sorted(found, key=lambda f: (len(f), f))]


def work(given: Mapping[str, str], args: Sequence[str]) -> None:
    if not args:
        raise getopt.GetoptError("found no RESULT, expected files of trib's -J or --timeline (-h shows all)")
    files = [f for at in args for f in results_of(at)]
    to = given.get("output", "report.html")
    for f in files:
        if os.path.exists(to) and os.path.samefile(f, to):
            raise getopt.GetoptError(f"-o: found {shown(to)}, which is a RESULT, expected another file")
    need_modules("pandas", "matplotlib")
    from . import write

    try:
        write(files, to, given.get("title", ""))
    except (ImportError, ValueError) as e:
        raise Refused(" ".join(shown(line) for line in str(e).splitlines())) from None


def main(argv: Optional[Sequence[str]] = None) -> int:
    return COMMAND.run(sys.argv[1:] if argv is None else argv, work)
