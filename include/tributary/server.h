/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank as a parameter server: it collects blocks from all ranks, keeps their results, and sends them to the
 * ranks that need them. For protocols that number blocks through all operations, where block q belongs to
 * server q mod servers, and where ranks send block q + servers x slots once they have the result of block q
 * (tributary/window.h). So the slot that collects q and keeps the result before it may drop that result when q
 * is complete: every rank that sent q had it.
 *
 * The protocol defines what a block contains and how it is reduced. Its trib_rank.self points to a struct
 * trib_server, or to a structure whose first member is one; every rank has it, even if it is no server. room
 * and timer of its rank half are trib_server_room and trib_server_timer. All functions are inline; two
 * threads must not call them at once for one rank.
 */
#ifndef TRIBUTARY_SERVER_H
#define TRIBUTARY_SERVER_H

#include <tributary/ranks.h>
#include <tributary/window.h>

#include <string.h>

struct trib_block {
    uint64_t seq;           /* block it collects; the kept result is of the block a window before */
    struct trib_ranks seen; /* ranks that have contributed */
    uint32_t n_seen;
    void *own; /* the protocol's memory, aligned to 16 bytes */
    /* The rest is private: the result that it keeps (bytes 0: none), and to whom it must still go. */
    const void *data;
    uint32_t bytes;
    bool queued;
    uint64_t head[TRIB_HEAD / 8];
    struct trib_ranks switches, ranks; /* receivers: first switches, by their lowest rank; ranks */
};

struct trib_server {
    struct trib_window w; /* of the rank as a worker: flight q mod n carries block q */
    uint32_t servers;     /* ranks 0 to servers - 1 are servers */
    uint32_t slots;       /* blocks that each server collects at once */
    uint32_t nranks;
    unsigned first;           /* rank that gets results first; the others follow in order */
    struct trib_block *block; /* NULL: this rank is no server */
    /* The rest is private. */
    uint32_t head_bytes, at, queued;
    char *memory;
    uint32_t *queue; /* ring of blocks with results to send */
};

/* What a contribution to block seq by some ranks means for its slot. */
enum trib_part {
    TRIB_PART_NEW,
    TRIB_PART_TWICE, /* a rank has contributed already */
    TRIB_PART_KEPT,  /* the block's result is kept: the rank may have missed it */
    TRIB_PART_LATE,  /* the slot neither collects this block nor keeps its result */
};

/* Frees what open() has allocated, including r->self. */
static inline void trib_server_close(struct trib_rank *r)
{
    struct trib_server *v = (struct trib_server *)r->self;

    if (v) {
        free(v->block);
        free(v->memory);
        free(v->queue);
    }
    trib_window_close(r);
}

/* Allocates the blocks of a server, with `own` zeroed bytes each. */
static inline int trib_server_blocks(struct trib_rank *r, size_t own)
{
    struct trib_server *v = (struct trib_server *)r->self;

    own = (own + 15) & ~(size_t)15;
    v->block = (struct trib_block *)calloc(v->slots, sizeof(*v->block));
    v->memory = (char *)calloc(v->slots, own);
    v->queue = (uint32_t *)calloc(v->slots, sizeof(*v->queue));
    if (!v->block || !v->memory || !v->queue)
        return -ENOMEM;
    for (uint32_t i = 0; i < v->slots; i++) {
        v->block[i].seq = i * (uint64_t)v->servers + r->rank;
        v->block[i].own = v->memory + i * own;
    }
    return 0;
}

/*
 * Allocates r->self, `bytes` zeroed bytes that begin with the server; a window of servers x slots flights; and,
 * if r is one of the servers, its slots, with `own` bytes for each. Results have heads of head_bytes. The
 * other parameters are those of trib_window_open(). 0; -ENOMEM; -EINVAL, after trib_refuse(): there are
 * fewer ranks than servers. On an error nothing stays allocated.
 */
static inline int trib_server_open(struct trib_rank *r, size_t bytes, uint32_t servers,
                                   uint32_t slots, size_t own, uint32_t head_bytes,
                                   int64_t timeout_ps, int64_t patience_ps, trib_window_send *send)
{
    struct trib_server *v;
    int rc;

    if (servers > r->nranks)
        return trib_refuse(r, "servers: found %u, expected at most the number of ranks, %u",
                           servers, r->nranks);
    rc = trib_window_open(r, bytes, servers * slots, timeout_ps, patience_ps, send);
    if (rc)
        return rc;
    v = (struct trib_server *)r->self;
    v->servers = servers;
    v->slots = slots;
    v->nranks = r->nranks;
    v->head_bytes = head_bytes;
    rc = r->rank < servers ? trib_server_blocks(r, own) : 0;
    if (rc)
        trib_server_close(r);
    return rc;
}

