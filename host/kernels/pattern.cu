/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/kernels/grid.h"

KERNEL fill(const __grid_constant__ struct pattern_args p)
{
    if (grid_at() < p.step)
        body_fill(&p, grid_at(), p.step);
}

KERNEL verify(const __grid_constant__ struct pattern_args p)
{
    if (grid_at() < p.step)
        body_verify(&p, grid_at(), p.step);
}

KERNEL blocks(const __grid_constant__ struct blocks_args b)
{
    body_blocks(&b, grid_at(), grid_step());
}
