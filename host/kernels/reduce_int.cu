#include "host/kernels/grid.h"

REDUCTIONS_INT(REDUCTION_KERNEL)
