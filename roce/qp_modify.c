/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * States of a queue pair: the attributes of each transition (IBTA 10.3.1), and reset.
 */
#include "base/cacheline.h"
#include "roce/engine.h"
#include "roce/rate_limiter.h"

#include <errno.h>
#include <string.h>

/* Adds the cache lines of a connected queue pair to the rnic's list; from RTS until it is reset. */
static void list_cachelines(struct qp *qp)
{
    struct cacheline_list *l = &qp->r->lines;

    if (qp->type != QP_RC)
        return;
    cacheline_list_add(l, qp, offsetof(struct qp, rsp.reads));
    cacheline_list_add(l, qp->rqr.ring, CACHELINE);
    if (qp->rq)
        cacheline_list_add(l, qp->rq, sizeof(*qp->rq));
}

static void unlist_cachelines(struct qp *qp)
{
    struct cacheline_list *l = &qp->r->lines;

    cacheline_list_drop(l, qp);
    cacheline_list_drop(l, qp->rqr.ring);
    if (qp->rq)
        cacheline_list_drop(l, qp->rq);
}

/* IBTA 10.3.1, figure 124: the states to which each state can go. */
#define TO(s) (1u << QP_##s)
static const uint8_t transitions[] = {
    [QP_RESET] = TO(RESET) | TO(INIT) | TO(ERR),
    [QP_INIT] = TO(RESET) | TO(INIT) | TO(RTR) | TO(ERR),
    [QP_RTR] = TO(RESET) | TO(RTS) | TO(ERR),
    [QP_RTS] = TO(RESET) | TO(RTS) | TO(SQD) | TO(SQE) | TO(ERR),
    [QP_SQD] = TO(RESET) | TO(RTS) | TO(SQD) | TO(SQE) | TO(ERR),
    [QP_SQE] = TO(RESET) | TO(RTS) | TO(ERR),
    [QP_ERR] = TO(RESET),
};

void qp_set_state(struct qp *qp, enum qp_state to)
{
    T_ASSERT(qp->state <= QP_ERR && qp->attr.state == qp->state,
             "the state of a queue pair is not the one that its attributes have");
    T_ASSERT(transitions[qp->state] & 1u << to, "invalid transition of a queue pair's state");
    if (to != qp->state)
        qp_record(qp, (enum rnic_event)to, qp->state);
    qp->state = qp->attr.state = to;
}

void qp_reset(struct qp *qp)
{
    struct requester *q = &qp->rqr;

    unlist_cachelines(qp);
    qp_timer_clear(qp);
    rnic_unlist(qp, true);
    T_ASSERT(!qp->in_send && !qp->in_ack && !qp->in_flush && !qp->in_delayed_acks && !qp->in_fetch,
             "a queue pair is reset and marked as in a list of its rnic");
    if (qp->limiter)
        rate_limiter_reset(qp->limiter);
    for (; q->head != q->tail; q->head++)
        send_queue_release(sq_at(qp, q->head));
    *q = (struct requester){.ring = q->ring,
                            .extra = q->extra,
                            .stride = q->stride,
                            .max_sge = q->max_sge,
                            .max_inline = q->max_inline,
                            .depth = q->depth,
                            .mask = q->mask,
                            .window = q->window};
    memset(&qp->rsp, 0, sizeof(qp->rsp));
    if (qp->rq && !qp->rq->shared)
        qp->rq->head = qp->rq->tail;
    qp->established = qp->drained_said = qp->reply_turn = false;
    qp_set_state(qp, QP_RESET);
    memset(&qp->attr, 0, sizeof(qp->attr));
}

static bool mtu_ok(uint32_t mtu)
{
    return mtu >= 256 && mtu <= ROCE_MAX_MTU && (mtu & (mtu - 1)) == 0;
}

/* UDP source port. All packets of a QP take one path, different QPs may take others (IBTA A17.4.3). */
static uint16_t flow_port(uint32_t sqpn, uint32_t dqpn)
{
    uint64_t h = ((uint64_t)sqpn << 24 | dqpn) * 0x9e3779b97f4a7c15u;

    return 0xc000 | (uint16_t)(h >> 50);
}

static int to_init(struct qp *qp, const struct qp_attr *a)
{
    qp->attr.access = a->access;
    qp->attr.qkey = a->qkey;
    return 0;
}

static void take_optional(struct qp *qp, const struct qp_attr *a)
{
    if (a->access || a->exact)
        qp->attr.access = a->access;
    if (a->qkey || a->exact)
        qp->attr.qkey = a->qkey;
    if (a->min_rnr_timer || a->exact)
        qp->attr.min_rnr_timer = a->min_rnr_timer;
}

