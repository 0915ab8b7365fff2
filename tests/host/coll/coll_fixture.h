/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks in one thread: a communicator each over its own software HCA, and one switch's aggregation
 * node. Frames go from endpoint to endpoint after FIXTURE_LATENCY, in order, unless a predicate loses
 * them. No links, rates or queues: those are sim/'s.
 */
#ifndef TRIB_TESTS_HOST_COLL_COLL_FIXTURE_H
#define TRIB_TESTS_HOST_COLL_COLL_FIXTURE_H

#include "host/coll/coll.h"
#include "host/hca/hca.h"
#include "switch/reduce/an.h"
#include "tests/support/eal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define FIXTURE_RANKS   16
#define FIXTURE_WIRE    8192
#define FIXTURE_POOL    16384
#define FIXTURE_LATENCY (1 * PS_PER_US)
#define FIXTURE_TICK    (50 * PS_PER_MS)

struct fixture_frame {
    int64_t due;
    struct rte_mbuf *m;
    unsigned to;
};

struct fixture {
    struct fabric *fab;
    struct rte_mempool *pool;
    unsigned n;
    uint16_t host_of_rank[FIXTURE_RANKS];
    struct hca *hca[FIXTURE_RANKS];
    struct ibv_context *ctx[FIXTURE_RANKS];
    struct comm *comm[FIXTURE_RANKS];
    struct an *an;
    struct endpoint ep[FIXTURE_RANKS + 1]; /* the last one is the aggregation node's */
    unsigned slot[FIXTURE_RANKS];
    struct fixture_frame wire[FIXTURE_WIRE];
    uint64_t head, tail, frames;
    int64_t now, next_tick;
    bool (*drop)(uint64_t nth);
    void *buf[512]; /* users' buffers: registered, so they live as long as the communicators */
    unsigned n_bufs;
    bool cut[FIXTURE_RANKS]; /* frames from and to this rank are lost */
    bool an_dead;            /* and those of the aggregation node */
    unsigned an_mute;        /* and those of it to ranks with a bit here */
    bool failover_back;      /* by the usual policy, or by that: */
    unsigned n_policy;
    enum coll_algo policy[ALGO_COUNT];
    uint32_t an_mbufs; /* that it may promise; 0: half of the pool */
    /* Whether what a rank waits for is over; its empty polls, where a process would sleep, although
     * it is and the rank has not noticed. */
    bool (*over)(struct fixture *g, unsigned rank);
    bool was_over[FIXTURE_RANKS];
    uint8_t *blobs; /* until the ranks are connected */
    unsigned slept_over;
    uint64_t bytes,
        noted; /* of all frames, lost ones too, if `notes`: a number that any other bit or
                              moment changes */
    bool notes;
    struct fixture_idler {
        struct fixture *g;
        unsigned rank;
    } idler[FIXTURE_RANKS];
};

static void fixture_idle(void *ctx)
{
    const struct fixture_idler *i = ctx;
    struct fixture *g = i->g;

    g->slept_over += g->over && g->over(g, i->rank) && !g->was_over[i->rank];
}

static void fixture_progress(struct fixture *g, unsigned rank)
{
    do
        g->was_over[rank] = g->over && g->over(g, rank);
    while (comm_progress(g->comm[rank]) >= COMM_PROGRESS_MAX);
}

static struct fixture *fixture_new(unsigned n, unsigned per_host, uint32_t mtu,
                                   bool (*drop)(uint64_t nth))
{
    static struct fab_errors errs;
    struct fixture *g = calloc(1, sizeof(*g));
    char conf[512];

    test_eal_init();
    snprintf(
        conf, sizeof(conf),
        "name = \"rig\"; mtu = %u; single_switch = { hosts = 16; host_link = { rate = \"400Gb/s\"; "
        "latency = \"300ns\"; }; }; reduce = { groups = 4; slots = 1024; window = 128; };",
        mtu);
    g->fab = fabric_load_string(conf, "rig.conf", &errs);
    if (!g->fab)
        fab_errors_print(&errs, stderr);
    assert_non_null(g->fab);
    g->pool = test_pool(FIXTURE_POOL);
    g->n = n;
    g->drop = drop;
    for (unsigned r = 0; r < n; r++) {
        const struct fab_node *host = &g->fab->nodes[g->fab->hosts[r / per_host]];
        struct hca_cfg cfg = {.name = "trib0",
                              .ip = host->ip_of_port[0],
                              .slot = r % per_host,
                              .mtu = (uint16_t)mtu,
                              .rate_bps = 400000000000ULL,
                              .pool = g->pool,
                              .drv = {.idle = fixture_idle, .ctx = &g->idler[r]}};

        g->idler[r] = (struct fixture_idler){g, r};
        g->host_of_rank[r] = (uint16_t)(r / per_host);
        g->slot[r] = r % per_host;
        assert_int_equal(hca_create(&g->hca[r], &cfg), 0);
        g->ep[r] = hca_endpoint(g->hca[r]);
        g->ctx[r] = ibv_open_device(hca_device(g->hca[r]));
        assert_non_null(g->ctx[r]);
    }
    for (uint16_t i = 0; i < g->fab->n_nodes; i++)
        if (g->fab->nodes[i].kind == FAB_SWITCH) {
            struct an_cfg cfg = {
                .fab = g->fab, .node = i, .pool = g->pool, .mbuf_budget = FIXTURE_POOL / 2};

            assert_int_equal(an_create(&g->an, &cfg), 0);
            g->ep[n] = an_endpoint(g->an);
        }
    return g;
}

