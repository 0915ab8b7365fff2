#include "roce/rate_limiter.h"

#include <stdlib.h>

/* Class selector 6: what adapters send notifications with (cnp_dscp). They carry no ECT: nobody
 * marks them. */
#define CNP_TOS (48 << 2)

void pace_marked(struct pace *p, int64_t now)
{
    if (p->notify || now < p->notify_ps)
        return;
    p->notify = true;
    p->notify_ps = now + p->qp->r->cfg.dcqcn.cnp_gap_ps;
    rnic_want_ack(p->qp);
}

enum built pace_build(struct pace *p, struct rte_mbuf **m)
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

enum roce_reason pace_notified(struct qp *qp, const struct roce_pkt *k, int64_t now)
{
    struct rnic *r = qp->r;
    struct pace *p = qp->pace;
    uint64_t cuts;

    if (qp->type == QP_UD)
        return ROCE_TRANSPORT;
    if (qp->state < QP_RTS || qp->state == QP_ERR)
        return ROCE_QP_STATE;
    if (k->src_ip != qp->attr.dest_ip || k->v6 != qp->attr.dest_v6)
        return ROCE_SOURCE;
    r->cnt.cnps_received++;
    if (!p)
        return ROCE_OK;
    cuts = p->rate.cuts;
    dcqcn_notified(&p->rate, &r->cfg.dcqcn, now);
    r->cnt.rate_cuts += p->rate.cuts - cuts;
    return ROCE_OK;
}

bool pace_may_send(struct pace *p, int64_t now)
{
    struct rnic *r = p->qp->r;
    uint64_t cuts = p->rate.cuts;
    int64_t at;

    if (likely(!p->rate.limited))
        return true;
    at = dcqcn_ready(&p->rate, &r->cfg.dcqcn, now);
    r->cnt.rate_cuts += p->rate.cuts - cuts;
    if (at <= now)
        return true;
    p->waits = true;
    timer_set(&r->paces, &p->timer, at);
    return false;
}

void pace_sent(struct pace *p, struct rte_mbuf *m, int64_t now)
{
    if (unlikely(p->rate.limited))
        dcqcn_sent(&p->rate, &p->qp->r->cfg.dcqcn, frame_wire_bytes(m), now);
}

void pace_cancel(struct pace *p)
{
    p->waits = false;
    timer_clear(&p->qp->r->paces, &p->timer);
}

void pace_tick(struct rnic *r, int64_t now)
{
    struct timer *t;

    while ((t = timer_first(&r->paces)) != NULL && t->deadline <= now) {
        struct pace *p = container_of(t, struct pace, timer);

        pace_cancel(p);
        rnic_want_send(p->qp);
    }
}

int64_t pace_next(struct rnic *r)
{
    return timers_next(&r->paces);
}

void pace_reset(struct pace *p)
{
    pace_cancel(p);
    p->notify = false;
    p->notify_ps = 0;
    p->rate = (struct dcqcn){0};
}

struct pace *pace_create(struct qp *qp, int *rc)
{
    struct pace *p;

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
