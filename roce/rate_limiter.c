/* SPDX-License-Identifier: BSD-3-Clause */
#include "roce/rate_limiter.h"

#include <stdlib.h>

/* Class selector 6: the DSCP of adapters' notifications (cnp_dscp). They carry no ECT, so they are
 * not marked. */
#define CNP_TOS (48 << 2)

void rate_limiter_marked(struct rate_limiter *p, int64_t now)
{
    if (p->notify || now < p->notify_ps)
        return;
    p->notify = true;
    p->notify_ps = now + p->qp->r->cfg.dcqcn.cnp_gap_ps;
    rnic_want_ack(p->qp);
}

enum built rate_limiter_build(struct rate_limiter *p, struct rte_mbuf **m)
{
    struct roce_pkt k;

    *m = frame_alloc(p->qp->r->cfg.pool);
    if (!*m)
        return BUILT_NO_MBUF;
    qp_packet(p->qp, &k);
    k.opcode = ROCE_OP_CNP_PACKET;
    k.tos = CNP_TOS;
    roce_build(*m, &k);
    roce_seal(*m, &k);
    p->notify = false;
    p->qp->r->cnt.cnps_sent++;
    return BUILT;
}

enum roce_reason rate_limiter_notified(struct qp *qp, const struct roce_pkt *k, int64_t now)
{
    struct rnic *r = qp->r;
    struct rate_limiter *p = qp->limiter;
    uint64_t cuts;
    bool limited;

    if (qp->type == QP_UD)
        return ROCE_TRANSPORT;
    if (qp->state < QP_RTS || qp->state == QP_ERR)
        return ROCE_QP_STATE;
    if (!qp_is_of_peer(qp, k))
        return ROCE_SOURCE;
    r->cnt.cnps_received++;
    if (!p)
        return ROCE_OK;
    cuts = p->rate.cuts;
    limited = p->rate.limited;
    dcqcn_notified(&p->rate, &r->cfg.dcqcn, now);
    if (!limited && p->rate.limited)
        qp_record(qp, RNIC_EV_RATE_LIMITED, (uint32_t)(p->rate.rate_bps / 1000000));
    r->cnt.rate_cuts += p->rate.cuts - cuts;
    return ROCE_OK;
}

bool rate_limiter_may_send(struct rate_limiter *p, int64_t now)
{
    struct rnic *r = p->qp->r;
    uint64_t cuts = p->rate.cuts;
    int64_t at;

    if (likely(!p->rate.limited))
        return true;
    at = dcqcn_ready(&p->rate, &r->cfg.dcqcn, now);
    r->cnt.rate_cuts += p->rate.cuts - cuts;
    if (!p->rate.limited)
        qp_record(p->qp, RNIC_EV_RATE_FREE, (uint32_t)p->rate.cuts);
    if (at <= now)
        return true;
    T_ASSERT_HOT(!p->waits && !p->qp->in_send, "a queue pair waits for its rate and its turn both");
    p->waits = true;
    timer_set(&r->rate_waits, &p->timer, at);
    return false;
}

void rate_limiter_sent(struct rate_limiter *p, struct rte_mbuf *m, int64_t now)
{
    if (unlikely(p->rate.limited))
        dcqcn_sent(&p->rate, &p->qp->r->cfg.dcqcn, frame_wire_bytes(m), now);
}

void rate_limiter_cancel(struct rate_limiter *p)
{
    p->waits = false;
    timer_clear(&p->qp->r->rate_waits, &p->timer);
}

void rate_limiter_tick(struct rnic *r, int64_t now)
{
    struct timer *t;

    while ((t = timer_first(&r->rate_waits)) != NULL && t->deadline <= now) {
        struct rate_limiter *p = container_of(t, struct rate_limiter, timer);

        rate_limiter_cancel(p);
        rnic_want_send(p->qp);
    }
}

int64_t rate_limiter_next(struct rnic *r)
{
    return timers_next(&r->rate_waits);
}

void rate_limiter_reset(struct rate_limiter *p)
{
    rate_limiter_cancel(p);
    p->notify = false;
    p->notify_ps = 0;
    p->rate = (struct dcqcn){0};
}

struct rate_limiter *rate_limiter_create(struct qp *qp, int *rc)
{
    struct rate_limiter *p;

    *rc = 0;
    if (!qp->r->cfg.dcqcn.on || qp->type == QP_UD)
        return NULL;
    p = calloc(1, sizeof(*p));
    if (!p) {
        *rc = -ENOMEM;
        return NULL;
    }
    p->qp = qp;
    p->timer.deadline = PS_NEVER;
    return p;
}
