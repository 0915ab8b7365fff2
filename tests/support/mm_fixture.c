/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/mm_fixture.h"

#include "tests/support/eal.h"

#include <errno.h>
#include <rte_mempool.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define POOL     32768u
#define PARTS    1023u
#define CTL_N    64u
#define CTL_ROOM (ROCE_GRH_BYTES + 256u)
#define KEY      0x5ec3e7u
#define GROUP    7u

static void say(struct mm_fixture_member *m, enum agg_type type, struct mm_ctl *c);

/* ---- a member's rnic ---- */

static int on_memory(void *user, struct qp *qp, bool remote, uint32_t key, uint64_t addr,
                     uint64_t len, unsigned access, void **p)
{
    struct mm_fixture_member *m = user;
    uint64_t length = m->b->cfg.length;

    (void)qp, (void)access;
    if (remote) { /* the region's addresses at the member begin at 1 << 40 */
        uint64_t off = addr - (1ULL << 40);

        if (key != MM_FIXTURE_RKEY)
            return -EACCES;
        if (off > length || len > length - off)
            return -EFAULT;
        *p = m->mem ? m->mem + off : NULL;
        return 0;
    }
    *p = (void *)(uintptr_t)addr;
    if (key == MM_FIXTURE_LKEY)
        return 0;
    *p = NULL;
    return 0;
}

static void post_buffer(struct mm_fixture_member *m, uint64_t i)
{
    struct rwqe w = {.wr_id = i, .n_sge = 1};

    w.sge[0] = (struct sge){(uintptr_t)(m->ctl_mem + i * CTL_ROOM), CTL_ROOM, MM_FIXTURE_LKEY};
    rq_post(m->ctl_rq, &w);
}

static void on_complete(void *user, const struct cqe *c)
{
    struct mm_fixture_member *m = user;
    struct mm_ctl ctl;

    if (c->qp != m->ctl) {
        assert_true(m->n_cqes < MM_FIXTURE_CQES);
        m->cqe[m->n_cqes++] = *c;
        m->n_bad += c->status != WC_SUCCESS;
        return;
    }
    if (!c->is_recv)
        return;
    memcpy(&ctl, m->ctl_mem + c->wr_id * CTL_ROOM + ROCE_GRH_BYTES, sizeof(ctl));
    assert_true(ctl.type <= AGG_MM_MOVE_REPLY);
    m->got[ctl.type] = ctl;
    m->n_got[ctl.type]++;
    post_buffer(m, c->wr_id);
    if (ctl.type == AGG_MM_ABORT && !m->mute) {
        struct mm_ctl r = mm_fixture_bind_of(m);

        say(m, AGG_MM_ABORT_ACK, &r); /* the caller fetches the frame */
    }
}

static void connect_ud(struct mm_fixture_member *m)
{
    struct qp_cfg cfg = {.type = QP_UD, .sq_depth = 64};
    struct qp_attr attr = {.qkey = AGG_QKEY};

    m->ctl_rq = rq_create(CTL_N);
    m->ctl_mem = calloc(CTL_N, CTL_ROOM);
    cfg.rq = m->ctl_rq;
    assert_int_equal(qp_create(m->r, &cfg, &m->ctl), 0);
    for (int s = QP_INIT; s <= QP_RTS; s++) {
        attr.state = (enum qp_state)s;
        assert_int_equal(qp_modify(m->ctl, &attr), 0);
    }
    for (uint64_t i = 0; i < CTL_N; i++)
        post_buffer(m, i);
}

