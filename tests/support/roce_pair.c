/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/roce_pair.h"

#include "base/random.h"
#include "switch/queue/ecn.h"
#include "tests/support/eal.h"

#include <errno.h>
#include <rte_mempool.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DELAY_PS (2 * PS_PER_US)
#define LATE_PS  (9 * PS_PER_US)
#define RATE_BPS 400000000000ull

uint32_t pair_random(struct pair *p, uint32_t below)
{
    return (uint32_t)(random_next(&p->rng) % below);
}

static int mem(void *user, struct qp *qp, bool remote, uint32_t key, uint64_t addr, uint64_t len,
               unsigned access, void **out)
{
    struct side *s = user;
    struct region *g;

    (void)qp, (void)remote;
    if (key == 0 || key > s->n_regions || s->region[key - 1].gone)
        return -EINVAL;
    g = &s->region[key - 1];
    if (addr < g->addr || len > g->len || addr - g->addr > g->len - len)
        return -EFAULT;
    if ((g->access & access) != access)
        return -EACCES;
    *out = g->p ? (char *)g->p + (addr - g->addr) : NULL;
    return 0;
}

static void complete(void *user, const struct cqe *c)
{
    struct side *s = user;

    if (s->n_cqes < PAIR_MAX_CQES)
        s->cqe[s->n_cqes++] = *c;
    if (s->on_complete)
        s->on_complete(s, c);
}

static void event(void *user, struct qp *qp, enum qp_event e)
{
    (void)qp;
    ((struct side *)user)->events[e]++;
}

static enum sink_verdict sink(void *user, struct qp *qp, const struct roce_pkt *k,
                              struct rte_mbuf *m, int64_t now_ps)
{
    struct side *s = user;

    (void)now_ps;
    return s->sink ? s->sink(s, qp, k, m) : SINK_COPIED;
}

struct pair *pair_create(const struct pair_cfg *cfg)
{
    struct pair *p = calloc(1, sizeof(*p));

    assert_non_null(p);
    p->rng = cfg->seed;
    p->burst = 8;
    p->deferred = cfg->deferred;
    for (unsigned i = 0; i < 2; i++) {
        struct side *s = &p->s[i];
        struct rnic_cfg rc = {.ip = 0x0a000001 + i,
                              .qpn_base = (i + 1) << 16,
                              .max_qps = 64,
                              .window_pkts = cfg->window,
                              .ack_every = cfg->ack_every,
                              .dscp = 26,
                              .dcqcn = cfg->dcqcn,
                              .user = s,
                              .ops = {.mem = mem,
                                      .lateness = cfg->lateness,
                                      .complete = complete,
                                      .event = event,
                                      .sink = sink,
                                      .deferred = cfg->deferred}};

        s->pair = p;
        s->ip = rc.ip;
        rc.pool = s->pool = test_pool(cfg->mbufs ? cfg->mbufs : 2047);
        roce_mac_of_ip(rc.ip, rc.mac);
        assert_int_equal(rnic_create(&s->r, &rc), 0);
        s->ep = rnic_endpoint(s->r);
    }
    return p;
}

void pair_destroy(struct pair *p)
{
    for (unsigned i = 0; i < 2; i++) {
        for (unsigned f = 0; f < p->n_wire[i]; f++)
            rte_pktmbuf_free(p->wire[i][f].m);
        rnic_destroy(p->s[i].r);
    }
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(rte_mempool_in_use_count(p->s[i].pool), 0);
        rte_mempool_free(p->s[i].pool);
    }
    free(p);
}

uint32_t pair_region(struct side *s, void *p, uint64_t len, unsigned access)
{
    struct region *g = &s->region[s->n_regions];

    assert_true(s->n_regions < PAIR_MAX_REGIONS);
    *g = (struct region){.addr = p ? (uintptr_t)p : 0x100000000ull * (s->n_regions + 1),
                         .len = len,
                         .p = p,
                         .access = access};
    return ++s->n_regions;
}

void pair_connect(struct pair *p, enum qp_type type, const struct qp_attr *attr, uint32_t sq_depth,
                  struct rq *rq0, struct rq *rq1, bool streaming, struct qp *qp[2])
{
    struct qp_attr a = *attr;

    if (!a.mtu)
        a.mtu = 1024;
    if (!a.timeout)
        a.timeout = 4;
    if (!a.retry_cnt)
        a.retry_cnt = 7;
    if (!a.rnr_retry)
        a.rnr_retry = 7;
    if (!a.min_rnr_timer)
        a.min_rnr_timer = 1;
    if (!a.max_rd_atomic)
        a.max_rd_atomic = 4;
    if (!a.max_dest_rd_atomic)
        a.max_dest_rd_atomic = 4;
    if (!a.access)
        a.access = ACCESS_REMOTE_READ | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC;
    a.qkey = 0x1111;
    for (unsigned i = 0; i < 2; i++) {
        struct qp_cfg c = {.type = type,
                           .sq_depth = sq_depth,
                           .rq = i ? rq1 : rq0,
                           .streaming = streaming,
                           .deferred = p->deferred && i == 1};

        assert_int_equal(qp_create(p->s[i].r, &c, &qp[i]), 0);
    }
    for (unsigned i = 0; i < 2; i++) {
        uint32_t psn = attr->sq_psn;

        a.dest_qpn = qp_num(qp[!i]);
        a.dest_ip = p->s[!i].ip;
        roce_mac_of_ip(a.dest_ip, a.dest_mac);
        a.sq_psn = a.rq_psn = psn;
        a.state = QP_INIT;
        assert_int_equal(qp_modify(qp[i], &a), 0);
        a.state = QP_RTR;
        assert_int_equal(qp_modify(qp[i], &a), 0);
        a.state = QP_RTS;
        assert_int_equal(qp_modify(qp[i], &a), 0);
    }
}

