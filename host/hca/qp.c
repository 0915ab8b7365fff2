/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs: creation, query, destruction. Transitions are in qp_modify.c, posting in post.c. */
#include "host/hca/hca_priv.h"

#include "base/cacheline.h"

#include <stdlib.h>
#include <string.h>

/* The engine flushes both queues. */
void qp_to_error(struct hca_qp *qp)
{
    struct qp_attr a;

    if (qp_state_of(qp->qp) == QP_RESET)
        return;
    if (qp_state_of(qp->qp) != QP_ERR) {
        a = *qp_attributes(qp->qp);
        a.state = QP_ERR;
        qp_modify(qp->qp, &a);
    }
    qp->v.state = IBV_QPS_ERR;
}

void qp_list_cachelines(struct hca_qp *qp, bool on)
{
    struct cacheline_list *l = rnic_cachelines(qp->ctx->hca->rnic);

    if (!on) {
        cacheline_list_drop(l, qp);
        cacheline_list_drop(l, &qp->hca);
    } else if (qp->v.qp_type == IBV_QPT_RC) {
        cacheline_list_add(l, qp, CACHELINE);
        cacheline_list_add(l, &qp->hca, CACHELINE);
    }
}

/* Makes all entries of both queues free, as after creation and reset. */
void qp_all_slots(struct hca_qp *qp)
{
    qp->sq_free = (uint16_t)qp->cap.max_send_wr;
    qp->rq_free = (uint16_t)qp->cap.max_recv_wr;
}

/* Frees the SRQ entry of a receive that will not complete, because the engine is about to drop a
 * message that has begun to arrive. */
void qp_return_receive(struct hca_qp *qp)
{
    if (qp->shared && qp_holds_receive(qp->qp))
        qp->srq->free = (uint16_t)(qp->srq->free + qp->slot);
}

/* ---- creation ---- */

static int check_init(const struct hca_ctx *c, const struct ibv_pd *pd,
                      const struct ibv_qp_init_attr *a)
{
    const struct ibv_qp_cap *cap = &a->cap;

    if (!pd || !a->send_cq || !a->recv_cq || pd->context != &c->v.context ||
        a->send_cq->context != pd->context || a->recv_cq->context != pd->context ||
        (a->srq && a->srq->context != pd->context))
        return EINVAL;
    if (a->qp_type != IBV_QPT_RC && a->qp_type != IBV_QPT_UC && a->qp_type != IBV_QPT_UD)
        return hca_refuse(
            c->hca, EOPNOTSUPP, "ibv_create_qp: found type %u%s, expected RC (2), UC (3) or UD (4)",
            a->qp_type,
            a->qp_type == IBV_QPT_RAW_PACKET                                   ? " (raw packets)"
            : a->qp_type == IBV_QPT_XRC_SEND || a->qp_type == IBV_QPT_XRC_RECV ? " (XRC)"
            : a->qp_type == IBV_QPT_DRIVER                                     ? " (a vendor's own)"
                                                                               : "");
    if (cap->max_send_wr > HCA_MAX_WR || cap->max_send_sge > ROCE_MAX_SGE ||
        cap->max_inline_data > ROCE_MAX_INLINE)
        return EINVAL;
    /* A shared receive queue has limits of its own. */
    return !a->srq && (cap->max_recv_wr > HCA_MAX_WR || cap->max_recv_sge > ROCE_MAX_SGE) ? EINVAL
                                                                                          : 0;
}

/* Adds n, 1 or -1, to the references of the queue pair's objects. */
static void use(struct hca_qp *qp, int n)
{
    T_ASSERT(n > 0 ||
                 (qp->pd->refs && qp->scq->refs && qp->rcq->refs && (!qp->srq || qp->srq->refs)),
             "an object of the queue pair does not count it");
    qp->pd->refs += n;
    qp->scq->refs += n;
    qp->rcq->refs += n;
    if (qp->srq)
        qp->srq->refs += n;
}

