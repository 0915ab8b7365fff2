/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Congestion of a whole run and its cost: marks, notifications, pauses, frames dropped at full
 * queues or by the PFC watchdog, retransmissions.
 */
#ifndef TRIB_SIM_REPORT_CONGESTION_H
#define TRIB_SIM_REPORT_CONGESTION_H

#include "sim/world/world.h"

#include <stdio.h>

struct congestion {
    uint64_t marks, cnps, cuts, pauses, overflows, retransmits, timeouts, watchdog, discarded;
    int64_t paused_ps; /* sum over all queues */
};
struct json_t;

void congestion_read(struct congestion *c, struct world *w, const struct fabric *f);
/* Prints a line, not broken if wide; nothing if there was no congestion. */
void congestion_print(const struct congestion *c, bool wide, FILE *out);
struct json_t *congestion_json(const struct congestion *c); /* NULL: no memory */

#endif