static int to_rtr(struct qp *qp, const struct qp_attr *a)
{
    uint32_t mtu = qp->type == QP_UD && a->mtu == 0 ? ROCE_MAX_MTU : a->mtu;

    if (!mtu_ok(mtu) || a->max_dest_rd_atomic > ROCE_MAX_RD_ATOMIC || a->min_rnr_timer > 31)
        return -EINVAL;
    take_optional(qp, a);
    qp->attr.mtu = mtu;
    qp->attr.min_rnr_timer = a->min_rnr_timer;
    if (qp->type != QP_UD) {
        qp->attr.dest_qpn = a->dest_qpn & PSN_MASK;
        qp->attr.dest_ip = a->dest_ip;
        qp->attr.dest_v6 = a->dest_v6;
        qp->attr.dest_marks = a->dest_marks;
        memcpy(qp->attr.dest_mac, a->dest_mac, 6);
        qp->attr.rq_psn = a->rq_psn & PSN_MASK;
        qp->attr.max_dest_rd_atomic = a->max_dest_rd_atomic;
    }
    qp->rsp.epsn = qp->attr.rq_psn;
    qp->udp_src = flow_port(qp->num, qp->attr.dest_qpn);
    return 0;
}

static int to_rts(struct qp *qp, const struct qp_attr *a)
{
    struct requester *q = &qp->rqr;

    if (a->max_rd_atomic > ROCE_MAX_RD_ATOMIC || a->timeout > 31 || a->retry_cnt > 7 ||
        a->rnr_retry > 7 || a->min_rnr_timer > 31)
        return -EINVAL;
    take_optional(qp, a);
    qp->attr.timeout = a->timeout;
    qp->attr.retry_cnt = a->retry_cnt;
    qp->attr.rnr_retry = a->rnr_retry;
    if (qp->state == QP_RTR) {
        qp->attr.sq_psn = a->sq_psn & PSN_MASK;
        qp->attr.max_rd_atomic = a->max_rd_atomic;
        q->post_psn = q->una = q->nxt = q->max = qp->attr.sq_psn;
        q->acked = psn_add(q->una, PSN_MASK);
        q->retry_left = a->retry_cnt;
        q->rnr_left = a->rnr_retry;
        q->paused = q->pause = 0;
    }
    return 0;
}

static int in_sqd(struct qp *qp, const struct qp_attr *a)
{
    int rc = a->exact ? to_rts(qp, a) : 0;

    if (!a->exact || rc)
        return rc;
    if (a->max_dest_rd_atomic > ROCE_MAX_RD_ATOMIC)
        return -EINVAL;
    qp->attr.max_rd_atomic = a->max_rd_atomic;
    qp->attr.max_dest_rd_atomic = a->max_dest_rd_atomic;
    qp->attr.dest_ip = a->dest_ip;
    qp->attr.dest_v6 = a->dest_v6;
    qp->attr.dest_marks = a->dest_marks;
    memcpy(qp->attr.dest_mac, a->dest_mac, 6);
    qp->udp_src = flow_port(qp->num, qp->attr.dest_qpn);
    return 0;
}

int qp_modify(struct qp *qp, const struct qp_attr *a)
{
    enum qp_state from = qp->state, to = a->state;
    int rc = -EINVAL;

    if (to == QP_RESET) {
        qp_reset(qp);
        return 0;
    }
    if (to == QP_ERR) {
        if (from != QP_ERR)
            qp_enter_error(qp, WC_WR_FLUSH_ERR);
        qp->attr.state = QP_ERR;
        return 0;
    }
    if (to == QP_INIT && (from == QP_RESET || from == QP_INIT))
        rc = to_init(qp, a);
    else if (to == QP_RTR && from == QP_INIT)
        rc = to_rtr(qp, a);
    else if (to == QP_RTS && from >= QP_RTR && from <= QP_SQE)
        rc = to_rts(qp, a);
    else if (to == QP_SQD && from == QP_RTS)
        rc = 0;
    else if (to == QP_SQD && from == QP_SQD)
        rc = in_sqd(qp, a);
    if (rc)
        return rc;
    qp_set_state(qp, to);
    if (to == QP_RTS && from == QP_RTR)
        list_cachelines(qp);
    if (from != QP_SQD || to != QP_SQD)
        qp->drained_said = false;
    if (to == QP_SQD)
        completer_advance(qp);
    rnic_want_send(qp);
    return 0;
}
