#include "host/kernels/grid.h"

REDUCTIONS_SMALL(REDUCTION_KERNEL)
