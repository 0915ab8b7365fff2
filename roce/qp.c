/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Life of a queue pair: its number and table entry in the rnic, attributes, errors and flushing.
 */
#include "base/cacheline.h"
#include "roce/engine.h"
#include "roce/rate_limiter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- errors and flushing ---- */

void qp_event(struct qp *qp, enum qp_event e)
{
    if (qp->r->cfg.ops.event)
        qp->r->cfg.ops.event(qp->r->cfg.user, qp, e);
}

void qp_complete_recv(struct qp *qp, const struct cqe *c)
{
    qp->r->cfg.ops.complete(qp->r->cfg.user, c);
}

static void flush_recv(struct qp *qp, uint64_t wr_id)
{
    struct cqe c = {
        .wr_id = wr_id, .qp = qp, .status = WC_WR_FLUSH_ERR, .op = WR_SEND, .is_recv = true};

    qp_complete_recv(qp, &c);
}

void qp_flush(struct qp *qp)
{
    uint32_t n = qp->rqr.tail - qp->rqr.head;

    if (qp->state != QP_ERR && qp->state != QP_SQE)
        return;
    while (n--)
        qp_complete_send(qp, WC_WR_FLUSH_ERR);
    qp->rqr.seen = qp->rqr.tail;
    if (qp->state == QP_SQE) {
        qp->rqr.post_psn = qp->rqr.nxt;
        return;
    }
    if (qp->rsp.have_rwqe) {
        qp->rsp.have_rwqe = false;
        flush_recv(qp, qp->rsp.rwqe.wr_id);
    }
    if (!qp->rq || qp->rq->shared)
        return;
    for (n = rq_level(qp->rq); n; n--)
        if (rq_take(qp->rq, &qp->rsp.rwqe))
            flush_recv(qp, qp->rsp.rwqe.wr_id);
}

void qp_enter_error(struct qp *qp, uint8_t status)
{
    qp_record(qp, RNIC_EV_FAILED, status);
    qp_set_state(qp, QP_ERR);
    qp_timer_clear(qp);
    rnic_unlist(qp, false);
    qp->rsp.n_reads = 0;
    qp->rsp.ack_deferred = false;
    if (qp->rqr.head != qp->rqr.tail)
        qp_complete_send(qp, status);
    qp_flush(qp);
    if (qp->rq && qp->rq->shared)
        qp_event(qp, QP_EV_LAST_WQE);
}

void qp_fail(struct qp *qp, uint8_t status)
{
    if (qp->state == QP_ERR)
        return;
    qp->r->cnt.qp_errors++;
    qp_enter_error(qp, status);
}

void qp_fail_send(struct qp *qp, uint8_t status)
{
    qp->r->cnt.qp_errors++;
    T_ASSERT(qp->type != QP_RC, "a reliable connection fails in both directions, never to SQE");
    qp_record(qp, RNIC_EV_FAILED, status);
    qp_set_state(qp, QP_SQE);
    qp_complete_send(qp, status);
    qp_flush(qp);
}

const struct roce_pkt qp_any_packet = {.ttl = 64, .pkey = ROCE_DEFAULT_PKEY};

const struct qp_attr *qp_attributes(const struct qp *qp)
{
    return &qp->attr;
}

enum qp_state qp_state_of(const struct qp *qp)
{
    return qp->state;
}

uint32_t qp_num(const struct qp *qp)
{
    return qp->num;
}

bool qp_holds_receive(const struct qp *qp)
{
    return qp->rsp.have_rwqe;
}

void *qp_user(const struct qp *qp)
{
    return qp->user;
}

uint32_t qp_pd(const struct qp *qp)
{
    return qp->pd;
}

/* ---- life ---- */

/* Makes the table large enough for an index, for queue pairs with the rnic's own numbers. */
static int table_fit(struct rnic *r, uint32_t index)
{
    uint32_t n = rte_align32pow2(index + 1);
    struct qp **table;

    if (index < r->n_table)
        return 0;
    table = calloc(n, sizeof(*table));
    if (!table)
        return -ENOMEM;
    memcpy(table, r->table, r->n_table * sizeof(*table));
    if (r->table != r->few)
        free(r->table);
    r->table = table;
    r->n_table = n;
    return 0;
}

/* The place for a QP: that of the wanted number, or the next free one, so that a number is not reused
 * soon. */
