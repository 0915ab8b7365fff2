/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A protocol for tests, without a switch half: every rank sends its whole vector to every other,
 * packet by packet, and repeats what is not acknowledged. The sum is made in order of ranks.
 */
#ifndef TESTS_GOSSIP_H
#define TESTS_GOSSIP_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <tributary/protocol.h>

#define GOSSIP_ROOM (1u << 20) /* bytes of a vector */

struct gossip_head {
    uint32_t op, packet, ack, bytes;
};

struct gossip {
    struct trib_op op;
    bool running;
    uint32_t packets, chunk;
    uint64_t bytes, now_op;    /* operations begun */
    uint8_t *from[TRIB_RANKS]; /* vectors by rank, of two operations by parity */
    uint8_t *got[TRIB_RANKS];
    uint8_t *acked[TRIB_RANKS];
    uint64_t of[TRIB_RANKS][2]; /* operation + 1 that a half is of */
    uint32_t n_got[TRIB_RANKS][2], n_acked[TRIB_RANKS], next[TRIB_RANKS];
};

static inline void gossip_free(struct gossip *g)
{
    for (unsigned i = 0; i < TRIB_RANKS; i++) {
        free(g->from[i]);
        free(g->got[i]);
        free(g->acked[i]);
    }
    free(g);
}

static inline int gossip_open(struct trib_rank *r)
{
    struct gossip *g = calloc(1, sizeof(*g));

    if (!g)
        return -ENOMEM;
    r->self = g;
    g->chunk = (r->payload - (uint32_t)sizeof(struct gossip_head)) & ~7u;
    for (unsigned i = 0; i < r->nranks; i++) {
        g->from[i] = calloc(2, GOSSIP_ROOM);
        g->got[i] = calloc(2, GOSSIP_ROOM / g->chunk + 1);
        g->acked[i] = calloc(1, GOSSIP_ROOM / g->chunk + 1);
    }
    return 0;
}

static inline void gossip_close(struct trib_rank *r)
{
    gossip_free(r->self);
}

static inline uint8_t *gossip_bits(const struct gossip *g, unsigned rank, unsigned half)
{
    return g->got[rank] + (size_t)half * (GOSSIP_ROOM / g->chunk + 1);
}

static inline void gossip_end(struct trib_rank *r)
{
    struct gossip *g = r->self;
    unsigned half = (g->now_op - 1) & 1;

    for (unsigned i = 0; i < r->nranks; i++)
        if (i != r->rank && (g->of[i][half] != g->now_op || g->n_got[i][half] < g->packets ||
                             g->n_acked[i] < g->packets))
            return;
    memcpy(g->op.recv, g->from[0] + half * (size_t)GOSSIP_ROOM, g->bytes);
    for (unsigned i = 1; i < r->nranks; i++)
        r->api->reduce(r, g->op.recv, g->from[i] + half * (size_t)GOSSIP_ROOM, g->op.count,
                       g->op.type, g->op.op);
    g->running = false;
    r->api->timer(r, TRIB_NEVER);
    r->api->done(r);
}

static inline void gossip_push(struct trib_rank *r)
{
    struct gossip *g = r->self;
    unsigned half = (g->now_op - 1) & 1;

    for (unsigned i = 0; g->running && i < r->nranks; i++)
        for (; i != r->rank && g->next[i] < g->packets; g->next[i]++) {
            uint64_t at = (uint64_t)g->next[i] * g->chunk;
            struct gossip_head h = {(uint32_t)g->now_op, g->next[i], 0, (uint32_t)g->bytes};
            uint32_t n = (uint32_t)(g->bytes - at < g->chunk ? g->bytes - at : g->chunk);

            if (!g->acked[i][g->next[i]] &&
                !r->api->send(r, TRIB_RANK((int)i), &h, sizeof(h),
                              g->from[r->rank] + half * (size_t)GOSSIP_ROOM + at, n))
                return;
        }
}

