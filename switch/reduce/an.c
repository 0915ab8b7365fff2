/* SPDX-License-Identifier: BSD-3-Clause */
/* The aggregation node as an endpoint; an_priv.h states the order of work. */
#include "switch/reduce/an_priv.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AN_DSCP      26 /* AF31, usual for the lossless class of RoCE deployments */
#define AN_ACK_EVERY 16
#define AN_SEED      0x9e3779b97f4a7c15ull

/* ---- callbacks of the rnic, within a frame ---- */

static enum sink_verdict on_packet(void *user, struct qp *qp, const struct roce_pkt *k,
                                   struct rte_mbuf *m, int64_t now_ps)
{
    (void)user, (void)now_ps;
    return slot_input(qp_user(qp), k, m);
}

static const char *an_why(uint8_t status)
{
    switch (status) {
    case WC_RETRY_EXC_ERR:
        return "no answer";
    case WC_RNR_RETRY_EXC_ERR:
        return "receiver not ready";
    case WC_REM_INV_REQ_ERR:
    case WC_REM_ACCESS_ERR:
    case WC_REM_OP_ERR:
        return "refused by the other end";
    default:
        return "error";
    }
}

static void edge_failed(struct an_edge *e, const char *reason)
{
    struct an_group *g = e->g;
    char who[48];

    if (!g->doomed)
        group_doom(g, AGG_E_EDGE, NULL, "%s to %s: %s, slot %u", group_me(g),
                   group_who(g, e, who, sizeof(who)), reason, (unsigned)g->results);
}

static void on_complete(void *user, const struct cqe *c)
{
    struct an *a = user;
    struct an_message *m;

    if (qp_pd(c->qp) == AN_PD_MM) {
        mm_complete(c);
        return;
    }
    if (c->qp != a->ctl) {
        if (c->status != WC_SUCCESS && c->status != WC_WR_FLUSH_ERR)
            edge_failed(qp_user(c->qp), an_why(c->status));
        return;
    }
    if (!c->is_recv || c->status != WC_SUCCESS)
        return;
    T_ASSERT(a->inbox_tail - a->inbox_head < AN_CTL_DEPTH,
             "more control messages wait than there are receive buffers");
    m = &a->inbox[a->inbox_tail++ % AN_CTL_DEPTH];
    m->from = (struct an_addr){.ip = c->src_ip, .qpn = c->src_qpn};
    memcpy(m->from.mac, c->src_mac, sizeof(m->from.mac));
    m->buffer = (uint32_t)c->wr_id;
    m->len = c->byte_len > ROCE_GRH_BYTES ? c->byte_len - ROCE_GRH_BYTES : 0;
}

static void on_event(void *user, struct qp *qp, enum qp_event ev)
{
    struct an *a = user;

    if (qp_pd(qp) == AN_PD_MM)
        mm_event(qp, ev);
    else if (qp != a->ctl && (ev == QP_EV_FATAL || ev == QP_EV_ACCESS_ERR || ev == QP_EV_REQ_ERR))
        edge_failed(qp_user(qp), "invalid request");
}

/* Memory is only used by received control messages (and by multimem); remote access is refused. */
static int on_memory(void *user, struct qp *qp, bool remote, uint32_t key, uint64_t addr,
                     uint64_t len, unsigned access, void **p)
{
    struct an *a = user;
    uint64_t off = addr - (uintptr_t)a->ctl_mem, room = AN_CTL_DEPTH * AN_CTL_ROOM;

    if (qp_pd(qp) == AN_PD_MM)
        return mm_memory(qp, remote, key, addr, len, access, p);
    if (remote || qp != a->ctl || off > room || len > room - off)
        return -EACCES;
    *p = (void *)(uintptr_t)addr;
    return 0;
}

/* ---- settling ---- */

static void post_buffer(struct an *a, uint32_t i)
{
    struct rwqe w = {.wr_id = i, .n_sge = 1};

    T_ASSERT(i < AN_CTL_DEPTH, "a receive buffer of control messages that does not exist");
    w.sge[0] = (struct sge){(uintptr_t)(a->ctl_mem + (size_t)i * AN_CTL_ROOM), AN_CTL_ROOM, 0};
    rq_post(a->ctl_rq, &w);
}

