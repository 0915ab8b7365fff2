/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An endpoint is behind a node: an aggregation node in a switch, an HCA behind a NIC (virtual
 * time), or a memif that leads to a process's HCA (real time). It accepts and produces frames.
 */
#ifndef TRIB_ROCE_ENDPOINT_H
#define TRIB_ROCE_ENDPOINT_H

#include "roce/frame.h"

/* Two queues towards the link. First: ACKs, NAKs and other control packets that follow no READ. */
enum endpoint_queue { ENDPOINT_ACK, ENDPOINT_DATA, ENDPOINT_QUEUES };

struct endpoint {
    void *ctx;
    /* Takes ownership of the first k of n frames and returns k. k < n only if a memif's ring is full. */
    uint16_t (*input)(void *ctx, struct rte_mbuf **m, uint16_t n, int64_t now_ps);
    /* Moves up to n frames of one queue to the caller, who then owns them. */
    uint16_t (*output)(void *ctx, enum endpoint_queue q, struct rte_mbuf **m, uint16_t n,
                       int64_t now_ps);
    /* Runs timers that are due. */
    void (*tick)(void *ctx, int64_t now_ps);
    /* When tick() or output() has something to do next: a time; 0: frames are ready now; PS_NEVER. */
    int64_t (*next)(void *ctx);
    /* Time of the next tick() while frames are ready but wait for the link; PS_NEVER: none. NULL: tick()
     * is never needed then. */
    int64_t (*deadline)(void *ctx);
    /* Whether the endpoint has more frames than output() gave, which only come late: then the link's time
     * is kept for them. NULL: frames are never late. */
    bool (*late)(void *ctx);
};

#endif
