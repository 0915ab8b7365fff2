#include "host/kernels/grid.h"

REDUCTIONS_FLOAT(REDUCTION_KERNEL)
