# SPDX-License-Identifier: BSD-3-Clause
"""Results of trib as pandas DataFrames: from a run, or from files of results alone.

A frame has a row for each row of -J, with the columns of --csv (docs/results.md): names end in their units (_bytes, _us, _GBps), what is
nested is flattened with dots (fidelity.ok). Before them: conf, ranks, clock ("virtual", "real"), seed, payload, faults (the plan's name, or
"", or what a sweep calls it), and run, the row's place in ``frame.attrs["runs"]``, which has where each comes from.
"""

from __future__ import annotations

import glob
import os
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterable, Mapping, Optional, Sequence, Union

from . import _input
from ._files import write_whole
from ._input import shown
from ._sizes import Size, size_list, size_options
from ._trib import PathLike, TribError, call, need, no_such_file, shipped, trib, why
from .conf import Conf, libconfig

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = 1
Words = Union[str, Sequence[str]]
Plan = Union[PathLike, Sequence[Mapping[str, Any]]]
CONTEXT = ("conf", "ranks", "clock", "seed", "payload", "faults", "run")
LABELS = "labels"  # a file in the DIR of a sweep
LEFT_OUT = 4  # trib perf's exit code where --max-wall left rows out


def joined(words: Words) -> str:
    """A list for the command line."""
    return words if isinstance(words, str) else ",".join(words)


def options(
    *,
    clock: str = "virtual",
    ranks: Optional[int] = None,
    algos: Optional[Words] = None,
    types: Optional[Words] = None,
    ops: Optional[Words] = None,
    seed: Optional[int] = None,
    faults: Optional[str] = None,
    payload: Optional[str] = None,
    place: str = "out",
    iters: Optional[int] = None,
    warmup: Optional[int] = None,
    counters: bool = False,
) -> list[str]:
    """Options of ``trib sim`` (clock "virtual") or ``trib perf`` ("real"), sizes left out. ValueError: one that the clock does not have."""
    if clock not in ("virtual", "real"):
        raise ValueError(f'found clock={clock!r}, expected "virtual" or "real"')
    if place not in ("out", "in", "both"):
        raise ValueError(f'found place={place!r}, expected "out", "in" or "both"')
    virtual = clock == "virtual"
    for name, value in (("seed", seed), ("faults", faults), ("payload", payload), ("counters", counters or None)):
        if value is not None and not virtual:
            raise ValueError(f'found {name}={value!r} with clock="real", expected it with clock="virtual"')
    pairs = (
        ("-g", ranks),
        ("--algo", algos and joined(algos)),
        ("-d", types and joined(types)),
        ("-o", ops and joined(ops)),
        ("--seed", seed),
        ("--faults", faults),
        ("--payload", payload),
        ("--place", place),
        ("-n", iters),
        ("-w", warmup),
    )
    words = [word for name, value in pairs if value is not None for word in (name, str(value))]
    return words + ["--counters"] * counters


def conf_word(conf: PathLike, folder: str = "") -> str:
    """A conf's or a fault plan's path, or its name where it comes with trib. FileNotFoundError: it is neither."""
    word = os.fspath(conf)
    if not os.path.isfile(word) and shipped(word, folder) is None:
        raise no_such_file(word, folder)
    return word


def write_plan(faults: Plan, path: Path) -> None:
    """Writes a fault plan, a list of its entries (docs/conf-plans.md), to a file."""
    write_whole(path, libconfig({"faults": tuple(faults)}))  # type: ignore[arg-type]


