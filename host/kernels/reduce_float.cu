/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/kernels/grid.h"

REDUCTIONS_FLOAT(REDUCTION_KERNEL)
