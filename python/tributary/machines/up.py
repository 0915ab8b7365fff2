# SPDX-License-Identifier: BSD-3-Clause
"""A fabric comes up on all of its machines, or on none."""

from __future__ import annotations

import signal
import tempfile
import time
from typing import Callable, Optional, Sequence

from .._cli import Refused
from .machine import Machine

UP_S, MEET_S = 60, 10  # wall time for a fabric to be up, and for its machines to hear each other


class Start:
    """`trib up` on a machine. Where its launcher ends all that it has started, as Slurm does, it stays there (--wait)."""

    def __init__(self, machine: Machine, conf: str, args: Sequence[str]) -> None:
        self.stays = not machine.here and "srun" in machine.how
        self.machine, self.log = machine, tempfile.TemporaryFile("w+")
        self.process = machine.start("up", conf, "--machine", machine.name, *args, *(["--wait"] if self.stays else []), out=self.log)

    def text(self) -> str:
        self.log.seek(0)
        return self.log.read()

    def is_up(self) -> Optional[bool]:
        """True: it is; None: not yet. Refused: it has failed."""
        rc, text = self.process.poll(), self.text()
        done = f"is up on machine {self.machine.name}:" in text  # a launcher may end well without having started anything
        if rc or (rc == 0 and not done):
            raise Refused(self.machine.told(text))
        return True if done and (rc == 0 or self.stays) else None


def wait_until(what: Callable[[], object], seconds: float, failed: Callable[[], str]) -> None:
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            raise Refused(failed())
        time.sleep(0.1)


def unheard(machine: Machine, code: int, text: str) -> list[str]:
    """What a machine says, in its status, of others that it does not hear, or that have another conf."""
    said = [line.strip() for line in text.splitlines() if line.startswith("  machine ")]
    found = [f"{machine.name}: {line}" for line in said if ": there" not in line and ": this one" not in line]
    return found if said and not code else [*found, machine.told(text)]


def deaf(machines: Sequence[Machine], name: str) -> list[str]:
    found = []
    asked = [(m, m.start("status", name)) for m in machines]
    for m, process in asked:
        text, _ = process.communicate()
        found += unheard(m, process.returncode, text)
    return found


def meet(machines: Sequence[Machine], name: str) -> None:
    end = time.monotonic() + MEET_S
    while found := deaf(machines, name):
        if time.monotonic() > end or any(line.endswith("has another conf") for line in found):
            raise Refused(f"machines do not hear each other: {'; '.join(found)}: is the trunk's UDP port open between them, and is the conf the same on all?")
        time.sleep(0.2)


def up(machines: Sequence[Machine], conf: str, name: str, args: Sequence[str]) -> None:
    starts: list[Start] = []
    try:
        for m in machines:
            starts.append(Start(m, conf, args))
        for s in starts:
            wait_until(s.is_up, UP_S, lambda: f"{s.machine.name}: not up within {UP_S} s: {s.text().strip()}")
        meet(machines, name)
    except (Refused, KeyboardInterrupt):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        take_down(starts, name)
        raise
    print(f"fabric {name} is up on machines {', '.join(m.name for m in machines)}")


def take_down(starts: Sequence[Start], name: str) -> None:
    """What this command has started; a fabric that was up before it stays."""
    for s in starts:
        if is_mine(s):
            s.machine.run("down", name)


def is_mine(s: Start) -> bool:
    try:
        wait_until(lambda: s.process.poll() is not None or s.is_up(), UP_S, lambda: "")
    except Refused:
        return False
    return s.stays or s.process.returncode == 0
