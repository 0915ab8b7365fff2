# SPDX-License-Identifier: BSD-3-Clause
"""Links of other machines: their state, and captures of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from typing import Any, Optional, Sequence

from .machine import Machine, far_ends, processes

NOT_ELSEWHERE = 3  # exit status: each link has an end here


def state(machines: list[Machine], name: str, plan: str, conf: str, link: str) -> int:
    """LINK all: what each of the other machines says of its own."""
    everywhere = link == "all"
    for m in [m for m in machines if not m.here] if everywhere else far_ends(machines, processes(plan, conf), link):
        rc, text = m.run("link", name, *([] if everywhere else [link]))
        print(m.told(text))
        if rc:
            return rc
    return 0


class FarCapture:
    """`trib capture` on another machine: the pcapng of a link comes by a pipe."""

    def __init__(self, machine: Machine, name: str, link: str, options: Sequence[str]) -> None:
        self.machine, self.said = machine, tempfile.TemporaryFile("w+", errors="replace")
        self.process = machine.start("capture", name, link, "-o", "-", *options, said=self.said)
        assert self.process.stdout
        self.fd = self.process.stdout.fileno()
        self.word = f"@{self.fd}:{machine.name}:{link}"

    def end(self, rc: int) -> None:
        """One that has failed tells why; what others say of themselves, this command says."""
        try:
            if self.process.wait(0.5 if rc else 0) > 0:
                self.said.seek(0)
                print(self.machine.told(self.said.read()), file=sys.stderr)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGTERM)
            self.process.wait()
        self.said.close()


def capture(machines: list[Machine], name: str, plan: str, conf: str, command: Sequence[str]) -> int:
    """COMMAND, with links that have no end here replaced by what machines of their ends capture."""
    program, folder, client, text, out, seconds, *links = command
    options = (["-t", seconds] if seconds else []) + (["--filter", text] if text else [])
    nodes = processes(plan, conf)
    far = [(i, m) for i, link in enumerate(links) for m in far_ends(machines, nodes, link)[:1]]
    if not far:
        return NOT_ELSEWHERE
    captures: list[FarCapture] = []
    child: Optional[subprocess.Popen[bytes]] = None
    rc = 1

    def end(*_: Any) -> None:
        if not child:
            raise KeyboardInterrupt
        child.send_signal(signal.SIGTERM)

    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(sig, end)
    try:
        for i, m in far:
            captures.append(FarCapture(m, name, links[i], options))
            links[i] = captures[-1].word
        child = subprocess.Popen([program, folder, client, text, out, seconds, *links], pass_fds=[c.fd for c in captures])
        rc = child.wait()
    finally:
        for c in captures:
            c.end(rc)
    return rc
