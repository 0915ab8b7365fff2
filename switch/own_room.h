/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Room in a lossless queue for frames that PFC accounts to no port: those of the node's own endpoint,
 * and of links without PFC. A queue has as much room again as PFC promises to the ports, so these
 * frames take none of what a port may still bring before it obeys a pause, and a queue that ports
 * fill leaves them theirs.
 *
 * Rejected: one room for all, and the endpoint waits while the queue holds more than is not promised.
 * Ports that keep the queue full would then hold the endpoint back for ever.
 */
#ifndef TRIB_SWITCH_OWN_ROOM_H
#define TRIB_SWITCH_OWN_ROOM_H

#include "base/assert.h"
#include "base/cacheline.h"

#include <stdbool.h>
#include <stdint.h>

#define OWN_ROOM_MAX_BYTES (1u << 30)

struct own_room {
    uint32_t bytes, pkts; /* what is left */
    bool on;              /* off: the limits of the queue are all there are */
};

/* False: no room, nothing is taken. */
static inline bool own_room_take(struct own_room *r, uint32_t bytes, uint32_t pkts)
{
    if (unlikely(r->bytes < bytes || r->pkts < pkts))
        return false;
    r->bytes -= bytes;
    r->pkts -= pkts;
    return true;
}

static inline void own_room_give(struct own_room *r, uint32_t bytes, uint32_t pkts)
{
    r->bytes += bytes;
    r->pkts += pkts;
    T_ASSERT_HOT(r->bytes <= OWN_ROOM_MAX_BYTES, "more leaves a queue's own room than entered it");
}

/* Number of frames of max_bytes that fit, at most `most`. */
static inline uint32_t own_room_frames(const struct own_room *r, uint32_t max_bytes, uint32_t most)
{
    if (unlikely(r->pkts < most))
        most = r->pkts;
    return likely(r->bytes >= most * max_bytes) ? most : r->bytes / max_bytes;
}

#endif
