/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What congestion there was in a whole run, and what it cost: marks, notifications, pauses, frames
 * dropped for want of room or by the PFC watchdog, packets sent again.
 */
#ifndef TRIB_SIM_REPORT_CONGESTION_H
#define TRIB_SIM_REPORT_CONGESTION_H

#include "sim/world/world.h"

#include <stdio.h>

struct congestion {
    uint64_t marks, cnps, cuts, pauses, overflows, again, timeouts, watchdog, discarded;
    int64_t paused_ps; /* of all queues together */
};
struct json_t;

void congestion_read(struct congestion *c, struct world *w, const struct fabric *f);
/* One line; nothing where there was none. */
void congestion_print(const struct congestion *c, FILE *out);
struct json_t *congestion_json(const struct congestion *c); /* NULL: no memory */

#endif
