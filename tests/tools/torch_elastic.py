# SPDX-License-Identifier: BSD-3-Clause
"""A worker of torchrun, which starts it again after a failure:

    torchrun --nproc-per-node N --max-restarts 2 --no-python trib exec @rank -- python3 torch_elastic.py

In the first attempt a rank dies after some all-reduces; in the second another does before the group has met, so that
ranks of two attempts have left their words in the store; the third prints its sum.
"""
import os
import signal
import sys

import torch
import torch.distributed as dist

import tributary.torch  # noqa: F401

rank, attempt = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
dist.init_process_group("trib")
if attempt == 1 and rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
for i in range(3):
    t = torch.full((1000,), float(rank + attempt))
    dist.all_reduce(t)
    if attempt == 0 and rank == 2 and i == 1:
        os.kill(os.getpid(), signal.SIGKILL)
sys.stdout.write(f"attempt {attempt} rank {rank} on {os.environ['TRIB_HOST']}: {t[0].item():.0f}\n")
dist.destroy_process_group()
