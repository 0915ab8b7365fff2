# SPDX-License-Identifier: BSD-3-Clause
"""What each machine of a fabric says of it."""

from __future__ import annotations

import json
import os
import selectors
import signal
from typing import Any, Sequence

from .machine import Machine


def status(machines: Sequence[Machine], name: str, args: Sequence[str]) -> int:
    if any(a.startswith("--watch") for a in args):
        return watch(machines, name, args)
    if "--json" in args:
        return as_json(machines, name, args)
    worst = 0
    asked = [(m, m.start("status", name, *args)) for m in machines]
    for m, process in asked:
        text, _ = process.communicate()
        print(f"{m.name} ({'this machine' if m.here else m.address}):")
        print("\n".join("  " + line for line in text.splitlines()) or "  it says nothing", flush=True)
        worst = max(worst, int(process.returncode != 0))
    return worst


def as_json(machines: Sequence[Machine], name: str, args: Sequence[str]) -> int:
    """One object: what each machine says, by its name; a text where that is no JSON."""
    asked, said = [(m, m.start("status", name, *args)) for m in machines], {}
    for m, process in asked:
        text, _ = process.communicate()
        try:
            said[m.name] = json.loads(text)
        except ValueError:
            said[m.name] = {"error": text.strip() or "it says nothing"}
    print(json.dumps({"fabric": name, "machines": said}, indent=1))
    return int(any("error" in m for m in said.values()))


class Lines:
    """What a machine says line by line, with its name: before the text, or in each object."""

    def __init__(self, name: str) -> None:
        self.name, self.rest = name, b""

    def marked(self, data: bytes) -> list[str]:
        *lines, self.rest = (self.rest + data).split(b"\n")
        return [self._marked(line.decode(errors="replace")) for line in lines]

    def _marked(self, line: str) -> str:
        return f'{{"machine": "{self.name}", {line[1:].strip()}' if line.startswith("{") else f"{self.name}: {line}".rstrip()


def watch(machines: Sequence[Machine], name: str, args: Sequence[str]) -> int:
    """Lines as they come."""
    asked = [m.start("status", name, *args) for m in machines]
    try:
        with selectors.DefaultSelector() as ready:
            for m, process in zip(machines, asked):
                assert process.stdout
                ready.register(process.stdout, selectors.EVENT_READ, Lines(m.name))
            while ready.get_map():
                for key, _ in ready.select():
                    show(ready, key.fileobj, key.fd, key.data)
    finally:
        for process in asked:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
    return int(any([process.wait() for process in asked]))


def show(ready: selectors.BaseSelector, file: Any, fd: int, lines: Lines) -> None:
    data = os.read(fd, 65536)
    if not data:
        ready.unregister(file)
    for line in lines.marked(data):
        print(line, flush=True)
