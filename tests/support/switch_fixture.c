/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/switch_fixture.h"

#include "roce/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <rte_byteorder.h>
#include <rte_mempool.h>
#include <stdlib.h>
#include <string.h>

uint16_t switch_fixture_ip_checksum(const uint8_t *ip, unsigned n)
{
    uint32_t sum = 0;

    for (unsigned i = 0; i + 1 < n; i += 2)
        sum += (uint32_t)(ip[i] << 8 | ip[i + 1]);
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

struct rte_mbuf *switch_fixture_bytes(struct rte_mempool *pool, const void *p, unsigned n)
{
    struct rte_mbuf *m = frame_alloc(pool);

    if (m)
        memcpy(rte_pktmbuf_append(m, (uint16_t)n), p, n);
    return m;
}

static void put16(uint8_t *p, unsigned v)
{
    p[0] = (uint8_t)(v >> 8), p[1] = (uint8_t)v;
}

static void put32(uint8_t *p, uint32_t v)
{
    put16(p, v >> 16), put16(p + 2, v & 0xffff);
}

struct rte_mbuf *switch_fixture_frame(struct rte_mempool *pool, const struct frame_spec *s)
{
    unsigned n = ROCE_BASE_BYTES + s->len + ROCE_ICRC_BYTES;
    struct rte_mbuf *m = frame_alloc(pool);
    static const uint8_t zero[6];
    uint8_t *p, *ip;

    if (!m)
        return NULL;
    p = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)n);
    memset(p, 0, ROCE_BASE_BYTES);
    memset(p + ROCE_BASE_BYTES, 0xa5, s->len + ROCE_ICRC_BYTES);
    if (memcmp(s->dst_mac, zero, 6) != 0)
        memcpy(p, s->dst_mac, 6);
    else
        roce_mac_of_ip(s->dst_ip, p);
    roce_mac_of_ip(s->src_ip, p + 6);
    put16(p + 12, 0x0800);
    ip = p + 14;
    ip[0] = 0x45, ip[1] = 0x02, ip[8] = 64, ip[9] = 17;
    put16(ip + 2, n - 14);
    put32(ip + 12, s->src_ip);
    put32(ip + 16, s->dst_ip);
    put16(ip + 10, switch_fixture_ip_checksum(ip, 20));
    put16(p + 34, s->udp_src ? s->udp_src : 0xc001);
    put16(p + 36, ROCE_UDP_PORT);
    put16(p + 38, n - 34);
    p[42] = ROCE_OP_RC_SEND_ONLY;
    put16(p + 44, ROCE_DEFAULT_PKEY);
    put32(p + 46, s->dqpn);
    return m;
}

/* ---- the program in a slot ---- */

/* The NIC's answer to a report (switch/nic_igmp.c). */
static bool prog_answered(struct prog *p, struct rte_mbuf *m)
{
    const uint8_t *b = rte_pktmbuf_mtod(m, const uint8_t *);

    if (b[12] != 0x08 || b[13] || b[23] != 2)
        return false;
    p->granted += b[38] == 0x16;
    p->refused += b[38] == 0x17;
    rte_pktmbuf_free(m);
    return true;
}

static uint16_t prog_input(void *ctx, struct rte_mbuf **m, uint16_t n, int64_t now)
{
    struct prog *p = ctx;

    if (p->take >= 0 && n > p->take)
        n = (uint16_t)p->take;
    for (uint16_t i = 0; i < n; i++) {
        if (prog_answered(p, m[i]))
            continue;
        if (!p->got++)
            p->first_ps = now;
        p->last_ps = now;
        p->got_bytes += m[i]->pkt_len;
        if (p->keep && p->n_rx < SWITCH_FIXTURE_QUEUE)
            p->rx[p->n_rx++] = m[i];
        else
            rte_pktmbuf_free(m[i]);
    }
    return n;
}

static struct rte_mbuf *data_frame(struct prog *p)
{
    struct frame_spec s = {
        .src_ip = p->src_ip, .dst_ip = p->dst_ip, .dqpn = p->dqpn, .len = p->len};

    return switch_fixture_frame(p->pool, &s);
}

/* As an HCA marks what it sends. */
static struct rte_mbuf *marked(const struct prog *p, struct rte_mbuf *m)
{
    uint8_t *f = rte_pktmbuf_mtod(m, uint8_t *);

    if (!p->mark || m->data_len < ROCE_BASE_BYTES || f[12] != 8 || f[13] || f[14] != 0x45 ||
        f[23] != 17)
        return m;
    put16(f + 18, p->mark);
    put16(f + 24, 0);
    put16(f + 24, switch_fixture_ip_checksum(f + 14, 20));
    return m;
}

static uint16_t prog_output(void *ctx, enum endpoint_queue q, struct rte_mbuf **m, uint16_t n,
                            int64_t now)
{
    struct prog *p = ctx;
    uint16_t k = 0;

    (void)now;
    while (k < n && p->head[q] != p->tail[q])
        m[k++] = marked(p, p->tx[q][p->head[q]++ % SWITCH_FIXTURE_QUEUE]);
    while (q == ENDPOINT_DATA && k < n && p->endless) {
        m[k] = p->shape ? p->shape(p) : data_frame(p);
        if (!m[k])
            break;
        marked(p, m[k++]);
        p->endless--;
    }
    return k;
}

static void prog_tick(void *ctx, int64_t now)
{
    struct prog *p = ctx;

    p->ticks++;
    if (p->timer_ps <= now)
        p->timer_ps = PS_NEVER;
}

