/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Metrics of the fabrics of a look: as OpenMetrics text, or in Prometheus' older text format, in which
 * a counter's family has the suffix _total too and families have no units.
 */
#ifndef TRIB_IO_METRICS_H
#define TRIB_IO_METRICS_H

#include "io/live/live.h"

#include <stdio.h>

enum metrics_format { METRICS_OPENMETRICS, METRICS_PROMETHEUS };
void metrics_print(const struct live *l, enum metrics_format format, FILE *out);

#endif
