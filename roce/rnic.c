/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/cacheline.h"
#include "roce/engine.h"
#include "roce/rate_limiter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Time that sending waits after the pool was empty: a few frames on a slow link. */
#define STALL_PS PS_PER_US

/* ---- receiving ---- */

struct qp *rnic_qp(struct rnic *r, uint32_t qpn)
{
    uint32_t i = qpn - r->cfg.qpn_base;

    if (i < r->n_table && r->table[i])
        return r->table[i];
    for (unsigned s = 0; s < ROCE_SPECIAL_QPS; s++)
        if (r->special[s] && r->special[s]->num == qpn)
            return r->special[s];
    return NULL;
}

static inline bool is_mcast(uint32_t ip)
{
    return ip >> 28 == 0xe;
}

static enum roce_reason input_mcast(struct rnic *r, const struct roce_pkt *k, struct rte_mbuf *m)
{
    enum roce_reason why = ROCE_NO_QP;
    bool any = false;

    if ((k->opcode & ROCE_TRANSPORT_MASK) != ROCE_UD || k->dqpn != ROCE_MCAST_QPN)
        return ROCE_TRANSPORT;
    for (uint32_t i = 0; i < r->n_mcast; i++) {
        if (r->mcast[i].ip != k->dst_ip)
            continue;
        why = ud_input(r->mcast[i].qp, k, m);
        any |= why == ROCE_OK;
    }
    return any ? ROCE_OK : why;
}

static enum roce_reason input_qp(struct qp *qp, const struct roce_pkt *k, struct rte_mbuf *m,
                                 int64_t now_ps, bool *taken)
{
    bool response = roce_opinfo[k->opcode].what & ROCE_P_RESPONSE;

    if ((k->opcode & ROCE_TRANSPORT_MASK) != qp->transport)
        return ROCE_TRANSPORT;
    if (qp->state < QP_RTR || qp->state == QP_ERR || (response && qp->state < QP_RTS))
        return ROCE_QP_STATE;
    if (qp->type == QP_UD)
        return ud_input(qp, k, m);
    if (!qp_is_of_peer(qp, k))
        return ROCE_SOURCE;
    if (unlikely((k->tos & 3) == 3 && k->len && qp->limiter))
        rate_limiter_marked(qp->limiter, now_ps);
    if (!qp->established) {
        qp->established = true;
        if (qp->state == QP_RTR)
            qp_event(qp, QP_EV_COMM_EST);
    }
    if (response)
        return completer_input(qp, k, now_ps);
    if (qp->type == QP_UC)
        return responder_input_uc(qp, k, m, now_ps, taken);
    return responder_input(qp, k, m, now_ps, taken);
}

static enum roce_reason input_one(struct rnic *r, struct rte_mbuf *m, int64_t now_ps, bool *taken)
{
    static const uint8_t mcast_mac[3] = {0x01, 0x00, 0x5e};
    struct roce_pkt k;
    enum roce_reason why = roce_parse(m, &k);
    struct qp *qp;

    if (why != ROCE_OK)
        return why;
    if (is_mcast(k.dst_ip) ? memcmp(k.dst_mac, mcast_mac, 3) != 0
                           : k.dst_ip != r->cfg.ip || memcmp(k.dst_mac, r->cfg.mac, 6) != 0)
        return ROCE_NOT_OURS;
    if (frame_meta(m)->flags & (FRAME_F_VIRTUAL | FRAME_F_TRUSTED)
            ? frame_meta(m)->flags & FRAME_F_DAMAGED
            : !roce_icrc_ok(m, &k)) {
        r->cnt.icrc_errors++;
        return ROCE_ICRC;
    }
    if (k.pkey != ROCE_DEFAULT_PKEY)
        return ROCE_PKEY;
    r->cnt.ce_marks += (k.tos & 3) == 3;
    if (is_mcast(k.dst_ip))
        return input_mcast(r, &k, m);
    qp = rnic_qp(r, k.dqpn);
    if (!qp)
        return ROCE_NO_QP;
    if (unlikely(k.opcode == ROCE_OP_CNP_PACKET))
        return rate_limiter_notified(qp, &k, now_ps);
    why = input_qp(qp, &k, m, now_ps, taken);
    qp_check(qp);
    return why;
}

static void run_flush(struct rnic *r)
{
    struct qp *qp;

    while ((qp = TAILQ_FIRST(&r->flush)) != NULL) {
        TAILQ_REMOVE(&r->flush, qp, flush_link);
        qp->in_flush = false;
        qp_flush(qp);
    }
}

