/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node of 8 GPUs with NVSwitch planes of 5, 4, 4 and 5 links in virtual time: an HCA for every
 * port of every GPU, and a member's end of multimem (host/coll/transport/mm_member.h) on each.
 */
#ifndef TRIB_TESTS_HOST_COLL_NVLS_FIXTURE_H
#define TRIB_TESTS_HOST_COLL_NVLS_FIXTURE_H
#include "host/coll/transport/mm_member.h"
#include "host/hca/hca.h"
#include "switch/net/net.h"
#include "switch/reduce/an.h"
#include "tests/support/eal.h"
#include "tests/support/reduce_ref.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rte_mempool.h>

#define GPUS    8u
#define PLANES  4u
#define LINKS   18u
#define POOL    65535u
#define CTL_N   32u
#define CTL_LEN (40u + 256u)
#define CHUNK   16384u
#define AHEAD   12u
#define S       PS_PER_S

static const unsigned weight[PLANES] = {5, 4, 4, 5};
static const char node[] =
    "mtu = 4096; slots_per_host = 1;\n"
    "nodes = ( { name = (\"g0\", \"g1\", \"g2\", \"g3\", \"g4\", \"g5\", \"g6\", \"g7\"); kind = "
    "\"host\"; },\n{ name = (\"n0\", \"n1\", \"n2\", \"n3\"); role = \"nvswitch\"; multimem = "
    "true; } "
    ");\nlink_defaults = { latency = \"100ns\"; %s };\n"
    "links = ( { a = (%s); b = \"n0\"; rate = \"125GB/s\"; },\n"
    "{ a = (%s); b = \"n1\"; rate = \"100GB/s\"; }, { a = (%s); b = \"n2\"; rate = \"100GB/s\"; "
    "},\n"
    "{ a = (%s); b = \"n3\"; rate = \"125GB/s\"; } );\n";

struct fixture;

/* A GPU's port to a plane. */
struct end {
    struct fixture *g;
    unsigned gpu, plane;
    struct hca *hca;
    struct endpoint ep;
    bool awake, kicked;
    struct port port;
    struct ibv_qp *ud;
    struct ibv_ah *ah;
    struct ibv_mr *ctl, *mr;
    uint8_t *mem; /* datagrams: CTL_N received, then one to send */
    struct mmc *m;
    /* the all-reduce of this plane's part of the share */
    uint64_t off, len, loaded, stored, load_posted, chunks;
    uint8_t order[16384]; /* steps in order: 1 store */
    uint64_t steps_seen;
};

struct fixture {
    struct fabric *f;
    struct net *net;
    struct rte_mempool *pool;
    struct end e[GPUS][PLANES];
    uint8_t *buf[GPUS];
    uint64_t bytes, *wire;
    enum dtype type;
    enum redop op;
    bool others;
    int64_t now;
};

/* ---- the fabric ---- */

static uint16_t end_input(void *ctx, struct rte_mbuf **m, uint16_t n, int64_t now)
{
    struct end *e = ctx;

    e->awake = true;
    return e->ep.input(e->ep.ctx, m, n, now);
}

static uint16_t end_output(void *ctx, enum endpoint_queue q, struct rte_mbuf **m, uint16_t n,
                           int64_t now)
{
    struct end *e = ctx;

    return e->ep.output(e->ep.ctx, q, m, n, now);
}

static void end_tick(void *ctx, int64_t now)
{
    struct end *e = ctx;

    e->awake = true;
    e->ep.tick(e->ep.ctx, now);
}

static int64_t end_next(void *ctx)
{
    struct end *e = ctx;

    return e->ep.next(e->ep.ctx);
}

static void end_kick(void *ctx)
{
    ((struct end *)ctx)->kicked = true;
}

static void tap(void *ctx, unsigned dirlink, struct rte_mbuf *m, int64_t now_ps)
{
    struct fixture *g = ctx;
    struct roce_pkt k;

    (void)now_ps;
    if (roce_parse(m, &k) == ROCE_OK && (k.opcode & ROCE_TRANSPORT_MASK) == ROCE_RC)
        g->wire[dirlink] += k.len;
}

static void post_recv(struct end *e, uint64_t i)
{
    struct ibv_sge sge = {(uintptr_t)(e->mem + i * CTL_LEN), CTL_LEN, e->ctl->lkey};
    struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;

    assert_int_equal(ibv_post_recv(e->ud, &wr, &bad), 0);
}

