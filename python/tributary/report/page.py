# SPDX-License-Identifier: BSD-3-Clause
"""What is on the page of a report, from files of results and time lines."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Mapping, Sequence

from .. import _plot_timeline, _secret, plot, results
from .._files import write_whole
from .._input import WrongFile, json_of, shown, whole
from .._sizes import size_text
from .._trib import PathLike, TribError, need, output, trib
from . import figures, parts
from .html import figure, number, page, pre, section, table, text

if TYPE_CHECKING:
    import pandas as pd

EXPECTED = "a file of trib's -J or --timeline"
LINKS = 12  # of the busiest, in a table


def _load(path: PathLike) -> dict[str, Any]:
    """A file that trib wrote. ValueError: it is none."""
    found = json_of(path, EXPECTED)
    for key in ("run", "virtual"):
        if not isinstance(found.get(key, {}), (dict, type(None))):
            raise WrongFile(f"{shown(os.fspath(path))}: {key}: found {shown(found[key])[:40]}, expected an object")
    return found


def _known(value: Any) -> Any:
    """The value; None where pandas has none."""
    return None if value is None or (not isinstance(value, (list, dict)) and need("pandas", "python3-pandas").isna(value)) else value


def _kind(found: Mapping[str, Any]) -> str:
    if isinstance(found.get("otherData"), dict):
        return "timeline"
    if isinstance(found.get("results"), list):
        return "rows"
    return "other" if any(isinstance(found.get(k), list) for k in ("jobs", "collectives")) else ""


class Report:
    """Sections in their order. Figures count, since ids on a page are unique."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.body: list[str] = []
        self.figures = 0

    def add(self, title: str, body: str) -> None:
        if body:
            title = f"{title} ({len(self.parts)})" if title in self.parts else title
            self.parts.append(title)
            self.body.append(section(title, body))

    def draw(self, make: Any, label: str) -> str:
        self.figures += 1
        return figure(figures.drawn(make, f"f{self.figures}", label), label)


# ---- rows of collectives --------------------------------------------------------------------------------