/* Prefetches the whole frame; the ICRC check is its first reader. */
static inline void body_prefetch(const struct rte_mbuf *m)
{
    const uint8_t *at = rte_pktmbuf_mtod(m, const uint8_t *);

    for (uint32_t i = 0; i < m->data_len; i += CACHELINE)
        rte_prefetch0(at + i);
}

static inline void mbuf_prefetch(struct rte_mbuf *m)
{
    rte_prefetch0(m);
    rte_mbuf_prefetch_part2(m);
    rte_prefetch0(frame_meta(m));
}

static uint16_t ep_input(void *ctx, struct rte_mbuf **m, uint16_t n, int64_t now_ps)
{
    struct rnic *r = ctx;
    uint16_t left = 0;

    r->stall_ps = 0;
    r->now_ps = now_ps;
    for (uint16_t i = 0; i < n; i++) {
        bool taken = false;
        enum roce_reason why;

        if (i + 1 < n)
            r->cfg.far ? body_prefetch(m[i + 1])
                       : rte_prefetch0(rte_pktmbuf_mtod(m[i + 1], void *));
        if (i + 3 < n && r->cfg.far)
            mbuf_prefetch(m[i + 3]);
        r->cnt.rx_packets++;
        frame_meta(m[i])->flags &= ~FRAME_F_CRC; /* only this rnic holds it */
        r->cnt.rx_bytes += frame_bytes(m[i]);
        why = input_one(r, m[i], now_ps, &taken);
        if (why != ROCE_OK)
            r->cnt.drops[why]++;
        if (!taken)
            m[left++] = m[i];
    }
    /* Frees them together: takes the pool's lock once, which would wait for the copies out of the
     * frames. */
    rte_pktmbuf_free_bulk(m, left);
    return n;
}

/* ---- sending ---- */

static inline bool has_data(const struct qp *qp)
{
    return responder_ready(qp) || requester_ready(qp);
}

void rnic_want_send(struct qp *qp)
{
    if (qp->in_send || (qp->limiter && qp->limiter->waits) || !has_data(qp))
        return;
    qp->in_send = true;
    TAILQ_INSERT_TAIL(&qp->r->send, qp, send_link);
}

void rnic_want_ack(struct qp *qp)
{
    if (qp->in_ack)
        return;
    qp->in_ack = true;
    TAILQ_INSERT_TAIL(&qp->r->ack, qp, ack_link);
}

void rnic_want_flush(struct qp *qp)
{
    if (qp->in_flush)
        return;
    qp->in_flush = true;
    TAILQ_INSERT_TAIL(&qp->r->flush, qp, flush_link);
}

void rnic_unlist(struct qp *qp, bool acks_too)
{
    struct rnic *r = qp->r;

    if (qp->in_send)
        TAILQ_REMOVE(&r->send, qp, send_link);
    qp->in_send = false;
    if (qp->limiter)
        rate_limiter_cancel(qp->limiter);
    if (!acks_too)
        return;
    if (qp->in_ack)
        TAILQ_REMOVE(&r->ack, qp, ack_link);
    if (qp->in_flush)
        TAILQ_REMOVE(&r->flush, qp, flush_link);
    if (qp->in_delayed_acks)
        TAILQ_REMOVE(&r->delayed_acks, qp, delayed_ack_link);
    if (qp->in_fetch)
        TAILQ_REMOVE(&r->fetch, qp, fetch_link);
    qp->in_ack = qp->in_flush = qp->in_delayed_acks = qp->in_fetch = false;
}

/* Builds a frame of the next QP; responses and requests alternate. */
static enum built build_data(struct qp *qp, struct rte_mbuf **m, int64_t now_ps)
{
    struct responder *s = &qp->rsp;
    bool ready = requester_ready(qp);

    if (responder_ready(qp) && (qp->reply_turn || !ready)) {
        qp->reply_turn = false;
        if (s->n_reads)
            return reads_build(qp, m);
        return responder_build_deferred(qp, m);
    }
    qp->reply_turn = true;
    if (!ready)
        return BUILT_NOTHING;
    return qp->type == QP_UD ? ud_build(qp, m) : requester_build(qp, m, now_ps);
}

static void count_tx(struct rnic *r, struct rte_mbuf *m)
{
    r->cnt.tx_packets++;
    r->cnt.tx_bytes += frame_bytes(m);
}

static void stall(struct rnic *r, int64_t now_ps)
{
    r->cnt.no_mbufs++;
    r->stall_ps = now_ps + STALL_PS;
}