static inline int gossip_start(struct trib_rank *r, const struct trib_op *op)
{
    struct gossip *g = r->self;
    unsigned half = op->number & 1;

    g->op = *op;
    g->now_op = op->number + 1;
    g->bytes = op->count * trib_size(op->type);
    if (g->bytes > GOSSIP_ROOM)
        return -E2BIG;
    g->packets = (uint32_t)((g->bytes + g->chunk - 1) / g->chunk);
    g->running = true;
    memcpy(g->from[r->rank] + half * (size_t)GOSSIP_ROOM, op->send, g->bytes);
    for (unsigned i = 0; i < r->nranks; i++) {
        g->n_acked[i] = g->next[i] = 0;
        memset(g->acked[i], 0, GOSSIP_ROOM / g->chunk + 1);
    }
    r->api->timer(r, r->api->now(r) + 4 * r->round_trip_ps + 20000000);
    gossip_push(r);
    return 0;
}

static inline void gossip_data(struct trib_rank *r, unsigned from, const struct gossip_head *h,
                               const struct trib_packet *p)
{
    struct gossip *g = r->self;
    unsigned half = (h->op - 1) & 1;
    uint64_t at = (uint64_t)h->packet * g->chunk;
    struct gossip_head ack = {h->op, h->packet, 1, h->bytes};

    if (h->op > g->now_op + 1 || at + p->data_bytes > GOSSIP_ROOM || !h->op)
        return;
    if (h->op >= g->of[from][half]) { /* else the acknowledgement was lost */
        if (h->op > g->of[from][half]) {
            g->of[from][half] = h->op;
            g->n_got[from][half] = 0;
            memset(gossip_bits(g, from, half), 0, GOSSIP_ROOM / g->chunk + 1);
        }
        if (!gossip_bits(g, from, half)[h->packet]) {
            gossip_bits(g, from, half)[h->packet] = 1;
            g->n_got[from][half]++;
            memcpy(g->from[from] + half * (size_t)GOSSIP_ROOM + at, p->data, p->data_bytes);
        }
    }
    r->api->send(r, TRIB_RANK((int)from), &ack, sizeof(ack), NULL, 0);
}

static inline void gossip_packet(struct trib_rank *r, const struct trib_packet *p)
{
    struct gossip *g = r->self;
    const struct gossip_head *h = p->head;
    unsigned from = TRIB_INDEX(p->from);

    if (p->head_bytes != sizeof(*h) || !TRIB_IS(p->from, TRIB_RANK(0)))
        return;
    if (!h->ack) {
        gossip_data(r, from, h, p);
    } else if (g->running && h->op == g->now_op && h->packet < g->packets &&
               !g->acked[from][h->packet]) {
        g->acked[from][h->packet] = 1;
        g->n_acked[from]++;
    }
    if (g->running)
        gossip_end(r);
}

static inline void gossip_timer(struct trib_rank *r)
{
    struct gossip *g = r->self;

    if (!g->running)
        return;
    r->api->count(r, 0, 1);
    for (unsigned i = 0; i < r->nranks; i++)
        g->next[i] = 0;
    r->api->timer(r, r->api->now(r) + 8 * r->round_trip_ps + 20000000);
    gossip_push(r);
}

static inline bool gossip_supports(enum trib_type type, enum trib_sum op)
{
    return type != TRIB_FLOAT64 && op == TRIB_SUM;
}

static const char *const gossip_counters[] = {"timeouts", NULL};
static const struct trib_rank_half gossip_half = {.counters = gossip_counters,
                                                  .open = gossip_open,
                                                  .close = gossip_close,
                                                  .start = gossip_start,
                                                  .packet = gossip_packet,
                                                  .room = gossip_push,
                                                  .timer = gossip_timer};
static const struct trib_protocol gossip_protocol = {.version = TRIB_PROTOCOL_VERSION,
                                                     .name = "gossip",
                                                     .about = "for tests",
                                                     .supports = gossip_supports,
                                                     .rank = &gossip_half};

#endif
