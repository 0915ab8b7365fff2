#include "host/kernels/grid.h"

AVERAGES(AVERAGE_KERNEL)