static uint16_t output_acks(struct rnic *r, struct rte_mbuf **m, uint16_t n, int64_t now_ps)
{
    uint16_t got = 0;
    struct qp *qp;

    while (got < n && (qp = TAILQ_FIRST(&r->ack)) != NULL) {
        bool notify = qp->limiter && qp->limiter->notify;
        enum built b =
            notify ? rate_limiter_build(qp->limiter, &m[got]) : responder_build_ack(qp, &m[got]);

        if (b == BUILT_NO_MBUF) {
            stall(r, now_ps);
            break;
        }
        if (b == BUILT)
            count_tx(r, m[got++]);
        if (notify) /* the acknowledgement, if there is one, stays pending */
            continue;
        TAILQ_REMOVE(&r->ack, qp, ack_link);
        qp->in_ack = false;
    }
    return got;
}

static uint16_t output_data(struct rnic *r, struct rte_mbuf **m, uint16_t n, int64_t now_ps)
{
    uint16_t got = 0;
    struct qp *qp;

    while (got < n && (qp = TAILQ_FIRST(&r->send)) != NULL) {
        enum built b;

        TAILQ_REMOVE(&r->send, qp, send_link);
        qp->in_send = false;
        if (qp->limiter && !rate_limiter_may_send(qp->limiter, now_ps))
            continue;
        b = build_data(qp, &m[got], now_ps);
        if (b == BUILT_NO_MBUF) {
            qp->in_send = true;
            TAILQ_INSERT_HEAD(&r->send, qp, send_link);
            stall(r, now_ps);
            break;
        }
        if (b == BUILT) {
            if (qp->limiter)
                rate_limiter_sent(qp->limiter, m[got], now_ps);
            count_tx(r, m[got++]);
        }
        rnic_want_send(qp);
        qp_check(qp);
    }
    return got;
}

static uint16_t ep_output(void *ctx, enum endpoint_queue q, struct rte_mbuf **m, uint16_t n,
                          int64_t now_ps)
{
    struct rnic *r = ctx;

    r->now_ps = now_ps;
    run_flush(r);
    if (!TAILQ_EMPTY(&r->fetch))
        fetch_run(r, now_ps);
    if (r->stall_ps > now_ps)
        return 0;
    r->stall_ps = 0;
    return q == ENDPOINT_ACK ? output_acks(r, m, n, now_ps) : output_data(r, m, n, now_ps);
}

static void ep_tick(void *ctx, int64_t now_ps)
{
    struct rnic *r = ctx;
    struct qp *qp;

    r->now_ps = now_ps;
    run_flush(r);
    fetch_run(r, now_ps);
    while (timers_next(&r->timers) <= now_ps) {
        qp = container_of(timer_first(&r->timers), struct qp, timer);
        T_ASSERT_HOT(qp->r == r, "the deadline of another rnic's queue pair is due");
        qp_timer_clear(qp);
        requester_timer(qp, now_ps);
    }
    responder_send_delayed_acks(r, now_ps);
    rate_limiter_tick(r, now_ps);
}

static int64_t ep_deadline(void *ctx)
{
    struct rnic *r = ctx;
    const struct qp *late = TAILQ_FIRST(&r->delayed_acks);
    int64_t t = RTE_MIN(timers_next(&r->timers), rate_limiter_next(r));

    t = late ? RTE_MIN(t, late->ack_due) : t;
    return RTE_MIN(t, fetch_next(r));
}

static int64_t ep_next(void *ctx)
{
    struct rnic *r = ctx;

    if (!TAILQ_EMPTY(&r->flush))
        return 0;
    if (!r->stall_ps && (!TAILQ_EMPTY(&r->ack) || !TAILQ_EMPTY(&r->send)))
        return 0;
    return r->stall_ps ? RTE_MIN(ep_deadline(r), r->stall_ps) : ep_deadline(r);
}

struct endpoint rnic_endpoint(struct rnic *r)
{
    return (struct endpoint){.ctx = r,
                             .input = ep_input,
                             .output = ep_output,
                             .tick = ep_tick,
                             .next = ep_next,
                             .deadline = ep_deadline};
}

struct cacheline_list *rnic_cachelines(struct rnic *r)
{
    return &r->lines;
}

/* ---- control ---- */

static void port_down_one(struct qp *qp)
{
    bool waiting;

    if (!qp || qp->type == QP_UD || qp->state < QP_RTR || qp->state == QP_ERR)
        return;
    waiting = qp->rqr.head != qp->rqr.tail;
    qp_fail(qp, WC_RETRY_EXC_ERR);
    if (!waiting) /* no completion tells the owner */
        qp_event(qp, QP_EV_FATAL);
}

