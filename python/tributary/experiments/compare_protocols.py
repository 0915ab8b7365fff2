# SPDX-License-Identifier: BSD-3-Clause
"""One table of algorithms and aggregation protocols on one fabric, without loss and with, in virtual time.

A simulation for each algorithm, loss and size, each on a fabric of its own with the same seed. Columns: time of an
operation and its algbw out of place, that of the formula, packets that ranks sent again, the most memory that a protocol
had for its slots at all switches together, elements that are wrong (of protocols that quantise: beyond their bound), and
the bound. Exit status: 0 all are right, 1 some are not or did not end, 2 the command line is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from typing import Any, Iterator, Optional

from .._cli import ended
from .._files import discard, write_whole
from .._input import json_of
from .._trib import trib


def sizes(smallest: str, largest: str, factor: int) -> Iterator[int]:
    unit = {"K": 10, "M": 20, "G": 30}

    def number(text: str) -> int:
        return int(text[:-1]) << unit[text[-1]] if text[-1] in unit else int(text)

    size, end = number(smallest), number(largest)
    while size <= end:
        yield size
        size *= factor


def simulate(o: argparse.Namespace, algo: str, loss: float, size: int, work: str) -> tuple[Optional[dict[str, Any]], Optional[str]]:
    """The row of one simulation, or why there is none."""
    plan, out = os.path.join(work, "plan.conf"), os.path.join(work, "out.json")
    command = [str(trib()), "sim", o.conf, "--algo", algo, "-b", str(size), "-e", str(size), "-d", o.type,
               "-n", str(o.iters), "--place", "out", "--seed", str(o.seed), "-J", out]
    if loss:
        write_whole(plan, 'faults = ( { link = "all"; loss = %g; } );\n' % (loss / 100))
        command += ["--faults", plan]
    discard(out)
    run = subprocess.run(command, capture_output=True, text=True)
    if not os.path.exists(out):
        return None, (run.stderr.strip().splitlines() or ["exit status %d" % run.returncode])[0]
    report = json_of(out, "results of trib sim")
    if not report["results"]:
        return None, (run.stderr.strip().splitlines() or ["no row"])[0]
    row: dict[str, Any] = report["results"][0]
    own = row.get("protocol", {})
    row["loss_percent"] = loss
    row["retransmitted"] = own.get("resent", report["virtual"]["congestion"]["retransmits"])
    row["switch_memory_bytes"] = own.get("switch_memory_peak", 0)
    return row, None


def show(row: Optional[dict[str, Any]], why: Optional[str], algo: str, loss: float, size: int) -> None:
    if row is None:
        print("%9g %10d  %-10s %s" % (loss, size, algo, why), flush=True)
        return
    model = row.get("predicted_us") or 0
    print("%9g %10d  %-10s %12.2f %9.3f %12s %10s %14s %7d %11s" % (
        loss, size, algo, row["time_us"], row["algbw_GBps"], "%.2f" % model if model else "-", row["retransmitted"],
        row["switch_memory_bytes"] or "-", row["wrong"], "%.3g" % row["bound"] if row.get("bound") else "exact"), flush=True)


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("conf", help="a conf, as trib sim takes it")
    p.add_argument("--algo", default="ring,sharp,switchml,atp,ps", help="list (%(default)s)")
    p.add_argument("--loss", default="0,0.01,0.1,1", help="list of per cent of the frames, of every link (%(default)s)")
    p.add_argument("-b", default="4K", help="smallest size (%(default)s)")
    p.add_argument("-e", default="1M", help="largest size (%(default)s)")
    p.add_argument("-f", type=int, default=4, help="factor between sizes (%(default)s)")
    p.add_argument("-d", dest="type", default="int32",
                   help="type of elements (%(default)s: trib sim's floats are beyond ATP's fixed point, so it sums none in switches)")
    p.add_argument("-n", dest="iters", type=int, default=3, help="operations (%(default)s)")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("-J", dest="json", help="write the rows to this file")
    return p


def compare(o: argparse.Namespace, losses: list[float], steps: list[int]) -> tuple[list[dict[str, Any]], int]:
    """The rows, and how many are wrong or have no end."""
    rows, bad = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for loss in losses:
            for size in steps:
                for algo in o.algo.split(","):
                    row, why = simulate(o, algo, loss, size, folder)
                    show(row, why, algo, loss, size)
                    bad += row is None or row["wrong"] != 0
                    if row:
                        rows.append(row)
    return rows, bad


def work() -> int:
    p = parser()
    o = p.parse_args()
    if o.f < 2:
        p.error("-f: found %d, expected 2 or more" % o.f)
    try:
        losses = [float(x) for x in o.loss.split(",")]
        steps = list(sizes(o.b, o.e, o.f))
    except ValueError as e:
        p.error(str(e))
    print("# %s, all_reduce of %s, %d operations, seed %d, virtual time" % (o.conf, o.type, o.iters, o.seed))
    print("# loss (%)   size (B)  algorithm     time (us)    algbw   model (us)     resent  switch memory   wrong       bound")
    rows, bad = compare(o, losses, steps)
    if o.json:
        write_whole(o.json, json.dumps({"conf": o.conf, "rows": rows}, indent=1))
    print("# %d rows, %d wrong or without an end" % (len(rows), bad))
    return 1 if bad else 0


def main() -> int:
    return ended(lambda what: print(f"compare_protocols: {what}", file=sys.stderr), work)
