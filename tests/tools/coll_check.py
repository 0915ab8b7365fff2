#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every call of the Python module tributary.coll, results checked: coll_check.py ADDRESS:PORT RANK SIZE ALGO"""
import array
import sys
import threading

from tributary import coll

TYPES = {"b": "int8", "B": "uint8", "h": "int16", "H": "uint16", "i": "int32", "I": "uint32", "q": "int64", "Q": "uint64", "f": "float32", "d": "float64"}


class Threads:
    """Ranks of one process' threads would meet like this; here one rank alone: an Oob of the program's own."""

    rank, size = 0, 1

    def bcast(self, data, root):
        return data

    def gather(self, data, root):
        return [data]

    def barrier(self):
        pass


class Broken(Threads):
    def gather(self, data, root):
        raise OSError("the launcher is gone")


def expect(condition, what):
    if not condition:
        sys.exit(f"coll_check.py: {what}")


def refused(kind, text, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except kind as e:
        expect(text in str(e), f"expected a refusal with '{text}', found '{e}'")
        return
    sys.exit(f"coll_check.py: not refused: {text}")


def operations(comm, rank, size):
    for code in TYPES:
        v = array.array(code, [rank + i % 3 for i in range(1000)])
        comm.all_reduce(v).wait()
        expect(list(v) == [size * (size - 1) // 2 + size * (i % 3) for i in range(1000)], f"all_reduce of {code}")
    most = array.array("i", [0] * 4)
    comm.all_reduce(memoryview(bytes(array.array("i", [rank] * 4))).cast("i"), most, op="max").wait()
    expect(list(most) == [size - 1] * 4, "all_reduce from memory that is not to be written")
    truth = array.array("h", [rank, 0, 7])
    for op, want in (("land", [0, 0, 1]), ("lor", [1, 0, 1])):
        got = array.array("h", truth)
        comm.all_reduce(got, op=op).wait()
        expect(list(got) == want, op)
    mean = array.array("d", [rank])
    comm.all_reduce(mean, op="avg").wait()
    expect(mean[0] == (size - 1) / 2, "avg")
    half = bytearray(b"\x80\x3f" * 8)  # 1.0 in bfloat16
    comm.all_reduce(half, type="bfloat16").wait()
    expect(bytes(half[:2]) == {2: b"\x00\x40", 4: b"\x80\x40"}[size], "bfloat16")
    one = array.array("i", [rank] * 3)
    comm.broadcast(one, root=1).wait()
    expect(list(one) == [1] * 3, "broadcast")
    many = array.array("i", [0] * size)
    comm.all_gather(array.array("i", [rank]), many).wait()
    expect(list(many) == list(range(size)), "all_gather")
    comm.gather(array.array("i", [-rank]), many if rank == 0 else None).wait()
    expect(rank or list(many) == [-r for r in range(size)], "gather")
    part = array.array("i", [0])
    comm.scatter(array.array("i", range(size)) if rank == 0 else None, part).wait()
    expect(part[0] == rank, "scatter")
    comm.reduce_scatter(array.array("i", [r + rank for r in range(size)]), part).wait()
    expect(part[0] == size * rank + size * (size - 1) // 2, "reduce_scatter")
    comm.reduce(array.array("i", [1]), part if rank == 0 else None).wait()
    expect(rank or part[0] == size, "reduce")
    comm.all_to_all(array.array("i", [10 * rank + r for r in range(size)]), many).wait()
    expect(list(many) == [10 * r + rank for r in range(size)], "all_to_all")
    # Two at once; a thread waits while this one goes on.
    a, b = array.array("q", [1] * 50000), array.array("q", [2] * 50000)
    first, second = comm.all_reduce(a), comm.all_reduce(b)
    thread = threading.Thread(target=second.wait)
    thread.start()
    first.wait(30)
    thread.join()
    expect(a[0] == size and b[49999] == 2 * size and first.test() and first.algo, "two at once")
    comm.barrier().wait()
    expect(coll.time_ps() > 0, "fabric time")
    try:
        import numpy
    except ImportError:
        return
    n = numpy.full((3, 5), rank, dtype=numpy.float16)
    comm.all_reduce(n).wait()
    expect((n == size * (size - 1) / 2).all(), "numpy")


def refusals(comm, size):
    v = array.array("i", [0] * size)
    refused(ValueError, "reduction median, expected one of sum", comm.all_reduce, v, op="median")
    refused(ValueError, "found buffers for 4 and 3 elements", comm.all_reduce, array.array("i", [0] * 4), array.array("i", [0] * 3))
    refused(ValueError, "a buffer is missing", comm.all_to_all, v, None)
    refused(ValueError, f"expected a multiple of {4 * size}: elements of 4 bytes for {size} ranks", comm.all_gather, array.array("i", [0]), array.array("i", [0]))
    refused(TypeError, "4 bytes, expected one of int8", comm.all_reduce, array.array("u", "text"))
    refused(TypeError, "bytes-like", comm.all_reduce, 3)
    refused(BufferError, "not writable", comm.all_reduce, b"1234")
    refused(coll.Error, "broadcast: ", comm.broadcast, v, root=size)


def main(address, rank, size, algo):
    store = coll.Store(address, rank, size)
    with coll.Communicator(store, algo=algo) as comm:
        operations(comm, rank, size)
        refusals(comm, size)
        late = comm.all_reduce(array.array("i", [0])) if rank else None
        refused(TimeoutError, "still runs after 0.05 s", late.wait, 0.05) if late else None
        # A second one, in which rank 0 waits until all have seen that.
        with coll.Communicator(store, algo="ring") as other:
            other.barrier().wait()
            (late or comm.all_reduce(array.array("i", [0]))).wait()
        trees, why = comm.trees()
        expect(comm.error == "" and comm.fell_back == "" and (trees > 0 or why or algo == "ring"), f"{comm.error} {trees} {why}")
        lost = comm.all_reduce(array.array("i", [0])) if rank == 0 else None
    if lost:
        refused(coll.Error, "the communicator was closed", lost.wait)
    refused(coll.Error, "the communicator is closed", comm.barrier)
    store.close()
    with coll.Communicator(Threads(), algo="ring") as alone:
        alone.barrier().wait()
    refused(coll.Error, "the launcher is gone", coll.Communicator, Broken())
    refused(coll.Error, "algo: found 'nonsense'", coll.Communicator, Threads(), algo="nonsense")
    print(f"rank {rank}: all right, {algo}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