static void say(void *ctx, const struct mm_ctl *c)
{
    struct end *e = ctx;
    uint8_t *p = e->mem + CTL_N * CTL_LEN;
    struct ibv_sge sge = {(uintptr_t)p, sizeof(*c), e->ctl->lkey};
    struct ibv_send_wr wr = {.wr_id = 1000,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;

    memcpy(p, c, sizeof(*c));
    wr.wr.ud.ah = e->ah;
    wr.wr.ud.remote_qpn = AGG_QPN;
    wr.wr.ud.remote_qkey = AGG_QKEY;
    assert_int_equal(ibv_post_send(e->ud, &wr, &bad), 0);
}

static void poll(struct end *e)
{
    struct ibv_wc wc[16];
    int n;

    while ((n = ibv_poll_cq(e->port.cq, 16, wc)) > 0)
        for (int i = 0; i < n; i++) {
            if (wc[i].wr_id >> 32) {
                mmc_complete(e->m, &wc[i]);
            } else if (wc[i].opcode & IBV_WC_RECV) {
                mmc_input(e->m, (const void *)(e->mem + wc[i].wr_id * CTL_LEN + 40));
                post_recv(e, wc[i].wr_id);
            }
        }
}

static void end_open(struct fixture *g, unsigned gpu, unsigned plane, uint64_t key)
{
    struct end *e = &g->e[gpu][plane];
    const struct fab_node *h = &g->f->nodes[g->f->hosts[gpu]];
    const struct fab_node *sw = fabric_node(g->f, (const char *[]){"n0", "n1", "n2", "n3"}[plane]);
    struct hca_cfg hc = {.name = "trib",
                         .ip = h->ip_of_port[plane],
                         .mtu = 4096,
                         .rate_bps = h->ports[plane].rate_bps,
                         .pool = g->pool,
                         .drv = {.kick = end_kick, .ctx = e}};
    struct endpoint ep = {
        .ctx = e, .input = end_input, .output = end_output, .tick = end_tick, .next = end_next};
    struct edge_cap cap = {.send_wr = 16, .recv_wr = CTL_N, .send_sge = 1, .recv_sge = 1};
    struct mmc_cfg mc = {.port = &e->port,
                         .name = sw->name,
                         .group = 3,
                         .key = key,
                         .member = gpu,
                         .members = GPUS,
                         .wr_tag = 1ULL << 32,
                         .say = say,
                         .ctx = e};

    e->g = g, e->gpu = gpu, e->plane = plane;
    assert_int_equal(hca_create(&e->hca, &hc), 0);
    e->ep = hca_endpoint(e->hca);
    assert_int_equal(net_attach(g->net, g->f->hosts[gpu], (uint16_t)plane, 0, &ep), 0);
    e->port.ctx = ibv_open_device(hca_device(e->hca));
    e->port.pd = ibv_alloc_pd(e->port.ctx);
    e->port.cq = ibv_create_cq(e->port.ctx, 1024, NULL, NULL, 0);
    assert_int_equal(port_find(&e->port, h->ip_of_port + plane, 1, 4096), 0);
    port_set_timeouts(&e->port, g->f);
    e->mem = calloc(CTL_N + 1, CTL_LEN);
    e->ctl = ibv_reg_mr(e->port.pd, e->mem, (CTL_N + 1) * CTL_LEN, IBV_ACCESS_LOCAL_WRITE);
    e->mr = ibv_reg_mr(e->port.pd, g->buf[gpu], g->bytes,
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
    e->ud = ud_create(&e->port, &cap, AGG_QKEY);
    gid_of_ip(&mc.gid, sw->ip);
    e->ah = ud_address(&e->port, &mc.gid);
    assert_true(e->ud && e->ah && e->mr && e->ctl);
    for (uint64_t i = 0; i < CTL_N; i++)
        post_recv(e, i);
    assert_int_equal(mmc_create(&e->m, &mc), 0);
}

static bool for_all(struct fixture *g, bool (*holds)(struct end *))
{
    for (unsigned i = 0; i < GPUS * PLANES; i++)
        if (!holds(&g->e[i / PLANES][i % PLANES]))
            return false;
    return true;
}

/* Runs until holds() is true for all ends; ticks every 100 us. work: called for an end after it has
 * received a message. */
static bool run(struct fixture *g, bool (*holds)(struct end *), void (*work)(struct end *),
                int64_t ps)
{
    int64_t end = g->now + ps, tick = g->now + 100 * PS_PER_US;

    for (;;) {
        int64_t t;

        for (unsigned i = 0; i < GPUS * PLANES; i++) {
            struct end *e = &g->e[i / PLANES][i % PLANES];

            if (e->awake && e->m) {
                e->awake = false;
                poll(e);
                if (work)
                    work(e);
            }
            if (e->kicked)
                net_kick(g->net, g->f->hosts[e->gpu], (uint16_t)e->plane, 0, g->now);
            e->kicked = false;
        }
        t = net_next(g->net);
        if (for_all(g, holds))
            return true;
        if (g->now >= end)
            return false;
        t = RTE_MIN(t, tick);
        g->now = RTE_MAX(g->now, t);
        net_advance(g->net, g->now);
        if (g->now >= tick) {
            tick = g->now + 100 * PS_PER_US;
            for (unsigned i = 0; i < GPUS * PLANES; i++)
                if (g->e[i / PLANES][i % PLANES].m)
                    mmc_tick(g->e[i / PLANES][i % PLANES].m);
        }
    }
}

static bool is_ready(struct end *e)
{
    return mmc_state(e->m) == MMC_READY;
}

static bool has_moved(struct end *e)
{
    return !mmc_moving(e->m);
}

static bool is_closed(struct end *e)
{
    return mmc_state(e->m) == MMC_CLOSED;
}

static void fixture_open(struct fixture *g, uint64_t bytes, bool unbacked, const char *faults)
{
    static struct fab_errors errs;
    struct net_cfg nc = {.seed = 11};
    const char *all = "\"g0\", \"g1\", \"g2\", \"g3\", \"g4\", \"g5\", \"g6\", \"g7\"";
    char conf[2048];

    test_eal_init();
    memset(g, 0, sizeof(*g));
    snprintf(conf, sizeof(conf), node, faults, all, all, all, all);
    g->f = fabric_load_string(conf, "node.conf", &errs);
    if (!g->f)
        fab_errors_print(&errs, stderr);
    assert_non_null(g->f);
    nc.fab = g->f;
    nc.pool = g->pool = test_pool(POOL);
    assert_int_equal(net_create(&g->net, &nc), 0);
    g->wire = calloc(2u * g->f->n_links, sizeof(*g->wire));
    net_tap(g->net, tap, g);
    g->bytes = bytes;
    for (unsigned i = 0; i < GPUS; i++) {
        g->buf[i] = calloc(1, bytes);
        for (unsigned p = 0; p < PLANES; p++) {
            end_open(g, i, p, 0x1234567);
            if (unbacked)
                hca_mr_unback(g->e[i][p].mr);
        }
    }
    if (!run(g, is_ready, NULL, S))
        fail_msg("planes are not ready: %s", mmc_error(g->e[0][0].m));
    for (unsigned i = 0; i < GPUS * PLANES; i++) {
        struct end *e = &g->e[i / PLANES][i % PLANES];

        assert_int_equal(mmc_move(e->m, 0, (uintptr_t)g->buf[e->gpu], bytes, e->mr->rkey), 0);
    }
    assert_true(run(g, has_moved, NULL, S));
}

static void fixture_close(struct fixture *g)
{
    for (unsigned i = 0; i < GPUS * PLANES; i++)
        mmc_close(g->e[i / PLANES][i % PLANES].m);
    assert_true(run(g, is_closed, NULL, 10 * S));
    for (uint16_t i = 0; i < g->f->n_nodes; i++)
        assert_true(net_an_idle(g->net, i));
    for (unsigned i = 0; i < GPUS * PLANES; i++)
        mmc_destroy(g->e[i / PLANES][i % PLANES].m);
    net_destroy(g->net);
    for (unsigned i = 0; i < GPUS * PLANES; i++) {
        struct end *e = &g->e[i / PLANES][i % PLANES];

        ibv_destroy_ah(e->ah);
        ibv_destroy_qp(e->ud);
        ibv_dereg_mr(e->mr);
        ibv_dereg_mr(e->ctl);
        ibv_destroy_cq(e->port.cq);
        ibv_dealloc_pd(e->port.pd);
        assert_int_equal(ibv_close_device(e->port.ctx), 0);
        hca_destroy(e->hca);
        free(e->mem);
    }
    for (unsigned i = 0; i < GPUS; i++)
        free(g->buf[i]);
    assert_int_equal(rte_mempool_avail_count(g->pool), POOL);
    rte_mempool_free(g->pool);
    fabric_free(g->f);
    free(g->wire);
}

#endif
