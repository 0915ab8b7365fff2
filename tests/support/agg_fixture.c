/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/agg_fixture.h"

#include "tests/support/eal.h"
#include "tests/support/reduce_ref.h"

#include <rte_mempool.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define AGG_FIXTURE_MBUFS 12000u
#define PARTS             4095u
#define FEW_PARTS         9u
#define AGG_FIXTURE_STEPS 4000000u
#define NODES             256u

uint64_t agg_fixture_random(struct agg_fixture *b, uint64_t below)
{
    return below ? random_next(&b->rng) % below : 0;
}

void *agg_fixture_alloc(struct agg_fixture *b, size_t bytes)
{
    void **p = calloc(1, bytes + 64);

    assert_non_null(p);
    *p = b->arena;
    b->arena = p;
    return (uint8_t *)p + 64;
}

/* ---- wires ---- */

static int party_of(struct agg_fixture *b, struct rte_mbuf *m)
{
    struct roce_pkt k;
    int d;

    if (roce_parse(m, &k) != ROCE_OK)
        return -1;
    d = fabric_dest_of_ip(b->f, k.dst_ip);
    return d < 0 ? -1 : b->f->dests[d].node;
}

static void put(struct agg_fixture *b, uint16_t src, struct rte_mbuf *m, uint16_t dst)
{
    int64_t *last = &b->last[src * NODES + dst];
    int64_t due = b->now + PS_PER_US + (int64_t)agg_fixture_random(b, (uint64_t)b->cfg.jitter_ps);

    if (due <= *last)
        due = *last + 1;
    *last = due;
    if (b->n_flights == b->max_flights) {
        b->max_flights = b->max_flights * 2 + 64;
        b->flight = realloc(b->flight, b->max_flights * sizeof(b->flight[0]));
    }
    b->flight[b->n_flights++] = (struct flight){m, dst, due, b->sent++};
}

static uint32_t sum_of(const struct rte_mbuf *m)
{
    uint32_t s = 1;

    for (; m; m = m->next)
        for (uint32_t i = 0; i < m->data_len; i++)
            s = s * 31 + rte_pktmbuf_mtod(m, const uint8_t *)[i];
    return s;
}

/* Keeps a reference to some frames, as a capture does: no receiver may overwrite shared bytes. */
static void witness(struct agg_fixture *b, struct rte_mbuf *m)
{
    struct witness *w = &b->witness[b->n_witnesses];

    if (b->n_witnesses < 256 && agg_fixture_random(b, 16) == 0) {
        w->m = frame_clone(m, b->pool);
        w->sum = sum_of(m);
        b->n_witnesses += w->m != NULL;
    }
}

static void transmit(struct agg_fixture *b, uint16_t src, struct rte_mbuf *m)
{
    int dst = party_of(b, m);

    if (dst < 0)
        fail_msg("a frame that goes nowhere");
    b->shared += m->nb_segs == 3;
    if (agg_fixture_random(b, 10000) < b->cfg.loss) {
        rte_pktmbuf_free(m);
        return;
    }
    witness(b, m);
    if (agg_fixture_random(b, 10000) < b->cfg.dup) {
        struct rte_mbuf *c = frame_clone(m, b->pool);

        if (c)
            put(b, src, c, (uint16_t)dst);
    }
    if (agg_fixture_random(b, 2) &&
        !frame_meta(m)->virt_len) { /* as a memif does: flat, a buffer of its own */
        struct rte_mbuf *c = frame_alloc(b->pool);

        assert_non_null(c);
        for (struct rte_mbuf *s = m; s; s = s->next)
            memcpy(rte_pktmbuf_append(c, s->data_len), rte_pktmbuf_mtod(s, void *), s->data_len);
        *frame_meta(c) = (struct frame_meta){.cls = frame_meta(m)->cls};
        rte_pktmbuf_free(m);
        m = c;
    }
    put(b, src, m, (uint16_t)dst);
}

static struct member *member_of_frame(struct agg_fixture *b, uint16_t node, struct rte_mbuf *m)
{
    struct roce_pkt k;

    if (roce_parse(m, &k) != ROCE_OK)
        return NULL;
    for (unsigned i = 0; i < b->n; i++)
        if (b->member[i].host == node && b->member[i].slot == (k.dqpn >> 16) - 1)
            return &b->member[i];
    return NULL;
}