static void create_member(struct mm_fixture *b, struct mm_fixture_member *m, unsigned id)
{
    struct rnic_cfg cfg = {.qpn_base = 1u << 16,
                           .max_qps = 16,
                           .window_pkts = b->cfg.window ? b->cfg.window : 256,
                           .ack_every = 8,
                           .dscp = 26,
                           .pool = b->fx.pool,
                           .ops = {.mem = on_memory, .complete = on_complete},
                           .user = m};
    struct qp_cfg qc = {.type = QP_RC, .sq_depth = 4096, .sig_all = true};
    struct qp_attr attr = {.state = QP_INIT, .access = ACCESS_REMOTE_READ | ACCESS_REMOTE_WRITE};

    m->b = b;
    m->id = id;
    m->node = b->fx.f->hosts[id];
    m->ip = cfg.ip = b->fx.f->nodes[m->node].ip_of_port[0];
    m->psn = 0xfffff0 + id; /* wraps after a few packets */
    roce_mac_of_ip(cfg.ip, cfg.mac);
    assert_int_equal(rnic_create(&m->r, &cfg), 0);
    m->ep = rnic_endpoint(m->r);
    connect_ud(m);
    assert_int_equal(qp_create(m->r, &qc, &m->qp), 0);
    assert_int_equal(qp_modify(m->qp, &attr), 0);
    if (!b->cfg.unbacked) {
        m->mem = calloc(1, b->cfg.length);
        m->local = calloc(1, b->cfg.length);
    }
    m->cqe = calloc(MM_FIXTURE_CQES, sizeof(*m->cqe));
    assert_non_null(m->cqe);
    assert_int_equal(net_attach(b->fx.net, m->node, 0, 0, &m->ep), 0);
}

static void kick(struct mm_fixture_member *m)
{
    net_kick(m->b->fx.net, m->node, 0, 0, net_now(m->b->fx.net));
}

/* ---- control ---- */

static void say(struct mm_fixture_member *m, enum agg_type type, struct mm_ctl *c)
{
    struct wqe w = {.op = WR_SEND, .frag = WQE_WHOLE, .flags = WR_F_INLINE, .len = sizeof(*c)};

    c->magic = RTE_BE32(AGG_MAGIC);
    c->version = AGG_VERSION;
    c->type = (uint8_t)type;
    w.ud.ip = m->b->fx.f->nodes[m->b->sw].ip;
    w.ud.qpn = AGG_QPN;
    w.ud.qkey = AGG_QKEY;
    roce_mac_of_ip(w.ud.ip, w.ud.mac);
    memcpy(w.inl, c, sizeof(*c));
    assert_int_equal(qp_post_send(m->ctl, &w), 0);
}

void mm_fixture_say(struct mm_fixture_member *m, enum agg_type type, struct mm_ctl *c)
{
    say(m, type, c);
    kick(m);
}

struct mm_ctl mm_fixture_bind_of(const struct mm_fixture_member *m)
{
    const struct mm_fixture_cfg *cfg = &m->b->cfg;

    return (struct mm_ctl){
        .xid = rte_cpu_to_be_32(m->id + 100),
        .group = rte_cpu_to_be_32(GROUP),
        .key = rte_cpu_to_be_64(KEY),
        .members = rte_cpu_to_be_16((uint16_t)cfg->n),
        .member = rte_cpu_to_be_16((uint16_t)m->id),
        .mtu = rte_cpu_to_be_16((uint16_t)(cfg->mtu ? cfg->mtu : m->b->fx.f->mtu)),
        .qpn = rte_cpu_to_be_32(qp_num(m->qp)),
        .psn = rte_cpu_to_be_32(m->psn),
        .va = rte_cpu_to_be_64(1ULL << 40),
        .length = rte_cpu_to_be_64(cfg->length),
        .rkey = RTE_BE32(MM_FIXTURE_RKEY),
        .write_slices = rte_cpu_to_be_32(cfg->write_slices),
        .reads = RTE_BE32(ROCE_MAX_RD_ATOMIC),
    };
}

void mm_fixture_connect(struct mm_fixture_member *m)
{
    const struct mm_ctl *c = &m->got[AGG_MM_BIND_REPLY];
    struct qp_attr attr = {.state = QP_RTR,
                           .dest_qpn = rte_be_to_cpu_32(c->qpn),
                           .rq_psn = rte_be_to_cpu_32(c->psn),
                           .dest_ip = m->b->fx.f->nodes[m->b->sw].ip,
                           .mtu = rte_be_to_cpu_16(c->mtu),
                           .min_rnr_timer = 1,
                           .sq_psn = m->psn,
                           .timeout = m->b->cfg.timeout ? m->b->cfg.timeout : 10,
                           .retry_cnt = 7,
                           .rnr_retry = 7,
                           .max_rd_atomic = ROCE_MAX_RD_ATOMIC,
                           .max_dest_rd_atomic = ROCE_MAX_RD_ATOMIC};

    roce_mac_of_ip(attr.dest_ip, attr.dest_mac);
    assert_int_equal(qp_modify(m->qp, &attr), 0);
    attr.state = QP_RTS;
    assert_int_equal(qp_modify(m->qp, &attr), 0);
}

