# SPDX-License-Identifier: BSD-3-Clause
"""Tags that launchers write before lines, and lines that launchers and libraries write between those of a benchmark."""

from __future__ import annotations

import re
from typing import Sequence

# Of Open MPI 4 "[1,0]<stdout>:" and 5 "[prterun-node-4711@1,0]<stdout>: ", each perhaps with a time before and a host's name.
_OPEN_MPI = re.compile(r"^(?:[A-Za-z0-9 :.,+-]{0,40})?(?:\[[^\[\]\s]{1,120}\]){1,3}<std\w+>:\s?")
# Of every line of the job, or of none: "0: " of srun -l, "[0] " of MPICH's and Intel MPI's hydra.
_NUMBERED = (re.compile(r"^\s*\d{1,6}: ?"), re.compile(r"^\[\d{1,6}\] ?"))

FOREIGN = re.compile(
    r"\bN?R?CCL [A-Z]+\b|^(NCCL|RCCL|HIP|ROCm|CUDA) version|^(Hostname|Librccl path|rccl-tests)\b|^\s*$|^\s*(srun|mpirun|mpiexec|prterun|slurmstepd|salloc|Warning|WARNING)\b|^-+$|^=+$"
)


def untagged(lines: Sequence[str]) -> list[str]:
    """The lines without the tags of whatever started the benchmark."""
    lines = [_OPEN_MPI.sub("", line) for line in lines]
    own = [line for line in lines if line.strip() and not FOREIGN.search(line)]
    for tag in _NUMBERED:  # what wrapped the job may have written a line or two
        if sum(bool(tag.match(line)) for line in own) > 0.8 * len(own):
            return [tag.sub("", line) for line in lines]
    return lines
