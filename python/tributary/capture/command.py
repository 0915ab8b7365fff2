# SPDX-License-Identifier: BSD-3-Clause
"""trib-capture: begins, follows and stops a capture. usage: trib-capture DIR CLIENT FILTER OUT SECONDS LINK...; CLIENT: trib-telemetry. A link of
another machine is @FD:MACHINE:LINK: what this command writes there to standard output comes through descriptor FD."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from typing import Any, Callable, Iterator, Optional, Sequence, Union

from .._cli import Refused, ended
from .._files import discard
from . import pcapng
from .fabric import Fabric
from .links import FAR_BEGINS_S, FarLink, Link
from .merge import Merge
from .output import is_gone, open_output, write

EVERY_S = 0.1
FAR_ENDS_S = 5  # wall time for other machines to end after SECONDS

Links = Sequence[Union[Link, FarLink]]


def say(what: object) -> None:
    print(f"trib capture: {what}", file=sys.stderr)


def follow(fabric: Fabric, links: Links, out: int, until: float, stopped: Callable[[], bool]) -> int:
    """Writes frames as they come. Returns how many."""
    near, far = [k for k in links if isinstance(k, Link)], [k for k in links if isinstance(k, FarLink)]
    n, merge = 0, Merge(bool(far))
    while True:
        now = time.monotonic()
        last = stopped() or is_gone(out) or (now >= until and (now >= until + FAR_ENDS_S or all(link.ended for link in far)))
        for link in near:
            if not fabric.flush(link):
                last = True  # the fabric is down: what there is, is there
        fresh = [frame for link in links for frame in link.frames()]
        last = last or (not near and all(link.ended for link in far))
        frames = merge.round(fresh, last)
        write(out, b"".join(pcapng.packet(*frame) for frame in frames))
        n += len(frames)
        if last:
            return n
        time.sleep(EVERY_S if now >= until else min(EVERY_S, until - now))


def begin_all(fabric: Fabric, links: Links, text: str) -> Iterator[Link]:
    """Those of other machines first, since these take longer. Yields each that this process has to stop."""
    until = time.monotonic() + FAR_BEGINS_S
    for link in links:
        if isinstance(link, FarLink):
            link.begin(until)
    for link in links:
        if isinstance(link, Link):
            fabric.begin(link, text)
            yield link


def on_signals(handler: Callable[[int, Any], Any]) -> None:
    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(sig, handler)


def follow_into(fabric: Fabric, links: Links, to: str, seconds: str) -> None:
    """Until SECONDS have passed, or a signal."""
    stops: list[int] = []
    on_signals(lambda number, _: stops.append(number))
    out = 1 if to == "-" else open_output(to)
    place, span = "standard output" if to == "-" else to, f" for {seconds} s" if seconds else ""
    print(f"capturing {', '.join(k.told() for k in links)} into {place}{span}; Ctrl-C ends it", file=sys.stderr, flush=True)
    write(out, pcapng.heads(link.name for link in links))
    until = time.monotonic() + float(seconds) if seconds else float("inf")
    n = follow(fabric, links, out, until, lambda: bool(stops))
    if to != "-":
        os.close(out)
    print(f"{n} frames in {to}", file=sys.stderr)


def capture(fabric: Fabric, text: str, to: str, seconds: str, names: Sequence[str]) -> None:
    begun: list[Link] = []
    on_signals(lambda number, _: sys.exit(128 + number))
    with tempfile.TemporaryDirectory(prefix="trib-capture.") as parts:
        # The processes of a service cannot write here: theirs are in its run directory.
        owner = os.stat(fabric.folder).st_uid
        where = parts if owner == os.geteuid() else fabric.folder
        links: list[Union[Link, FarLink]] = [FarLink(name, i) if name.startswith("@") else Link(name, i, where, owner) for i, name in enumerate(names)]
        try:
            for link in begin_all(fabric, links, text):
                begun.append(link)
            follow_into(fabric, links, to, seconds)
        finally:
            for link in begun:
                try:
                    fabric.stop(link)
                except Refused:
                    pass
                if where == fabric.folder:
                    discard(link.path)


def main(argv: Optional[Sequence[str]] = None) -> int:
    folder, client, text, to, seconds, *names = sys.argv[1:] if argv is None else argv

    def work() -> None:
        try:
            capture(Fabric(client, folder), text, to, seconds, names)
        except BrokenPipeError:
            raise
        except OSError as e:
            raise Refused(f"{e.filename or to}: {e.strerror}") from None

    return ended(say, work, broken_pipe=0)  # who looks has seen enough