/* With the lock held. */
static int attach_engine(struct hca_qp *qp)
{
    struct hca *h = qp->ctx->hca;
    struct qp_cfg cfg = {.type = (enum qp_type)qp->v.qp_type,
                         .sq_depth = qp->cap.max_send_wr ? qp->cap.max_send_wr : 1,
                         .bounded = true,
                         .max_sge = qp->cap.max_send_sge,
                         .max_inline = qp->cap.max_inline_data,
                         .sig_all = qp->sig_all,
                         .user = qp,
                         .pd = qp->pd->v.handle};

    qp->rq = qp->srq ? qp->srq->rq
                     : rq_create_for(qp->cap.max_recv_wr ? qp->cap.max_recv_wr : 1,
                                     qp->cap.max_recv_sge);
    if (!qp->rq)
        return -ENOMEM;
    cfg.rq = qp->rq;
    return qp_create(h->rnic, &cfg, &qp->qp);
}

struct hca_qp *qp_make(struct hca_ctx *c, struct ibv_pd *pd, struct ibv_qp_init_attr *a, bool ex)
{
    int rc = hca_dead(c->hca) ? EIO : check_init(c, pd, a);
    struct hca_qp *qp = rc ? NULL : cacheline_alloc(sizeof(*qp));

    if (!qp) {
        errno = rc ? rc : ENOMEM;
        return NULL;
    }
    qp->hca = c->hca;
    qp->ctx = c;
    qp->pd = to_pd(pd);
    qp->scq = to_cq(a->send_cq);
    qp->rcq = to_cq(a->recv_cq);
    qp->srq = a->srq ? to_srq(a->srq) : NULL;
    qp->cap = a->cap;
    if (qp->srq)
        qp->cap.max_recv_wr = qp->cap.max_recv_sge = 0;
    qp->slot = !c->hca->cfg.early_slots;
    qp_all_slots(qp);
    qp->shared = qp->srq != NULL;
    qp->sig_all = a->sq_sig_all;
    qp->is_ex = ex;
    qp->v = (struct ibv_qp){.context = &c->v.context,
                            .qp_context = a->qp_context,
                            .pd = pd,
                            .send_cq = a->send_cq,
                            .recv_cq = a->recv_cq,
                            .srq = a->srq,
                            .state = IBV_QPS_RESET,
                            .qp_type = a->qp_type};
    qp->attr = (struct ibv_qp_attr){.port_num = HCA_PORT, .path_mtu = mtu_enum(c->hca->cfg.mtu)};
    if (ex &&
        !(qp->batch = calloc(qp->cap.max_send_wr ? qp->cap.max_send_wr : 1, sizeof(*qp->batch)))) {
        free(qp);
        errno = ENOMEM;
        return NULL;
    }
    hca_lock(c->hca);
    rc = attach_engine(qp);
    if (!rc) {
        qp->v.qp_num = qp->v.handle = qp_num(qp->qp);
        use(qp, 1);
        hlist_add(&c->qps, &qp->link);
        events_add(&c->hca->events, c->hca->now_ps, HCA_EV_QP_CREATED, qp->v.qp_num, a->qp_type);
    }
    hca_unlock(c->hca);
    if (rc) {
        if (qp->rq && !qp->srq)
            rq_destroy(qp->rq);
        free(qp->batch);
        free(qp);
        errno = -rc;
        return NULL;
    }
    a->cap = qp->cap;
    return qp;
}

