# SPDX-License-Identifier: BSD-3-Clause
"""trib-nccl: options, and the table of NCCL beside trib sim and theory."""

from __future__ import annotations

import getopt
import json
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
from typing import Any, Mapping, Optional, Sequence

from .. import _sizes
from .._cli import HELP, Command, Option, Refused, clean
from .._files import write_whole
from .._input import text_of
from .._trib import said, trib
from . import launch
from .needs import Found, Missing, find

COMMAND = Command(
    "trib-nccl",
    "run stock NCCL on an emulated fabric, beside trib sim and theory",
    "[OPTION...] CONF [-- PROGRAM [ARG...]]",
    """\
Brings the fabric of CONF up, places a rank on each host, and times all-reduces of NCCL by the fabric's clock: its own ring by its
InfiniBand transport, and SHARP, by a plug-in for CollNet, in the emulated switches. A table has them beside trib sim and theory.

It needs a GPU, which all ranks may share, and libnccl.so.2; what is missing is said. With PROGRAM each rank runs that instead,
with RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT as of torchrun and with the variables that NCCL needs.""",
    (
        Option("ranks", "g", "N", "", "number of ranks, a host each (default: all hosts)"),
        Option("algo", "", "LIST", "ring sharp ring,sharp sharp,ring", "algorithms (default: ring,sharp; with PROGRAM what NCCL chooses)"),
        Option("minbytes", "b", "SIZE", "", "smallest size, such as 64K (default: 64K)"),
        Option("maxbytes", "e", "SIZE", "", "largest size (default: 64M)"),
        Option("stepfactor", "f", "F", "", "each size is so many times the one before (default: 4)"),
        Option("iters", "n", "N", "", "operations of each size; the table has their median (default: 5)"),
        Option("warmup_iters", "w", "N", "", "operations before them (default: 2)"),
        Option("dilation", "", "N", "", "how much slower than wall time the fabric's is; NCCL's own time on CPU and GPU counts that much less (default: 1000)"),
        Option("plugin", "", "FILE", "", "the plug-in with CollNet (default: Tributary's)"),
        Option("nccl", "", "FILE", "", "the library (default: PyTorch's, or the loader's)"),
        Option("timeout", "", "SECONDS", "", "of wall time for all operations of an algorithm (default: 300)"),
        Option("json", "J", "FILE", "", "write all measured times too"),
        *HELP,
    ),
    (("0", "all sums are right"), ("1", "some are not, or it cannot be done; the reason is on stderr"), ("2", "the command line is wrong")),
    "trib(1), trib-sim(1), trib-perf(1)",
)

SIMULATED = {"sim_us": "time_us", "predicted_us": "predicted_us"}  # names of ours, and of trib sim


def size_of(given: Mapping[str, str], name: str, default: str) -> int:
    text = given.get(name, default)
    try:
        size = _sizes.size_bytes(text)
    except ValueError:
        size = 0
    if size % 4 or not 4 <= size <= 1 << 33:
        raise getopt.GetoptError(f"--{name}: found '{clean(text)}', expected a size of whole floats from 4 to 8G, such as 64K")
    return size


def number_of(given: Mapping[str, str], name: str, default: int, least: int = 1) -> int:
    text = given.get(name, str(default))
    if not re.fullmatch(r"\d{1,6}", text) or int(text) < least:
        raise getopt.GetoptError(f"--{name}: found '{clean(text)}', expected a whole number, {least} or more")
    return int(text)


def sizes_of(given: Mapping[str, str]) -> list[int]:
    size, most, factor = size_of(given, "minbytes", "64K"), size_of(given, "maxbytes", "64M"), number_of(given, "stepfactor", 4, 2)
    if size > most:
        raise getopt.GetoptError(f"-b: found {size} bytes, expected no more than the {most} of -e")
    return _sizes.sizes(size, most, factor)


def hosts_by_rank(text: str) -> list[str]:
    """Of the lines that trib sim prints: "# Ranks on hosts: 0:h0 1:h1", and those that go on with it."""
    hosts: list[str] = []
    for line in text.splitlines():
        words = line.removeprefix("# Ranks on hosts:").split()
        pairs = [re.fullmatch(r"(\d+):(.+)", w) for w in words if w != "#"]
        if pairs and all(pairs) and (hosts or line.startswith("# Ranks on hosts:")):
            hosts += [m[2] for m in pairs if m]
        elif hosts:
            break
    return hosts