/* Repeats the message to the switch until every member has the answer: frames may be lost. */
static void ask_all(struct mm_fixture *b, enum agg_type ask, enum agg_type answer)
{
    for (unsigned round = 0; round < 50; round++) {
        unsigned missing = 0;

        for (unsigned i = 0; i < b->cfg.n; i++) {
            struct mm_ctl c = mm_fixture_bind_of(&b->m[i]);

            if (b->m[i].n_got[answer])
                continue;
            missing++;
            mm_fixture_say(&b->m[i], ask, &c);
        }
        if (!missing)
            return;
        mm_fixture_pass(b, 100 * PS_PER_US);
    }
    fail_msg("%s is not answered", agg_type_name(ask));
}

void mm_fixture_bind_all(struct mm_fixture *b)
{
    ask_all(b, AGG_MM_BIND, AGG_MM_BIND_REPLY);
    for (unsigned i = 0; i < b->cfg.n; i++) {
        const struct mm_ctl *c = &b->m[i].got[AGG_MM_BIND_REPLY];

        if (c->status)
            fail_msg("member %u: %s: %s", i, agg_status_name(rte_be_to_cpu_16(c->status)), c->text);
        mm_fixture_connect(&b->m[i]);
    }
    ask_all(b, AGG_MM_READY, AGG_MM_READY_REPLY);
}

/* ---- data ---- */

void mm_fixture_post(struct mm_fixture_member *m, const struct wqe *w)
{
    assert_int_equal(qp_post_send(m->qp, w), 0);
    m->posted++;
    kick(m);
}

static struct wqe request(struct mm_fixture_member *m, enum wr_op op, const struct mm_what *what,
                          uint32_t len)
{
    struct wqe w = {.wr_id = m->posted, .op = (uint8_t)op, .frag = WQE_WHOLE};

    w.raddr = mm_addr(rte_be_to_cpu_64(m->got[AGG_MM_BIND_REPLY].va), what);
    w.rkey = rte_be_to_cpu_32(m->got[AGG_MM_BIND_REPLY].rkey);
    if (m->local) {
        w.n_sge = 1;
        w.sge[0] = (struct sge){(uintptr_t)(m->local + what->off), len, MM_FIXTURE_LKEY};
    } else {
        w.virt_len = len;
    }
    return w;
}

void mm_fixture_load(struct mm_fixture_member *m, struct mm_what what, uint32_t len)
{
    struct wqe w = request(m, WR_READ, &what, len);

    mm_fixture_post(m, &w);
}

void mm_fixture_store(struct mm_fixture_member *m, struct mm_what what, uint32_t len)
{
    struct wqe w = request(m, WR_WRITE, &what, len);

    mm_fixture_post(m, &w);
}

bool mm_fixture_settled(const struct mm_fixture *b)
{
    for (unsigned i = 0; i < b->cfg.n; i++)
        if (!b->m[i].dead && b->m[i].n_cqes < b->m[i].posted)
            return false;
    return true;
}

bool mm_fixture_run(struct mm_fixture *b, int64_t ps)
{
    int64_t end = net_now(b->fx.net) + ps, t;

    while (!mm_fixture_settled(b) && (t = net_next(b->fx.net)) != PS_NEVER && t <= end)
        net_advance(b->fx.net, t);
    return mm_fixture_settled(b);
}

void mm_fixture_pass(struct mm_fixture *b, int64_t ps)
{
    int64_t end = net_now(b->fx.net) + ps;

    switch_fixture_run(&b->fx, end);
    net_advance(b->fx.net, end);
}

