/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much a rank has in flight: receives and credits of a connection, slots of an aggregation tree,
 * packets of a protocol. Transports use these values, and so does the model.
 */
#ifndef TRIB_COLLECTIVE_IN_FLIGHT_H
#define TRIB_COLLECTIVE_IN_FLIGHT_H

#include "aggregation/proto.h"
#include "fabric/fabric.h"

#include <stdint.h>

/* ---- a connection ---- */
#define CONN_AHEAD        16u /* receives posted ahead: those of two credits */
#define CONN_CREDIT_EVERY 8u  /* receives per credit, to save a frame per message */
#define CONN_SIGNAL_EVERY 8u  /* sends per completion */
/*
 * Most messages and credits in flight. A credit waits behind earlier messages on the queue pair. If
 * messages filled the whole window of receives at both ends, both ends would wait for each other's
 * credit, and idle for a round trip per window. So a quarter is left for the credit.
 */
#define CONN_IN_FLIGHT(depth) ((depth) - (depth) / 4)

/* ---- an aggregation tree ---- */
#define AGG_MAX_WINDOW 2048u
/* Slots to request: `asked`, or if that is 0 enough for a round trip of the fastest host link. */
uint32_t agg_window(const struct fabric *fab, uint32_t asked);
/* Slots that a message with len bytes of elements takes. */
static inline uint32_t agg_slots(uint64_t len, uint32_t mtu)
{
    return (uint32_t)((AGG_HDR_BYTES + len + mtu - 1) / mtu);
}

/* ---- a protocol's instance ---- */
#define PROTOCOL_WINDOW 1024u /* receive buffers */
#define PROTOCOL_SENDS  256u  /* send buffers */

#endif
