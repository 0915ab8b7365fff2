# SPDX-License-Identifier: BSD-3-Clause
"""A fabric that is up, and programs as ranks on its hosts with what NCCL needs to run on it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any, Iterator, Mapping, Optional, Sequence

from .._cli import Refused
from .._trib import trib, why

ENDING = 10  # seconds that ranks have after a signal


def _plugin_variables(plugin: str, version: str) -> dict[str, str]:
    """NCCL before 2.26 takes no path: it makes a file's name of the word, which the loader finds."""
    word = re.fullmatch(r"libnccl-net-(.+)\.so", os.path.basename(plugin))
    if not version or tuple(map(int, version.split("."))) >= (2, 26) or not word:
        return {"NCCL_NET_PLUGIN": plugin}
    folders = [os.path.dirname(plugin), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    return {"NCCL_NET_PLUGIN": word[1], "LD_LIBRARY_PATH": os.pathsep.join(folders)}


def variables(algo: Optional[str], plugin: Optional[str], version: str = "") -> dict[str, str]:
    """NCCL's, beside those of trib exec: transports of one machine are off, and the algorithm. A user's own win."""
    found = {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"}
    if algo == "ring":
        found.update(NCCL_ALGO="allreduce:Ring", NCCL_NET="IB", NCCL_NET_PLUGIN="none")
    if algo == "sharp":
        found.update(NCCL_ALGO="allreduce:CollNetChain", NCCL_COLLNET_ENABLE="1")
    if plugin and algo != "ring":
        found.update(_plugin_variables(plugin, version), NCCL_COLLNET_ENABLE="1", NCCL_PLUGIN_P2P="ib")
    return {name: os.environ.get(name, value) if name.startswith("NCCL_") else value for name, value in found.items()}


@contextlib.contextmanager
def fabric(conf: str, dilation: int) -> Iterator[str]:
    """The fabric's conf, for trib exec. Refused: it cannot be brought up, as one that is up already."""
    up = subprocess.run([str(trib()), "up", conf, "--dilation", str(dilation)], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    if up.returncode:
        raise Refused(up.stderr.strip().removeprefix("trib: "))
    try:
        yield conf
    finally:
        subprocess.run([str(trib()), "down", conf], stdin=subprocess.DEVNULL, capture_output=True)


def _signal(rank: subprocess.Popen[str], number: int) -> None:
    """To a rank and what it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(rank.pid, number)


def _stop(ranks: Sequence[subprocess.Popen[str]]) -> None:
    for rank in ranks:
        _signal(rank, signal.SIGTERM)
    end = time.monotonic() + ENDING
    for rank in ranks:
        with contextlib.suppress(subprocess.TimeoutExpired):
            rank.wait(max(0.1, end - time.monotonic()))
        _signal(rank, signal.SIGKILL)
        rank.wait()


def start(
    conf: str, hosts: Sequence[str], command: Sequence[Sequence[str]], env: Mapping[str, str], gpus: int,
    to: Optional[Sequence[Any]] = None, port: int = 0,
) -> list[subprocess.Popen[str]]:
    """A rank on each host, by its own command; to: files for standard output and error, else they are this process's."""
    ranks: list[subprocess.Popen[str]] = []
    try:
        for r, host in enumerate(hosts):
            more = {"RANK": str(r), "WORLD_SIZE": str(len(hosts)), "LOCAL_RANK": str(r % gpus), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
            words = [str(trib()), "exec", "--clock", "fabric", conf, host, "--", *command[r]]
            out = {} if to is None else {"stdout": to[2 * r], "stderr": to[2 * r + 1]}
            ranks.append(subprocess.Popen(words, stdin=subprocess.DEVNULL, env={**os.environ, **more, **env}, text=True, start_new_session=True, **out))
    except BaseException:
        _stop(ranks)
        raise
    return ranks


def wait(ranks: Sequence[subprocess.Popen[str]], seconds: float) -> list[Optional[int]]:
    """Exit statuses, None of those that had not ended after so many seconds, or after another had failed. All have ended then."""
    end = time.monotonic() + seconds
    try:
        while any(r.poll() is None for r in ranks) and time.monotonic() < end and not any(r.poll() for r in ranks):
            time.sleep(0.02)
        if any(r.poll() for r in ranks):
            time.sleep(1)  # others say what they saw of it
        status = [r.poll() for r in ranks]
    finally:
        _stop(ranks)
    return status


def _heard(hosts: Sequence[str], status: Sequence[Optional[int]], outs: Sequence[str], errs: Sequence[str], seconds: float) -> list[list[dict[str, Any]]]:
    said, errors = [], []
    for r, out in enumerate(outs):
        said.append([json.loads(line) for line in out.splitlines() if line.startswith("{") and line.endswith("}")])
        failed = [line["failed"] for line in said[r] if "failed" in line]
        heard = "".join(line for line in errs[r].splitlines(True) if not line.startswith("trib: the clock of "))
        text = failed[0] if failed else why(status[r] or 0, heard) if status[r] else ""
        errors += [f"rank {r} ({hosts[r]}): {text}"] if text else []
    if errors:
        raise Refused("\n".join(errors))
    silent = [str(r) for r, s in enumerate(status) if s is None]
    if silent:
        raise Refused(
            f"ranks {', '.join(silent)} of {len(hosts)} had not ended after {seconds:.0f} s; --timeout gives them longer, "
            "NCCL_DEBUG=INFO says what they wait for"
        )
    return said


def measure(conf: str, hosts: Sequence[str], task: Mapping[str, Any], env: Mapping[str, str], gpus: int, seconds: float) -> list[list[dict[str, Any]]]:
    """Lines that each rank has said. Refused: one has failed; in its own words, or NCCL's."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    paths = {"PYTHONPATH": os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])}
    to = [tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") for _ in range(2 * len(hosts))]
    folder = tempfile.TemporaryDirectory()
    try:
        tasks = [{**task, "rank": r, "ranks": len(hosts), "gpu": r % gpus, "meet": os.path.join(folder.name, "id")} for r in range(len(hosts))]
        commands = [[sys.executable, "-m", "tributary.nccl.rank", json.dumps(t)] for t in tasks]
        status = wait(start(conf, hosts, commands, {**env, **paths}, gpus, to), seconds)
        for f in to:
            f.seek(0)
        return _heard(hosts, status, [f.read() for f in to[::2]], [f.read() for f in to[1::2]], seconds)
    finally:
        for f in to:
            f.close()
        folder.cleanup()