void mm_fixture_kill(struct mm_fixture_member *m)
{
    m->dead = true;
    net_detach(m->b->fx.net, m->node, 0, 0, net_now(m->b->fx.net));
}

/* ---- bytes ---- */

static void tap(void *ctx, unsigned dirlink, struct rte_mbuf *m, int64_t now_ps)
{
    struct mm_fixture *b = ctx;
    struct roce_pkt k;

    (void)now_ps;
    if (roce_parse(m, &k) == ROCE_OK && (k.opcode & ROCE_TRANSPORT_MASK) == ROCE_RC)
        b->bytes[dirlink] += k.len;
}

static unsigned direction(const struct mm_fixture *b, unsigned i, bool up)
{
    const struct fab_port *p = &b->fx.f->nodes[b->m[i].node].ports[0];
    bool a = b->fx.f->links[p->link].a == b->m[i].node;

    return 2u * p->link + (a != up);
}

uint64_t mm_fixture_up(const struct mm_fixture *b, unsigned i)
{
    return b->bytes[direction(b, i, true)];
}

uint64_t mm_fixture_down(const struct mm_fixture *b, unsigned i)
{
    return b->bytes[direction(b, i, false)];
}

const struct mm_counters *mm_fixture_counters(const struct mm_fixture *b)
{
    return mm_counters(an_mm(b->an));
}

/* ---- life ---- */

void mm_fixture_open(struct mm_fixture *b, const struct mm_fixture_cfg *cfg)
{
    static struct rte_mempool *pool, *parts;
    struct net_cfg nc = {.seed = cfg->seed};
    struct an_cfg ac = {.mm = cfg->mm};
    struct endpoint ep;

    test_eal_init();
    memset(b, 0, sizeof(*b));
    b->cfg = *cfg;
    b->rng = cfg->seed;
    if (!pool || rte_mempool_avail_count(pool) != POOL)
        pool = test_pool(POOL);
    if (!parts)
        parts = frame_parts_create("parts", PARTS, 0);
    assert_non_null(parts);
    switch_fixture_open_cfg(&b->fx, pool, cfg->conf, &nc);
    b->sw = b->fx.f->switches[0];
    ac.fab = b->fx.f;
    ac.node = b->sw;
    ac.pool = pool;
    ac.parts = b->parts = cfg->seed % 2 ? NULL : parts; /* stores are copied, or shared */
    ac.mbuf_budget = POOL / 2;
    ac.mm.on = true;
    assert_int_equal(an_create(&b->an, &ac), 0);
    ep = an_endpoint(b->an);
    assert_int_equal(net_attach(b->fx.net, b->sw, 0, 0, &ep), 0);
    b->bytes = calloc(2u * b->fx.f->n_links, sizeof(b->bytes[0]));
    net_tap(b->fx.net, tap, b);
    for (unsigned i = 0; i < cfg->n; i++)
        create_member(b, &b->m[i], i);
}

void mm_fixture_close(struct mm_fixture *b)
{
    for (unsigned round = 0; round < 50 && !an_idle(b->an); round++) {
        for (unsigned i = 0; i < b->cfg.n; i++) {
            struct mm_ctl c = mm_fixture_bind_of(&b->m[i]);

            if (!b->m[i].dead)
                mm_fixture_say(&b->m[i], AGG_MM_UNBIND, &c);
        }
        mm_fixture_pass(b, 10 * PS_PER_MS);
    }
    if (!an_idle(b->an))
        fail_msg("the switch is not idle");
    mm_fixture_pass(b, 100 * PS_PER_MS);
    for (unsigned i = 0; i < b->cfg.n; i++) {
        struct mm_fixture_member *m = &b->m[i];

        qp_destroy(m->ctl);
        qp_destroy(m->qp);
        rnic_destroy(m->r);
        rq_destroy(m->ctl_rq);
        free(m->ctl_mem);
        free(m->mem);
        free(m->local);
        free(m->cqe);
    }
    an_destroy(b->an);
    free(b->bytes);
    switch_fixture_close(&b->fx);
    if (b->parts)
        assert_int_equal(rte_mempool_avail_count(b->parts), PARTS);
}
