# SPDX-License-Identifier: BSD-3-Clause
"""What the commands of this package have in common: a table of options gives the help, the manual page, completion and parsing; how a command
ends and what it says then; which Python it runs in."""

from __future__ import annotations

import difflib
import getopt
import importlib
import os
import re
import subprocess
import sys
import textwrap
from typing import Callable, NamedTuple, Optional, Sequence

from ._input import WrongFile, shown
from ._trib import trib


class Refused(Exception):
    """Input that cannot be used; the text says what was found, what is expected and where."""


class Option(NamedTuple):
    long: str
    short: str
    value: str  # its name; "": it has none
    names: str  # what the value may be, by blanks; "": not a name
    help: str


class Command(NamedTuple):
    name: str
    purpose: str
    synopsis: str
    description: str  # paragraphs, lines as the help prints them
    options: Sequence[Option]
    status: Sequence[tuple[str, str]]
    see_also: str
    verbatim: str = ""  # the help below the synopsis, where that has lines and examples of its own; without the table of options
    ordered: bool = False  # options end where arguments begin, which may be another program's options

    def say(self, what: object) -> None:
        print(f"{self.name}: {what}", file=sys.stderr)

    def usage(self) -> str:
        if self.verbatim:
            return f"Usage: {self.synopsis}\n{self.verbatim}"
        out = [f"Usage: {self.name} {self.synopsis}", self.description, "", "Options:"]
        for o in self.options:
            lines = textwrap.wrap(_help(o), 68)
            out.append(f"  {_head(o):<28}  {lines[0]}")
            out += [" " * 32 + line for line in lines[1:]]
        return "\n".join([*out, "", "Exit status:", *(f"  {code:<28}  {what}" for code, what in self.status)])

    def man_page(self) -> str:
        first = [f"\\fB{_roff(self.name)}\\fR {_roff(self.synopsis)}"]
        text = _roff(self.description).replace("\n\n", "\n.PP\n")
        if self.verbatim:
            first = [".nf", _roff(self.synopsis.replace("\n" + " " * len("Usage: "), "\n")), ".fi"]
            text = f".nf\n{_roff(self.verbatim)}\n.fi"
        out = [
            f'.TH {self.name.upper()} 1 "" "Tributary {version()}" "Tributary manual"', ".SH NAME", _roff(f"{self.name} - {self.purpose}"),
            ".SH SYNOPSIS", *first, ".SH DESCRIPTION", text, ".SH OPTIONS",
        ]  # fmt: skip
        out += [f".TP\n\\fB{_roff(_head(o).strip())}\\fR\n{_roff(_help(o))}." for o in self.options]
        out += [".SH EXIT STATUS", *(f".TP\n\\fB{code}\\fR\n{_roff(what)}." for code, what in self.status)]
        return "\n".join([*out, ".SH SEE ALSO", _roff(self.see_also)])

    def answered(self, argv: Sequence[str]) -> Optional[str]:
        """What manual pages and completion are made of; None: it is a use of the command."""
        if list(argv[:1]) == ["--help=man"]:
            return self.man_page()
        if list(argv[:1]) == ["--help=complete"]:
            return "\n".join(f"--{o.long}\t{'-' + o.short if o.short else ''}\t{o.value}\t{o.names}\t{o.help}" for o in self.options)
        return None

    def parse(self, argv: Sequence[str]) -> tuple[dict[str, str], list[str]]:
        """Values by long names, and arguments. GetoptError: the command line is wrong."""
        pairs, args = self.pairs(argv)
        return dict(pairs), args

    def pairs(self, argv: Sequence[str]) -> tuple[list[tuple[str, str]], list[str]]:
        """The same where an option may be given several times: (long name, value) each."""
        short = "".join(o.short + (":" if o.value else "") for o in self.options if o.short)
        long = [o.long + ("=" if o.value else "") for o in self.options]
        try:
            found, args = (getopt.getopt if self.ordered else getopt.gnu_getopt)(list(argv), short, long)
        except getopt.GetoptError as e:
            raise self._mistake(e) from None
        given = []
        for word, value in found:
            o = next(o for o in self.options if word in ("--" + o.long, "-" + o.short))
            if o.names and value not in o.names.split():
                raise getopt.GetoptError(f"{word}: found '{clean(value)}', expected one of {', '.join(o.names.split())}")
            given.append((o.long, value))
        return given, args

    def _mistake(self, e: getopt.GetoptError) -> getopt.GetoptError:
        word = ("--" if len(e.opt or "") > 1 else "-") + clean(e.opt or "")
        if "requires argument" in e.msg:
            return getopt.GetoptError(f"found {word} at the end, expected its value")
        near = difflib.get_close_matches(e.opt or "", [o.long for o in self.options], 1) if len(e.opt or "") > 2 else []
        hint = f"; did you mean --{near[0]}?" if near else ""
        return getopt.GetoptError(f"found {word}, expected an option of {self.name}{hint}")

    def run(self, argv: Sequence[str], work: Callable[[dict[str, str], list[str]], Optional[int]]) -> int:
        """The command: its exit status. work does what is not help."""
        return ended(self.say, lambda: self._answer(argv, work))

    def _answer(self, argv: Sequence[str], work: Callable[[dict[str, str], list[str]], Optional[int]]) -> Optional[int]:
        text = self.answered(argv)
        if text is None:
            given, args = self.parse(argv)
            text = self.usage() if "help" in given else f"{self.name} (Tributary) {version()}" if "version" in given else None
            if text is None:
                return work(given, args)
        print(text)
        return 0


