/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The background flow (trib sim --background-flow A:B): a flow from host A to host B runs during the timed
 * operations of every row, and the report has its rate relative to running alone. A flow that
 * shares links with a congested one, but not the congested port, is the victim of its pauses.
 */
#ifndef TRIB_SIM_WORLD_BACKGROUND_FLOW_H
#define TRIB_SIM_WORLD_BACKGROUND_FLOW_H

#include "host/bench/row.h"
#include "sim/world/world.h"

#include <stdio.h>

struct background_flow;
struct json_t;

struct background_hosts {
    uint16_t from, to; /* by host_index */
};

/* "A:B". 0, or -EINVAL and err (COMM_TEXT bytes) says what was found and what is expected. */
int background_flow_parse(const struct fabric *f, const char *text, struct background_hosts *h,
                          char *err);
/* From rank `first` of the world to rank first + 1. Measures its rate alone. 0, or -errno and
 * err. */
int background_flow_create(struct background_flow **b, const struct fabric *f, struct world *w,
                           const struct background_hosts *h, unsigned first, char *err);
void background_flow_destroy(struct background_flow *b); /* before its world; NULL: nothing */
/* Called after each event of the world. 0, or -EIO: the flow has failed. */
int background_flow_progress(struct background_flow *b);
/* Around the timed operations of a row in one place. background_flow_end(): 0 or -errno and err. */
void background_flow_begin(struct background_flow *b);
int background_flow_end(struct background_flow *b, const struct row *r, int place, char *err);
void background_flow_print(const struct background_flow *b, FILE *out);
struct json_t *background_flow_json(const struct background_flow *b); /* NULL: out of memory */

#endif