def simulated(
    conf: str, given: Mapping[str, str], algos: Sequence[str], sizes: Sequence[int], factor: int
) -> tuple[list[str], dict[tuple[str, int], dict[str, Any]]]:
    """Hosts by rank, and the rows of trib sim by algorithm and size. Refused: it refuses."""
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "sim.json")
        words = [str(trib()), "sim", conf, "all_reduce", "--algo", ",".join(algos), "-n", "1", "-w", "0", "-J", file]
        words += ["-b", str(sizes[0]), "-e", str(sizes[-1]), "-f", str(factor)] + (["-g", given["ranks"]] if "ranks" in given else [])
        ran = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
        if ran.returncode:
            raise Refused(said(ran.stderr).removeprefix("trib: "))
        result = json.loads(text_of(file))
    rows = {(row["algo"], row["size_bytes"]): row for row in result["results"] if not row["in_place"]}
    hosts = hosts_by_rank(ran.stdout)
    if len(hosts) != result["ranks"]:
        raise Refused(f"trib sim: found {len(hosts)} ranks on hosts, expected {result['ranks']}")
    return hosts, rows


def one_each(hosts: Sequence[str]) -> None:
    if len(set(hosts)) < len(hosts):
        raise Refused(f"found {len(hosts)} ranks on {len(set(hosts))} hosts, expected a host for each; -g takes fewer")


def merge(said: Sequence[Sequence[Mapping[str, Any]]], sizes: Sequence[int], n: int) -> dict[int, dict[str, Any]]:
    """By size: times in us, from the last rank's start to the last one's end, and wrong elements. Refused: a rank has said too little."""
    found: dict[int, dict[str, Any]] = {size: {"times_us": [], "wrong": 0} for size in sizes}
    for size in sizes:
        for at in range(n):
            lines = [line for rank in said for line in rank if line.get("size") == size and line.get("at") == at]
            if len(lines) != len(said):
                raise Refused(f"operation {at} of {size} bytes: found the times of {len(lines)} ranks, expected {len(said)}")
            found[size]["times_us"].append(1e6 * (max(line["end"] for line in lines) - max(line["begin"] for line in lines)))
            found[size]["wrong"] += sum(line["wrong"] for line in lines)
    return found


def table(algos: Sequence[str], sizes: Sequence[int], nccl: Mapping[str, Mapping[int, Any]], sim: Mapping[tuple[str, int], Any]) -> list[str]:
    both = len(algos) == 2
    head = [("size", 10)] + [(f"NCCL {a}", 12) for a in algos] + ([("speed-up", 9)] if both else []) + [(f"sim {a}", 11) for a in algos]
    head += ([("speed-up", 9), ("theory", 7)] if both else []) + [(f"NCCL/sim {a}", 15) for a in algos] + [("#wrong", 7)]
    lines = ["#" + "".join(f"{name:>{width}}" for name, width in head)[1:]]
    for size in sizes:
        mine = {a: statistics.median(nccl[a][size]["times_us"]) for a in algos}
        its = {a: sim[a, size]["time_us"] for a in algos}
        cells = [str(size)] + [f"{mine[a]:.2f}" for a in algos] + ([f"{mine['ring'] / mine['sharp']:.3f}"] if both else []) + [f"{its[a]:.2f}" for a in algos]
        if both:
            ideal = [sim[a, size]["predicted_us"] for a in ("ring", "sharp")]
            cells += [f"{its['ring'] / its['sharp']:.3f}", f"{ideal[0] / ideal[1]:.3f}" if all(ideal) else "-"]
        cells += [f"{mine[a] / its[a]:.3f}" for a in algos] + [str(sum(nccl[a][size]["wrong"] for a in algos))]
        lines.append("".join(f"{cell:>{width}}" for cell, (_, width) in zip(cells, head)))
    return lines


