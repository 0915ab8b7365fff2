# SPDX-License-Identifier: BSD-3-Clause
"""A machine of a fabric, and how trib runs there."""

from __future__ import annotations

import os
import subprocess
from typing import IO, Any, Optional, Union

from .._cli import Refused
from .words import name_of, plain_words


class Machine:
    def __init__(self, line: str, here: str, how: str, trib: str) -> None:
        self.name, self.address, *self.processes = line.split()
        self.here, self.how, self.trib = self.name == here, how, trib

    def start(self, *words: str, out: Union[int, IO[Any]] = subprocess.PIPE, said: Union[int, IO[Any]] = subprocess.STDOUT) -> subprocess.Popen[str]:
        """trib WORDS... on this machine; its output into out, its errors too."""
        env, command = dict(os.environ), [self.trib, *words]
        if not self.here:
            env["TRIB_MACHINE"] = self.name
            env.pop("TRIB_RUN", None)
            script = ("shift; " if "TRIB_MACHINE" in self.how else "") + 'exec %s "$@"' % self.how
            command = ["sh", "-c", script, "sh", self.address, name_of(self.trib), *plain_words(words)]
        return subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=said, start_new_session=True, text=True, errors="replace")

    def run(self, *words: str) -> tuple[int, str]:
        """Exit code and output of trib WORDS..."""
        process = self.start(*words)
        text, _ = process.communicate()
        return process.returncode, text

    def told(self, text: str) -> str:
        """Lines that name the machine."""
        return "\n".join(f"{self.name}: {line}" for line in text.strip().splitlines()) or f"{self.name}: it says nothing"


def machines_of(here: str, how: str, trib: str, plan: str, conf: str) -> list[Machine]:
    said = subprocess.run([plan, "--machines", conf], capture_output=True, text=True)
    if said.returncode:
        raise Refused(said.stderr.strip())
    return [Machine(line, here, how, trib) for line in said.stdout.splitlines()]


def process_of(table: str) -> dict[str, str]:
    """Process by node, as ``trib-plan -v`` prints them."""
    head, *rows = table.split("\nNodes\n", 1)[1].split("\n\n", 1)[0].splitlines()
    at = head.index("process")
    return {row.split()[0]: row[at:].split()[0] for row in rows}


def processes(plan: str, conf: str) -> dict[str, str]:
    return process_of(subprocess.run([plan, "-v", conf], capture_output=True, text=True).stdout)


def ends(link: str, nodes: dict[str, str]) -> Optional[tuple[str, str]]:
    """The two nodes of a link, "a-b" or "a:port-b:port"; None: there is no such pair."""
    bare = "-".join(part.split(":")[0] for part in link.split("-"))
    return next(((a, b) for a in nodes for b in nodes if bare == a + "-" + b), None)


def far_ends(machines: list[Machine], nodes: dict[str, str], link: str) -> list[Machine]:
    """Machines of a link that has no end here; none: it has one, or is no link. nodes: processes()."""
    where = [m for m in machines if any(nodes[n] in m.processes for n in ends(link, nodes) or ())]
    return [] if any(m.here for m in where) else where
