# SPDX-License-Identifier: BSD-3-Clause
"""What trib sim predicts of a series with a conf, at the sizes of its rows."""

from __future__ import annotations

import os
import subprocess
from typing import Mapping, Sequence

from .._cli import Refused, program
from .._files import discard, write_whole
from .._input import json_of
from .._conf_text import Conf
from .paths import HOST_LINKS
from .rows import MIB, Row, Series

MOST_SIMULATED, MOST_EXTENDED = 512 * MIB, 4096 * MIB  # size times ranks; the second where time is no line at the first


def two_hosts(conf: Conf) -> str:
    """Two hosts on one switch with the links of CONF's network: neighbours of a rail or leaf. For messages of two hosts."""
    link = next(k for k in HOST_LINKS if k in conf.body)
    keep = ["%s = %s;" % (k, conf.text[slice(*conf.at[k])]) for k in ("mtu", "costs", "forwarding", "transport", "link_defaults") if k in conf.at]
    host = "{%s }" % conf.group_text(link) if link != "link_defaults" else "{ }"
    return "\n".join(["name = \"two-hosts\";"] + keep + ["single_switch = { hosts = 2; host_link = %s; };" % host]) + "\n"


def bends(times: Mapping[int, float], busy: Mapping[int, float]) -> bool:
    """Is time no line of the size yet? Its slope changes, or links carried more than they could in the time between two sizes: what hid
    behind a step's latency before."""
    a, b, c = sorted(times)[-3:]
    last = max(times[c] - times[b], 1e-9)
    return busy[c] - busy[b] > 1.1 * last or abs(last / (c - b) * (b - a) / max(times[b] - times[a], 1e-9) - 1) > 0.06


class Simulator:
    def __init__(self, work: str) -> None:
        self.work = work
        self.known: dict[object, dict[int, float]] = {}

    def times(self, conf: Conf, s: Series, sizes: tuple[int, int, int]) -> dict[int, float]:
        """{size: us} as trib sim predicts it, to where it is a line; sizes is (first, last, factor)."""
        text = conf.text if s.kind == "time" else two_hosts(conf)
        key = (text, s.collective, s.algo, s.ranks, sizes)
        if key not in self.known:
            times, busy = self.run(text, s, sizes)
            while len(times) > 2 and max(times) < max(r.size for r in s.rows) and max(times) * 2 * s.ranks <= MOST_EXTENDED and bends(times, busy):
                more = self.run(text, s, (max(times) * 2, max(times) * 2, 2))
                times.update(more[0])
                busy.update(more[1])
            self.known[key] = times
        return self.known[key]

    def run(self, text: str, s: Series, sizes: tuple[int, int, int]) -> tuple[dict[int, float], dict[int, float]]:
        path, out = os.path.join(self.work, "fabric.conf"), os.path.join(self.work, "out.json")
        write_whole(path, text)
        discard(out)
        command = [program("trib-sim"), path, s.collective or "", "-g", str(s.ranks), "--algo", s.algo or "", "--payload", "none",
                   "--place", "out", "-w", "0", "-b", str(sizes[0]), "-e", str(sizes[1]), "-f", str(sizes[2]), "-J", out]
        run = subprocess.run(command + (["--mm-self"] if s.algo == "nvls" else []), capture_output=True, text=True, stdin=subprocess.DEVNULL,
                             env={"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", **os.environ})
        rows = []
        if os.path.exists(out):
            rows = json_of(out, "results of trib sim").get("results", [])
        rows = [r for r in rows if r["algo"] == s.algo and r.get("time_us")]
        if run.returncode or not rows:
            why = next((x for x in run.stderr.splitlines() if x.startswith("trib-sim: ") and "simulated in" not in x), None)
            raise Refused("trib sim cannot predict %s of %d ranks by %s on CONF: %s" % (
                s.collective, s.ranks, s.algo, (why or "exit status %d" % run.returncode).replace(path, "CONF")))
        return {r["size_bytes"]: r["time_us"] for r in rows}, {r["size_bytes"]: r["time_us"] * r.get("link_utilisation", 0) for r in rows}


def simulated_sizes(s: Series, rows: Sequence[Row]) -> tuple[int, int, int]:
    """Sizes between those of the rows, most often those themselves, not so large that it takes long."""
    low, high = min(r.size for r in rows), max(r.size for r in rows)
    most = max(MOST_SIMULATED // s.ranks, 16 * MIB)
    if high > most:
        high = most
        low = min(low, high // 16)
    if s.kind == "rate" or low == high:
        low, high = (max(high, MIB), max(high, MIB) * 16) if s.kind == "rate" else (max(low // 2, 1024), high)
    low, high = max(low, 4 * s.ranks), max(high, 16 * s.ranks)
    return low, high, 2 if high < low * 512 else 4


def between(times: Mapping[int, float], size: int) -> float:
    """Linear between the simulated sizes, and beyond them."""
    known = sorted(times)
    k = next((i for i in range(1, len(known) - 1) if size <= known[i]), len(known) - 1)
    a, b = known[k - 1], known[k]
    return times[a] + (times[b] - times[a]) * (size - a) / (b - a)


def predicted(s: Series, times: Mapping[int, float], rows: Sequence[Row]) -> list[float]:
    if s.kind == "rate":
        known = sorted(times)
        per_byte = (times[known[-1]] - times[known[-2]]) / (known[-1] - known[-2])
        return [r.size * per_byte for r in rows]
    return [between(times, r.size) for r in rows]