def run(
    conf: Union[PathLike, Conf],
    collective: str = "all_reduce",
    *,
    sizes: Optional[Union[Size, Iterable[Size]]] = None,
    algos: Optional[Words] = None,
    types: Optional[Words] = None,
    ops: Optional[Words] = None,
    clock: str = "virtual",
    ranks: Optional[int] = None,
    seed: Optional[int] = None,
    faults: Optional[Plan] = None,
    payload: Optional[str] = None,
    place: str = "out",
    iters: Optional[int] = None,
    warmup: Optional[int] = None,
    counters: bool = False,
    args: Sequence[str] = (),
    json: Optional[PathLike] = None,
) -> pd.DataFrame:
    """Runs a collective by ``trib sim`` (clock "virtual") or ``trib perf`` ("real") and returns its rows. docs/python.md has every argument.

    What is None is trib's default. TribError: trib refused or failed, or an element is wrong; ValueError: an argument that the clock does
    not have. A warning names rows that --max-wall left out.
    """
    with tempfile.TemporaryDirectory(prefix="trib-") as folder:
        if isinstance(conf, Conf):
            conf = conf.write_into(Path(folder))
        if faults is not None and not isinstance(faults, (str, os.PathLike)):
            write_plan(faults, Path(folder) / "faults.conf")
            faults = Path(folder) / "faults.conf"
        if clock == "virtual":  # in real time it can be the name of a fabric that is up
            conf = conf_word(conf)
        words = options(
            clock=clock, ranks=ranks, algos=algos, types=types, ops=ops, seed=seed, payload=payload, place=place,
            faults=None if faults is None else os.fspath(faults), iters=iters, warmup=warmup, counters=counters,
        )  # fmt: skip
        runs = [[]] if sizes is None else size_options(size_list(sizes))
        if json is not None and len(runs) > 1:
            raise ValueError(
                f"found {len(runs)} series of sizes with json=, expected one, in equal steps or with one factor"
            )
        files = []
        for i, of_size in enumerate(runs):
            files.append(Path(folder) / f"{i}.json")
            command = [str(trib()), "sim" if clock == "virtual" else "perf", os.fspath(conf), collective]
            _run_one([*command, *words, *of_size, *args], files[-1])
        if json is not None:
            write_whole(json, _input.text_of(files[0]))
        frame = read(files)
        for at, provenance in enumerate(frame.attrs["runs"]):
            provenance["file"] = None if json is None or at else os.fspath(json)
        if clock == "real" and place != "both":
            frame = frame[frame["in_place"] == (place == "in")].reset_index(drop=True)
    return frame


def _run_one(command: list[str], file: Path) -> None:
    code, stderr = call([*command, "-J", str(file)])
    if code == LEFT_OUT:
        warnings.warn(f"trib left rows out: {why(code, stderr)}", stacklevel=3)
    elif code != 0:
        try:
            rows = read(file)
        except (OSError, ValueError):
            rows = None
        raise TribError(why(code, stderr), command, code, rows)


EXPECTED = "a file of trib's -J"