static void arrive(struct agg_fixture *b, const struct flight *fl)
{
    struct rte_mbuf *m = fl->m;
    struct endpoint ep;

    frame_meta(m)->due_ps = fl->due;
    if (b->f->nodes[fl->dst].kind == FAB_SWITCH) {
        if (b->an_dead[fl->dst] && b->keep) {
            b->keep = false;
            b->kept = m;
            return;
        }
        if (!b->an[fl->dst] || b->an_dead[fl->dst]) {
            rte_pktmbuf_free(m);
            return;
        }
        ep = an_endpoint(b->an[fl->dst]);
    } else {
        struct member *mb = member_of_frame(b, fl->dst, m);

        if (!mb || mb->deaf) {
            rte_pktmbuf_free(m);
            return;
        }
        ep = mb->ep;
    }
    assert_int_equal(ep.input(ep.ctx, &m, 1, b->now), 1);
}

static unsigned pull(struct agg_fixture *b, uint16_t node, const struct endpoint *ep)
{
    struct rte_mbuf *m[4];
    unsigned moved = 0;

    if (ep->next(ep->ctx) > b->now)
        return 0;
    ep->tick(ep->ctx, b->now);
    for (int q = 0; q < ENDPOINT_QUEUES; q++) {
        uint16_t n = ep->output(ep->ctx, q, m, (uint16_t)(1 + agg_fixture_random(b, 4)), b->now);

        for (unsigned i = 0; i < n; i++)
            transmit(b, node, m[i]);
        moved += n;
    }
    return moved;
}

/* ---- running ---- */

void agg_fixture_peer_down(struct member *m, uint32_t qpn)
{
    struct agg_fixture *b = m->b;
    struct agg_ctl c = {.magic = RTE_BE32(AGG_MAGIC),
                        .version = AGG_VERSION,
                        .type = AGG_PEER_DOWN,
                        .qpn = rte_cpu_to_be_32(qpn)};
    struct roce_pkt k = {.opcode = ROCE_OP_UD_SEND_ONLY,
                         .ttl = 64,
                         .pkey = ROCE_DEFAULT_PKEY,
                         .src_ip = b->f->nodes[m->host].ip_of_port[0],
                         .dst_ip = member_an_ip(m),
                         .dqpn = AGG_QPN,
                         .qkey = AGG_QKEY,
                         .sqpn = AGG_NIC_QPN,
                         .len = sizeof(c)};
    struct rte_mbuf *f = frame_alloc(b->pool);

    assert_non_null(f);
    roce_mac_of_ip(k.src_ip, k.src_mac);
    roce_mac_of_ip(k.dst_ip, k.dst_mac);
    roce_build(f, &k);
    memcpy(rte_pktmbuf_mtod_offset(f, uint8_t *, k.hdr_len), &c, sizeof(c));
    roce_seal(f, &k);
    transmit(b, m->host, f);
}

void agg_fixture_kill(struct member *m, bool announced)
{
    if (announced)
        agg_fixture_peer_down(m, (m->slot + 1u) << 16);
    m->deaf = true;
}

static int64_t serve_member(struct agg_fixture *b, struct member *m)
{
    int64_t t, next;

    if (m->deaf)
        return PS_NEVER;
    t = member_run(m);
    pull(b, m->host, &m->ep);
    next = m->ep.next(m->ep.ctx);
    return RTE_MIN(t, next);
}

/* Serves all members and ANs once, in a random order; returns the earliest next deadline. */
static int64_t serve_all(struct agg_fixture *b)
{
    unsigned parties = b->n + b->f->n_nodes, at = (unsigned)agg_fixture_random(b, parties);
    int64_t next = PS_NEVER;

    for (unsigned i = 0; i < parties; i++, at = (at + 1) % parties) {
        if (at < b->n) {
            int64_t t = serve_member(b, &b->member[at]);

            next = RTE_MIN(next, t);
        } else if (b->an[at - b->n] && !b->an_dead[at - b->n]) {
            struct endpoint ep = an_endpoint(b->an[at - b->n]);
            int64_t t;

            pull(b, (uint16_t)(at - b->n), &ep);
            t = ep.next(ep.ctx);
            next = RTE_MIN(next, t);
        }
    }
    return next;
}

/* Delivers the frames that are due, in order of time. Returns now if there were any, else the time
 * of the next one. */
static int64_t deliver(struct agg_fixture *b)
{
    bool any = false;

    for (;;) {
        unsigned best = b->n_flights;

        for (unsigned i = 0; i < b->n_flights; i++)
            if (best == b->n_flights || b->flight[i].due < b->flight[best].due ||
                (b->flight[i].due == b->flight[best].due &&
                 b->flight[i].order < b->flight[best].order))
                best = i;
        if (best == b->n_flights)
            return any ? b->now : PS_NEVER;
        if (b->flight[best].due > b->now)
            return any ? b->now : b->flight[best].due;
        any = true;
        struct flight fl = b->flight[best];

        b->flight[best] = b->flight[--b->n_flights];
        arrive(b, &fl);
        for (unsigned i = 0; i < b->n; i++)
            member_take_control(&b->member[i]);
    }
}

