/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ibv_modify_qp: checks the required and optional attributes of a transition (IBTA 11.2.5.2, tables
 * 91 to 94, as Linux has them in ib_modify_qp_is_ok) and each value, then passes them to the
 * engine. A refused call changes nothing.
 */
#include "host/hca/hca_priv.h"

#include <string.h>

/* An alternate path may be loaded wherever migration may be armed, and also on the way to RTR. */
#define ALT_OPT (IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE)

/* A transition of one transport. Masks exclude IBV_QP_STATE. */
struct transition {
    uint8_t type, from, to;
    uint32_t required, optional;
};

static const struct transition transitions[] = {
    {QP_RC, QP_RESET, QP_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
    {QP_UC, QP_RESET, QP_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
    {QP_UD, QP_RESET, QP_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0},
    {QP_RC, QP_INIT, QP_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    {QP_UC, QP_INIT, QP_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    {QP_UD, QP_INIT, QP_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},
    {QP_RC, QP_INIT, QP_RTR,
     IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
         IBV_QP_MIN_RNR_TIMER,
     IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {QP_UC, QP_INIT, QP_RTR, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
     IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {QP_UD, QP_INIT, QP_RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
    {QP_RC, QP_RTR, QP_RTS,
     IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
     ALT_OPT | IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
    {QP_UC, QP_RTR, QP_RTS, IBV_QP_SQ_PSN, ALT_OPT | IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
    {QP_UD, QP_RTR, QP_RTS, IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_QKEY},
    {QP_RC, QP_RTS, QP_RTS, 0,
     ALT_OPT | IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
    {QP_UC, QP_RTS, QP_RTS, 0, ALT_OPT | IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
    {QP_UD, QP_RTS, QP_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
    {QP_RC, QP_RTS, QP_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {QP_UC, QP_RTS, QP_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {QP_UD, QP_RTS, QP_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {QP_RC, QP_SQD, QP_RTS, 0,
     ALT_OPT | IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
    {QP_UC, QP_SQD, QP_RTS, 0, ALT_OPT | IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
    {QP_UD, QP_SQD, QP_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
    {QP_RC, QP_SQD, QP_SQD, 0,
     ALT_OPT | IBV_QP_AV | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
         IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC |
         IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
    {QP_UC, QP_SQD, QP_SQD, 0, ALT_OPT | IBV_QP_AV | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS},
    {QP_UD, QP_SQD, QP_SQD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
    {QP_UC, QP_SQE, QP_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
    {QP_UD, QP_SQE, QP_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
};

static bool mask_ok(enum qp_type type, enum qp_state from, enum qp_state to, uint32_t mask)
{
    mask &= ~(uint32_t)IBV_QP_STATE;
    if (to == QP_RESET ||
        to == QP_ERR) /* no attribute goes with it; a queue pair in RESET cannot fail */
        return !mask && !(to == QP_ERR && from == QP_RESET);
    for (size_t i = 0; i < sizeof(transitions) / sizeof(transitions[0]); i++) {
        const struct transition *t = &transitions[i];

        if (t->type == type && t->from == from && t->to == to)
            return !(t->required & ~mask) && !(mask & ~(t->required | t->optional));
    }
    return false;
}

/* ---- values ---- */

static bool values_ok(struct hca *h, const struct ibv_qp_attr *a, int mask)
{
    struct ud_dest to;

#define BAD(bit, cond) ((mask & (bit)) && (cond))
    if (BAD(IBV_QP_PKEY_INDEX, a->pkey_index) || BAD(IBV_QP_PORT, a->port_num != HCA_PORT) ||
        BAD(IBV_QP_PATH_MTU, !mtu_bytes(a->path_mtu) || mtu_bytes(a->path_mtu) > h->cfg.mtu) ||
        BAD(IBV_QP_DEST_QPN, a->dest_qp_num > 0xffffff) || BAD(IBV_QP_TIMEOUT, a->timeout > 31) ||
        BAD(IBV_QP_RETRY_CNT, a->retry_cnt > 7) || BAD(IBV_QP_RNR_RETRY, a->rnr_retry > 7) ||
        BAD(IBV_QP_MIN_RNR_TIMER, a->min_rnr_timer > 31) ||
        BAD(IBV_QP_MAX_QP_RD_ATOMIC, a->max_rd_atomic > ROCE_MAX_RD_ATOMIC) ||
        BAD(IBV_QP_MAX_DEST_RD_ATOMIC, a->max_dest_rd_atomic > ROCE_MAX_RD_ATOMIC) ||
        BAD(IBV_QP_AV, addr_from_ah_attr(h, &a->ah_attr, &to) || to.ip >> 28 == 0xe) ||
        BAD(IBV_QP_ALT_PATH, true)) /* this device has no path migration */
        return false;
#undef BAD
    return true;
}

/* Stores the attributes that ibv_query_qp returns. */
static void remember(struct ibv_qp_attr *to, const struct ibv_qp_attr *a, int mask)
{
#define KEEP(bit, field)                                                                           \
    do {                                                                                           \
        if (mask & (bit))                                                                          \
            to->field = a->field;                                                                  \
    } while (0)
    KEEP(IBV_QP_PKEY_INDEX, pkey_index);
    KEEP(IBV_QP_PORT, port_num);
    KEEP(IBV_QP_ACCESS_FLAGS, qp_access_flags);
    KEEP(IBV_QP_QKEY, qkey);
    KEEP(IBV_QP_AV, ah_attr);
    KEEP(IBV_QP_PATH_MTU, path_mtu);
    KEEP(IBV_QP_DEST_QPN, dest_qp_num);
    KEEP(IBV_QP_RQ_PSN, rq_psn);
    KEEP(IBV_QP_SQ_PSN, sq_psn);
    KEEP(IBV_QP_TIMEOUT, timeout);
    KEEP(IBV_QP_RETRY_CNT, retry_cnt);
    KEEP(IBV_QP_RNR_RETRY, rnr_retry);
    KEEP(IBV_QP_MIN_RNR_TIMER, min_rnr_timer);
    KEEP(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
    KEEP(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
#undef KEEP
}

static void to_engine(struct hca *h, const struct ibv_qp_attr *a, int mask, struct qp_attr *e)
{
    struct ud_dest to;

    if ((mask & IBV_QP_AV) && !addr_from_ah_attr(h, &a->ah_attr, &to)) {
        e->dest_ip = to.ip;
        e->dest_v6 = to.v6;
        e->dest_marks = !addr_is_foreign(h, to.ip);
        memcpy(e->dest_mac, to.mac, 6);
    }
    if (mask & IBV_QP_ACCESS_FLAGS)
        e->access =
            a->qp_access_flags & (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC);
    if (mask & IBV_QP_PATH_MTU)
        e->mtu = (uint16_t)mtu_bytes(a->path_mtu);
    if (mask & IBV_QP_RQ_PSN)
        e->rq_psn = a->rq_psn & ROCE_PSN_MASK;
    if (mask & IBV_QP_SQ_PSN)
        e->sq_psn = a->sq_psn & ROCE_PSN_MASK;
#define GIVE(bit, to_field, field)                                                                 \
    do {                                                                                           \
        if (mask & (bit))                                                                          \
            e->to_field = a->field;                                                                \
    } while (0)
    GIVE(IBV_QP_QKEY, qkey, qkey);
    GIVE(IBV_QP_DEST_QPN, dest_qpn, dest_qp_num);
    GIVE(IBV_QP_TIMEOUT, timeout, timeout);
    GIVE(IBV_QP_RETRY_CNT, retry_cnt, retry_cnt);
    GIVE(IBV_QP_RNR_RETRY, rnr_retry, rnr_retry);
    GIVE(IBV_QP_MIN_RNR_TIMER, min_rnr_timer, min_rnr_timer);
    GIVE(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic, max_rd_atomic);
    GIVE(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic, max_dest_rd_atomic);
#undef GIVE
}

/* ---- transitions ---- */

static int attr_apply(struct hca_qp *qp, const struct ibv_qp_attr *a, int mask)
{
    struct hca *h = qp->ctx->hca;
    enum qp_state from = qp_state_of(qp->qp), to;
    struct qp_attr e = *qp_attributes(qp->qp);
    struct rwqe w;
    int rc;

    if (mask & IBV_QP_CUR_STATE) {
        if ((enum qp_state)a->cur_qp_state != from)
            return EINVAL;
    }
    to = mask & IBV_QP_STATE ? (enum qp_state)a->qp_state : from;
    if (!mask_ok((enum qp_type)qp->v.qp_type, from, to, (uint32_t)mask) || !values_ok(h, a, mask))
        return EINVAL;
    to_engine(h, a, mask, &e);
    e.state = to;
    e.exact = true;
    if (qp->v.qp_type == IBV_QPT_UD)
        e.mtu = h->cfg.mtu; /* UD has no path MTU: packets are as long as the port allows */
    if (to == QP_SQD && from == QP_RTS) /* before qp_modify: the event may come at once */
        qp->drain_event = (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) && a->en_sqd_async_notify;
    if (to == QP_RESET)
        qp_return_receive(qp);
    rc = qp_modify(qp->qp, &e);
    if (rc)
        return -rc;
    remember(&qp->attr, a, mask);
    if (to == QP_RTS && from == QP_RTR)
        qp_list_cachelines(qp, true);
    if (to == QP_RESET)
        qp_list_cachelines(qp, false);
    qp->v.state = (enum ibv_qp_state)to;
    events_add(&h->events, h->now_ps, HCA_EV_QP_STATE, qp->v.qp_num, to);
    if (to == QP_RESET) {
        while (!qp->srq && rq_take(qp->rq, &w))
            ;
        cq_clean(qp->scq, qp->v.qp_num);
        cq_clean(qp->rcq, qp->v.qp_num);
        qp_all_slots(qp);
    }
    return 0;
}

EXPORT int ibv_modify_qp(struct ibv_qp *v, struct ibv_qp_attr *attr, int mask)
{
    struct hca_ctx *c = hca_ctx_of(v->context);
    int rc;

    if (!c)
        return REAL(ibv_modify_qp)(v, attr, mask);
    if (hca_dead(c->hca))
        return EIO;
    if ((mask & IBV_QP_AV) && addr_resolve(c->hca, &attr->ah_attr) == -EHOSTUNREACH)
        return EHOSTUNREACH;
    hca_lock(c->hca);
    rc = attr_apply(to_qp(v), attr, mask);
    hca_kick(c->hca);
    hca_unlock(c->hca);
    return rc;
}
