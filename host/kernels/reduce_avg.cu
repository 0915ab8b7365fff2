/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/kernels/grid.h"

AVERAGES(AVERAGE_KERNEL)
