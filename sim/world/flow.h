/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A flow: an endless stream of RDMA WRITEs between two processes of a world, whose rate shows what
 * other traffic does to it. Messages of 64 KiB, carried as lengths, over one RC connection, as many
 * in flight as keep a link full.
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
void flow_stop(struct flow *f); /* posts no more; posted WRITEs complete */
/* Stops, and runs the world until all posted WRITEs have completed. 0, -EIO or -ETIME. */
int flow_drain(struct flow *f);
/* Polls completions and posts more; called when one of its ranks may have completions. 0, or -EIO:
 * the connection has failed, flow_error() has the reason. */
int flow_progress(struct flow *f);
const char *flow_error(const struct flow *f);
uint64_t flow_bytes(const struct flow *f); /* written and acknowledged so far */
/* Payload rate in GB/s without further traffic: runs the world for for_ps, of which the first tenth
 * does not count. Negative: -errno. */
double flow_alone(struct flow *f, int64_t for_ps);

#endif