/* Which endpoint a frame is for: the address in the destination MAC, and of a host's processes the
 * QPN's top 8 bits. */
static unsigned fixture_dest(const struct fixture *g, struct rte_mbuf *m)
{
    const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);
    uint32_t ip = (uint32_t)p[2] << 24 | (uint32_t)p[3] << 16 | (uint32_t)p[4] << 8 | p[5];
    unsigned top = p[14 + 20 + 8 + 5], slot = top ? top - 1 : 0;

    for (unsigned r = 0; r < g->n; r++)
        if (g->fab->nodes[g->fab->hosts[g->host_of_rank[r]]].ip_of_port[0] == ip &&
            g->slot[r] == slot)
            return r;
    return g->n;
}

static bool fixture_lost(struct fixture *g, unsigned from, unsigned to)
{
    if ((from < g->n && g->cut[from]) || (to < g->n && g->cut[to]))
        return true;
    if (from == g->n && to < g->n && g->an_mute >> to & 1)
        return true;
    if (g->an_dead && (from == g->n || to == g->n))
        return true;
    return g->drop && g->drop(g->frames);
}

/* A number that depends on each of the bytes, and on what was noted before. */
static inline uint64_t fixture_note(uint64_t noted, const void *what, size_t bytes)
{
    for (const uint8_t *p = what, *end = p + bytes; p < end; p++)
        noted = (noted ^ *p) * 0x100000001b3u;
    return noted;
}

static void fixture_note_frame(struct fixture *g, struct rte_mbuf *m, unsigned to)
{
    const uint64_t head[] = {(uint64_t)g->now, to, rte_pktmbuf_pkt_len(m)};

    g->bytes += rte_pktmbuf_pkt_len(m);
    g->noted = fixture_note(g->noted, head, sizeof(head));
    for (const struct rte_mbuf *s = m; s; s = s->next)
        g->noted = fixture_note(g->noted, rte_pktmbuf_mtod(s, const void *), s->data_len);
}

static unsigned fixture_collect(struct fixture *g, unsigned e)
{
    unsigned moved = 0;

    for (unsigned q = 0; q < ENDPOINT_QUEUES; q++) {
        struct rte_mbuf *m[32];
        uint16_t n = g->ep[e].output(g->ep[e].ctx, (enum endpoint_queue)q, m, 32, g->now);

        for (uint16_t i = 0; i < n; i++) {
            unsigned to = fixture_dest(g, m[i]);

            g->frames++;
            if (g->notes)
                fixture_note_frame(g, m[i], to);
            if (fixture_lost(g, e, to)) {
                rte_pktmbuf_free(m[i]);
                continue;
            }
            assert_true(g->tail - g->head < FIXTURE_WIRE);
            g->wire[g->tail++ % FIXTURE_WIRE] =
                (struct fixture_frame){g->now + FIXTURE_LATENCY, m[i], to};
        }
        moved += n;
    }
    return moved;
}

/* One instant: delivers every frame that is due and runs what follows from it. */
static bool fixture_step(struct fixture *g, int64_t limit)
{
    int64_t t = limit;

    for (unsigned moved = 1; moved;) {
        moved = 0;
        for (unsigned e = 0; e <= g->n; e++)
            moved += fixture_collect(g, e);
    }
    if (g->head < g->tail && g->wire[g->head % FIXTURE_WIRE].due < t)
        t = g->wire[g->head % FIXTURE_WIRE].due;
    for (unsigned e = 0; e <= g->n; e++) {
        int64_t next = g->ep[e].next(g->ep[e].ctx);

        t = next && next < t ? next : t;
    }
    if (t >= limit)
        return false;
    g->now = t > g->now ? t : g->now;
    while (g->head < g->tail && g->wire[g->head % FIXTURE_WIRE].due <= g->now) {
        struct fixture_frame *f = &g->wire[g->head++ % FIXTURE_WIRE];

        frame_meta(f->m)->due_ps = f->due;
        assert_int_equal(g->ep[f->to].input(g->ep[f->to].ctx, &f->m, 1, g->now), 1);
    }
    for (unsigned e = 0; e <= g->n; e++)
        g->ep[e].tick(g->ep[e].ctx, g->now);
    for (unsigned r = 0; r < g->n; r++)
        if (g->comm[r])
            fixture_progress(g, r);
    return true;
}

/* Runs until until() holds, or for at most `span` of time. ticks: the communicators'
 * clock runs, too. */
