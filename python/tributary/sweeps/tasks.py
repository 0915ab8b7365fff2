# SPDX-License-Identifier: BSD-3-Clause
"""Which task of a job this is, and which lines are its own."""

from __future__ import annotations

from typing import Mapping, NamedTuple, Optional


class Task(NamedTuple):
    number: int
    tasks: int

    def lines(self, n: int) -> range:
        """Numbers of this task's lines of n: they are dealt out in turn."""
        return range(self.number, n, self.tasks)


def _whole(env: Mapping[str, str], name: str, default: Optional[int] = None) -> int:
    text = env.get(name) or ("" if default is None else str(default))
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"found {name}={text}, expected a whole number") from None


def task_of(env: Mapping[str, str], n: int) -> Task:
    """By what Slurm says of an array, Open MPI or MPICH of a rank, or srun of a process. n: lines. ValueError: it is none."""
    if env.get("SLURM_ARRAY_TASK_ID"):
        first, step = _whole(env, "SLURM_ARRAY_TASK_MIN", 0), _whole(env, "SLURM_ARRAY_TASK_STEP", 1)
        task = Task((_whole(env, "SLURM_ARRAY_TASK_ID") - first) // max(step, 1), _whole(env, "SLURM_ARRAY_TASK_COUNT", n))
    elif env.get("OMPI_COMM_WORLD_RANK"):
        task = Task(_whole(env, "OMPI_COMM_WORLD_RANK"), _whole(env, "OMPI_COMM_WORLD_SIZE"))
    elif env.get("PMI_RANK"):
        task = Task(_whole(env, "PMI_RANK"), _whole(env, "PMI_SIZE"))
    else:
        task = Task(_whole(env, "SLURM_PROCID", 0), _whole(env, "SLURM_NTASKS", 1))
    if task.tasks < 1 or task.number < 0:
        raise ValueError(f"found task {task.number} of {task.tasks}, expected a number from 0 on, of 1 or more")
    return task
