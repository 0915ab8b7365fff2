# SPDX-License-Identifier: BSD-3-Clause
"""Whether ``trib plan`` takes the conf; if not, by which line of the input."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path
from typing import Callable, Mapping, Sequence

from .._cli import Refused, program
from .._files import write_whole
from .network import Network
from .source import Line

Explain = Callable[[str, str], str]  # two hosts without a path: "" or why, with the input's line
_PATH = re.compile(r'found no path between "([^"]+)" and "([^"]+)"')


def check(lines: Sequence[Line], name: str, names: Mapping[str, str], path: str, explain: Explain) -> None:
    """Refused: ``trib plan`` refuses the conf. names: where the input has each node."""
    with tempfile.TemporaryDirectory(prefix="trib-") as folder:
        conf = Path(folder) / f"{name}.conf"
        write_whole(conf, "\n".join(line.text for line in lines) + "\n")
        done = subprocess.run([program("trib-plan"), str(conf)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
    if done.returncode == 0:
        return
    found = [line for line in done.stderr.splitlines() if line.strip()]
    first = found[0] if found else f"trib-plan ended with exit code {done.returncode}"
    unreached = _PATH.search(first)
    why = explain(unreached.group(1), unreached.group(2)) if unreached else ""
    if not why:
        what = re.sub(r"^(trib-plan: )?(.*?\.conf(:\d+)?: )?", "", first)
        why = f"{_where(first, lines, names) or path}: {what}, as trib plan says of the conf"
    more = len(found) - 1
    raise Refused(why + (f" (and {more} more)" if more > 0 else ""))


def _where(message: str, lines: Sequence[Line], names: Mapping[str, str]) -> str:
    """By the conf's line, or a name in quotes."""
    at = re.search(r"\.conf:(\d+): ", message)
    if at and 1 <= int(at.group(1)) <= len(lines) and lines[int(at.group(1)) - 1].where:
        return lines[int(at.group(1)) - 1].where
    return next((names[n] for n in re.findall(r'"([^"]+)"', message) if n in names), "")


def between_hosts(net: Network) -> Explain:
    """Why two hosts of an InfiniBand fabric have no way up and then down."""

    def explain(a: str, b: str) -> str:
        island: dict[str, int] = {}
        beside: dict[str, list[str]] = {}
        for (x, _), (y, _) in net.links:
            beside.setdefault(x, []).append(y)
            beside.setdefault(y, []).append(x)
        for n, start in enumerate(net.nodes):
            todo = [start] if start not in island else []
            while todo:
                guid = todo.pop()
                if island.setdefault(guid, n) == n:
                    todo += [g for g in beside.get(guid, ()) if g not in island]
        name = {g: n.name for g, n in net.nodes.items()}
        of = {n: island[g] for g, n in name.items()}
        told = net.lines_of_names()
        both = f'"{a}" and "{b}"'
        for x, y, line in net.level_links:
            if x in island and y in island and island[x] != island[y]:
                far = net.nodes[x].level
                return (
                    f'{net.where(line)}: found a link between "{name[x]}" and "{name[y]}", both {far} link{"s"[: far != 1]} from hosts, as the only way between {both}, '
                    "expected a switch above both: routes go up, then down (--without HOST leaves out a host that is on a spine)"
                )
        if of.get(a) != of.get(b):
            return f"{told[b]}: found no links that join {both} (line {told[a].rsplit(':', 1)[1]}), expected one fabric"
        return f"{told[b]}: found {both} (line {told[a].rsplit(':', 1)[1]}) joined only by ways that go down and up again, expected one that goes up, then down"

    return explain