/* ---- wire ---- */

static bool chance(struct pair *p, unsigned per_10000)
{
    return per_10000 && pair_random(p, 10000) < per_10000;
}

static void put(struct pair *p, unsigned from, struct rte_mbuf *m, int64_t due)
{
    unsigned n = p->n_wire[from];

    assert_true(n < PAIR_WIRE);
    for (; n && p->wire[from][n - 1].due > due; n--)
        p->wire[from][n] = p->wire[from][n - 1];
    p->wire[from][n].m = m;
    p->wire[from][n].due = due;
    p->n_wire[from]++;
}

static void corrupt(struct pair *p, struct rte_mbuf *m)
{
    struct rte_mbuf *s = m;

    for (unsigned skip = pair_random(p, m->nb_segs); skip && s->next && s->next->data_len; skip--)
        s = s->next;
    /* A shared segment belongs to others too; the header's is our own. */
    if (!RTE_MBUF_DIRECT(s) || rte_mbuf_refcnt_read(s) != 1)
        s = m;
    rte_pktmbuf_mtod(s, uint8_t *)[pair_random(p, s->data_len)] ^= 1 << pair_random(p, 8);
}

static void onto_wire(struct pair *p, unsigned from, struct rte_mbuf *m)
{
    enum wire_verdict v = WIRE_PASS;
    int64_t due;
    struct roce_pkt k;

    assert_int_equal(roce_parse(m, &k), ROCE_OK);
    p->count[from]++;
    p->count_data[from] += k.opcode != ROCE_OP_RC_ACKNOWLEDGE;
    p->busy[from] = RTE_MAX(p->busy[from], p->now_ps) + link_time_ps(frame_wire_bytes(m), RATE_BPS);
    due = p->busy[from] + DELAY_PS;
    if (p->fault)
        v = p->fault(p, from, &k);
    if (v == WIRE_DROP || chance(p, p->loss)) {
        rte_pktmbuf_free(m);
        return;
    }
    if (chance(p, p->ce[from]))
        m = ecn_mark(m, p->s[from].pool, &(uint64_t){0});
    if (v == WIRE_DUP || chance(p, p->dup)) {
        struct rte_mbuf *c = rte_pktmbuf_copy(m, p->s[from].pool, 0, UINT32_MAX);

        if (c) {
            *frame_meta(c) = *frame_meta(m);
            put(p, from, c, due + (v == WIRE_DUP ? 0 : pair_random(p, LATE_PS / 2)));
        }
    }
    if ((v == WIRE_CORRUPT || chance(p, p->corrupt)) && !frame_meta(m)->virt_len)
        corrupt(p, m);
    if (v == WIRE_LATE || chance(p, p->late))
        due += LATE_PS;
    put(p, from, m, due);
}

static unsigned pull(struct pair *p, unsigned i)
{
    struct side *s = &p->s[i];
    struct rte_mbuf *m[64];
    unsigned n, sum = 0;

    for (unsigned q = 0; q < ENDPOINT_QUEUES; q++) {
        n = s->ep.output(s->r, q, m, RTE_MIN(p->burst, 64u), p->now_ps);
        for (unsigned f = 0; f < n; f++)
            onto_wire(p, i, m[f]);
        sum += n;
    }
    return sum;
}

static unsigned deliver(struct pair *p, unsigned from)
{
    struct side *to = &p->s[!from];
    struct rte_mbuf *m[32];
    unsigned n = 0;

    while (n < RTE_DIM(m) && n < p->n_wire[from] && p->wire[from][n].due <= p->now_ps) {
        m[n] = p->wire[from][n].m;
        n++;
    }
    p->n_wire[from] -= n;
    memmove(&p->wire[from][0], &p->wire[from][n], p->n_wire[from] * sizeof(p->wire[0][0]));
    if (n)
        assert_int_equal(to->ep.input(to->r, m, n, p->now_ps), n);
    return n;
}

bool pair_never(struct pair *p)
{
    (void)p;
    return false;
}

bool pair_run(struct pair *p, bool (*done)(struct pair *p), int64_t limit_ps)
{
    int64_t end = p->now_ps + limit_ps;

    for (;;) {
        int64_t t = PS_NEVER;
        unsigned moved = 0;

        if (done(p))
            return true;
        for (unsigned i = 0; i < 2; i++) {
            p->s[i].ep.tick(p->s[i].r, p->now_ps);
            moved += deliver(p, i) + pull(p, i);
        }
        if (moved)
            continue;
        for (unsigned i = 0; i < 2; i++) {
            int64_t n = p->s[i].ep.next(p->s[i].r);

            assert_true(n != 0); /* nothing came out, so nothing may be ready */
            t = RTE_MIN(t, n);
            if (p->n_wire[i])
                t = RTE_MIN(t, p->wire[i][0].due);
        }
        if (t == PS_NEVER)
            return done(p);
        if (t > end) {
            p->now_ps = end;
            return done(p);
        }
        assert_true(t > p->now_ps);
        p->now_ps = t;
    }
}

const struct cqe *pair_cqe(struct side *s, uint64_t wr_id, bool recv)
{
    for (unsigned i = 0; i < s->n_cqes; i++)
        if (s->cqe[i].wr_id == wr_id && s->cqe[i].is_recv == recv)
            return &s->cqe[i];
    return NULL;
}