def ended(say: Callable[[object], None], work: Callable[[], Optional[int]], broken_pipe: int = 1) -> int:
    """The exit status of a program that does this work: that of work, or of what ended it, which is said. broken_pipe: that of a reader who has
    enough, as head."""
    try:
        code = work()
        sys.stdout.flush()
        return code or 0
    except getopt.GetoptError as e:
        say(e)
        return 2
    except (Refused, WrongFile) as e:
        say(e)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return broken_pipe
    except OSError as e:
        say(f"{shown(e.filename or 'cannot write')}: {e.strerror}")
        try:
            sys.stdout.close()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    except KeyboardInterrupt:
        return 130
    return 1


HELP = (Option("help", "h", "", "", "print this text"), Option("version", "", "", "", "print the version"))


def _head(o: Option) -> str:
    return (f"-{o.short}, " if o.short else "    ") + f"--{o.long}" + (f" {o.value}" if o.value else "")


def _help(o: Option) -> str:
    return o.help + (": " + ", ".join(o.names.split()) if o.names else "")


def _roff(text: str) -> str:
    return re.sub(r"(?m)^([.'])", r"\\&\1", text.replace("\\", "\\e").replace("-", "\\-"))


def clean(text: str, most: int = 60) -> str:
    """What was found, fit for a message or a comment: a line of printable characters."""
    text = "".join(c if c.isprintable() else "?" for c in text)
    return text if len(text) <= most else text[: most - 3] + "..."


def program(name: str) -> str:
    """As ``trib`` finds them: beside it when installed, else in build/."""
    here = trib().parent
    for folder in (os.environ.get("TRIB_BUILD"), str(here), str(here.parent / "build")):
        if folder and os.access(os.path.join(folder, name), os.X_OK):
            return os.path.join(folder, name)
    raise Refused(f"found no program {name} beside {here} or in its build folder; run make first")


def version() -> str:
    run = subprocess.run([program("trib-plan"), "--version"], capture_output=True, text=True)
    if run.returncode:
        raise Refused(run.stderr.strip())
    return run.stdout.split()[-1]


SYSTEM = "/usr/bin/python3"  # for which Debian's pandas and matplotlib are
_MARK = "TRIB_REPORT_PYTHON"


def need_modules(*names: str) -> None:
    """Goes on in the system's Python where this one lacks a module; where both do, who uses it says so."""
    try:
        for name in names:
            importlib.import_module(name)
    except ImportError:
        if os.access(SYSTEM, os.X_OK) and not os.environ.get(_MARK):
            os.execve(SYSTEM, [SYSTEM, *sys.argv], {**os.environ, _MARK: SYSTEM})
