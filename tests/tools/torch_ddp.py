#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""torch.distributed on the backend "trib", as programs use it. One process imports torch and forks the ranks of each job
behind it, since an import takes seconds; a rank is a host of the fabric by its TRIB_HOST.

    trib exec h0 -- torch_ddp.py h0,h1,h2,h3 JOB ALGO [JOB ALGO ...]

calls   every collective, type and reduction, results checked; refusals
ddp     a small transformer by DistributedDataParallel: prints losses and a digest of the weights
zero    the same with ZeroRedundancyOptimizer
psgd    by DDP with PowerSGD, whose hook calls collectives in callbacks of futures
hooks   callbacks of callbacks, whose ranks are out of step
differ  calls that differ between ranks: they fail everywhere, and the group goes on
faulty  calls that one rank cannot make: they fail where they must, and the group goes on
fsdp    by FullyShardedDataParallel, fsdp2 by fully_shard: PyTorch 2
time    all-reduce of sizes in fabric time
die     rank 2 is killed in a backward pass; all others must see an error within 10 s; die_psgd: with PowerSGD
"""
import datetime
import functools
import hashlib
import os
import signal
import socket
import sys
import tempfile
import time
import traceback

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

if not torch.__version__.startswith("1."):
    import torch._dynamo  # optimizers import it, in every rank

import tributary.torch
from torch_faults import differ, expect, faulty, hooks, refused, same
from tributary import coll

STEPS, BATCH, WORDS, LENGTH, WIDTH = 4, 4, 64, 16, 64


# ---- every call ----

def value(rank, n, dtype, at=0):
    v = (torch.arange(n) + rank + at) % 4 + 1
    return (v % 2).bool() if dtype == torch.bool else v.to(dtype)


REDUCE = {
    "SUM": lambda a, b: a + b, "PRODUCT": lambda a, b: a * b,
    "MIN": torch.minimum, "MAX": torch.maximum,
    "BAND": torch.bitwise_and, "BOR": torch.bitwise_or, "BXOR": torch.bitwise_xor,
}
FLOATS = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
INTS = [torch.int64, torch.int32, torch.int16, torch.uint8, torch.int8, torch.bool]


def reduced(op, size, n, dtype, at=0):
    if dtype == torch.bool and op in ("SUM", "PRODUCT"):
        op = {"SUM": "BOR", "PRODUCT": "BAND"}[op]
    if op == "AVG":
        return (reduced("SUM", size, n, torch.float64, at) / size).to(dtype)
    if dtype in (torch.bfloat16, torch.float16):
        return reduced(op, size, n, torch.float64, at).to(dtype)
    out = value(0, n, dtype, at)
    for r in range(1, size):
        out = REDUCE[op](out, value(r, n, dtype, at))
    return out


def reductions(rank, size):
    for dtype in FLOATS + INTS:
        for op in ["SUM", "MIN", "MAX", "PRODUCT"] + (["AVG"] if dtype in FLOATS else ["BAND", "BOR", "BXOR"]):
            if op == "PRODUCT" and dtype not in (torch.float64, torch.int64, torch.bool):
                continue
            t = value(rank, 77, dtype)
            dist.all_reduce(t, op=getattr(dist.ReduceOp, op))
            same(t, reduced(op, size, 77, dtype), f"all_reduce {op} {dtype}")
    for dtype in (torch.float32, torch.bool):
        t = value(rank, 9, dtype)
        dist.reduce(t, dst=1, op=dist.ReduceOp.MAX)
        if rank == 1:
            same(t, reduced("MAX", size, 9, dtype), "reduce")
    out = torch.zeros(5, 2)
    dist.reduce_scatter(out, [value(rank, 10, torch.float32, r).view(5, 2) for r in range(size)])
    same(out, reduced("SUM", size, 10, torch.float32, rank).view(5, 2), "reduce_scatter")
    tensor_form = getattr(dist, "reduce_scatter_tensor")
    tensor_form(out.view(-1), torch.cat([value(rank, 10, torch.float32, r) for r in range(size)]), op=dist.ReduceOp.AVG)
    same(out.view(-1), reduced("AVG", size, 10, torch.float32, rank), "reduce_scatter_tensor")
    z = torch.complex(value(rank, 3, torch.float32), value(rank, 3, torch.float32))
    dist.all_reduce(z)
    same(torch.view_as_real(z)[:, 0], reduced("SUM", size, 3, torch.float32), "all_reduce of complex")


def movements(rank, size):
    for dtype in FLOATS + INTS + [torch.complex64]:
        t = value(rank, 33, dtype)
        dist.broadcast(t, src=2 % size)
        same(t, value(2 % size, 33, dtype), f"broadcast {dtype}")
        parts = [torch.zeros(33, dtype=dtype) for _ in range(size)]
        dist.all_gather(parts, value(rank, 33, dtype))
        for r in range(size):
            same(parts[r], value(r, 33, dtype), f"all_gather {dtype}")
    whole = torch.zeros(size * 6)
    whole[rank * 6:rank * 6 + 6] = value(rank, 6, torch.float32)
    dist.all_gather_into_tensor(whole, whole[rank * 6:rank * 6 + 6])  # in place
    same(whole, torch.cat([value(r, 6, torch.float32) for r in range(size)]), "all_gather_into_tensor")
    parts = [torch.zeros(4, dtype=torch.int64) for _ in range(size)] if rank == 1 else None
    dist.gather(value(rank, 4, torch.int64), parts, dst=1)
    for r in range(size if rank == 1 else 0):
        same(parts[r], value(r, 4, torch.int64), "gather")
    t = torch.zeros(3)
    dist.scatter(t, [value(r, 3, torch.float32) for r in range(size)] if rank == 0 else None, src=0)
    same(t, value(rank, 3, torch.float32), "scatter")
    got = [torch.zeros(2) for _ in range(size)]
    dist.all_to_all(got, [value(rank, 2, torch.float32, r) for r in range(size)])
    for r in range(size):
        same(got[r], value(r, 2, torch.float32, rank), "all_to_all")
    flat = torch.cat([value(rank, 2, torch.float32, r) for r in range(size)])
    dist.all_to_all_single(flat, flat)
    same(flat, torch.cat(got), "all_to_all_single")
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank, "much": "x" * 100 * rank})
    expect([o["rank"] for o in objects] == list(range(size)), "all_gather_object", objects)
    box = [f"from {rank}"]
    dist.broadcast_object_list(box, src=0)
    expect(box == ["from 0"], "broadcast_object_list", box)


def shapes(rank, size):
    """Tensors with gaps, of no elements, of no dimension; futures; several at once."""
    base = value(rank, 24, torch.float32).view(4, 6)
    dist.all_reduce(base.t()[::2])
    same(base.t()[::2], reduced("SUM", size, 24, torch.float32).view(4, 6).t()[::2], "a view with gaps")
    same(base.t()[1::2], value(rank, 24, torch.float32).view(4, 6).t()[1::2], "what is between them")
    wide = torch.zeros(2 * size, 3).t()
    dist.all_gather_into_tensor(wide, value(rank, 6, torch.float32))
    same(wide.reshape(-1), torch.cat([value(r, 6, torch.float32) for r in range(size)]), "an output with gaps")
    empty = torch.zeros(0)
    dist.all_reduce(empty)
    dist.all_gather([torch.zeros(0) for _ in range(size)], empty)
    one = torch.tensor(float(rank))
    dist.all_reduce(one)
    expect(one.item() == size * (size - 1) / 2, "a scalar", one)
    many = [value(rank, 1000 + i, torch.float32) for i in range(40)]
    works = [dist.all_reduce(t, async_op=True) for t in many]
    seen = []
    then = works[-1].get_future().then(lambda f: seen.append(f.value()[0].clone()) or f.value())
    for w in works:
        w.wait()
        expect(w.is_completed(), "completed after wait")
    expect(works[0].algo == os.environ["TRIB_ALGO"].split(",")[0] or os.environ["TRIB_ALGO"] == "auto", "algorithm", works[0].algo)
    then.wait()
    for i, t in enumerate(many):
        same(t, reduced("SUM", size, 1000 + i, torch.float32), "one of many")
    same(seen[0], many[-1], "what a future's callback saw")
    busy, t = torch.ones(64, 64), value(rank, 100000, torch.float32)
    work = dist.all_reduce(t, async_op=True)
    end = time.monotonic() + 20
    while not work.is_completed():  # by nobody's wait
        busy = busy @ busy / 64
        expect(time.monotonic() < end, "an operation that proceeds while its program computes")
    pair = [value(rank, 5, torch.float32), value(rank, 7, torch.float32)]
    dist.group.WORLD.allreduce_coalesced(pair).wait()
    same(pair[1], reduced("SUM", size, 7, torch.float32), "allreduce_coalesced")


def groups(rank, size):
    half = [r for r in range(size) if r % 2 == rank % 2]
    both = [dist.new_group([r for r in range(size) if r % 2 == k]) for k in (0, 1)]
    mine = both[rank % 2]
    t = value(rank, 50, torch.float32)
    dist.all_reduce(t, group=mine)
    expected = sum(value(r, 50, torch.float32) for r in half)
    same(t, expected, "a subgroup")
    dist.broadcast(t, src=half[-1], group=mine)
    same(t, expected, "broadcast in a subgroup")
    ring = dist.new_group(pg_options=tributary.torch.Options(algo="ring"))
    w = dist.all_reduce(value(rank, 5, torch.float32), group=ring, async_op=True)
    w.wait()
    expect(w.algo == "ring", "algorithm of a group", w.algo)
    dist.barrier(group=mine)
    for g in (mine, ring):
        dist.destroy_process_group(g)


def refusals(rank, size):
    refused("BAND of torch.float32, expected integers", dist.all_reduce, torch.zeros(3), op=dist.ReduceOp.BAND)
    refused("AVG of torch.bool", dist.all_reduce, torch.zeros(3, dtype=torch.bool), op=dist.ReduceOp.AVG)
    refused("found a tensor of layout torch.sparse_coo", dist.all_reduce, torch.eye(3).to_sparse())
    refused("expected a dense one" if False else "on meta, expected one on the CPU", dist.all_reduce, torch.zeros(3, device="meta"))
    refused("PREMUL_SUM", dist.group.WORLD.allreduce, [torch.zeros(3)], dist.ReduceOp.RedOpType.PREMUL_SUM)
    refused("blocks of 3 and 2 elements", dist.all_gather, [torch.zeros(2) for _ in range(size)], torch.zeros(3))
    refused(f"found 5 elements in all and 3 of a rank, expected {size} times", dist.all_gather_into_tensor, torch.zeros(5), torch.zeros(3))
    refused("no recv from any rank", dist.recv, torch.zeros(1))
    refused("pg_options: found 3, expected tributary.torch.Options", dist.new_group, pg_options=3)
    dist.all_reduce(torch.zeros(1))  # and all goes on


def calls(rank, size):
    for part in (reductions, movements, shapes, groups, refusals):
        part(rank, size)
    if rank == 0:
        print(f"calls {os.environ['TRIB_ALGO']}: all right", flush=True)


# ---- training ----

class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2)
        self.out = nn.Linear(WIDTH, WORDS)
        self.register_buffer("steps", torch.zeros(1))  # DDP broadcasts it

    def forward(self, x):
        self.steps += 1
        return self.out(self.layers(self.words(x)))


def wrapped(how):
    model = Transformer()
    if how == "fsdp":
        from torch.distributed.fsdp import FullyShardedDataParallel
        options = {"use_orig_params": True, "device_id": torch.device("cpu")}
        for i, layer in enumerate(model.layers.layers):
            model.layers.layers[i] = FullyShardedDataParallel(layer, **options)
        return FullyShardedDataParallel(model, **options)
    if how == "fsdp2":
        from torch.distributed.fsdp import fully_shard
        for layer in model.layers.layers:
            fully_shard(layer)
        return fully_shard(model)
    model = DistributedDataParallel(model, bucket_cap_mb=0.1)
    if how == "psgd":
        from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
        state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=2)
        model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    return model


def whole(model, how):
    """All weights, at every rank."""
    if how == "fsdp":
        from torch.distributed.fsdp import FullyShardedDataParallel
        with FullyShardedDataParallel.summon_full_params(model):
            return [p.detach().clone() for p in model.parameters()]
    return [(p.full_tensor() if how == "fsdp2" else p).detach() for p in model.parameters()]


def train(rank, size, how="ddp", steps=STEPS, before_step=None):
    torch.manual_seed(0 if how.startswith("fsdp") else rank)  # DDP takes rank 0's weights
    model = wrapped(how)
    if how == "zero":
        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=1e-3)
    else:
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    data = torch.Generator().manual_seed(1000 + rank)
    losses = []
    for step in range(steps):
        x = torch.randint(0, WORDS, (BATCH, LENGTH), generator=data)
        loss = nn.functional.cross_entropy(model(x).flatten(0, 1), (x * 7 + 3).remainder(WORDS).flatten())
        optimizer.zero_grad()
        if before_step:
            before_step(step)
        loss.backward()
        optimizer.step()
        total = loss.detach().clone()
        dist.all_reduce(total, op=dist.ReduceOp.AVG)
        losses.append(total.item())
    digest = hashlib.sha256(b"".join(p.numpy().tobytes() for p in whole(model, how))).hexdigest()[:16]
    digests = [None] * size
    dist.all_gather_object(digests, digest)
    expect(set(digests) == {digest}, "the same weights at every rank, found", digests)
    expect(losses[-1] < losses[0], "a loss that falls, found", losses)
    if rank == 0:
        print(f"{how} {os.environ['TRIB_ALGO']}: weights {digest} losses", *(f"{v:.7f}" for v in losses), flush=True)


def die(rank, size, how="ddp"):
    killed = [0.0]

    def before_step(step):
        if step == 2:
            killed[0] = time.monotonic()
            dist.barrier()
            if rank == 2:
                os.kill(os.getpid(), signal.SIGKILL)

    try:
        train(rank, size, how, steps=100, before_step=before_step)
    except RuntimeError as e:
        took = time.monotonic() - killed[0]
        names = {frame.name for frame in traceback.extract_tb(e.__traceback__)}
        expect(took < 10, "an error within 10 s, found", took)
        refused("", dist.all_reduce, torch.zeros(1))
        where = "backward" if "backward" in names else "a call"
        reason = str(e).replace("\n", " ").split("  At: ")[0]
        os.write(1, f"die: rank {rank} after {took:.1f} s in {where}: {reason}\n".encode())  # in one piece
        return
    raise AssertionError("a rank was killed, and nobody saw it")


def fabric_time(rank, size):
    for n in (262144,):
        tensors = [torch.ones(n) for _ in range(3)]
        dist.all_reduce(tensors[0])  # the first one prepares what others use
        dist.barrier()
        begin = coll.time_ps()
        for work in [dist.all_reduce(t, async_op=True) for t in tensors]:
            work.wait()
        worst = torch.tensor([(coll.time_ps() - begin) / len(tensors) / 1e6], dtype=torch.float64)
        dist.all_reduce(worst, op=dist.ReduceOp.MAX)
        if rank == 0:
            print(f"time {os.environ['TRIB_ALGO']}: {n * 4} bytes {worst.item():.2f} us", flush=True)


JOBS = {"calls": calls, "faulty": faulty, "differ": differ, "hooks": hooks,
         **{how: functools.partial(train, how=how) for how in ("ddp", "zero", "psgd", "fsdp", "fsdp2")},
         "die": die, "die_psgd": functools.partial(die, how="psgd"), "time": fabric_time}


# ---- ranks ----

def be(rank, hosts, job, algo, where):
    os.environ.update(TRIB_HOST=hosts[rank], TRIB_ALGO=algo, RANK=str(rank), WORLD_SIZE=str(len(hosts)))
    os.environ.pop("TRIB_TOKEN", None)  # of the host that the first process is; the own one is found by its path
    torch.set_num_threads(1)
    how = {"init_method": where, "rank": rank, "world_size": len(hosts)} if where else {}
    dist.init_process_group("trib", timeout=datetime.timedelta(seconds=60), **how)
    try:
        JOBS[job](rank, len(hosts))
    finally:
        dist.destroy_process_group()


def run(hosts, job, algo):
    with socket.socket() as s, tempfile.TemporaryDirectory() as folder:
        s.bind(("127.0.0.1", 0))
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(s.getsockname()[1]))
        s.close()
        where = {"calls": f"file://{folder}/store", "zero": f"tcp://127.0.0.1:{os.environ['MASTER_PORT']}"}.get(job)
        pids = {}
        for rank in range(len(hosts)):
            pid = os.fork()
            if not pid:
                try:
                    be(rank, hosts, job, algo, where)
                except BaseException as e:
                    print(f"{job} {algo}: rank {rank}: {type(e).__name__}: {e}", file=sys.stderr, flush=True)
                    os._exit(1)
                sys.stdout.flush()
                os._exit(0)
            pids[pid] = rank
        bad = []
        while pids:
            pid, status = os.wait()
            rank = pids.pop(pid)
            if status and not (job.startswith("die") and rank == 2):
                bad.append(rank)
        if bad:
            sys.exit(f"torch_ddp.py: {job} {algo}: ranks {sorted(bad)} ended badly")


if __name__ == "__main__":
    if len(sys.argv) < 4 or len(sys.argv) % 2:
        sys.exit(__doc__)
    for i in range(2, len(sys.argv), 2):
        started = time.monotonic()
        run(sys.argv[1].split(","), sys.argv[i], sys.argv[i + 1])
        print(f"torch_ddp.py: {sys.argv[i]} {sys.argv[i + 1]}: {time.monotonic() - started:.1f} s", file=sys.stderr)
