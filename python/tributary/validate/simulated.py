# SPDX-License-Identifier: BSD-3-Clause
"""Times of operations by size, simulated once for each (program, conf, arguments) and kept."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import subprocess
import tempfile
from typing import Optional

from .._cli import Refused
from .._files import write_whole
from .._input import data_of, json_of
from .published import K, M, Series, root

LARGE = 16 * M
SCHEDULES = ("doubling",)  # algorithms that scripts/make_schedule writes


class Sim:
    """Of one program trib-sim."""

    def __init__(self, build: str, quick: bool) -> None:
        self.program, self.quick = os.path.join(build, "trib-sim"), quick
        self.version = hashlib.sha256(data_of(self.program)).hexdigest()
        self.file = os.path.join(build, "validate.json")
        self.kept = self.read()

    def read(self) -> dict[str, float]:
        try:
            return json_of(self.file, "times that validate has kept")
        except (OSError, ValueError):
            return {}

    def time(self, conf: str, s: Series, algo: str, size: int) -> float:
        """us of one operation on the fabric of the text conf"""
        if algo == "nvls_tree":
            # Of a double binary tree over more than two nodes a node's NICs send and receive every byte twice.
            algo, conf = "nvls_sharp", re.sub(r'((?:nic|spine_link) *= \{ rate = )"(\d+)Gb/s"', lambda m: '%s"%dGb/s"' % (m[1], int(m[2]) // 2), conf)
        args: list[str] = [s["collective"], "-g", s["ranks"], "--algo", algo, "-b", str(size), "-e", str(size), "-d", "float",
                "--payload", "none", "--place", "out", "-w", "0"]
        if int(s["ranks"]) > 32 and s["collective"] == "alltoall":
            args += ["--frames", "400000"]
        if algo == "nvls" or algo == "nvls_sharp":
            args.append("--mm-self")
        schedule: Optional[str] = None
        if algo in SCHEDULES:
            p = subprocess.run([str(root() / "scripts" / "make_schedule"), algo, s["ranks"]], capture_output=True, text=True, check=True)
            args[args.index(algo)], schedule = "schedule", p.stdout
        key = hashlib.sha256(json.dumps([self.version, conf, args] + ([schedule] if schedule else [])).encode()).hexdigest()
        if key not in self.kept:
            us = self.run(conf, args, schedule)
            self.kept = {**self.read(), **self.kept, key: us}  # another one may run at the same time
            write_whole(self.file, json.dumps(self.kept))
        return self.kept[key]

    def run(self, conf: str, args: list[str], schedule: Optional[str]) -> float:
        with tempfile.TemporaryDirectory() as tmp:
            path, out = os.path.join(tmp, "fabric.conf"), os.path.join(tmp, "rows.json")
            write_whole(path, conf)
            if schedule:
                made = os.path.join(tmp, "made.sched")
                write_whole(made, schedule)
                args = args + ["--schedule", made]
            p = subprocess.run([self.program, path] + args + ["-J", out], capture_output=True, text=True)
            try:
                r = json_of(out, "results")["results"][0]
                us: float = r["size_bytes"] / r["algbw_GBps"] / 1e3
                return us
            except (OSError, ValueError, KeyError, IndexError, ZeroDivisionError):
                raise Refused("trib-sim %s: %s" % (" ".join(args), (p.stdout + p.stderr).strip()[-400:])) from None

    def sizes(self, ranks: int, least: int, algo: str) -> list[int]:
        top = [16 * M, 128 * M] if self.quick else [16 * M, 64 * M] if ranks > 16 else [16 * M, 64 * M, 256 * M]
        if algo == "rings":  # their steps hide in long blocks only, so a line through shorter ones says nothing of them
            top = [16 * M, 64 * M, 256 * M, 512 * M]
        elif ranks > 32:  # shares of multimem have to be long
            top = [128 * M, 256 * M] if algo == "nvls" else [16 * M, 64 * M] if algo.startswith("nvls_") else [32 * M, 128 * M, 512 * M] if algo == "hier" else [32 * M, 128 * M]
            if least >= 16 * M:
                return top  # a line only
        return [z for z in [1 * K, 32 * K, 256 * K, 1 * M, 4 * M] if z < top[0] and (z >= 4 * M or z * 8 > least)] + top

    def predict(self, conf: str, s: Series, algo: str, size: int) -> float:
        """log-log between simulated sizes up to 16 MiB, a line between longer ones and beyond the last two"""
        if s["most"] <= 64 * K:
            return self.time(conf, s, algo, size)
        z = self.sizes(int(s["ranks"]), s["least"], algo)
        i = len(z) - 1 if size >= z[-1] else max(1, next(i for i, v in enumerate(z) if v >= size))
        a, b = z[i - 1 : i + 1]
        if size <= a and len(z) > 2:
            return self.time(conf, s, algo, a)
        ta, tb = self.time(conf, s, algo, a), self.time(conf, s, algo, b)
        if b > LARGE or len(z) == 2:
            return ta + (tb - ta) * (size - a) / (b - a)
        return math.exp(math.log(ta) + math.log(tb / ta) * math.log(size / a) / math.log(b / a))
