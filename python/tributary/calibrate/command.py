# SPDX-License-Identifier: BSD-3-Clause
"""trib-calibrate: options, and how what the readers, the prediction and the fit do becomes a conf and a table."""

from __future__ import annotations

import getopt
import os
import re
import subprocess
import sys
import tempfile
from typing import Mapping, Optional, Sequence

from .. import _secret
from .._cli import HELP, Command, Option, Refused, clean, program
from .._files import write_whole
from .._input import text_of
from .._trib import trib
from ..conf import MOST_BYTES
from .._conf_text import Conf
from .fit import Fit, find_outliers, median
from .paths import path_of
from .predict import Simulator, predicted, simulated_sizes
from .read import read_results
from .rows import MIB, Options, Row, Series, size_text

COLLECTIVES = "all_reduce all_gather reduce_scatter alltoall broadcast reduce sendrecv"
COMMAND = Command(
    "trib-calibrate",
    "fit a conf's costs to measured results",
    "[OPTION...] CONF FILE...",
    """\
Fits launch, step and efficiency of CONF to the results in FILEs, and writes a conf with them.

A FILE is the output of nccl-tests (text, or JSON of its -J), of trib perf or trib sim (text or -J), of
ib_write_bw, ib_read_bw, ib_send_bw, ib_write_lat or ib_send_lat (text or --out_json), of an OSU
benchmark (osu_allreduce, osu_allgather, osu_reduce_scatter, osu_alltoall, osu_bcast, osu_reduce, osu_bw,
osu_latency), or of the Intel MPI Benchmarks (Allreduce, Allgather, Reduce_scatter, Alltoall, Bcast, Reduce,
PingPong). Tags of mpirun, srun -l and mpiexec -prepend-rank before its lines do not matter. What of it is not
understood is refused, by line.

A path of the fabric (nvlink, multimem, network) gets a floor, its launch, and an efficiency (of multimem: load and
store) so that what trib sim predicts has the least relative error over the rows; results of two or more numbers of
ranks tell launch and step apart. Rows far from the others are outliers: named, and not fitted. Then all is simulated
again with the conf that is written, and a table shows each row.""",
    (
        Option("output", "o", "FILE", "", "the conf to write, which replaces FILE (default: STEM-calibrated.conf here, if there is none yet)"),
        Option(
            "algo", "", "NAME", "ring tree chain direct pairwise halving sharp nvls hier hier_sharp nvls_sharp rings",
            "algorithm of the results (default: what a file names; else ring in one node, hier over several, direct for alltoall and sendrecv)",
        ),
        Option("collective", "", "NAME", COLLECTIVES, "collective of results that do not name it"),
        Option("ranks", "g", "N", "", "number of ranks of results that do not name it"),
        Option("place", "", "PLACE", "out in", "rows out of place or in place (default: out, and in where a row has no other)"),
        Option("from", "", "SIZE", "", "smallest size to fit, such as 64K or 4M (default: 1M; 64K for bandwidths of messages, 0 for their latencies)"),
        *HELP,
    ),
    (("0", "the conf is written"), ("1", "it cannot be done; the reason is on stderr"), ("2", "the command line is wrong")),
    "trib(1), trib-sim(1), trib-plan(1)",
)  # fmt: skip


