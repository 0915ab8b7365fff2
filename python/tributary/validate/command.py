# SPDX-License-Identifier: BSD-3-Clause
"""Predictions of trib-sim beside published measurements of real machines, series by series.

usage: validate [--quick] [--rows] [--class NAME] [--plots DIR] [--build DIR]   compare and judge
       validate --fit NAME                                                      print the fit of a class
       validate --quick --expected FILE [--update]                              fail where a class got worse

tests/validate/series.tsv says what each series is and which algorithm stands for it, measured.tsv has its rows. The sizes of a
series at index 1, 4, 7, ... of those with use = fit were fitted (fit:1 names them); all others are held out. --quick: what simulates in a
minute.
"""

from __future__ import annotations

import getopt
import os
import sys
from typing import Optional, Sequence

from .._cli import Refused, ended
from . import published
from .fitted import fit
from .judged import check, compare, report, spread
from .plots import plots
from .simulated import Sim


def say(what: object) -> None:
    print(f"validate: {what}", file=sys.stderr)


def options_of(argv: Sequence[str]) -> dict[str, str]:
    try:
        opts, args = getopt.gnu_getopt(list(argv), "h", ["help", "quick", "rows", "class=", "plots=", "build=", "fit=", "expected=", "update"])
    except getopt.GetoptError as e:
        raise Refused(str(e)) from None
    if args:
        raise Refused(f"found {args[0]}, expected options only")
    return dict(opts)


def work(argv: Sequence[str]) -> int:
    o = options_of(argv)
    if "-h" in o or "--help" in o:
        print(__doc__)
        return 0
    series = published.load()
    names = {s["class"] for s in series}
    for key in ("--class", "--fit"):
        if key in o and o[key] not in names:
            raise Refused(f"found class {o[key]}, expected one of {', '.join(sorted(names - {'-'}))}")
    sim = Sim(o.get("--build", os.path.join(published.root(), "build")), "--quick" in o)
    used = [s for s in series if s["use"] != "left-out" and o.get("--class", s["class"]) == s["class"]]
    spread(used)
    if "--quick" in o:
        used = [s for s in used if s["quick"] == "yes"]
    if "--fit" in o:
        fit(sim, used, o["--fit"])
        return 0
    for s in used:
        compare(sim, s)
    result = report(used, "--rows" in o)
    if "--class" not in o and "--quick" not in o:
        print("\nleft out:")
        for s in series:
            if s["use"] == "left-out":
                print("%-26s %s" % (s["id"], s["reason"]))
    if "--plots" in o:
        plots(used, o["--plots"])
    return check(result, o["--expected"], "--update" in o) if "--expected" in o else 0


def main(argv: Optional[Sequence[str]] = None) -> int:
    return ended(say, lambda: work(sys.argv[1:] if argv is None else argv))