static bool run(struct agg_fixture *b, bool (*done)(struct agg_fixture *b), int64_t end)
{
    for (unsigned steps = 0; steps < AGG_FIXTURE_STEPS; steps++) {
        int64_t next, t;

        if (done && done(b))
            return true;
        next = serve_all(b);
        t = deliver(b);
        next = RTE_MIN(next, t);
        if (next == PS_NEVER)
            return done && done(b);
        if (next > end)
            return false;
        if (next > b->now)
            b->now = next;
    }
    fail_msg("the fixture does not come to rest");
    return false;
}

bool agg_fixture_run(struct agg_fixture *b, bool (*done)(struct agg_fixture *b), int64_t limit_ps)
{
    return run(b, done, b->now + limit_ps);
}

void agg_fixture_settle(struct agg_fixture *b, int64_t ps)
{
    int64_t end = b->now + ps;

    run(b, NULL, end);
    b->now = end;
}

#define ALL(name, condition)                                                                       \
    bool name(struct agg_fixture *b)                                                               \
    {                                                                                              \
        for (unsigned i = 0; i < b->n; i++) {                                                      \
            const struct member *m = &b->member[i];                                                \
                                                                                                   \
            if (!m->deaf && !(condition))                                                          \
                return false;                                                                      \
        }                                                                                          \
        return true;                                                                               \
    }
ALL(agg_fixture_all_in, m->state != MEMBER_ASKING)
ALL(agg_fixture_all_done, m->state != MEMBER_IN || !m->busy)
ALL(agg_fixture_all_aborted, m->state == MEMBER_ABORTED)
ALL(agg_fixture_all_left, m->state != MEMBER_LEAVING)

/* ---- life of the fixture ---- */

struct member *agg_fixture_group(struct agg_fixture *b, uint16_t tree, uint32_t id, uint16_t mtu,
                                 uint32_t window, uint16_t ranks_per_host, const unsigned *ids,
                                 unsigned n)
{
    struct member *first = &b->member[b->n];
    struct agg_fixture_group g = {.tree = tree, .id = id, .mtu = mtu, .window = window};

    g.key = random_next(&b->rng);
    g.members.ranks_per_host = ranks_per_host;
    for (unsigned i = 0; i < n; i++)
        fab_members_add(&g.members, ids[i]);
    for (unsigned i = 0; i < n; i++) {
        struct member *m = &b->member[b->n];

        assert_true(b->n < AGG_FIXTURE_MEMBERS);
        *m = (struct member){.b = b, .id = ids[i], .g = g};
        m->host = b->f->hosts[ids[i] / ranks_per_host];
        for (unsigned k = 0; k < b->n; k++)
            m->slot += b->member[k].host == m->host;
        m->ip = b->f->nodes[m->host].ip_of_port[0];
        member_create(b, m);
        b->n++;
    }
    return first;
}

/* By the seed: results are copied, shared, or now and then the one and now the other. */
static struct rte_mempool *parts_of(uint64_t seed)
{
    static struct rte_mempool *parts[2];

    if (!parts[0]) {
        parts[0] = frame_parts_create("parts0", PARTS, 0);
        parts[1] = frame_parts_create("parts1", FEW_PARTS, 0);
    }
    assert_true(parts[0] && parts[1]);
    return seed % 3 ? parts[seed % 3 - 1] : NULL;
}

static bool linked(void *ctx, uint16_t node)
{
    return !((struct agg_fixture *)ctx)->unlinked[node];
}

struct agg_fixture *agg_fixture_create(const struct agg_fixture_cfg *cfg)
{
    static struct fab_errors errs;
    static struct rte_mempool *pool; /* every fixture leaves it full */
    struct agg_fixture *b = calloc(1, sizeof(*b));