/* Finds the next deadline after a change of deadlines. */
static void an_retime(struct an *a)
{
    struct an_group *g;

    a->timer = PS_NEVER;
    for (g = LIST_FIRST(&a->groups); g; g = LIST_NEXT(g, link))
        if (!g->doomed) {
            int64_t t = RTE_MIN(group_expires(g), g->look_ps);

            if (g->state == GROUP_ASKING)
                t = RTE_MIN(t, g->deadline);
            a->timer = RTE_MIN(a->timer, t);
        }
    for (unsigned i = 0; i < AN_TOMBSTONES; i++)
        if (a->tombstones[i].used)
            a->timer = RTE_MIN(a->timer, a->tombstones[i].deadline);
    if (a->mm) {
        int64_t t = mm_deadline(a->mm);

        a->timer = RTE_MIN(a->timer, t);
    }
}

/* Does the deferred work of callbacks. Doomed groups end before a control message can find them. */
static void an_settle(struct an *a)
{
    bool any = false;

    for (;;) {
        struct an_group *g = SLIST_FIRST(&a->doomed);
        struct an_message m;

        if (g) {
            group_abort(g);
        } else if (a->mm && mm_settle(a->mm)) {
            ;
        } else if (a->inbox_head != a->inbox_tail) {
            m = a->inbox[a->inbox_head++ % AN_CTL_DEPTH];
            control_input(a, &m.from, a->ctl_mem + (size_t)m.buffer * AN_CTL_ROOM + ROCE_GRH_BYTES,
                          m.len);
            post_buffer(a, m.buffer);
        } else {
            break;
        }
        any = true;
    }
    if (!any)
        return;
    window_restore(a);
    an_retime(a);
    an_check_all(a);
}

/* Sets the time of the call; call it before the rnic, which may call back. */
static void enter_rnic(struct an *a, int64_t now_ps)
{
    T_ASSERT_HOT(!a->in_rnic, "the rnic is called from one of its own callbacks");
    a->now = now_ps;
    a->in_rnic = true;
}

static uint16_t an_input(void *ctx, struct rte_mbuf **m, uint16_t n, int64_t now_ps)
{
    struct an *a = ctx;

    enter_rnic(a, now_ps);
    n = a->nic.input(a->nic.ctx, m, n, now_ps);
    a->in_rnic = false;
    an_settle(a);
    return n;
}

static uint16_t an_output(void *ctx, enum endpoint_queue q, struct rte_mbuf **m, uint16_t n,
                          int64_t now_ps)
{
    struct an *a = ctx;

    enter_rnic(a, now_ps);
    n = a->nic.output(a->nic.ctx, q, m, n, now_ps);
    a->in_rnic = false;
    an_settle(a);
    return n;
}

static void an_tick(void *ctx, int64_t now_ps)
{
    struct an *a = ctx;
    struct an_group *g, *next;

    enter_rnic(a, now_ps);
    a->nic.tick(a->nic.ctx, now_ps);
    engine_tick(a);
    a->in_rnic = false;
    if (now_ps >= a->timer) {
        for (g = LIST_FIRST(&a->groups); g; g = next) {
            next = LIST_NEXT(g, link); /* group_ask() may give up */
            if (!g->doomed && now_ps >= group_expires(g))
                group_expire(g);
            else if (g->state == GROUP_ASKING && !g->doomed && now_ps >= g->deadline)
                group_ask(g);
            else if (!g->doomed && now_ps >= g->look_ps)
                idle_check(g);
        }
        for (unsigned i = 0; i < AN_TOMBSTONES; i++)
            tombstone_tick(a, &a->tombstones[i]);
        if (a->mm)
            mm_tick(a->mm);
        an_retime(a);
    }
    an_settle(a);
}

static int64_t an_next(void *ctx)
{
    struct an *a = ctx;
    int64_t t = a->nic.next(a->nic.ctx);

    return RTE_MIN(t, RTE_MIN(a->timer, a->engine_due));
}

/* If the conf sets none: */
#define EDGE_TIMEOUT 10 /* 4.2 ms of fabric time: far beyond every round trip */
#define EDGE_TIMEOUT_REAL                                                                          \
    17                     /* 537 ms, if a conf runs in real time: the peer is a process or a guest
          that may not be scheduled for a while */
#define EDGE_RNR_RETRIES 7 /* without end */
#define EDGE_MIN_RNR     1 /* 10 us */

int an_connect(const struct fabric *fab, struct qp *qp, const struct an_addr *to,
               struct qp_attr *attr)
{
    int rc, d = fabric_dest_of_ip(fab, to->ip);

