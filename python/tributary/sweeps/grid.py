# SPDX-License-Identifier: BSD-3-Clause
"""``tributary.sweep``: all combinations of some values over the cores of a machine, in the files of ``trib-sweep``, by which a cluster runs the same.

DIR (see ``files``) also has the confs and fault plans that were given as objects, and ``labels``, what fault plans are called. A line is done where
it is finished, it has rows, no element is wrong, and the files that it was run with are as they are now. The list only grows, so numbers stay: a
sweep with more seeds runs the new ones alone.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterable, Mapping, Optional, Sequence, TypeVar, Union

from .. import _secret
from .._files import discard, write_whole
from .._input import WrongFile, data_of, text_of
from .._sizes import Size, size_list, size_options
from .._trib import PathLike, TribError, output, why
from ..conf import Conf, checked_name
from ..results import LABELS, Plan, conf_word, labels_of, options, read, stem, write_plan
from .files import base_of, lines_of, result_of
from .progress import Line, Progress
from .simulation import Simulation

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
OneOrMore = Union[T, Iterable[T]]
FaultPlans = Union[None, PathLike, Sequence[Union[None, PathLike]], Mapping[str, Optional[Plan]]]
_POLL_S = 0.005


def _each(what: Any) -> list[Any]:
    """One value or several as a list."""
    return [what] if what is None or isinstance(what, (str, os.PathLike, Conf, int)) else list(what)


def _put(folder: Path, name: str, text: str, used: dict[str, str]) -> str:
    """Writes a conf or plan of the sweep into its DIR, and returns its path. ValueError: another one has the name."""
    name = re.sub(r"[^\w.=%+-]", "_", name) + ".conf"
    if used.setdefault(name, text) != text:
        raise ValueError(f"found two confs or fault plans named {name[:-5]!r}, expected names that differ (Conf.copy(name=...))")
    path = folder / name
    if not path.is_file() or text_of(path) != text:
        write_whole(path, text, 0o600 if _secret.named(text) else None)
    return str(path)


def _plans(faults: FaultPlans, folder: Path, used: dict[str, str]) -> list[Optional[str]]:
    """Paths or names of fault plans; those that are given as entries are written to DIR, and so are the names of all (results.labels_of)."""
    if not isinstance(faults, Mapping):
        return [None if f is None else _word(f, "faults") for f in _each(faults)]
    found: list[Optional[str]] = []
    labels = labels_of(folder)
    for label, plan in faults.items():
        if plan is None or isinstance(plan, (str, os.PathLike)):
            found.append(None if plan is None else _word(plan, "faults"))
        else:
            with tempfile.TemporaryDirectory(prefix="trib-") as scratch:
                write_plan(plan, Path(scratch) / "plan")
                text = text_of(Path(scratch) / "plan")
            found.append(_put(folder, label, text, used))
        key = stem(found[-1] or "")
        if used.setdefault(f"label of {key}", label) != label:
            raise ValueError(f"found {used[f'label of {key}']!r} and {label!r} of the same plan {key!r}, expected plans with names of their own")
        labels[key] = label
    write_whole(folder / LABELS, json.dumps(labels))
    return found


def _word(path: PathLike, folder: str = "") -> str:
    """A conf or plan as a word of a line: one that comes with trib by its name, another one by its whole path."""
    word = conf_word(path, folder)
    return os.path.abspath(word) if os.path.isfile(word) else word


def _lines(folder: Path, grid: Mapping[str, Any], series: Sequence[Sequence[str]], args: Sequence[str], common: Mapping[str, Any]) -> list[str]:
    """The simulations of a grid, the last dimension fastest. ValueError: a dimension without a value, of which nothing can be run."""
    found = []
    for name, values in grid.items():
        if not values:
            raise ValueError(f"found no value of {name}, expected one or more (None: as the simulation has it)")
    for point in itertools.product(*grid.values()):
        at = dict(zip(grid, point))
        words = [at.pop("conf"), at.pop("collective"), *options(**at, **common)]
        found += [[*words, *of_size, *args] for of_size in series]
    for word in itertools.chain.from_iterable(found):
        if word == "" or re.search(r"\s", word):
            raise ValueError(f"found {word!r}, expected no word of a sweep's line to be empty or to have a blank")
    return list(dict.fromkeys(" ".join(words) for words in found))


def _listed(folder: Path, wanted: Sequence[str]) -> dict[str, int]:
    """DIR's list with the wanted lines added; each line's number."""
    path = folder / "list"
    old = text_of(path).splitlines() if path.exists() else []
    lines = lines_of("\n".join(old))
    lines += [line for line in wanted if line not in set(lines)]
    if lines != old:
        write_whole(path, "".join(line + "\n" for line in lines))
    numbers: dict[str, int] = {}
    for number, line in enumerate(lines):
        numbers.setdefault(line, number)
    return numbers


def _same_files(result: Mapping[str, Any]) -> bool:
    """Whether the files that a result was made with are what they were. One that is not here cannot be compared."""
    run = result.get("run")
    files = run.get("files") if isinstance(run, dict) else None
    for used in files if isinstance(files, list) else ():
        try:
            secret = "secrets" in used  # then the hash is of what is shown
            now = output(["plan", "--no-secrets", used["path"]]).encode() if secret else data_of(used["path"])
        except (KeyError, OSError, TribError, TypeError, WrongFile):
            continue
        if hashlib.sha256(now).hexdigest() != used["sha256"]:
            return False
    return True


def finished(base: Path, line: str) -> bool:
    """Whether the files BASE.json and BASE.out are the results of this very line, whole and right."""
    result = result_of(str(base), line)
    return result is not None and "results" in result and not any(r.get("wrong") for r in result["results"]) and _same_files(result)


class _Simulation(Simulation):
    """One line, running, and its time."""

    def __init__(self, line: Line, base: Path, threads: Optional[int]) -> None:
        self.line = line
        line.started()
        super().__init__(line.text, str(base), threads)

    def ended(self) -> Optional[str]:
        """None: it runs; "": it is done; else why it failed."""
        code = self.child.poll()
        if code is None:
            return None
        self.line.ended()
        stderr = self.end()
        return "" if code == 0 else why(code, stderr)


def _run(todo: Sequence[tuple[Line, Path]], workers: int, progress: Progress) -> dict[str, str]:
    """Runs the lines, the longest first; returns why lines failed. Ctrl-C ends those that run."""
    waiting = sorted(todo, key=lambda t: -t[0].weight)
    running: list[_Simulation] = []
    failed: dict[str, str] = {}
    threads = 1 if workers > 1 else None
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                line, base = waiting.pop(0)
                running.append(_Simulation(line, base, threads))
            for simulation in list(running):
                reason = simulation.ended()
                if reason is None:
                    continue
                running.remove(simulation)
                if reason:
                    failed[simulation.line.text] = reason
                    progress.say(f"failed: trib sim {simulation.line.text}: {reason}")
            progress.show()
            time.sleep(_POLL_S)
    finally:
        for simulation in running:
            simulation.stop()
        progress.end()
    return failed


def sweep(
    confs: OneOrMore[Union[PathLike, Conf]],
    collectives: OneOrMore[str] = "all_reduce",
    *,
    ranks: Optional[OneOrMore[int]] = None,
    sizes: Optional[OneOrMore[Size]] = None,
    algos: Optional[OneOrMore[str]] = None,
    types: Optional[OneOrMore[str]] = None,
    ops: Optional[OneOrMore[str]] = None,
    seeds: Optional[OneOrMore[int]] = None,
    faults: FaultPlans = None,
    payload: Optional[str] = None,
    place: str = "out",
    iters: Optional[int] = None,
    warmup: Optional[int] = None,
    counters: bool = False,
    args: Sequence[str] = (),
    dir: Optional[PathLike] = None,
    workers: Optional[int] = None,
    progress: bool = True,
) -> pd.DataFrame:
    """Simulates every combination, one process each for all sizes, and returns the rows of all. docs/python.md has every argument.

    dir      where results are kept: what is done there is not run again; None: nowhere
    workers  simulations at a time; None: one a core; 0: none, only ``dir/list`` is written, for ``trib-sweep dir/list dir``
    A simulation that fails is named by a warning and in ``attrs["sweep"]["failed"]``, and does not stop the others. ValueError: a wrong
    argument, before anything runs. Ctrl-C leaves what is done.
    """
    if dir is None:
        with tempfile.TemporaryDirectory(prefix="trib-sweep-") as scratch:
            again = {k: v for k, v in locals().items() if k not in ("scratch", "dir")}
            return sweep(**again, dir=scratch)
    folder = Path(dir).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    used: dict[str, str] = {}
    grid = {
        "conf": [_put(folder, checked_name(c.name), c.text(), used) if isinstance(c, Conf) else _word(c) for c in _each(confs)],
        "collective": _each(collectives),
        "ranks": _each(ranks),
        "types": _each(types),
        "ops": _each(ops),
        "faults": _plans(faults, folder, used),
        "algos": _each(algos),
        "seed": _each(seeds),
    }
    common = {"payload": payload, "place": place, "iters": iters, "warmup": warmup, "counters": counters}
    series = [[]] if sizes is None else size_options(size_list(sizes))
    wanted = _lines(folder, grid, series, args, common)
    numbers = _listed(folder, wanted)
    bases = {line: Path(base_of(str(folder), numbers[line])) for line in wanted}
    lines = {line: Line(line) for line in wanted}
    done = {line for line in wanted if finished(bases[line], line)}
    todo = [line for line in wanted if line not in done]
    for line in todo:  # for trib-sweep, which does not compare confs
        discard(bases[line].with_suffix(".json"))
    began = time.monotonic()
    cores = len(os.sched_getaffinity(0)) if workers is None else workers
    failed: dict[str, str] = {}
    if todo and cores > 0:
        shown = Progress([lines[line] for line in todo], len(done), cores, sys.stderr if progress else None)
        failed = _run([(lines[line], bases[line]) for line in todo], cores, shown)
    right = [line for line in wanted if finished(bases[line], line)]
    frame = read([bases[line].with_suffix(".json") for line in right])
    frame.attrs["sweep"] = {
        "lines": len(wanted),
        "found": len(done),
        "failed": failed,
        "missing": [line for line in wanted if line not in right and line not in failed],
        "workers": cores,
        "wall_s": time.monotonic() - began,
        "simulations_s": sum(lines[line].took_s for line in todo),
    }
    if failed:
        some = "".join(f"\n  trib sim {line}: {reason}" for line, reason in itertools.islice(failed.items(), 5))
        warnings.warn(f"{len(failed)} of {len(wanted)} simulations failed{some}", stacklevel=2)
    return frame