static bool fixture_run(struct fixture *g, int64_t span, bool ticks,
                        bool (*until)(struct fixture *))
{
    int64_t end = g->now + span;

    while (!until(g) && g->now < end) {
        int64_t limit = ticks && g->next_tick < end ? g->next_tick : end;

        if (fixture_step(g, limit))
            continue;
        g->now = limit;
        if (!ticks)
            break;
        g->next_tick = g->now + FIXTURE_TICK;
        for (unsigned r = 0; r < g->n; r++)
            if (g->comm[r]) {
                comm_tick(g->comm[r], g->now / PS_PER_NS);
                fixture_progress(g, r);
            }
    }
    return until(g);
}

static int64_t fixture_now_ps(void *ctx)
{
    return ((const struct fixture *)ctx)->now;
}

/* Communicators of all ranks. bad_key: that rank has another key; FIXTURE_RANKS: none. */
static void fixture_create(struct fixture *g, unsigned algos, unsigned bad_key)
{
    char err[COMM_TEXT] = "";

    g->blobs = calloc(g->n, COMM_BLOB);
    for (unsigned r = 0; r < g->n; r++) {
        struct comm_cfg cfg = {.n_ctx = 1,
                               .ctx = &g->ctx[r],
                               .fab = g->fab,
                               .rank = r,
                               .nranks = g->n,
                               .host_of_rank = g->host_of_rank,
                               .group = 7,
                               .key = r == bad_key ? 1 : 0x5ec3e7,
                               .algos = algos,
                               .now_ps = fixture_now_ps,
                               .now_ctx = g,
                               .n_policy = g->failover_back ? g->n_policy : 1,
                               .policy = {algos & 1u << ALGO_SHARP ? ALGO_SHARP : ALGO_RING}};

        if (g->n_policy)
            memcpy(cfg.policy, g->policy, sizeof(cfg.policy));

        if (comm_create(&g->comm[r], &cfg, g->blobs + (size_t)r * COMM_BLOB, err))
            fail_msg("%s", err);
    }
}

static void fixture_connect(struct fixture *g, unsigned algos, unsigned bad_key)
{
    char err[COMM_TEXT] = "";

    fixture_create(g, algos, bad_key);
    for (unsigned r = 0; r < g->n; r++)
        if (comm_connect(g->comm[r], g->blobs, err))
            fail_msg("%s", err);
    free(g->blobs);
}

static bool fixture_all_in(struct fixture *g, enum comm_state s)
{
    for (unsigned r = 0; r < g->n; r++)
        if (!g->cut[r] && comm_state(g->comm[r]) != s)
            return false;
    return true;
}

static bool fixture_ready(struct fixture *g)
{
    return fixture_all_in(g, COMM_READY);
}

static inline bool fixture_failed(struct fixture *g)
{
    return fixture_all_in(g, COMM_FAILED);
}

static bool fixture_closed(struct fixture *g)
{
    for (unsigned r = 0; r < g->n; r++)
        if (!comm_closed(g->comm[r]))
            return false;
    return true;
}

static bool fixture_never(struct fixture *g)
{
    (void)g;
    return false;
}

/* Registered memory of a rank. */
static inline void *fixture_buffer(struct fixture *g, unsigned rank, size_t bytes)
{
    void *p = calloc(1, bytes);

    assert_true(g->n_bufs < sizeof(g->buf) / sizeof(*g->buf));
    g->buf[g->n_bufs++] = p;
    assert_int_equal(comm_register(g->comm[rank], p, bytes), 0);
    return p;
}

/* Closes and destroys everything; no frame may be left. */
static inline void fixture_free(struct fixture *g, bool ticks)
{
    for (unsigned r = 0; r < g->n; r++)
        comm_close(g->comm[r]);
    assert_true(fixture_run(g, 5 * PS_PER_S, ticks, fixture_closed));
    for (unsigned r = 0; r < g->n; r++) {
        comm_destroy(g->comm[r]);
        g->comm[r] = NULL;
    }
    fixture_run(g, PS_PER_S, ticks, fixture_never);
    assert_true(g->an_dead || an_idle(g->an));
    for (unsigned r = 0; r < g->n; r++) {
        assert_int_equal(ibv_close_device(g->ctx[r]), 0);
        hca_destroy(g->hca[r]);
    }
    an_destroy(g->an);
    while (g->n_bufs)
        free(g->buf[--g->n_bufs]);
    while (g->head < g->tail)
        rte_pktmbuf_free(g->wire[g->head++ % FIXTURE_WIRE].m);
    assert_int_equal(rte_mempool_avail_count(g->pool), FIXTURE_POOL);
    rte_mempool_free(g->pool);
    fabric_free(g->fab);
    free(g);
}

/* Retransmissions, RNR NAKs and timeouts of all HCAs. */
static inline uint64_t fixture_troubles(const struct fixture *g)
{
    uint64_t n = 0;

    for (unsigned r = 0; r < g->n; r++) {
        const struct roce_counters *k = rnic_counters(hca_rnic(g->hca[r]));

        n += k->retransmits + k->timeouts + k->rnr_naks_sent + k->seq_naks_sent;
    }
    return n;
}

#endif