    attr->state = QP_RTR;
    attr->dest_ip = to->ip;
    attr->dest_marks = d >= 0 && !fab->nodes[fab->dests[d].node].outside;
    memcpy(attr->dest_mac, to->mac, sizeof(attr->dest_mac));
    attr->min_rnr_timer = EDGE_MIN_RNR;
    attr->timeout = fab->transport.ack_timeout ? fab->transport.ack_timeout
                    : fab->dilation == 1       ? EDGE_TIMEOUT_REAL
                                               : EDGE_TIMEOUT;
    attr->retry_cnt = fab->transport.retry_count;
    attr->rnr_retry = EDGE_RNR_RETRIES;
    rc = qp_modify(qp, attr);
    if (rc)
        return rc;
    attr->state = QP_RTS;
    return qp_modify(qp, attr);
}

int64_t an_backoff(unsigned tries)
{
    int64_t t = tries < 16 ? AN_RETRY_PS << tries : AN_RETRY_MAX_PS;

    return RTE_MIN(t, AN_RETRY_MAX_PS);
}

void an_send_control(struct an *a, const struct an_addr *to, enum agg_type type, struct agg_ctl *c)
{
    struct wqe *w = &a->say;

    c->magic = RTE_BE32(AGG_MAGIC);
    c->version = AGG_VERSION;
    c->type = type;
    c->node = rte_cpu_to_be_16(a->cfg.node);
    w->ud.ip = to->ip;
    w->ud.qpn = to->qpn;
    w->ud.qkey = AGG_QKEY;
    memcpy(w->ud.mac, to->mac, sizeof(w->ud.mac));
    memcpy(w->inl, c, sizeof(*c));
    if (qp_post_send(a->ctl, w))
        a->cnt.control_dropped++;
}

/* ---- life ---- */

void an_peer_down(struct an *a, uint16_t peer_node, int64_t now_ps)
{
    struct an_group *g;

    a->now = now_ps;
    an_event(a, AN_EV_NODE_DOWN, peer_node, 0);
    for (g = LIST_FIRST(&a->groups); g; g = LIST_NEXT(g, link)) {
        if (!g->top && g->up.node == peer_node)
            group_lost(g, &g->up);
        for (unsigned i = 0; i < g->n; i++)
            if (g->child[i].node == peer_node)
                group_lost(g, &g->child[i]);
    }
    if (a->mm)
        mm_node_down(a->mm, peer_node);
    an_settle(a);
}

void an_cut_off(struct an *a, int64_t now_ps)
{
    struct an_group *g;

    a->now = now_ps;
    an_event(a, AN_EV_CUT_OFF, (uint32_t)a->cnt.groups, 0);
    for (g = LIST_FIRST(&a->groups); g; g = LIST_NEXT(g, link))
        group_doom(g, AGG_E_EDGE, NULL, "%s has lost all its links, slot %u", group_me(g),
                   (unsigned)g->next);
    if (a->mm)
        mm_cut_off(a->mm);
    an_settle(a);
}

int an_idle(const struct an *a)
{
    return LIST_EMPTY(&a->groups) && !a->cnt.groups && !a->cnt.slots_granted &&
           !a->cnt.slots_used && !a->cnt.mbufs_promised && (!a->mm || mm_idle(a->mm));
}

unsigned an_groups_of(const struct an *a, uint64_t key)
{
    const struct an_group *g;
    unsigned n = a->mm ? mm_groups_of(a->mm, key) : 0;

    LIST_FOREACH(g, &a->groups, link)
    n += g->key == key;
    return n;
}

void an_set_budget(struct an *a, uint32_t mbufs)
{
    a->cfg.mbuf_budget = mbufs;
}

const struct an_counters *an_counters(const struct an *a)
{
    return &a->cnt;
}

void an_counters_print(const struct an *a, void (*emit)(void *ctx, const char *name, uint64_t v),
                       void *ctx)
{
#define X(n) emit(ctx, #n, a->cnt.n);
    AN_COUNTERS(X)
#undef X
    if (a->mm)
        mm_counters_print(a->mm, emit, ctx);
    roce_counters_print(rnic_counters(a->rnic), emit, ctx);
}

const struct roce_counters *an_roce_counters(const struct an *a)
{
    return rnic_counters(a->rnic);
}

struct mm *an_mm(const struct an *a)
{
    return a->mm;
}

struct endpoint an_endpoint(struct an *a)
{
    return (struct endpoint){
        .ctx = a, .input = an_input, .output = an_output, .tick = an_tick, .next = an_next};
}

static int64_t on_late(void *user, const struct qp *qp, int64_t window_ps)
{
    const struct an_cfg *cfg = &((struct an *)user)->cfg;
    const struct qp_attr *attr = qp_attributes(qp);

    return cfg->lateness_on_path(cfg->late_ctx, attr->dest_ip, attr->dest_qpn, window_ps);
}

