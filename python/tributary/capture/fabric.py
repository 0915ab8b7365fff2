# SPDX-License-Identifier: BSD-3-Clause
"""What a fabric's switch processes are asked for: that they capture a link, and that they write what they have."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any, Mapping, NamedTuple, Optional

from .._cli import Refused
from .links import Link


def said_of(stdout: str, stderr: str) -> Optional[Mapping[str, Any]]:
    """What the process of the link says, of the answers of all. Refused: an error; None: no process does this."""
    try:
        answers = list(json.loads(stdout).values())
    except ValueError:
        raise Refused(f"the fabric does not answer: {stderr.strip() or 'no answer'}") from None
    objects = [a for a in answers if isinstance(a, dict)]
    for a in objects:
        if "error" in a:
            raise Refused(a["error"])
    said = [a for a in objects if "elsewhere" not in a]
    if not said and stderr.strip():
        raise Refused(stderr.strip().splitlines()[-1].partition(": ")[2])
    return said[0] if said else None


class Fabric(NamedTuple):
    client: str  # trib-telemetry
    folder: str  # its run directory

    def ask(self, command: str) -> Optional[Mapping[str, Any]]:
        done = subprocess.run([self.client, self.folder, command], capture_output=True, text=True, errors="replace")
        return said_of(done.stdout, done.stderr)

    def begin(self, link: Link, text: str) -> None:
        """text: a filter; "": none."""
        me = os.getpid()
        command = f"/trib/capture/start,{link.name},{me},{link.path}"
        if text:
            command = f"/trib/capture/filtered,{link.name},{me},{len(text)},{text},{link.path}"
        said = self.ask(command)
        if said is None:
            raise Refused(f"cannot capture {link.name}: no process has an end of it")
        link.name = said.get("capturing", link.name)

    def flush(self, link: Link) -> bool:
        """False: the fabric is down."""
        try:
            self.ask(f"/trib/capture/flush,{link.path}")
        except Refused:
            return False
        return True

    def stop(self, link: Link) -> Optional[Mapping[str, Any]]:
        return self.ask(f"/trib/capture/stop,{link.path}")
