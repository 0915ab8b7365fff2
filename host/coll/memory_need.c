/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/coll/memory_need.h"

#include "host/coll/transport/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * Memory of a connection's end without traffic: a page with itself and its credit word, its queue
 * pair, the first pages of its rings, two memory regions. Messages touch more of the rings, up to
 * all of them. tests/e2e/memory.sh compares this with measurements.
 */
#define CONN_BYTES       13000u
#define CONN_DENSE_BYTES 28000u /* with all of its rings */
#define SQ_BYTES         56u    /* a work request, in the pages that are not touched at first */
#define CQ_BYTES         64u    /* a completion */
#define PAGE             4096u
#define SAMPLES          5u

/* Whether the rank uses this connection for the first time. conn_seen: [nranks *
 * SCHED_MAX_CHANS]. */
static bool first_use(const struct coll_memory_cfg *cfg, uint8_t *conn_seen, unsigned peer,
                      unsigned chan)
{
    uint8_t *m =
        &conn_seen[(size_t)(peer % cfg->nranks) * SCHED_MAX_CHANS + chan % SCHED_MAX_CHANS];
    bool was = *m;

    *m = 1;
    return !was;
}

static void add_conn(const struct coll_memory_cfg *cfg, const struct topo *t, uint8_t *conn_seen,
                     unsigned peer, unsigned chan, struct coll_memory *n)
{
    if (!first_use(cfg, conn_seen, peer, chan))
        return;
    n->conns++;
    n->conn_bytes += cfg->dense ? CONN_DENSE_BYTES : CONN_BYTES;
    n->address_bytes += (uint64_t)sched_slots(&t->sched) * SCHED_SLICE_MAX;
}

/* As comm_connect() does: connects the neighbours in the ring, if any algorithm sends to ranks. */
static void add_neighbours(const struct coll_memory_cfg *cfg, const struct topo *t, unsigned rank,
                           uint8_t *conn_seen, struct coll_memory *n)
{
    unsigned ranks = cfg->nranks, next[2] = {(rank + ranks - 1) % ranks, (rank + 1) % ranks};
    struct fab_channel ch[SCHED_MAX_CHANS];

    for (unsigned i = 0; i < 2 && ranks > 1 && cfg->algos & ~(1u << ALGO_SHARP); i++)
        for (unsigned k = topo_channels(t, rank, next[i], ch, SCHED_MAX_CHANS); k-- > 0;)
            add_conn(cfg, t, conn_seen, next[i], k, n);
}

/* Bytes of the slots that receive messages: those that steps read from slots, and those whose
 * receives were posted before the operation. After some operations every slot has been used. */
static uint64_t slot_bytes(const struct coll_memory_cfg *cfg, const struct lane *l, unsigned depth)
{
    uint64_t in_slots = 0, most = 0;

    for (uint32_t i = 0; i < l->n; i++) {
        const struct step *st = lane_step(l, i);

        if (st->dst.buf == BUF_SLOT ? st->a.buf == BUF_NONE : i < CONN_AHEAD) {
            in_slots++;
            most = RTE_MAX(most, st->len);
        }
    }
    return RTE_MIN(in_slots * cfg->ops, depth) * RTE_ALIGN(most, PAGE);
}

/* Data kept of messages sent to an aggregation node: two windows (failover_keep_create()). */
static uint64_t kept_bytes(const struct coll_memory_cfg *cfg, const struct lane *l)
{
    uint64_t sent = 0, most = 2ull * agg_window(cfg->fab, cfg->window) * cfg->fab->mtu;

    for (uint32_t i = 0; i < l->n && sent < most; i++)
        sent += lane_step(l, i)->len;
    return cfg->dense ? most : RTE_MIN(sent * cfg->ops, most);
}

/* Touched bytes of a queue pair's rings beyond their beginnings. */
static uint64_t ring_bytes(const struct coll_memory_cfg *cfg, const struct lane *l, unsigned depth)
{
    uint64_t msgs = RTE_MIN((uint64_t)l->n * cfg->ops, 2 * depth);

    return msgs * (CQ_BYTES + (l->kind == LANE_SEND ? SQ_BYTES : 0));
}

static int add_algo(const struct coll_memory_cfg *cfg, const struct topo *t, unsigned rank,
                    enum coll_algo algo, uint8_t *conn_seen, struct coll_memory *n)
{
    const struct coll_args *a = &cfg->args;
    struct sched_in in = {.kind = a->kind,
                          .algo = algo,
                          .rank = rank,
                          .nranks = cfg->nranks,
                          .root = a->root,
                          .count = a->count,
                          .type = a->type,
                          .op = a->op,
                          .mtu = cfg->fab->mtu,
                          .sparse = a->sparse,
                          .mm_self = a->mm_self,
                          .topo = &t->sched,
                          .file = a->file};
    unsigned depth = sched_slots(&t->sched);
    struct sched s;
    uint64_t bytes;
    int rc = sched_init(&s, &in);

