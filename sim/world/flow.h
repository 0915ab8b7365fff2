/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stream of RDMA WRITEs between two processes of a world, on and on, to see what else does to it:
 * messages of 64 KiB over one RC connection, as many posted as keep a link full. Lengths only.
 */
#ifndef TRIB_SIM_WORLD_FLOW_H
#define TRIB_SIM_WORLD_FLOW_H

#include "sim/world/world.h"

struct flow;

/* Between ports of two ranks of the world, connected. 0 or -errno. */
int flow_create(struct flow **f, struct world *w, unsigned from, unsigned from_port, unsigned to,
                unsigned to_port);
void flow_destroy(struct flow *f); /* before its world */
void flow_start(struct flow *f);
void flow_stop(struct flow *f); /* posts no more; what is posted goes on */
/* Stops, and runs the world until all that is posted has ended. 0, -EIO or -ETIME. */
int flow_drain(struct flow *f);
/* Takes completions, posts more. To be called when a rank of it may have some. 0, or -EIO: the
 * connection has failed, flow_error() says how. */
int flow_progress(struct flow *f);
const char *flow_error(const struct flow *f);
uint64_t flow_bytes(const struct flow *f); /* written and acknowledged so far */
/* Bandwidth in GB/s of payload with nothing else but what the world does already: it is run for so
 * long, and the first tenth does not count. Negative: -errno. */
double flow_alone(struct flow *f, int64_t for_ps);

#endif
