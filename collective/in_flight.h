/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much a rank has in flight: receives and credits of a connection, slots of an aggregation tree,
 * packets of a protocol. Transports keep to it, and the model counts with it.
 */
#ifndef TRIB_COLLECTIVE_IN_FLIGHT_H
#define TRIB_COLLECTIVE_IN_FLIGHT_H

#include "aggregation/proto.h"
#include "fabric/fabric.h"

#include <stdint.h>

/* ---- a connection ---- */
#define CONN_AHEAD        16u /* two credits' worth */
#define CONN_CREDIT_EVERY 8u  /* receives: a credit for each would cost a frame a message */
#define CONN_SIGNAL_EVERY 8u  /* sends: a completion for each */
/*
 * Messages and credits in flight together, at most. A credit waits behind the messages before it
 * on the queue pair: if those filled the whole window of the peer's receives at both ends, both
 * would wait for the other's credit word, and idle for a round trip every window. A quarter is left
 * for the credit and its way.
 */
#define CONN_IN_FLIGHT(depth) ((depth) - (depth) / 4)

/* ---- an aggregation tree ---- */
#define AGG_MAX_WINDOW 2048u
/* Slots to request: those asked for, or enough for the round trip of the fabric's fastest host link. */
uint32_t agg_window(const struct fabric *fab, uint32_t asked);
/* Of a message with len bytes of elements. */
static inline uint32_t agg_slots(uint64_t len, uint32_t mtu)
{
    return (uint32_t)((AGG_HDR_BYTES + len + mtu - 1) / mtu);
}

/* ---- a protocol's instance ---- */
#define PROTOCOL_WINDOW 1024u /* receive buffers */
#define PROTOCOL_SENDS  256u  /* send buffers */

#endif
