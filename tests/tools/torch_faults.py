# SPDX-License-Identifier: BSD-3-Clause
"""Jobs of torch_ddp.py: calls that one rank cannot make, and callbacks of futures that call collectives."""
import mmap
import os
import tempfile
import time
import warnings

import torch
import torch.distributed as dist


def expect(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(w) for w in what))


def same(found, expected, what):
    expect(torch.equal(found, expected), what, "found", found, "expected", expected)


def refused(text, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except (RuntimeError, ValueError, TypeError) as e:
        expect(text in str(e), "a refusal with", repr(text), "found", e)
        return
    raise AssertionError(f"not refused: {text}")


# ---- one rank's fault ----

def read_only(values):
    """A tensor in memory that the process may not write."""
    with tempfile.TemporaryFile() as file:
        file.write(values.numpy().tobytes())
        file.flush()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.frombuffer(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ), dtype=values.dtype)


def goes_on():
    t = torch.ones(1000)
    dist.all_reduce(t)
    same(t, torch.full((1000,), float(dist.get_world_size())), "the call behind it")


def all_here(place):
    """Waits for all ranks by the store. A call that differs may end the one before it where a rank has not got its result yet."""
    store = dist.distributed_c10d._get_default_store()
    store.add(f"here/{place}", 1)
    while store.add(f"here/{place}", 0) < dist.get_world_size():
        time.sleep(0.005)


def differ(rank, size):
    """Calls of which one rank makes another one fail at all ranks, with a name of a rank, and those behind them go on."""
    def some(call):
        try:
            call()
        except RuntimeError as e:
            expect("(h" in str(e) and ("E_OP_MISMATCH" in str(e) or "disagrees" in str(e)), "how calls differ, found", e)
            return
        raise AssertionError("calls that differ were taken")

    some(lambda: dist.all_reduce(torch.ones(3 if rank == 1 else 5)))
    goes_on()
    all_here(1)
    some(lambda: dist.all_reduce(torch.ones(4), op=dist.ReduceOp.MAX if rank == 2 else dist.ReduceOp.SUM))
    some(lambda: dist.barrier() if rank == 0 else dist.all_reduce(torch.ones(1)))
    goes_on()
    all_here(2)
    works = [dist.all_reduce(torch.ones(4, dtype=torch.int32 if rank == 3 else torch.float32), async_op=True) for _ in range(3)]
    for w in works:
        some(w.wait)
    goes_on()
    if rank == 0:
        print(f"differ {os.environ['TRIB_ALGO']}: all right", flush=True)


def faulty(rank, size):
    n, wide = 3, torch.ones(3 * size)
    refused("all_reduce: found an output whose elements overlap", dist.all_reduce, torch.ones(1).expand(5))
    goes_on()
    early = [dist.all_reduce(torch.ones(50), async_op=True) for _ in range(5)]
    if rank == 1:
        refused("elements overlap in memory, of size [5] and stride [0]", dist.all_reduce, torch.ones(1).expand(5), async_op=True)
    else:
        late = dist.all_reduce(torch.ones(5), async_op=True)
    behind = torch.ones(7)
    last = dist.all_reduce(behind, async_op=True)
    if rank != 1:
        refused("all_reduce: rank 1: found an output whose elements overlap", late.wait)
        refused("rank 1: found", late.get_future().wait)
    for w in early + [last]:
        w.wait()
    same(behind, torch.full((7,), float(size)), "a call that was under way")
    strange = torch.ones(8).as_strided((2, 3), (1, 1))
    for bad in (2, 0):
        out = strange if rank == bad else torch.zeros(2, 3)
        named = "" if rank == bad else f"rank {bad}: "
        refused(f"reduce_scatter: {named}found an output", dist.reduce_scatter, out, [torch.ones(2, 3) for _ in range(size)])
        out = torch.zeros(n)
        block = wide[1:1 + n] if rank == bad else torch.ones(n)
        refused(f"all_gather: {named}send and receive buffers overlap", dist.all_gather_into_tensor, wide, block)
        # Nobody but a root needs this rank's part, or nobody but this rank its own.
        t = torch.ones(1).expand(n) if rank == bad else torch.ones(n) * rank
        if rank == bad:
            refused("broadcast: found an output", dist.broadcast, t, src=1)
        else:
            dist.broadcast(t, src=1)
            same(t, torch.ones(n), "broadcast past a rank that cannot take it")
        goes_on()
    t = torch.full((n,), float(rank))
    dist.broadcast(read_only(torch.full((n,), 5.0)) if rank == 1 else t, src=1)
    parts = [torch.zeros(n) for _ in range(size)]
    dist.all_gather(parts, read_only(torch.full((n,), float(rank))))
    for r in range(size):
        same(parts[r], torch.full((n,), float(r)), "all_gather of memory that is only read")
    if rank != 1:
        same(t, torch.full((n,), 5.0), "broadcast of memory that is only read")
    t = read_only(torch.ones(n)) if rank == 3 else torch.ones(n)
    refused("all_reduce: " + ("" if rank == 3 else "rank 3: ") + "cannot register 12 bytes at", dist.all_reduce, t)
    goes_on()
    with torch.inference_mode():
        t = torch.ones(4, 4).t()
        dist.all_reduce(t)
    same(t, torch.full((4, 4), float(size)), "a tensor of inference mode")
    goes_on()
    if rank == 0:
        print(f"faulty {os.environ['TRIB_ALGO']}: all right", flush=True)


# ---- callbacks of futures ----

def hooks(rank, size):
    """Every callback calls a collective and waits; ranks hang them on futures before or after the operation has ended."""
    total = size * (size + 1) / 2
    futures = []

    def again(t, depth):
        def call(done):
            t.copy_(done.value()[0])
            t.div_(total / (rank + 1))  # what it was
            work = dist.all_reduce(t, async_op=True)
            if depth:
                return work.get_future().then(again(t, depth - 1)).wait()
            work.wait()
            return [t]
        return call

    for i in range(12):
        t = torch.full((10,), rank + 1.0, dtype=torch.float64)  # of one length: a wrong order would not be seen
        t[3] += i * (rank + 1)
        work = dist.all_reduce(t, async_op=True)
        if (i + rank) % 3 == 0:
            work.wait()
        futures.append((i, work.get_future().then(again(t, i % 3)).then(lambda f: f.value()[0].clone())))
        if rank == i % size:
            time.sleep(0.02)
    for i, f in futures:
        expected = torch.full((10,), total, dtype=torch.float64)
        expected[3] += i * total
        expect(torch.allclose(f.wait(), expected), "callbacks", i, "found", f.value(), "expected", expected)

    def bad(done):
        raise ValueError("of a callback")

    work = dist.all_reduce(torch.ones(3), async_op=True)
    refused("of a callback", work.get_future().then(bad).then(lambda f: f.value()).wait)
    seen = []
    work.get_future().add_done_callback(lambda f: seen.append(f.value()[0][0].item()))
    all_of = torch.futures.collect_all([work.get_future(), dist.all_reduce(torch.ones(3), async_op=True).get_future()])
    all_of.then(lambda f: dist.all_reduce(torch.ones(4))).wait()
    expect(seen == [size], "add_done_callback", seen)
    if rank == 0:
        print(f"hooks {os.environ['TRIB_ALGO']}: all right", flush=True)