def flatten(value: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Nested objects as keys with dots; lists stay."""
    flat: dict[str, Any] = {}
    for key, v in value.items():
        if isinstance(v, Mapping):
            flat.update(flatten(v, f"{before}{key}."))
        else:
            flat[before + key] = v
    return flat


def load(path: PathLike) -> dict[str, Any]:
    """A file of results. ValueError: it is none, or of another schema."""
    result, name = _input.json_of(path, EXPECTED), shown(os.fspath(path))
    if not isinstance(result.get("results"), list):
        raise ValueError(f"{name}: found no rows, expected results of a collective by trib sim, trib perf or trib-sweep --merge")
    if result.get("schema", SCHEMA) != SCHEMA:
        raise ValueError(f"{name}: found schema {shown(result['schema'])[:40]}, expected {SCHEMA}")
    for at, row in enumerate(result["results"]):
        if not isinstance(row, dict):
            raise ValueError(f"{name}: found {shown(row)[:40]} in results[{at}], expected a row, an object")
    for key in ("run", "virtual"):
        if not isinstance(result.get(key, {}), (dict, type(None))):
            raise ValueError(f"{name}: {key}: found {shown(result[key])[:40]}, expected an object")
    return result


def stem(path: Any) -> str:
    name = os.path.basename(str(path))
    return name[:-5] if name.endswith(".conf") else name


def labels_of(folder: Path) -> dict[str, str]:
    """What a sweep calls its fault plans, by their names; "": no plan."""
    try:
        found = _input.json_of(folder / LABELS, "names of fault plans")
    except (OSError, ValueError):
        return {}
    return {k: v for k, v in found.items() if isinstance(v, str)}


def _context(result: Mapping[str, Any], labels: Mapping[str, str]) -> dict[str, Any]:
    """What all rows of a file share, by the names of CONTEXT."""
    command = (result.get("run") or {}).get("command", [])
    command = [str(w) for w in command] if isinstance(command, list) else []
    at = command.index("--faults") + 1 if "--faults" in command else len(command)
    virtual = result.get("virtual")
    faults = stem(command[at]) if at < len(command) else ""
    return {
        "conf": stem(result.get("conf", "")),
        "ranks": result.get("ranks"),
        "clock": "real" if virtual is None else "virtual",
        "seed": (virtual or {}).get("seed"),
        "payload": (virtual or {}).get("payload", "data"),
        "faults": labels.get(faults, faults),
    }


NUMBERS = ("size_bytes", "count", "time_us", "algbw_GBps", "busbw_GBps")
NUMBERS_OR_NONE = ("predicted_us", "min_us", "median_us", "p99_us", "stddev_us", "wrong")  # null, or not there at all
TEXTS = ("collective", "algo", "type")


def _check_row(row: Mapping[str, Any], at: int) -> None:
    """ValueError: a row lacks what all have, or a value is of another kind."""
    for key in (*NUMBERS, *NUMBERS_OR_NONE, *TEXTS):
        value = row.get(key)
        if value is None and key in NUMBERS_OR_NONE:
            continue
        kind: tuple[type, ...] = (str,) if key in TEXTS else (int, float)
        if not isinstance(value, kind) or isinstance(value, bool):
            what = "text" if key in TEXTS else "a number"
            raise ValueError(f"found {key} {shown(repr(value))[:40]} in results[{at}], expected {what}")


def _rows(result: Mapping[str, Any], run_number: int, labels: Mapping[str, str]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    context = _context(result, labels)
    if "conf" not in result:  # of trib-sweep --merge, where each row has its own
        context["clock"] = "virtual"
    for row in result["results"]:
        if "algo" not in row:
            raise ValueError("found a training step, expected rows of collectives")
        _check_row(row, len(rows))
        merged: dict[str, Any] = {**context, "run": run_number, **flatten(row)}
        merged["conf"] = stem(merged["conf"])
        rows.append(merged)
    return rows


def _provenance(path: PathLike, result: Mapping[str, Any]) -> dict[str, Any]:
    kept = {k: v for k, v in result.items() if k != "results"}
    if "links" in (kept.get("virtual") or {}):
        kept["virtual"] = {k: v for k, v in kept["virtual"].items() if k != "links"}
    return {"file": os.fspath(path), **kept}


def _files(source: Union[PathLike, Iterable[PathLike]]) -> list[Path]:
    if not isinstance(source, (str, os.PathLike)):
        return [file for one in source for file in _files(one)]
    path = Path(source)
    if path.is_dir():
        found = sorted(path.glob("[0-9]*.json"), key=lambda p: (len(p.name), p.name)) or sorted(path.glob("*.json"))
    elif not path.exists() and glob.has_magic(str(path)):
        found = sorted(Path(p) for p in glob.glob(str(path)))
    else:
        found = [path]
    if not found:
        raise FileNotFoundError(f"found no results in {path}, expected files of trib's -J")
    return found


def read(source: Union[PathLike, Iterable[PathLike]]) -> pd.DataFrame:
    """The rows of files of results: a path, a pattern such as "*.json", the DIR of a sweep, or several of these.

    Files of trib sim and trib perf (-J), and of trib-sweep --merge. Rows of a run that did not end are there; ``attrs["runs"]`` has its
    "error". ValueError: a file has no such rows; FileNotFoundError: there is none.
    """
    rows: list[dict[str, Any]] = []
    runs: list[dict[str, Any]] = []
    for number, path in enumerate(_files(source)):
        result = load(path)
        with _input.whole(path, EXPECTED):
            try:
                rows += _rows(result, number, labels_of(path.parent))
            except ValueError as e:
                raise ValueError(f"{shown(path)}: {e}") from None
            runs.append(_provenance(path, result))
    with _input.whole(", ".join(str(run["file"]) for run in runs[:3]), EXPECTED):
        return frame_of(rows, runs)


def frame_of(rows: Sequence[Mapping[str, Any]], runs: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """The DataFrame of flat rows and of where they come from."""
    pd = need("pandas", "python3-pandas")
    frame = pd.DataFrame(list(rows)) if rows else pd.DataFrame(columns=list(CONTEXT))
    for column in ("wrong", "seed", "aggregated_iters"):
        if column in frame:
            frame[column] = frame[column].astype("Int64")  # whole numbers, of which some are not known
    frame.attrs["schema"] = SCHEMA
    frame.attrs["runs"] = list(runs)
    return frame


def links(frame: pd.DataFrame) -> pd.DataFrame:
    """Links of rows that were measured with counters=True: a row for each direction of a link, with the columns of docs/results.md, and
    conf, ranks, collective, algo, size_bytes, type, op, seed and faults of the row that it belongs to. ValueError: no row has any."""
    pd = need("pandas", "python3-pandas")
    keys = [k for k in ("conf", "ranks", "collective", "algo", "size_bytes", "type", "op", "in_place", "seed", "faults") if k in frame]
    found = []
    if "links" in frame:
        for of, measured in zip(frame[keys].to_dict("records"), frame["links"]):
            found += [{**of, **flatten(link)} for link in (measured if isinstance(measured, list) else ())]
    if not found:
        raise ValueError("found no links, expected rows measured with counters=True (trib sim --counters)")
    return pd.DataFrame(found)