static int64_t prog_next(void *ctx)
{
    struct prog *p = ctx;

    p->asked++;
    for (int q = 0; q < ENDPOINT_QUEUES; q++)
        if (p->head[q] != p->tail[q])
            return 0;
    return p->endless ? 0 : p->timer_ps;
}

static int64_t prog_deadline(void *ctx)
{
    return ((const struct prog *)ctx)->timer_ps;
}

static bool prog_late(void *ctx)
{
    return ((const struct prog *)ctx)->late;
}

struct endpoint prog_endpoint(struct prog *p)
{
    return (struct endpoint){.ctx = p,
                             .input = prog_input,
                             .output = prog_output,
                             .tick = prog_tick,
                             .next = prog_next,
                             .deadline = prog_deadline,
                             .late = prog_late};
}

struct prog *prog_new(struct switch_fixture *l, const char *host, unsigned slot)
{
    struct prog *p = calloc(1, sizeof(*p));
    struct endpoint ep = prog_endpoint(p);

    p->take = -1;
    p->pool = l->pool;
    p->timer_ps = PS_NEVER;
    p->mark = slot + 1;
    assert_int_equal(net_attach(l->net, switch_fixture_node(l, host), 0, slot, &ep), 0);
    return p;
}

void prog_free(struct prog *p)
{
    for (unsigned i = 0; i < p->n_rx; i++)
        rte_pktmbuf_free(p->rx[i]);
    for (int q = 0; q < ENDPOINT_QUEUES; q++)
        while (p->head[q] != p->tail[q])
            rte_pktmbuf_free(p->tx[q][p->head[q]++ % SWITCH_FIXTURE_QUEUE]);
    free(p);
}

void prog_send(struct prog *p, enum endpoint_queue q, struct rte_mbuf *m)
{
    assert_non_null(m);
    assert_true(p->tail[q] - p->head[q] < SWITCH_FIXTURE_QUEUE);
    p->tx[q][p->tail[q]++ % SWITCH_FIXTURE_QUEUE] = m;
}

void prog_stream(struct switch_fixture *l, struct prog *p, const char *host, const char *to,
                 unsigned n, uint32_t len)
{
    p->src_ip = switch_fixture_ip(l, host);
    p->dst_ip = switch_fixture_ip(l, to);
    p->dqpn = 1 << 16 | 7;
    p->len = len;
    p->endless = n;
    net_kick(l->net, switch_fixture_node(l, host), 0, 0, net_now(l->net));
}

/* ---- the fabric ---- */

void switch_fixture_open_cfg(struct switch_fixture *l, struct rte_mempool *pool, const char *conf,
                             struct net_cfg *cfg)
{
    struct fab_errors errs = {0};

    l->pool = pool;
    l->pool_full = rte_mempool_avail_count(pool);
    l->f = fabric_load_string(conf, "fixture.conf", &errs);
    if (!l->f)
        fab_errors_print(&errs, stderr);
    assert_non_null(l->f);
    cfg->fab = l->f;
    cfg->pool = pool;
    assert_int_equal(net_create(&l->net, cfg), 0);
}

void switch_fixture_open(struct switch_fixture *l, struct rte_mempool *pool, const char *conf)
{
    struct net_cfg cfg = {.seed = 1};

    switch_fixture_open_cfg(l, pool, conf, &cfg);
}

void switch_fixture_close(struct switch_fixture *l)
{
    net_destroy(l->net);
    fabric_free(l->f);
    assert_int_equal(rte_mempool_avail_count(l->pool), l->pool_full);
}

uint16_t switch_fixture_node(const struct switch_fixture *l, const char *name)
{
    const struct fab_node *n = fabric_node(l->f, name);

    assert_non_null(n);
    return fabric_node_index(l->f, n);
}

uint32_t switch_fixture_ip(const struct switch_fixture *l, const char *name)
{
    const struct fab_node *n = fabric_node(l->f, name);

    assert_non_null(n);
    return n->kind == FAB_HOST ? n->ip_of_port[0] : n->ip;
}

int64_t switch_fixture_run(struct switch_fixture *l, int64_t limit_ps)
{
    int64_t t, last = net_now(l->net);

    while ((t = net_next(l->net)) != PS_NEVER && t <= limit_ps) {
        net_advance(l->net, t);
        last = t;
    }
    return last;
}

uint64_t switch_fixture_drops(const struct switch_fixture *l, enum drop d)
{
    uint64_t sum = 0;

    for (uint16_t i = 0; i < l->f->n_nodes; i++) {
        const struct node *nd = net_node(l->net, i);

        for (uint16_t p = 0; nd && p < nd->n_ports; p++)
            sum += nd->cnt[p].drops[d];
    }
    return sum;
}

uint64_t switch_fixture_all_drops(const struct switch_fixture *l)
{
    uint64_t sum = 0;

    for (int d = 0; d < DROP_REASONS; d++)
        sum += switch_fixture_drops(l, (enum drop)d);
    return sum;
}

uint64_t switch_fixture_pauses(const struct switch_fixture *l)
{
    uint64_t sum = 0;

    for (uint16_t i = 0; i < l->f->n_nodes; i++) {
        const struct node *nd = net_node(l->net, i);

        for (uint16_t p = 0; nd && p < nd->n_ports; p++)
            sum += nd->cnt[p].pauses_sent;
    }
    return sum;
}