def options_of(given: Mapping[str, str]) -> Options:
    """GetoptError: a value is none."""
    o = Options()
    o.output, o.algo, o.collective = given.get("output"), given.get("algo"), given.get("collective")
    o.place = given.get("place", "out")
    if "ranks" in given:
        if not (re.fullmatch(r"\d{1,5}", given["ranks"]) and int(given["ranks"]) >= 2):
            raise getopt.GetoptError(f"--ranks: found '{clean(given['ranks'])}', expected a number of ranks, 2 or more")
        o.ranks = int(given["ranks"])
    if "from" in given:
        m = re.fullmatch(r"(\d{1,12})([KMG]?)(i?B)?", given["from"])
        if not m:
            raise getopt.GetoptError(f"--from: found '{clean(given['from'])}', expected a size such as 64K or 4M")
        o.least = int(m[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[m[2]]
    return o


def complete(conf: Conf, s: Series, o: Options) -> None:
    """What a file does not name comes from the options, or is what is usual."""
    s.collective = s.collective or o.collective
    if s.collective not in COLLECTIVES.split():
        found = "no name of a collective" if s.collective is None else "the collective " + clean(s.collective)
        raise Refused(f"{clean(s.path)}: found {found}, expected --collective with one of {', '.join(COLLECTIVES.split())}")
    s.ranks = int(s.ranks or o.ranks or 0)
    if s.ranks < 2:
        raise Refused(f"{clean(s.path)}: found no number of ranks (# Rank lines), expected -g RANKS")
    gpus = int(conf.get("gpu_nodes.gpus") or 1)
    if s.hosts and s.kind == "time" and gpus > 1 and s.hosts != -(-s.ranks // gpus):
        raise Refused(f"{clean(s.path)}: found {s.ranks} ranks on {s.hosts} hosts, expected {-(-s.ranks // gpus)} hosts: CONF has {gpus} GPUs a node")
    if s.kind == "time":
        if s.not_ours and not o.algo:
            raise Refused(s.not_ours)
        if s.algo == "nvls" and not o.algo and 1 < gpus < s.ranks:
            raise Refused(f"{clean(s.path)}: found NVLS of {s.ranks} ranks on nodes of {gpus} GPUs, which is NVLS in nodes and SHARP between them, expected --algo nvls_sharp")
        over_nodes = 1 < gpus < s.ranks and s.collective not in ("broadcast", "reduce")
        usual = "direct" if s.collective in ("alltoall", "sendrecv") else "hier" if over_nodes else "ring"
        s.algo = o.algo or s.algo or usual
    if s.per_rank:
        for r in s.rows:
            r.size *= s.ranks


def choose_rows(s: Series, o: Options) -> None:
    least = o.least if o.least is not None else {"time": MIB, "rate": 64 << 10, "latency": 0}[s.kind]
    for r in s.rows:
        if r.size < least:
            r.use = "below " + size_text(least)
    rows = [r for r in s.rows if r.use == "used"]
    sizes, need = len({r.size for r in rows}), 3 if s.kind != "rate" else 1
    if sizes < need:
        raise Refused(f"{clean(s.path)}: found {sizes} size{'s'[: sizes != 1]} from {size_text(least)} on, expected {need} or more (--from takes smaller ones)")
    missing = sorted({x for x in s.expected if x >= least} - {r.size for r in s.rows})
    if missing:
        some = ", ".join(size_text(x) for x in missing[:6]) + (", ..." if len(missing) > 6 else "")
        s.notes.append(f"{s.name()}: no rows of {len(missing)} sizes that its head announces: {some}")
    find_outliers(s, rows)
    s.sizes = simulated_sizes(s, rows)


def regime(s: Series) -> None:
    """Neighbours that differ together are no outliers: something is not in the conf."""
    rows: list[Optional[Row]] = [*sorted((r for r in s.rows if r.counts()), key=lambda r: r.size), None]
    run: list[Row] = []
    for r in rows:
        if r and r.use == "outlier":
            run.append(r)
        else:
            if len(run) >= 3:
                COMMAND.say(
                    f"{clean(s.path)}: {size_text(run[0].size)} to {size_text(run[-1].size)} differ together: another regime rather than outliers (a protocol, or steps "
                    "that CONF has no costs of); --from leaves small sizes out, results of several numbers of ranks tell steps"
                )
            run = []


def show(series: Sequence[Series], conf: Conf, sim: Simulator) -> None:
    """The table, of a simulation with the conf that is written; outliers are named."""
    errors = []
    for s in series:
        print(f"# {s.name()}: {s.collective} by {s.algo}, {s.ranks} ranks")
        print("# %12s %14s %14s %9s" % ("size (B)", "measured (us)", "predicted (us)", "error"))
        times = sim.times(conf, s, s.sizes)
        for r, p in zip(s.rows, predicted(s, times, s.rows)):
            error = p / r.us - 1
            if r.use.startswith("below"):
                print("  %12d %14.2f %14s %9s  %s" % (r.size, r.us, "-", "-", r.use))
                continue
            print("  %12d %14.2f %14.2f %+7.1f %%  %s" % (r.size, r.us, p, 100 * error, r.use))
            if r.use == "used":
                errors.append(abs(error))
            else:
                off = f"measured {r.us:.2f} us, {100 * (r.us / p - 1):+.0f} % of the prediction"
                COMMAND.say(f"{s.where(r.line)}: {size_text(r.size)} is an outlier, left out: {off}")
        regime(s)
    print("# error of %d rows: median %.1f %%, worst %.1f %%" % (len(errors), 100 * median(errors), 100 * max(errors)))


def find_conf(name: str) -> str:
    """CONF by path, or by the name of one that comes with Tributary, as trib finds it."""
    said = subprocess.run([str(trib()), "--conf-file", name], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if said.returncode:
        raise Refused(clean(said.stderr.strip().replace("trib: ", "", 1), 400))
    return said.stdout.rstrip("\n")


def check(path: str, written: bool = False) -> None:
    run = subprocess.run([program("trib-plan"), "--name", path], capture_output=True, text=True)
    if run.returncode:
        raise Refused((("the conf as calibrated is refused: " if written else "") + run.stderr.strip()).replace("trib-plan: ", ""))


def conf_of(path: str) -> Conf:
    check(path)
    return Conf(text_of(path, MOST_BYTES))


def mode_of(path: str, text: str) -> Optional[int]:
    """Of copies of a conf: its owner's alone where it is that, or has a secret; None: as files are made."""
    return None if os.stat(path).st_mode & 0o004 and not _secret.named(text) else 0o600


def calibrate(o: Options, name: str, files: Sequence[str], scratch: str) -> None:
    path = find_conf(name)
    out = o.output or f"{os.path.splitext(os.path.basename(path))[0]}-calibrated.conf"
    if not o.output and os.path.exists(out):
        raise Refused(f"found {out} here, expected -o {out} if it is to be replaced")
    if os.path.isdir(out) or not os.access(os.path.dirname(out) or ".", os.W_OK):
        raise Refused(f"cannot write {clean(out, 200)}")
    series, sim = [s for f in files for s in read_results(f, o)], Simulator(scratch)
    conf = conf_of(path)
    for s in series:
        complete(conf, s, o)
        choose_rows(s, o)
    groups: dict[str, list[Series]] = {}
    for s in series:
        groups.setdefault(path_of(conf, s).name, []).append(s)
    told = []
    for of in ("nvlink", "multimem", "network"):  # multimem's shares are of the NVLinks' efficiency
        if of in groups:
            fit = Fit(conf, path_of(conf, groups[of][0]), groups[of], sim).run()
            conf = fit.with_keys(fit.comment())
            told += tell(fit, conf)
    for s in series:
        for n in s.notes:
            COMMAND.say(n)
    new = os.path.join(scratch, "new.conf")
    write_whole(new, conf.text, 0o600)
    check(new, True)
    show(series, conf, sim)
    try:
        write_whole(out, conf.text, mode_of(path, conf.text))
    except OSError as e:
        raise Refused(f"cannot write {clean(out, 200)}: {e.strerror}") from None
    print("\n".join("# " + x for x in told))
    print(f"# written: {out}")


def tell(fit: Fit, conf: Conf) -> list[str]:
    """The fitted keys, and what the results do not tell."""
    step = fit.path.step
    keys = {"slowness": fit.path.efficiency, "launch": [fit.path.launch], "step": [step] if step else []}
    out = [f"{k} = {conf.get(k)}" for n in fit.unknown for k in keys[n]]
    for n in ("launch", "step"):
        if n in fit.at_bound:
            COMMAND.say(
                f"{keys[n][0]} is 0: the floor of the results is below that of CONF: expected less of the other costs (step, gpu), or results of two numbers of ranks"
            )
    if len(fit.unknown) == 1:
        out.append("the floor stays: bandwidths of message streams have none")
    elif "launch" in fit.unknown and step and "step" not in fit.unknown:
        out.append(f"{step} stays {conf.get(step) or 'absent'}: one number of ranks tells the sum of launch and steps only")
    return out


def work(given: Mapping[str, str], args: Sequence[str]) -> None:
    o = options_of(given)
    if len(args) < 2:
        found = f"'{clean(args[0])}'" if args else "no CONF"
        raise getopt.GetoptError(f"found {found}, expected CONF and one FILE or more (-h shows all)")
    with tempfile.TemporaryDirectory() as scratch:
        calibrate(o, args[0], args[1:], scratch)


def main(argv: Optional[Sequence[str]] = None) -> int:
    return COMMAND.run(sys.argv[1:] if argv is None else argv, work)
