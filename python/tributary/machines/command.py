# SPDX-License-Identifier: BSD-3-Clause
"""trib-machines: what is asked of the machines of a fabric.

usage: trib-machines up HERE HOW TRIB PLAN CONF NAME [ARG...]    on all machines, or on none; ARG...: further options of trib up
       trib-machines status HERE HOW TRIB PLAN CONF NAME [ARG...]              ARG...: options of trib status
       trib-machines link HERE HOW TRIB PLAN CONF NAME LINK                    as the machines of its ends say it
       trib-machines capture HERE HOW TRIB PLAN CONF NAME COMMAND...           COMMAND: see capture/command.py; 3: no LINK of it is elsewhere alone

HERE: the machine that this one is, or nothing. HOW: a command as `trib perf --rsh` has it: it is followed by the machine's address and what
to run there; one that has $TRIB_MACHINE, the machine's name, gets no address. NAME: of the fabric.
"""

from __future__ import annotations

import sys
from typing import Optional, Sequence

from .._cli import ended
from . import links
from .machine import machines_of
from .status import status
from .up import up


def say(what: object) -> None:
    print(f"trib: {what}", file=sys.stderr)


def work(argv: Sequence[str]) -> int:
    what, here, how, trib, plan, conf, name, *args = argv
    machines = machines_of(here, how, trib, plan, conf)
    if what == "up":
        up(machines, conf, name, args)
        return 0
    if what == "status":
        return status(machines, name, args)
    if what == "link":
        return links.state(machines, name, plan, conf, args[0])
    return links.capture(machines, name, plan, conf, args)


def main(argv: Optional[Sequence[str]] = None) -> int:
    words = sys.argv[1:] if argv is None else argv
    if len(words) < 7:
        print((__doc__ or "").strip(), file=sys.stderr)
        return 1
    return ended(say, lambda: work(words), broken_pipe=141)  # who reads has enough, as head