    if (rc)
        return rc;
    bytes = sizeof(struct coll_req) + s.n_lanes * (sizeof(*s.lane) + sizeof(struct lane_run));
    for (unsigned i = 0; i < s.n_lanes; i++) {
        const struct lane *l = &s.lane[i];

        if (l->kind == LANE_PROTOCOL)
            n->conn_bytes += protocol_memory(cfg->fab->mtu);
        bytes += l->n * lane_stride(l) * 9 / 8; /* lanes grow by doubling */
        if (l->kind == LANE_AGG && !cfg->lengths)
            n->data_bytes += kept_bytes(cfg, l);
        if (l->kind != LANE_SEND && l->kind != LANE_RECV)
            continue;
        add_conn(cfg, t, conn_seen, l->peer, l->chan, n);
        if (!cfg->dense)
            n->conn_bytes += ring_bytes(cfg, l, depth);
        if (l->kind == LANE_RECV && !cfg->lengths)
            n->data_bytes += slot_bytes(cfg, l, depth);
    }
    if (!cfg->lengths)
        n->data_bytes += s.tmp_bytes;
    n->sched_bytes = RTE_MAX(n->sched_bytes, bytes); /* one operation after the other */
    sched_free(&s);
    return 0;
}

static int rank_memory(const struct coll_memory_cfg *cfg, const struct topo *t, unsigned rank,
                       uint8_t *conn_seen, struct coll_memory *n)
{
    int rc = 0;

    *n = (struct coll_memory){0};
    memset(conn_seen, 0, (size_t)cfg->nranks * SCHED_MAX_CHANS);
    add_neighbours(cfg, t, rank, conn_seen, n);
    for (int algo = 0; algo < ALGO_COUNT && !rc; algo++)
        if (cfg->algos >> algo & 1)
            rc = add_algo(cfg, t, rank, (enum coll_algo)algo, conn_seen, n);
    return rc;
}

static void add_times(struct coll_memory *to, const struct coll_memory *n, uint64_t times,
                      uint64_t of)
{
    to->conns += n->conns * times / of;
    to->conn_bytes += n->conn_bytes * times / of;
    to->sched_bytes += n->sched_bytes * times / of;
    to->data_bytes += n->data_bytes * times / of;
    to->address_bytes += n->address_bytes * times / of;
}

#define LONG_BYTES (1ull << 30)

/* Shortens a long operation, as schedules grow in proportion to it. Returns the factor. */
static uint64_t op_shorten(struct coll_memory_cfg *cfg)
{
    struct coll_args *a = &cfg->args;
    bool vector = a->kind == COLL_ALLREDUCE || a->kind == COLL_REDUCE || a->kind == COLL_BROADCAST;
    uint64_t bytes = a->count * dtype_size(a->type) * (vector ? 1 : cfg->nranks);
    uint64_t times = bytes / LONG_BYTES;

    if (times < 2)
        return 1;
    a->count /= times;
    return times;
}

/* Sets the trees that protocols' jobs use. */
static void use_trees(const struct coll_memory_cfg *cfg, struct sched_topo *t)
{
    struct fab_members m;

    if (!cfg->tree || cfg->trees < 2 || !(cfg->algos & COLL_PROTOCOLS) ||
        !topo_members(cfg->fab, cfg->nranks, cfg->host_of_rank, &m, NULL))
        return;
    for (unsigned seat = 0; seat < PROTO_SEATS; seat++)
        if (proto_at(seat) && cfg->algos >> (ALGO_PROTOCOL + seat) & 1) {
            const struct protocol_trees of = protocol_choose_trees(
                cfg->fab, proto_at(seat), cfg->tree, cfg->trees, &m, COLL_TREES);

            t->protocol[seat] = protocol_shares(cfg->fab, &of, &m, 0);
        }
}

/* Computes the root, and SAMPLES ranks from the first to the last that stand for all others: those
 * differ in their local ranks only. */
int coll_memory_predict(const struct coll_memory_cfg *job, struct coll_memory *n)
{
    struct coll_memory_cfg shorter = *job;
    const struct coll_memory_cfg *cfg = &shorter;
    uint64_t times = op_shorten(&shorter);
    unsigned ranks = cfg->nranks, root = cfg->args.root, k = RTE_MIN(ranks, SAMPLES), others = 0;
    struct coll_memory sum = {0}, one;
    uint8_t *conn_seen = malloc((size_t)ranks * SCHED_MAX_CHANS);
    struct topo t = {0};
    int rc = conn_seen ? topo_init(&t, cfg->fab, 0, ranks, cfg->host_of_rank, cfg->trees) : -ENOMEM;

    *n = (struct coll_memory){0};
    t.sched.rail_trees = cfg->trees > 0;
    if (!rc)
        use_trees(cfg, &t.sched);
    if (!rc && !(rc = rank_memory(cfg, &t, root, conn_seen, &one)))
        add_times(n, &one, 1, 1);
    for (unsigned i = 0; i < k && !rc; i++) {
        unsigned rank = k > 1 ? i * (ranks - 1) / (k - 1) : 0;

        if (rank == root)
            continue;
        rc = rank_memory(cfg, &t, rank, conn_seen, &one);
        add_times(&sum, &one, 1, 1);
        others++;
    }
    if (others)
        add_times(n, &sum, ranks - 1, others);
    n->sched_bytes *= times;
    if (t.domain)
        topo_free(&t);
    free(conn_seen);
    return rc;
}