def _named(frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Files that have the same points are told apart by their names; those of a sweep, which differ in what they ran, are not."""
    points: dict[tuple[Any, ...], set[int]] = {}
    keys = [k for k in (*plot.BY, "size_bytes", "root", "seed") if k in frame]
    for point, run in zip(plot.prepared(frame)[keys].astype(str).itertuples(index=False), frame["run"]):
        points.setdefault(tuple(point), set()).add(run)
    alike = {run for runs in points.values() if len(runs) > 1 for run in runs}
    if alike:
        frame["conf"] = [f"{c}, {names[r]}" if r in alike else c for c, r in zip(frame["conf"], frame["run"])]
    return frame


def _panels(frame: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """What is in one figure: a collective, out of place where it ran so. The table has the rows of both places."""
    found = []
    for collective, rows in frame.groupby("collective", sort=False):
        out = rows[~rows["in_place"].astype(bool)]
        where = "" if len(out) else ", in place"
        found.append((str(collective).replace("_", " ") + where, (out if len(out) else rows).reset_index(drop=True)))
    return found


def _bandwidth(report: Report, frame: pd.DataFrame) -> None:
    fast = frame[frame["busbw_GBps"] > 0]
    if not len(fast):
        return
    panels = _panels(fast)
    differ = {n for _, rows in panels for n in plot.look_of(rows).by}
    look = plot.look_of(fast, [n for n in plot.BY if n in differ])  # an algorithm has one colour on the page
    body = ""
    for what, rows in panels:
        body += report.draw(lambda rows=rows: plot.busbw(rows, look=look), f"Bus bandwidth of {what} by size, GB/s of fabric time")
        body += report.draw(lambda rows=rows: plot.time(rows, model=True, look=look), f"Time of {what} by size, µs of fabric time; grey: predicted")
    report.add("Bandwidth and time", body)
    body = ""
    for what, rows in panels:
        algos = list(dict.fromkeys(plot.prepared(rows)["algo"]))
        base = next((a for a in algos if len(algos) > 1 and len(plot.speedups(rows, a))), None)
        if base is not None:
            body += report.draw(lambda rows=rows, base=base: plot.speedup(rows, base, look=look), f"How many times as fast as {base}, {what}")
    report.add("Speed-up", body)


def _fidelity_text(row: Mapping[str, Any]) -> str:
    return "ok" if row.get("fidelity.ok") in (None, True) else f"lag, needs dilation {number(row.get('fidelity.dilation_needed'))}"


def _all_rows(report: Report, frame: pd.DataFrame) -> None:
    rows = []
    for r in ({k: _known(v) for k, v in row.items()} for row in frame.to_dict("records")):
        predicted = r.get("predicted_us")
        spread = "" if r.get("min_us") is None else f"{number(r['min_us'])} to {number(r['p99_us'])}"
        rows.append((
            str(r["conf"]), str(r["collective"]), str(r.get("asked") or r["algo"]), size_text(float(r["size_bytes"])), str(r["type"]),
            str(r.get("op") or ""), "in" if r["in_place"] else "out", float(r["time_us"]), spread, float(r["algbw_GBps"]), float(r["busbw_GBps"]),
            float(r["time_us"]) / float(predicted) if predicted else None, "" if r.get("wrong") is None else str(r["wrong"]), _fidelity_text(r),
        ))  # fmt: skip
    heads = ("conf", "collective", "algorithm", "size", "type", "op", "place", "time (µs)", "min to p99 (µs)", "algbw (GB/s)", "busbw (GB/s)", "time/model", "wrong elements", "fidelity")
    report.add("All rows", table(f"{len(rows)} rows; times are of fabric time", heads, rows, numbers_from=7))


def _conf_text(run: Mapping[str, Any]) -> str:
    files = _files(run)
    return str(files[0].get("text", "")) if files else ""


def _files(source: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What a file of results has been made with."""
    found = (source.get("run") or {}).get("files")
    return [used for used in found if isinstance(used, dict)] if isinstance(found, list) else []


def _without_secrets(used: Mapping[str, Any]) -> tuple[str, str]:
    """The text and the hash of a file, fit to be published: results of older versions may show a conf's key."""
    said, digest = str(used.get("text", "")), str(used.get("sha256", ""))
    if used.get("secrets") == "hidden" or not _secret.named(said):
        return said, digest
    with tempfile.TemporaryDirectory(prefix="trib-") as folder:
        path = Path(folder) / "shown.conf"
        write_whole(path, said, 0o600)
        try:
            return output(["plan", "--no-secrets", str(path)]), ""
        except TribError:
            return "not shown: it has a secret", ""


def _in_trouble(d: Mapping[str, Any]) -> bool:
    """A direction that lost frames, or in which they were marked or held back: no table leaves it out."""
    return any((d["ecn_marks"], d["pauses_sent"], d["pauses_received"], d["paused_us"], *d["drops"].values(), *d["faults"].values()))


def _what_binds(report: Report, frame: pd.DataFrame, sources: Sequence[Mapping[str, Any]]) -> None:
    body = ""
    for i, source in enumerate(sources):
        mine = frame[frame["run"] == i]
        with_links = mine[[isinstance(v, list) for v in mine["links"]]] if "links" in mine else mine[:0]
        for algo, rows in with_links.groupby("algo", sort=False):
            row = rows.sort_values("size_bytes").iloc[-1]
            busiest = sorted(row["links"], key=lambda d: -float(d["utilisation"] or 0))
            name = f"{row['conf']}, {row['collective'].replace('_', ' ')} by {algo}, {size_text(float(row['size_bytes']))}"
            top = busiest[0] if busiest else None
            if top is None:
                continue
            label = f"Utilisation of links, {name}: the busiest is {top['from']} to {top['to']}, {100 * float(top['utilisation'] or 0):.0f} %"
            drawing = figures.fabric(_conf_text(source), row["links"], label)
            body += f"<h3>{text(name)}</h3>\n" + (figure(drawing, label) + figures.legend() if drawing else f'<p class="note">{text(label)}.</p>\n')
            body += table(
                f"The busiest of {len(busiest)} directions of links, and all with drops, pauses or marks, {name}",
                ("from", "to", "used (%)", "bytes", "longest queue (bytes)", "paused (µs)", "ECN marks", "drops"),
                [
                    (d["from"], d["to"], 100 * float(d["utilisation"] or 0), d["link_bytes"], d["queue_peak_bytes"], float(d["paused_us"]), d["ecn_marks"], sum(d["drops"].values()))
                    for n, d in enumerate(busiest)
                    if n < LINKS or _in_trouble(d)
                ],
                numbers_from=2,
            )
        if not len(with_links) and len(mine):
            row = mine.sort_values("size_bytes").iloc[-1]
            if _known(row.get("link_utilisation")) is not None:
                body += (
                    f"<p>{text(row['conf'])}, {text(row['collective'])} by {text(row['algo'])}, {size_text(float(row['size_bytes']))}: the busiest direction of a link carries "
                    f"{number(int(row['link_bytes']))} bytes, and is busy {100 * float(row['link_utilisation']):.1f} % of the time. "
                    "<code>trib sim --counters</code> keeps those of every link.</p>\n"
                )
    report.add("What binds", body)


def _fidelity(report: Report, frame: pd.DataFrame, sources: Sequence[Mapping[str, Any]], names: Sequence[str]) -> None:
    body = ""
    for i, source in enumerate(sources):
        mine = frame[frame["run"] == i]
        lag = int((~mine["fidelity.ok"].astype(bool)).sum()) if "fidelity.ok" in mine else 0
        name = text(names[i])
        if source.get("virtual") is not None:
            body += f"<p>{name}: virtual time, exact: the machine's speed does not show.</p>\n"
        elif lag:
            body += f'<p class="warn">{name}: {lag} of {len(mine)} rows lag: the machine did not keep up, and their times are its own, not the fabric\'s.</p>\n'
        else:
            body += f"<p>{name}: the emulation kept up in all {len(mine)} rows.</p>\n"
        wrong = int(mine["wrong"].fillna(0).sum()) if "wrong" in mine else 0
        if wrong:
            body += f'<p class="warn">{name}: {wrong} elements are wrong.</p>\n'
        if source.get("error"):
            body += f'<p class="warn">{name}: it did not end: {text(source["error"])}</p>\n'
        if source.get("not_measured"):
            body += f'<p class="warn">{name}: {len(source["not_measured"])} rows were not measured.</p>\n'
        fell = sorted({str(v) for v in mine["fell_back"].dropna() if v}) if "fell_back" in mine else []
        for why in fell:
            body += f'<p class="warn">{name}: fell back: {text(why)}</p>\n'
    report.add("Fidelity and failures", body)


def _again(report: Report, sources: Sequence[Mapping[str, Any]], names: Sequence[str]) -> None:
    body = ""
    for source, name in zip(sources, names):
        run: Mapping[str, Any] = source["run"] if isinstance(source.get("run"), dict) else {}
        body += f"<h3>{text(name)}</h3>\n"
        if isinstance(run.get("command"), list):
            body += pre(shlex.join(str(w) for w in run["command"]), f"Command of {name}")
        machine = run.get("machine", {})
        virtual: Mapping[str, Any] = source["virtual"] if isinstance(source.get("virtual"), dict) else {}
        facts = [
            ("Tributary", run.get("version", source.get("version"))), ("commit", run.get("commit")), ("date", run.get("date")),
            ("machine", ", ".join(str(v) for v in machine.values()) if isinstance(machine, dict) else machine), ("seed", virtual.get("seed", source.get("seed"))),
            ("environment", " ".join(f"{k}={v}" for k, v in run.get("environment", {}).items()) if isinstance(run.get("environment"), dict) else None),
        ]  # fmt: skip
        body += "<dl>" + "".join(f"<dt>{text(k)}</dt><dd>{text(v)}</dd>" for k, v in facts if v not in (None, "")) + "</dl>\n"
        for used in _files(source):
            said, digest = _without_secrets(used)
            body += f"<details><summary>{text(used.get('path'))}" + (f", SHA-256 {text(digest[:16])}…" if digest else "") + "</summary>"
            body += pre(said, f"Text of {used.get('path')}, of {name}") + "</details>\n"
    report.add("How to run it again", body)


# ---- the rest ---------------------------------------------------------------------------------------------


def _other(report: Report, found: Mapping[str, Any], name: str) -> str:
    """A training step or jobs; what is neither, lists of objects as tables."""
    if parts.is_step(found):
        return parts.step(found, name, report.draw)
    if parts.is_jobs(found):
        return parts.jobs(found, name, report.draw)
    body = ""
    for key, value in found.items():
        rows = [results.flatten(v) for v in value if isinstance(v, dict)] if isinstance(value, list) else []
        if not rows or key == "links":
            continue
        columns = [k for k in dict.fromkeys(k for r in rows for k in r) if not any(isinstance(r.get(k), list) for r in rows)]
        body += table(f"{key} of {name}", columns, [[r.get(k) if r.get(k) is not None else "" for k in columns] for r in rows])
    return body


def _timeline(report: Report, path: PathLike, name: str) -> None:
    label = f"Time line of an operation, {name}: what ranks do, and the busiest links"
    body = report.draw(lambda: _plot_timeline.timeline(path), label)
    explain = trib().parent / "trib-explain"
    if explain.is_file():
        said = subprocess.run([str(explain), os.fspath(path)], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
        if said.returncode == 0:
            body += pre(said.stdout, f"trib explain {name}")
    report.add(f"Time line: {name}", body)


def _title(frame: pd.DataFrame) -> str:
    def of(column: str, most: int = 3) -> str:
        found = list(dict.fromkeys(str(v).replace("_", " ") if column == "collective" else _swept(str(v)) for v in frame[column]))
        return ", ".join(found[:most]) + (", ..." if len(found) > most else "")

    return f"{of('collective')} on {of('conf')}"


def _swept(conf: str) -> str:
    """The conf that trib-sweep --vary varied, of the name that it gives: CONF,KEY=VALUE,..."""
    base, _, varied = conf.partition(",")
    return base if "=" in varied else conf


def make(paths: Sequence[PathLike], title: str = "") -> str:
    """The page of these files. ValueError: one is no file of trib's; OSError: it cannot be read."""
    loaded = [(path, _load(path)) for path in paths]
    with whole(", ".join(os.fspath(p) for p in paths[:3]), EXPECTED):
        return _page(loaded, title)


def _page(loaded: Sequence[tuple[PathLike, dict[str, Any]]], title: str) -> str:
    report = Report()
    rows: list[PathLike] = []
    for path, found in loaded:
        kind = _kind(found)
        if not kind:
            raise ValueError(f"{shown(os.fspath(path))}: found neither rows nor a time line, expected a file of trib's -J or --timeline")
        if kind == "rows":
            rows.append(path)
    stems = [Path(p).stem for p in rows]
    names = [s if stems.count(s) == 1 else os.fspath(p) for s, p in zip(stems, rows)]
    if rows:
        frame = results.read(rows)
        sources = [found for _, found in loaded if _kind(found) == "rows"]
        if len(frame):
            frame = _named(frame, names)
            title = title or _title(frame)
            _bandwidth(report, frame)
            _what_binds(report, frame, sources)
            _fidelity(report, frame, sources, names)
            _all_rows(report, frame)
        else:
            why = "; ".join(str(s["error"]) for s in sources if s.get("error"))
            report.add("Results", f'<p class="warn">No row was measured{text(": " + why if why else "")}.</p>\n')
    for path, found in loaded:
        name = Path(path).stem
        if _kind(found) == "timeline":
            _timeline(report, path, name)
        elif _kind(found) == "other":
            report.add(f"Results: {name}", _other(report, found, name))
            title = title or parts.title_of(found)
    _again(report, [found for _, found in loaded if _kind(found) != "timeline"], [Path(p).stem for p, found in loaded if _kind(found) != "timeline"])
    return page(title or "Results of Tributary", "".join(report.body), report.parts)


def write(paths: Sequence[PathLike], to: PathLike, title: str = "") -> None:
    """Writes the page to a file, as a whole or not at all."""
    made = make(paths, title)
    write_whole(to, made)