/* The slot of block seq. seq may come from a packet: any number is valid. */
static inline struct trib_block *trib_server_block(const struct trib_server *v, uint64_t seq)
{
    return &v->block[seq / v->servers % v->slots];
}

static inline enum trib_part trib_server_part(const struct trib_server *v,
                                              const struct trib_block *b, uint64_t seq,
                                              const uint16_t *ranks, unsigned n)
{
    if (b->bytes && seq == b->seq - (uint64_t)v->slots * v->servers)
        return TRIB_PART_KEPT;
    if (seq != b->seq)
        return TRIB_PART_LATE;
    for (unsigned i = 0; i < n; i++)
        if (trib_ranks_has(&b->seen, ranks[i]))
            return TRIB_PART_TWICE;
    return TRIB_PART_NEW;
}

/* Adds ranks to a block. True: all ranks have contributed. */
static inline bool trib_server_seen(const struct trib_server *v, struct trib_block *b,
                                    const uint16_t *ranks, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        b->n_seen += trib_ranks_add(&b->seen, ranks[i]);
    return b->n_seen == v->nranks;
}

/* Completes a block: keeps its head and result, and begins to collect the slot's next block. data stays the
 * protocol's, and must not change until the next complete(). */
static inline void trib_server_complete(struct trib_server *v, struct trib_block *b,
                                        const void *head, const void *data, uint32_t bytes)
{
    memcpy(b->head, head, v->head_bytes);
    b->data = data;
    b->bytes = bytes;
    b->seq += (uint64_t)v->slots * v->servers;
    b->n_seen = 0;
    trib_ranks_clear(&b->seen, v->nranks);
    trib_ranks_clear(&b->switches, v->nranks);
    trib_ranks_clear(&b->ranks, v->nranks);
}

/* Sends a block's result to these receivers. False: no buffer is free. */
static inline bool trib_server_send(const struct trib_server *v, struct trib_rank *r,
                                    const struct trib_block *b, struct trib_ranks *to, bool ranks)
{
    for (unsigned turn = 0; turn < 2; turn++) {
        unsigned end = turn ? v->first : v->nranks;

        for (unsigned t = turn ? 0 : v->first; (t = trib_ranks_next(to, t, end)) < end;) {
            if (!r->api->send(r, ranks ? TRIB_RANK((int)t) : TRIB_SWITCH_OF((int)t), b->head,
                              v->head_bytes, b->data, b->bytes))
                return false;
            trib_ranks_remove(to, t);
        }
    }
    return true;
}

/* Sends results that are due, while there are buffers. */
static inline void trib_server_pay(struct trib_rank *r)
{
    struct trib_server *v = (struct trib_server *)r->self;

    while (v->queued) {
        struct trib_block *b = &v->block[v->queue[v->at]];

        if (!trib_server_send(v, r, b, &b->switches, false) ||
            !trib_server_send(v, r, b, &b->ranks, true))
            return;
        b->queued = false;
        v->at = (v->at + 1) % v->slots;
        v->queued--;
    }
}

/* Sends a block's result to its receivers now, or when there are buffers. */
static inline void trib_server_queue(struct trib_rank *r, struct trib_block *b)
{
    struct trib_server *v = (struct trib_server *)r->self;

    if (!b->queued)
        v->queue[(v->at + v->queued++) % v->slots] = (uint32_t)(b - v->block);
    b->queued = true;
    trib_server_pay(r);
}

/* Sends the kept result to first switches (by their lowest rank) and to ranks, now or when there are
 * buffers. NULL: to none of these. */
static inline void trib_server_owe(struct trib_rank *r, struct trib_block *b,
                                   const struct trib_ranks *switches,
                                   const struct trib_ranks *ranks)
{
    if (switches)
        trib_ranks_join(&b->switches, switches, r->nranks);
    if (ranks)
        trib_ranks_join(&b->ranks, ranks, r->nranks);
    trib_server_queue(r, b);
}

/* Sends the kept result to one rank. */
static inline void trib_server_owe_rank(struct trib_rank *r, struct trib_block *b, unsigned rank)
{
    trib_ranks_add(&b->ranks, rank);
    trib_server_queue(r, b);
}

static inline void trib_server_room(struct trib_rank *r)
{
    if (((struct trib_server *)r->self)->w.failed)
        return;
    trib_server_pay(r);
    trib_window_pump(r);
}

static inline void trib_server_timer(struct trib_rank *r)
{
    if (trib_window_overdue(r))
        trib_server_room(r);
}

#endif
