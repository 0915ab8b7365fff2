/*
 * trib sim --beside A:B: a flow from host A to host B goes on during the timed operations of every
 * row, and the report sets what it got beside what it gets alone. A flow that shares links with a
 * congested one, but not the congested port, is the victim of its pauses.
 */
#ifndef TRIB_SIM_WORLD_BACKGROUND_FLOW_H
#define TRIB_SIM_WORLD_BACKGROUND_FLOW_H

#include "host/bench/row.h"
#include "sim/world/world.h"

#include <stdio.h>

struct beside;
struct json_t;

struct beside_hosts {
    uint16_t from, to; /* by host_index */
};

/* "A:B". 0, or -EINVAL and err (COMM_TEXT bytes) says what was found and what is expected. */
int beside_parse(const struct fabric *f, const char *text, struct beside_hosts *h, char *err);
/* From rank `first` of the world to the one behind it. Runs it alone for a while. 0 or -errno and
 * err. */
int beside_create(struct beside **b, const struct fabric *f, struct world *w,
                  const struct beside_hosts *h, unsigned first, char *err);
void beside_destroy(struct beside *b); /* before its world; NULL: nothing */
/* After each event of the world. 0 or -EIO: the flow has failed. */
int beside_progress(struct beside *b);
/* Around the timed operations of a row in one place. beside_end(): 0 or -errno and err. */
void beside_begin(struct beside *b);
int beside_end(struct beside *b, const struct row *r, int place, char *err);
void beside_print(const struct beside *b, FILE *out);
struct json_t *beside_json(const struct beside *b); /* NULL: no memory */

#endif