void rnic_port_down(struct rnic *r, int64_t now_ps)
{
    events_add(&r->events, now_ps, RNIC_EV_PORT_DOWN, r->n_qps, r->cfg.max_qps);
    for (uint32_t i = 0; i < r->n_table; i++)
        port_down_one(r->table[i]);
    for (unsigned s = 0; s < ROCE_SPECIAL_QPS; s++)
        port_down_one(r->special[s]);
}

const struct roce_counters *rnic_counters(const struct rnic *r)
{
    return &r->cnt;
}

void roce_counters_print(const struct roce_counters *c,
                         void (*emit)(void *ctx, const char *name, uint64_t v), void *ctx)
{
#define X(n) emit(ctx, #n, c->n);
    ROCE_COUNTERS(X)
#undef X
#define X(n, l, t)                                                                                 \
    (void)t, ROCE_##n != ROCE_OK ? emit(ctx, "drop_" #l, c->drops[ROCE_##n]) : (void)0;
    ROCE_REASONS(X)
#undef X
}

int qp_attach_mcast(struct qp *qp, uint32_t ip)
{
    struct rnic *r = qp->r;

    if (qp->type != QP_UD || !is_mcast(ip))
        return -EINVAL;
    for (uint32_t i = 0; i < r->n_mcast; i++)
        if (r->mcast[i].qp == qp && r->mcast[i].ip == ip)
            return 0;
    if (r->n_mcast == ROCE_MAX_MCAST)
        return -ENOMEM;
    T_ASSERT(r->n_mcast < ROCE_MAX_MCAST, "more multicast attachments than an rnic has room for");
    r->mcast[r->n_mcast].ip = ip;
    r->mcast[r->n_mcast++].qp = qp;
    return 0;
}

int qp_detach_mcast(struct qp *qp, uint32_t ip)
{
    struct rnic *r = qp->r;

    for (uint32_t i = 0; i < r->n_mcast; i++) {
        if (r->mcast[i].qp != qp || r->mcast[i].ip != ip)
            continue;
        r->mcast[i] = r->mcast[--r->n_mcast];
        return 0;
    }
    return -EINVAL;
}

int rnic_create(struct rnic **rp, const struct rnic_cfg *cfg)
{
    struct rnic *r;

    if (!cfg->pool || cfg->max_qps == 0 || cfg->max_qps > 0xffff ||
        cfg->window_pkts >= PSN_HALF / 2 || (cfg->dcqcn.on && !cfg->dcqcn.line_bps) ||
        !cfg->ops.mem || !cfg->ops.complete)
        return -EINVAL;
    r = cacheline_alloc(sizeof(*r));
    if (!r)
        return -ENOMEM;
    r->cfg = *cfg;
    r->carried = frame_pool_carries(cfg->pool) ? UINT32_MAX : FRAME_CARRIED;
    if (!r->cfg.window_pkts)
        r->cfg.window_pkts = 64;
    if (!r->cfg.ack_every)
        r->cfg.ack_every = 16;
    r->table = r->few;
    r->n_table = ROCE_FEW_QPS;
    timers_init(&r->timers, r->few_timers, ROCE_FEW_TIMERS);
    TAILQ_INIT(&r->send);
    TAILQ_INIT(&r->ack);
    TAILQ_INIT(&r->flush);
    TAILQ_INIT(&r->delayed_acks);
    TAILQ_INIT(&r->fetch);
    cacheline_list_add(&r->lines, r, offsetof(struct rnic, cnt) + CACHELINE);
    rnic_events_init(r);
    *rp = r;
    return 0;
}

void rnic_destroy(struct rnic *r)
{
    if (!r)
        return;
    for (uint32_t i = 0; i < r->n_table; i++)
        if (r->table[i])
            qp_destroy(r->table[i]);
    for (unsigned s = 0; s < ROCE_SPECIAL_QPS; s++)
        if (r->special[s])
            qp_destroy(r->special[s]);
    T_ASSERT(r->n_qps == 0, "the count of queue pairs is not that of the table");
    T_ASSERT(TAILQ_EMPTY(&r->send) && TAILQ_EMPTY(&r->ack) && TAILQ_EMPTY(&r->flush) &&
                 TAILQ_EMPTY(&r->delayed_acks) && TAILQ_EMPTY(&r->fetch),
             "a destroyed queue pair is still in a list of its rnic");
    T_ASSERT(r->timers.n == 0 && r->rate_waits.n == 0,
             "a destroyed queue pair still has a deadline");
    T_ASSERT(r->n_mcast == 0, "a destroyed queue pair is still attached to a multicast group");
    events_fini(&r->events);
    timers_fini(&r->timers);
    timers_fini(&r->rate_waits);
    if (r->table != r->few)
        free(r->table);
    free(r);
}
