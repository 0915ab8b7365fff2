# SPDX-License-Identifier: BSD-3-Clause
"""One simulation of a sweep: trib sim with its results and its output in the sweep's folder."""

from __future__ import annotations

import os
import subprocess
import tempfile
from typing import IO, Optional

from .._files import discard, new_file
from .._trib import trib
from .files import head_of


def dies_with_us() -> list[str]:
    """A prefix by which a simulation ends with this process, even if that is killed."""
    setpriv = "/usr/bin/setpriv"
    return [setpriv, "--pdeathsig", "TERM"] if os.access(setpriv, os.X_OK) else []


class Simulation:
    """One line, running. threads: of it; None: as it chooses."""

    def __init__(self, text: str, base: str, threads: Optional[int]) -> None:
        conf, *rest = text.split()
        one = [] if threads is None else ["--threads", str(threads)]
        discard(f"{base}.json")
        self.out: IO[bytes] = new_file(f"{base}.out")
        self.out.write(os.fsencode(head_of(text)))
        self.out.flush()
        self.err: IO[bytes] = tempfile.TemporaryFile()
        command = [*dies_with_us(), str(trib()), "sim", conf, *one, *rest, "-J", f"{base}.json"]
        self.child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.err)

    def end(self) -> str:
        """What it wrote to its standard error, which follows in its .out; it has ended."""
        self.err.seek(0)
        stderr = self.err.read()
        self.out.write(stderr)
        self.close()
        return stderr.decode(errors="replace")

    def close(self) -> None:
        self.out.close()
        self.err.close()

    def stop(self) -> None:
        self.child.terminate()
        self.child.wait()
        self.close()
