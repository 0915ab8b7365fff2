# SPDX-License-Identifier: BSD-3-Clause
"""A rank of PyTorch's NCCL backend (tests/gpu_nccl.sh): each collective once, checked; a line "ok RANK" when all were right."""
import os

import torch
import torch.distributed as dist

rank, size, count = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), 4099
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
base = torch.arange(count, device="cuda", dtype=torch.float32) % 61


def of(r):
    return base + r


def same(what, found, expected):
    if not torch.equal(found, expected):
        raise SystemExit(f"rank {rank}: {what}: {int((found != expected).sum())} wrong elements of {found.numel()}")


x = of(rank)
dist.all_reduce(x)
same("all_reduce", x, size * base + size * (size - 1) // 2)
x = torch.empty(size * count, device="cuda")
dist.all_gather_into_tensor(x, of(rank))
same("all_gather", x, torch.cat([of(r) for r in range(size)]))
x = torch.empty(count, device="cuda")
dist.reduce_scatter_tensor(x, torch.cat([of(rank) + r for r in range(size)]))
same("reduce_scatter", x, size * (base + rank) + size * (size - 1) // 2)
x = torch.empty(size * count, device="cuda")
dist.all_to_all_single(x, torch.cat([of(rank) + 1000 * r for r in range(size)]))
same("alltoall", x, torch.cat([of(r) + 1000 * rank for r in range(size)]))
x = torch.empty(count, device="cuda")
for request in dist.batch_isend_irecv([dist.P2POp(dist.isend, of(rank), (rank + 1) % size), dist.P2POp(dist.irecv, x, (rank - 1) % size)]):
    request.wait()
torch.cuda.synchronize()
same("sendrecv", x, of((rank - 1) % size))
print(f"ok {rank}", flush=True)
dist.destroy_process_group()