/* With the lock held. */
void qp_free(struct hca_qp *qp)
{
    T_ASSERT(qp_user(qp->qp) == qp, "the engine's queue pair has another owner");
    events_add(&qp->hca->events, qp->hca->now_ps, HCA_EV_QP_DESTROYED, qp->v.qp_num,
               qp_state_of(qp->qp));
    for (unsigned i = 0; i < qp->n_mcast; i++)
        igmp_leave(qp->ctx->hca, qp->mcast[i]);
    mw_close_all_of(qp);
    T_ASSERT(!qp->windows, "a window of the queue pair is open that no key leads to");
    qp_list_cachelines(qp, false);
    qp_return_receive(qp);
    qp_destroy(qp->qp);
    cq_clean(qp->scq, qp->v.qp_num);
    cq_clean(qp->rcq, qp->v.qp_num);
    async_purge(qp->ctx, qp);
    use(qp, -1);
    hlist_del(&qp->link);
    if (!qp->srq)
        rq_destroy(qp->rq);
    free(qp->batch);
    free(qp);
}

EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    struct hca_ctx *c = hca_ctx_of(pd->context);
    struct hca_qp *qp;

    if (!c)
        return REAL(ibv_create_qp)(pd, attr);
    qp = qp_make(c, pd, attr, false);
    return qp ? &qp->v : NULL;
}

EXPORT int ibv_destroy_qp(struct ibv_qp *v)
{
    struct hca_ctx *c = hca_ctx_of(v->context);
    struct hca_qp *qp = to_qp(v);
    int rc = 0;

    if (!c)
        return REAL(ibv_destroy_qp)(v);
    hca_lock(c->hca);
    if (qp->n_mcast)
        rc = EBUSY;
    while (!rc && qp->async_unacked)
        if (!hca_wait(c->hca))
            rc = EBUSY;
    if (!rc)
        qp_free(qp);
    hca_unlock(c->hca);
    return rc;
}

/* ---- query ---- */

EXPORT int ibv_query_qp(struct ibv_qp *v, struct ibv_qp_attr *attr, int mask,
                        struct ibv_qp_init_attr *init)
{
    struct hca_ctx *c = hca_ctx_of(v->context);
    struct hca_qp *qp = to_qp(v);
    const struct qp_attr *e;

    if (!c)
        return REAL(ibv_query_qp)(v, attr, mask, init);
    if (hca_dead(c->hca))
        return EIO;
    hca_lock(c->hca);
    e = qp_attributes(qp->qp);
    *attr = qp->attr;
    attr->qp_state = attr->cur_qp_state = (enum ibv_qp_state)qp_state_of(qp->qp);
    attr->sq_psn = e->sq_psn;
    attr->rq_psn = e->rq_psn;
    attr->cap = qp->cap;
    attr->path_mig_state = IBV_MIG_MIGRATED;
    v->state = attr->qp_state;
    *init = (struct ibv_qp_init_attr){.qp_context = v->qp_context,
                                      .send_cq = v->send_cq,
                                      .recv_cq = v->recv_cq,
                                      .srq = v->srq,
                                      .cap = qp->cap,
                                      .qp_type = v->qp_type,
                                      .sq_sig_all = qp->sig_all};
    hca_unlock(c->hca);
    return 0;
}

EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *v, enum ibv_wr_opcode op, uint32_t flags)
{
    if (!hca_ctx_of(v->context))
        return REAL(ibv_query_qp_data_in_order)(v, op, flags);
    return 0;
}

/* There are no extended connection establishment options: the fabric negotiates nothing. */
EXPORT int ibv_set_ece(struct ibv_qp *v, struct ibv_ece *ece)
{
    if (!hca_ctx_of(v->context))
        return REAL(ibv_set_ece)(v, ece);
    if (!ece->vendor_id && !ece->options)
        return 0;
    return hca_refuse(to_qp(v)->hca, EOPNOTSUPP,
                      "ibv_set_ece: found vendor 0x%x, options 0x%x, expected none", ece->vendor_id,
                      ece->options);
}

EXPORT int ibv_query_ece(struct ibv_qp *v, struct ibv_ece *ece)
{
    if (!hca_ctx_of(v->context))
        return REAL(ibv_query_ece)(v, ece);
    memset(ece, 0, sizeof(*ece));
    return 0;
}
