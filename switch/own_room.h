/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Room in a lossless queue for frames that PFC accounts to no port: those of the node's own endpoint, and
 * of links without PFC. The room is added to what PFC promises to the ports. So these frames take nothing
 * that a port may still bring before it obeys a pause, and a queue filled by ports leaves them their room.
 *
 * Rejected: one room for all, where the endpoint waits while the queue holds more than is not promised.
 * Ports that keep the queue full would hold the endpoint back for ever.
 */
#ifndef TRIB_SWITCH_OWN_ROOM_H
#define TRIB_SWITCH_OWN_ROOM_H

#include "base/assert.h"
#include "base/cacheline.h"

#include <stdbool.h>
#include <stdint.h>

#define OWN_ROOM_MAX_BYTES (1u << 30)

struct own_room {
    uint32_t bytes, pkts; /* free */
    bool on;              /* off: only the queue's limits count */
};

/* Takes room. False: there is too little, and nothing is taken. */
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
