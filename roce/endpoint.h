/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An endpoint is behind a node: an aggregation node in a switch, an HCA behind a NIC (virtual
 * time), or a memif that leads to a process's HCA (real time). It accepts and produces frames.
 */
#ifndef TRIB_ROCE_ENDPOINT_H
#define TRIB_ROCE_ENDPOINT_H

#include "roce/frame.h"

/* Two queues towards the link: ACKs, NAKs and READ-free control first. */
enum endpoint_queue { ENDPOINT_ACK, ENDPOINT_DATA, ENDPOINT_QUEUES };

struct endpoint {
    void *ctx;
    /* Takes ownership of the first k of n frames and returns k; k < n only for a full memif ring.
     */
    uint16_t (*input)(void *ctx, struct rte_mbuf **m, uint16_t n, int64_t now_ps);
    /* Moves up to n frames of one queue to the caller, who owns them then. */
    uint16_t (*output)(void *ctx, enum endpoint_queue q, struct rte_mbuf **m, uint16_t n,
                       int64_t now_ps);
    /* Runs timers that are due. */
    void (*tick)(void *ctx, int64_t now_ps);
    /* When tick() or output() has something to do next: a time, 0 for "frames are ready now", or
     * PS_NEVER. */
    int64_t (*next)(void *ctx);
    /* While frames are ready: when tick() has something to do next, although the link is not free
     * for them before; a time or PS_NEVER. NULL: never. */
    int64_t (*deadline)(void *ctx);
    /* Whether more frames were ready when output() gave the last ones, and only come late: the time
     * of the link is theirs. NULL: frames are never late. */
    bool (*late)(void *ctx);
};

#endif
