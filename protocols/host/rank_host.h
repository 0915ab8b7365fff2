/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Host of a protocol's rank half. It provides struct trib_rank_api. Its input is packets and the
 * time; its output is packets and the next deadline. After every call the caller checks
 * proto_rank_done() and proto_rank_error().
 */
#ifndef TRIB_PROTOCOLS_HOST_RANK_HOST_H
#define TRIB_PROTOCOLS_HOST_RANK_HOST_H

#include "protocols/host/registry.h"

struct proto_rank;

struct proto_rank_cfg {
    const struct trib_protocol *protocol;
    const int64_t *key; /* [TRIB_KEYS], outlives it */
    uint32_t rank, nranks;
    const uint16_t *switch_of; /* [nranks], outlives it */
    uint32_t job, payload, window;
    uint64_t rate_bps, tree_bps, share_bps;
    int64_t round_trip_ps, notice_ps;
    /* to: TRIB_SWITCH, TRIB_RANK(r), TRIB_SWITCH_OF(r); target: of send_through(), else -1. Lengths
     * are checked. False: no room. */
    bool (*send)(void *ctx, int to, int target, const void *head, uint32_t head_bytes,
                 const void *data, uint32_t data_bytes);
    void *ctx;
};

/* 0, -ENOMEM, or what open() returns; err (PROTO_TEXT bytes) has the reason. */
int proto_rank_create(struct proto_rank **r, const struct proto_rank_cfg *cfg, int64_t now_ps,
                      char *err);
void proto_rank_destroy(struct proto_rank *r);
/* Begins an operation, and sets its number. No other may be running. 0, or what start() returns. */
int proto_rank_start(struct proto_rank *r, const struct trib_op *op, int64_t now_ps);
void proto_rank_packet(struct proto_rank *r, const struct trib_packet *p, int64_t now_ps);
/* Call when a send buffer has become free. */
void proto_rank_room(struct proto_rank *r, int64_t now_ps);
void proto_rank_tick(struct proto_rank *r, int64_t now_ps);
int64_t proto_rank_next(const struct proto_rank *r);
bool proto_rank_done(const struct proto_rank *r);         /* no operation is running */
const char *proto_rank_error(const struct proto_rank *r); /* NULL: none */
bool proto_rank_waits(const struct proto_rank *r); /* a send was refused since the last room() */
const uint64_t *proto_rank_counters(const struct proto_rank *r); /* [TRIB_COUNTERS] */

#endif