static struct qp **find_place(struct rnic *r, uint32_t *qpn)
{
    uint32_t max = r->cfg.max_qps, i;

    if (*qpn == 0) {
        for (uint32_t n = 0; n < max; n++) {
            i = r->next_index % max + 1;
            r->next_index = i;
            if (i < r->n_table && r->table[i])
                continue;
            *qpn = (r->cfg.qpn_base + i) & PSN_MASK;
            return table_fit(r, i) ? NULL : &r->table[i];
        }
        return NULL;
    }
    i = *qpn - r->cfg.qpn_base;
    if (i <= max)
        return table_fit(r, i) ? NULL : &r->table[i];
    for (unsigned s = 0; s < ROCE_SPECIAL_QPS; s++)
        if (!r->special[s])
            return &r->special[s];
    return NULL;
}

static void attach_rq(struct qp *qp, struct rq *rq)
{
    qp->rq = rq;
    if (!rq)
        return;
    T_ASSERT(rq->users < UINT32_MAX, "the users of a receive queue are counted wrong");
    if (++rq->users > 1)
        rq_set_shared(rq);
    else if (!rq->shared)
        rq->owner = qp;
}

static void free_qp(struct qp *qp)
{
    free(qp->rqr.ring);
    free(qp->limiter);
    free(qp);
}

int qp_create(struct rnic *r, const struct qp_cfg *cfg, struct qp **out)
{
    uint32_t depth = cfg->sq_depth ? cfg->sq_depth : 1, qpn = cfg->qpn;
    struct qp **place, *qp;
    int rc;

    if ((cfg->type != QP_RC && cfg->type != QP_UC && cfg->type != QP_UD) || depth > 1u << 20 ||
        qpn > PSN_MASK || (cfg->streaming && !r->cfg.ops.sink) ||
        (cfg->deferred && (!r->cfg.ops.deferred || cfg->streaming || cfg->type != QP_RC)))
        return -EINVAL;
    if (qpn && rnic_qp(r, qpn))
        return -EADDRINUSE;
    place = find_place(r, &qpn);
    if (!place || timers_fit(&r->timers, r->n_qps + 1) ||
        (r->cfg.dcqcn.on && timers_fit(&r->rate_waits, r->n_qps + 1)))
        return -ENOMEM;
    qp = cacheline_alloc(sizeof(*qp));
    if (!qp)
        return -ENOMEM;
    qp->r = r, qp->num = qpn, qp->type = cfg->type;
    qp->limiter = rate_limiter_create(qp, &rc);
    if (requester_create(&qp->rqr, cfg) || rc) {
        free_qp(qp);
        return -ENOMEM;
    }
    qp->transport = cfg->type == QP_RC ? ROCE_RC : cfg->type == QP_UC ? ROCE_UC : ROCE_UD;
    qp->sig_all = cfg->sig_all, qp->streaming = cfg->streaming, qp->deferred = cfg->deferred;
    qp->user = cfg->user, qp->pd = cfg->pd;
    qp->rqr.window = r->cfg.window_pkts;
    qp->timer.deadline = PS_NEVER;
    attach_rq(qp, cfg->rq);
    T_ASSERT(!*place, "two queue pairs have one place in the table");
    *place = qp;
    r->n_qps++;
    qp_record(qp, RNIC_EV_CREATED, qp->type);
    *out = qp;
    return 0;
}

void qp_destroy(struct qp *qp)
{
    struct rnic *r = qp->r;
    uint32_t i;

    qp_record(qp, RNIC_EV_DESTROYED, qp->rqr.tail - qp->rqr.head);
    qp_reset(qp);
    for (i = 0; i < r->n_mcast;)
        if (r->mcast[i].qp == qp)
            r->mcast[i] = r->mcast[--r->n_mcast];
        else
            i++;
    if (qp->rq) {
        T_ASSERT(qp->rq->users > 0, "a receive queue has fewer users than queue pairs");
        qp->rq->users--;
        if (qp->rq->owner == qp)
            qp->rq->owner = NULL;
    }
    i = qp->num - r->cfg.qpn_base;
    if (i < r->n_table && r->table[i] == qp)
        r->table[i] = NULL;
    for (unsigned s = 0; s < ROCE_SPECIAL_QPS; s++)
        if (r->special[s] == qp)
            r->special[s] = NULL;
    T_ASSERT(r->n_qps > 0, "more queue pairs are destroyed than were created");
    r->n_qps--;
    free_qp(qp);
}