    test_eal_init();
    b->cfg = *cfg;
    if (!b->cfg.jitter_ps)
        b->cfg.jitter_ps = 20 * PS_PER_US;
    b->rng = cfg->seed;
    b->f = fabric_load_string(cfg->conf, "fixture.conf", &errs);
    if (!b->f) {
        fab_errors_print(&errs, stderr);
        fail_msg("conf");
    }
    assert_true(b->f->n_nodes <= NODES);
    if (!pool ||
        rte_mempool_avail_count(pool) != AGG_FIXTURE_MBUFS) /* a test that failed left it so */
        pool = test_pool(AGG_FIXTURE_MBUFS);
    b->pool = pool;
    b->parts = parts_of(cfg->seed);
    b->last = calloc(NODES * NODES, sizeof(b->last[0]));
    for (uint16_t i = 0; i < b->f->n_nodes; i++) {
        struct an_cfg ac = {.fab = b->f,
                            .node = i,
                            .pool = b->pool,
                            .parts = b->parts,
                            .mbuf_budget = cfg->mbuf_budget ? cfg->mbuf_budget : 1000000,
                            .linked = linked,
                            .linked_ctx = b};

        if (b->f->nodes[i].kind == FAB_SWITCH)
            assert_int_equal(an_create(&b->an[i], &ac), 0);
    }
    return b;
}

void agg_fixture_destroy(struct agg_fixture *b)
{
    for (unsigned i = 0; i < b->n; i++)
        if (!b->member[i].deaf && b->member[i].state != MEMBER_OUT &&
            b->member[i].state != MEMBER_LEFT)
            agg_fixture_leave(&b->member[i]);
    if (!agg_fixture_run(b, agg_fixture_all_left, 400 * PS_PER_MS))
        fail_msg("members cannot leave");
    agg_fixture_settle(b, 400 * PS_PER_MS);
    for (unsigned i = 0; i < b->n_flights; i++)
        rte_pktmbuf_free(b->flight[i].m);
    for (unsigned i = 0; i < b->n_witnesses; i++) {
        if (sum_of(b->witness[i].m) != b->witness[i].sum)
            fail_msg("a frame was changed after it was sent");
        rte_pktmbuf_free(b->witness[i].m);
    }
    for (unsigned i = 0; i < b->n; i++) {
        struct member *m = &b->member[i];

        qp_destroy(m->ctl);
        qp_destroy(m->qp);
        rnic_destroy(m->r);
        rq_destroy(m->ctl_rq);
    }
    for (unsigned i = 0; i < b->f->n_nodes; i++)
        if (b->an[i] && !b->an_dead[i])
            if (!an_idle(b->an[i]))
                fail_msg("%s is not idle", b->f->nodes[i].name);
    for (unsigned i = 0; i < b->f->n_nodes; i++)
        if (b->an_dead[i])
            an_destroy(b->an[i]), b->an[i] = NULL;
    if (rte_mempool_avail_count(b->pool) != AGG_FIXTURE_MBUFS)
        fail_msg("%u mbufs are missing", AGG_FIXTURE_MBUFS - rte_mempool_avail_count(b->pool));
    if (b->parts && rte_mempool_avail_count(b->parts) != b->parts->size)
        fail_msg("%u parts are missing", b->parts->size - rte_mempool_avail_count(b->parts));
    for (unsigned i = 0; i < b->f->n_nodes; i++)
        an_destroy(b->an[i]);
    fabric_free(b->f);
    for (void *p = b->arena, *next; p; p = next) {
        next = *(void **)p;
        free(p);
    }
    free(b->flight);
    free(b->last);
    free(b);
}

/* ---- what is right ---- */

static void reference(struct agg_fixture *b, uint16_t node, const struct member *first, unsigned n,
                      enum redop op, enum dtype t, size_t count, void *out)
{
    struct fab_child child[ARITH_MAX_INPUTS];
    unsigned k = fab_group_children(b->f, &b->f->trees[first->g.tree], node, &first->g.members,
                                    child, ARITH_MAX_INPUTS);
    const void *in[ARITH_MAX_INPUTS];

    for (unsigned i = 0; i < k; i++) {
        in[i] = NULL;
        for (unsigned j = 0; j < n && child[i].is_member; j++)
            if (first[j].id == child[i].member)
                in[i] = first[j].op.in;
        if (!child[i].is_member) {
            void *below = agg_fixture_alloc(b, count * 8 + 8);

            reference(b, child[i].node, first, n, op, t, count, below);
            in[i] = below;
        }
        assert_non_null(in[i]);
    }
    ref_reduce(op, t, in, k, count, out);
}

void agg_fixture_reference(struct agg_fixture *b, const struct member *first, unsigned n,
                           enum redop op, enum dtype t, size_t count, void *out)
{
    uint16_t top = fab_group_top(b->f, &b->f->trees[first->g.tree], &first->g.members);

    reference(b, top, first, n, op, t, count, out);
}
