# SPDX-License-Identifier: BSD-3-Clause
"""trib-sweep: many simulations, one per task of a Slurm array, mpirun or srun; without any of these, one after the other."""

from __future__ import annotations

import getopt
import os
import signal
import sys
from typing import Mapping, Optional, Sequence

from .._cli import HELP, Command, Option
from .._input import WrongFile, data_of, json_of, shown
from .._trib import said
from . import table, vary
from .files import base_of, lines_of, result_of
from .merge import merged
from .simulation import Simulation
from .tasks import task_of

COMMAND = Command(
    "trib-sweep",
    "run many simulations, one a task of whatever starts tasks here",
    """\
trib-sweep LIST DIR           run this task's lines of LIST; results go to DIR
       trib-sweep --merge LIST DIR   print all results as one JSON object
       trib-sweep --vary KEY=VALUE,... [--vary ...] DIR CONF [ARG...]
                                     trib sim CONF ARG... with each value of CONF's KEY, and a table""",
    "",
    (
        Option("merge", "", "", "", "print all results as one JSON object"),
        Option("vary", "", "KEY=VALUE,...", "", "run a simulation with each value of a key of its conf"),
        *HELP,
    ),
    (("0", "all of the task's simulations are right"), ("1", "some are not or did not end"), ("2", "the command line is wrong")),
    "trib(1), trib-sim(1)",
    """\
LIST has a simulation a line, what would follow `trib sim`; empty lines and those that begin with # do not count:
    conf/h100-su.conf all_reduce --algo ring,hier -b 64M -e 64M --payload none
Lines are dealt out in turn to the tasks that SLURM_ARRAY_TASK_ID, OMPI_COMM_WORLD_RANK, PMI_RANK or SLURM_PROCID and their sizes tell.
What is finished in DIR is not run again, so a sweep that was cut short goes on when it is started once more.
    sbatch --array=0-31 trib-sweep.sbatch LIST DIR
    mpirun -np 32 trib-sweep LIST DIR
KEY is a key of CONF by its path, or the end of it where one key only has that: spine_link.rate=200Gb/s,400Gb/s. With several --vary
all their combinations are run; DIR has their confs and, for --merge, their list.
    trib-sweep --vary spine_link.rate=200Gb/s,400Gb/s DIR conf/leaf-spine-8.conf all_reduce --algo ring -b 1M -e 1M
Options: --merge, --vary, -h or --help, --version.
Exit status: 0 all of the task's simulations are right, 1 some are not or did not end, 2 the command line is wrong.""",
    True,
)


def lines_in(path: str) -> list[str]:
    """The simulations of a list. GetoptError: there is none."""
    if os.path.isdir(path):
        raise getopt.GetoptError(f"found the directory {shown(path)}, expected a list: LIST DIR")
    try:
        lines = lines_of(os.fsdecode(data_of(path)))
    except OSError:
        raise getopt.GetoptError(f"found no list {shown(path)}") from None
    except WrongFile as e:
        raise getopt.GetoptError(str(e)) from None
    if not lines:
        raise getopt.GetoptError(f"found no simulation in {shown(path)}, expected one a line")
    return lines


def merge(lines: Sequence[str], folder: str) -> int:
    found = [result_of(base_of(folder, i), line) for i, line in enumerate(lines)]
    for i, line in enumerate(lines):
        if found[i] is None:
            COMMAND.say(f"no results of line {i + 1}: trib sim {line}")
    results = [result for result in found if result is not None]
    if results:
        print(merged(results))
    return int(len(results) < len(lines))


def reason(code: int, stderr: str) -> str:
    """Why a simulation failed; code: as of subprocess, or of a shell, which says 128 and more of a signal."""
    last = said(stderr).split("\n")[-1]
    number = -code if code < 0 else code - 128
    if number in set(signal.Signals):
        return f"ended by {signal.Signals(number).name} (signal {number})" + (f"; the last it said: {last}" if last else "")
    return last or f"exit code {code}, without a word"


def run_line(line: str, base: str, threads: Optional[int]) -> str:
    """Why it failed; "": it did not."""
    try:
        simulation = Simulation(line, base, threads)
    except OSError:
        raise getopt.GetoptError(f"cannot write {shown(base)}.out") from None
    try:
        code = simulation.child.wait()
    except BaseException:
        simulation.stop()
        raise
    stderr = simulation.end()
    return reason(code, stderr) if code else ""


def run(lines: Sequence[str], folder: str) -> int:
    """This task's lines, one after the other, but for those that are finished."""
    try:
        task = task_of(os.environ, len(lines))
    except ValueError as e:
        raise getopt.GetoptError(str(e)) from None
    vary.make_folder(folder)
    failed = 0
    for i in task.lines(len(lines)):
        base = base_of(folder, i)
        if result_of(base, lines[i]) is not None:
            continue
        COMMAND.say(f"task {task.number} of {task.tasks}, line {i + 1}: trib sim {lines[i]}")
        why = run_line(lines[i], base, None if task.tasks == 1 else 1)  # several simulations at a time: a core each
        if why:
            failed = 1
            COMMAND.say(f"line {i + 1} failed: {why}")
    return failed


def show(lines: Sequence[str], folder: str, keys: Sequence[str]) -> None:
    """What was measured, where it was."""
    cells: list[list[str]] = []
    for i, line in enumerate(lines):
        try:
            found = table.cells_of(json_of(base_of(folder, i) + ".json", "results"), keys, vary.values_in(line.split()[0], keys))
        except (OSError, WrongFile, KeyError, TypeError):
            continue
        cells += found
    for row in table.aligned(cells):
        print(row)


def work(given: Mapping[str, str], varied: Sequence[str], args: Sequence[str]) -> int:
    if "merge" in given and varied:
        raise getopt.GetoptError("found --merge with --vary, expected one of them")
    if len(args) < 2 or (len(args) > 2 and not varied):
        print(COMMAND.usage(), file=sys.stderr)
        return 2
    if varied:
        folder, conf, *rest = args
        keys = vary.make(folder, conf, varied, rest)
        lines = lines_in(os.path.join(folder, "list"))
        failed = run(lines, folder)
        show(lines, folder, keys)
        return failed
    lines = lines_in(args[0])
    return merge(lines, args[1]) if "merge" in given else run(lines, args[1])


def main(argv: Optional[Sequence[str]] = None) -> int:
    words = sys.argv[1:] if argv is None else argv
    return COMMAND.run(words, lambda given, args: work(given, [value for name, value in COMMAND.pairs(words)[0] if name == "vary"], args))