def compare(conf: str, given: Mapping[str, str], found: Found, algos: Sequence[str]) -> None:
    sizes, n = sizes_of(given), number_of(given, "iters", 5)
    dilation, seconds = number_of(given, "dilation", 1000), number_of(given, "timeout", 300)
    task = {"nccl": found.nccl, "sizes": sizes, "n": n, "warm_up": number_of(given, "warmup_iters", 2, 0)}
    hosts, sim = simulated(conf, given, algos, sizes, number_of(given, "stepfactor", 4, 2))
    one_each(hosts)
    print(f"# trib nccl: NCCL {found.version}, all_reduce of float, sum, {len(hosts)} ranks on {min(len(found.gpus), len(hosts))} x {found.gpus[0]}")
    print(f"# Ranks on hosts: {' '.join(f'{r}:{h}' for r, h in enumerate(hosts))}")
    print(f"# dilation {dilation}, median of {n}, times in us of fabric time; NCCL's own work on GPU and CPU counts 1/{dilation}", flush=True)
    nccl: dict[str, dict[int, Any]] = {}
    with launch.fabric(conf, dilation) as up:
        for algo in algos:
            env = launch.variables(algo, found.plugin, found.version)
            print(f"# {algo}: {' '.join(f'{k}={v}' for k, v in env.items())}", flush=True)
            nccl[algo] = merge(launch.measure(up, hosts, task, env, len(found.gpus), seconds), sizes, n)
    print("\n".join(table(algos, sizes, nccl, sim)))
    wrong = sum(row["wrong"] for a in algos for row in nccl[a].values())
    print(f"# Out of bounds values : {wrong} {'OK' if not wrong else 'FAILED'}")
    if "json" in given:
        about = {"nccl": found.version, "gpus": list(found.gpus), "hosts": hosts, "dilation": dilation}
        rows = [{"algo": a, "size_bytes": s, **nccl[a][s], **{k: sim[a, s][of] for k, of in SIMULATED.items()}} for a in algos for s in sizes]
        write_whole(given["json"], json.dumps({**about, "results": rows}, indent=1) + "\n")
    if wrong:
        raise Refused(f"found {wrong} wrong elements, expected none")


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def run_program(conf: str, given: Mapping[str, str], program: Sequence[str], gpus: int, plugin: Optional[str]) -> None:
    algo = given.get("algo")
    if algo and "," in algo:
        raise getopt.GetoptError(f"--algo: found '{algo}', expected one algorithm with PROGRAM")
    hosts, _ = simulated(conf, given, ["ring"], [4], 2)
    one_each(hosts)
    with launch.fabric(conf, number_of(given, "dilation", 1000)) as up:
        ranks = launch.start(up, hosts, [program] * len(hosts), launch.variables(algo, plugin), gpus, port=free_port())
        status = launch.wait(ranks, number_of(given, "timeout", 300))
    for r, s in enumerate(status):
        if s or s is None:
            raise Refused(f"rank {r} ({hosts[r]}): " + ("had not ended" if s is None else f"exit status {s}" if s > 0 else f"ended by signal {-s}"))


def work(given: dict[str, str], args: list[str], program: list[str]) -> None:
    if len(args) != 1:
        raise getopt.GetoptError(f"found {' '.join(map(clean, args)) or 'no CONF'}, expected: trib nccl CONF [OPTION...] [-- PROGRAM [ARG...]]")
    conf = args[0]
    algo = given.get("algo", "" if program else "ring,sharp")
    sizes_of(given)
    if "ranks" in given:
        number_of(given, "ranks", 2, 2)
    try:
        found = find(given.get("nccl"), given.get("plugin"), not program, "sharp" in algo or bool(program and "plugin" in given))
    except Missing as e:
        raise Refused(str(e).replace("\n", f"\n{COMMAND.name}: ")) from None
    if program:
        run_program(conf, given, program, len(found.gpus), found.plugin)
    else:
        compare(conf, given, found, algo.split(","))


def main(argv: Optional[Sequence[str]] = None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    for number in (signal.SIGTERM, signal.SIGHUP):  # the fabric and the ranks are ended too
        signal.signal(number, lambda n, _: sys.exit(128 + n))
    end = words.index("--") if "--" in words else len(words)
    return COMMAND.run(words[:end], lambda given, args: work(given, args, words[end + 1 :]))
