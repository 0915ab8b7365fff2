# SPDX-License-Identifier: BSD-3-Clause
"""What a rank of trib nccl runs: all-reduces of NCCL, timed by the fabric's clock and checked.

Its only argument is JSON: rank, ranks, gpu, nccl (the library), meet (a file for NCCL's id), sizes, n, warm_up. On standard output it writes
a line of JSON for each operation: size, at (number), begin, end (seconds of fabric time, of one clock for all ranks), wrong (elements); or a
last line with failed, a sentence."""

from __future__ import annotations

import array
import ctypes
import json
import os
import sys
import time
from typing import Any

from .._files import write_whole
from .._input import text_of
from .libraries import ID, Cuda, Failed, Nccl

PERIOD = 61  # of the values: no power of two, so that a piece in another's place is seen


def values(count: int, first: int, step: int) -> bytes:
    """count floats: first, first + step, ... , PERIOD of them again and again. Whole numbers, whose sums are exact."""
    period = array.array("f", [first + step * i for i in range(PERIOD)]).tobytes()
    return (period * (count // PERIOD + 1))[: 4 * count]


def wrong(found: bytes, expected: bytes) -> int:
    if found == expected:
        return 0
    a, b = memoryview(found).cast("I"), memoryview(expected).cast("I")
    return sum(x != y for x, y in zip(a, b))


def own_id(nccl: Nccl, rank: int, meet: str) -> bytes:
    """NCCL's id of the communicator: rank 0 makes it, the others find it in the file."""
    if rank == 0:
        ident = nccl.new_id()
        write_whole(meet, ident.hex())
        return ident
    while not os.path.exists(meet):
        time.sleep(0.01)
    ident = bytes.fromhex(text_of(meet))
    if len(ident) != ID:
        raise Failed(f"{meet}: found {len(ident)} bytes, expected NCCL's id of {ID}")
    return ident


def say(**line: Any) -> None:
    print(json.dumps(line), flush=True)


def measure(task: dict[str, Any]) -> None:
    cuda = Cuda()
    cuda.use(task["gpu"])
    nccl, rank, ranks = Nccl(task["nccl"]), task["rank"], task["ranks"]
    nccl.join(own_id(nccl, rank, task["meet"]), rank, ranks)
    stream, most = cuda.stream(), max(task["sizes"])
    send, recv, host = cuda.allocate(most), cuda.allocate(most), cuda.staging(most)
    for size in task["sizes"]:
        count = size // 4
        expected = values(count, ranks * (ranks - 1) // 2, ranks)
        ctypes.memmove(host, values(count, rank, 1), size)
        cuda.copy(send, host, size, stream)
        for at in range(-task["warm_up"], task["n"]):
            ctypes.memset(host, 0xFF, size)
            cuda.copy(recv, host, size, stream)
            nccl.all_reduce(recv, recv, 1, stream)  # all ranks are here; what it leaves is written over
            cuda.synchronize(stream)
            begin = time.perf_counter()
            nccl.all_reduce(send, recv, count, stream)
            cuda.synchronize(stream)
            end = time.perf_counter()
            if at >= 0:
                cuda.copy(host, recv, size, stream)
                say(size=size, at=at, begin=begin, end=end, wrong=wrong(ctypes.string_at(host, size), expected))
    nccl.leave()


def main(argv: list[str]) -> int:
    try:
        measure(json.loads(argv[1]))
    except Failed as e:
        say(failed=str(e))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
