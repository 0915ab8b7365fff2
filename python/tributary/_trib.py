# SPDX-License-Identifier: BSD-3-Clause
"""Finds and calls ``trib``; what it refuses becomes an exception with its own words."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional, Sequence, Union

if TYPE_CHECKING:
    import pandas as pd

PathLike = Union[str, "os.PathLike[str]"]


class TribError(RuntimeError):
    """trib refused its input, or failed; the text is what it said.

    command  its words
    code     its exit status; negative: the signal that ended it
    rows     what was measured before, as from ``read()``; None: nothing
    """

    def __init__(
        self, text: str, command: Sequence[str], code: int, rows: Optional[pd.DataFrame] = None
    ) -> None:
        super().__init__(text)
        self.command, self.code, self.rows = list(command), code, rows


def need(module: str, package: str) -> Any:
    """An optional package, or ImportError that says how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as e:
        raise ImportError(
            f"tributary needs {module} here: {e} (Debian: apt-get install {package})"
        ) from None


def trib() -> Path:
    """The script ``trib``: of this checkout or prefix, else on the PATH."""
    here = Path(__file__).resolve()
    places = [here.parents[2] / "scripts" / "trib"]  # a checkout
    if len(here.parents) > 4:
        places.append(here.parents[4] / "bin" / "trib")  # PREFIX/lib/python3/dist-packages/tributary
    for place in places:
        if place.is_file():
            return place
    found = shutil.which("trib")
    if found is None:
        raise FileNotFoundError(
            f"found no trib; looked for {', '.join(map(str, places))} and on the PATH "
            "(make install puts it there)"
        )
    return Path(found).resolve()


def shipped(name: str, folder: str = "") -> Optional[Path]:
    """A conf that comes with trib, by its name; None: there is none."""
    bare = name[5:] if name.startswith("conf/") else name
    for base in ("conf", "share/tributary/conf"):
        for end in ("", ".conf"):
            at = trib().parent.parent / base / folder / (bare + end)
            if bare and at.is_file():
                return at
    return None


def no_such_file(word: str, folder: str = "") -> FileNotFoundError:
    """Why there is no conf, or no fault plan, of this name, and which name was meant perhaps."""
    asked = subprocess.run(
        [str(trib()), "--conf-file", word, folder], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    text = asked.stderr.strip().removeprefix("trib: ")
    return FileNotFoundError(text or f"found no file '{word}', expected a path or the name of one that comes with trib")


def said(stderr: str) -> str:
    """What of trib's standard error says why: not its accounts, hints and empty lines."""
    lines = [
        line
        for line in stderr.splitlines()
        if line.strip() and " simulated in " not in line and " -h shows" not in line
    ]
    return "\n".join(lines[-20:])


def why(code: int, stderr: str) -> str:
    """Why a run that ended with code (as of subprocess) failed."""
    text = said(stderr)
    if code < 0 or code > 128:
        number = -code if code < 0 else code - 128
        return f"ended by signal {number}" + (f"; it said: {text}" if text else "")
    return text or f"exit code {code}, without a word"


def call(command: Sequence[str]) -> tuple[int, str]:
    """Runs a command and returns its exit code and standard error.

    An exception here, as of Ctrl-C, ends it first: a fabric that it started is stopped.
    """
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    try:
        _, stderr = child.communicate()
    except BaseException:
        child.terminate()
        child.communicate()
        raise
    return child.returncode, stderr


def output(words: Sequence[str]) -> str:
    """Standard output of ``trib WORDS``. TribError: it failed."""
    command = [str(trib()), *words]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace"
    )
    if done.returncode != 0:
        raise TribError(why(done.returncode, done.stderr), command, done.returncode)
    return done.stdout
