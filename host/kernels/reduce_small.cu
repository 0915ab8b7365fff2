/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/kernels/grid.h"

REDUCTIONS_SMALL(REDUCTION_KERNEL)