static int create_rnic(struct an *a)
{
    uint32_t qps = a->me->reduce.max_groups * (AN_MAX_CHILDREN + 1) + 1 +
                   (a->cfg.mm.on ? mm_max_qps(&a->cfg.mm) : 0);
    struct rnic_cfg cfg = {
        .ip = a->me->ip,
        .qpn_base = AN_QPN_BASE,
        .max_qps = RTE_MIN(qps, 0xfff0u),
        .window_pkts = a->flight,
        .ack_every = AN_ACK_EVERY,
        .dscp = AN_DSCP,
        .pool = a->cfg.pool,
        .parts = a->cfg.parts,
        .ops = {.mem = on_memory,
                .complete = on_complete,
                .event = on_event,
                .sink = on_packet,
                .lateness = a->cfg.lateness_on_path ? on_late : NULL,
                .deferred = &mm_deferred_ops},
        .user = a,
    };
    int rc;

    roce_mac_of_ip(cfg.ip, cfg.mac);
    rc = rnic_create(&a->rnic, &cfg);
    if (!rc)
        a->nic = rnic_endpoint(a->rnic);
    return rc;
}

/* The well-known queue pair, ready to receive and send. */
static int create_control(struct an *a)
{
    struct qp_cfg cfg = {.type = QP_UD, .sq_depth = AN_CTL_DEPTH, .qpn = AGG_QPN};
    struct qp_attr attr = {.qkey = AGG_QKEY};
    int rc;

    a->ctl_mem = calloc(AN_CTL_DEPTH, AN_CTL_ROOM);
    a->ctl_rq = rq_create(AN_CTL_DEPTH);
    if (!a->ctl_mem || !a->ctl_rq)
        return -ENOMEM;
    cfg.rq = a->ctl_rq;
    rc = qp_create(a->rnic, &cfg, &a->ctl);
    for (int s = QP_INIT; !rc && s <= QP_RTS; s++) {
        attr.state = (enum qp_state)s;
        rc = qp_modify(a->ctl, &attr);
    }
    for (uint32_t i = 0; !rc && i < AN_CTL_DEPTH; i++)
        post_buffer(a, i);
    return rc;
}

int an_create(struct an **out, const struct an_cfg *cfg)
{
    struct an *a;
    int rc;

    if (!cfg->fab || !cfg->pool || cfg->node >= cfg->fab->n_nodes ||
        cfg->fab->nodes[cfg->node].kind != FAB_SWITCH)
        return -EINVAL;
    a = calloc(1, sizeof(*a));
    if (!a)
        return -ENOMEM;
    a->cfg = *cfg;
    a->me = &cfg->fab->nodes[cfg->node];
    events_init(&a->events, &an_event_kinds, a->me->name);
    a->flight = RTE_MAX(a->me->reduce.window, cfg->mm.on ? AN_MM_FLIGHT : 0) + AN_FLIGHT_MARGIN;
    a->psn_state = AN_SEED * (cfg->node + 1u + (uint64_t)cfg->life * FAB_MAX_NODES);
    a->timer = a->engine_due = PS_NEVER;
    a->data.op = WR_SEND;
    a->say = (struct wqe){
        .op = WR_SEND, .frag = WQE_WHOLE, .flags = WR_F_INLINE, .len = sizeof(struct agg_ctl)};
    a->tombstones = calloc(AN_TOMBSTONES, sizeof(a->tombstones[0]));
    a->over_share = calloc(cfg->fab->n_hosts + 1u, sizeof(a->over_share[0]));
    rc = a->tombstones && a->over_share ? create_rnic(a) : -ENOMEM;
    if (!rc)
        rc = create_control(a);
    if (!rc && cfg->mm.on)
        rc = mm_create(&a->mm, a, &cfg->mm);
    if (rc) {
        an_destroy(a);
        return rc;
    }
    *out = a;
    return 0;
}

void an_destroy(struct an *a)
{
    struct an_group *g;

    if (!a)
        return;
    while ((g = LIST_FIRST(&a->groups)))
        group_free(g);
    mm_destroy(a->mm);
    if (a->ctl)
        qp_destroy(a->ctl);
    if (a->rnic)
        rnic_destroy(a->rnic);
    if (a->ctl_rq)
        rq_destroy(a->ctl_rq);
    free(a->ctl_mem);
    free(a->tombstones);
    free(a->over_share);
    events_fini(&a->events);
    free(a);
}
