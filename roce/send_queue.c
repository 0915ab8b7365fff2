/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The send queue: checks, storage and completion of requests.
 */
#include "roce/engine.h"

#include <errno.h>
#include <string.h>

/* The MTU for lengths of requests; a QP that failed before it was connected has none, but flushes. */
static uint32_t post_mtu(const struct qp *qp)
{
    return qp->attr.mtu ? qp->attr.mtu : ROCE_MAX_MTU;
}

/* Bytes of a request, or a negative errno when this QP cannot carry it. */
static int64_t check_post(const struct qp *qp, const struct wqe *w)
{
    uint32_t mtu = post_mtu(qp);
    bool read = op_is_read(w->op), send = op_is_send(w->op);
    uint64_t len = w->flags & WR_F_INLINE ? w->len : w->virt_len;

    if (qp->state < QP_RTS || !op_known(w->op) || w->n_sge > qp->rqr.max_sge || w->frag > WQE_WHOLE)
        return -EINVAL;
    if (w->n_sge && !(w->flags & WR_F_INLINE))
        len += sge_bytes(w->sge, w->n_sge);
    if (w->held) {
        if (w->n_sge || read || (w->flags & WR_F_INLINE) || w->held_off > w->held->pkt_len ||
            w->held_len > w->held->pkt_len - w->held_off)
            return -EINVAL;
        len += w->held_len;
    }
    if (len > ROCE_MAX_MSG)
        return -EINVAL;
    if ((w->flags & WR_F_INLINE) && w->op != WR_ATOMIC_WRITE && /* eight bytes always fit */
        (read || len > qp->rqr.max_inline))
        return -EINVAL;
    if (read && (qp->type != QP_RC || qp->attr.max_rd_atomic == 0 || (w->n_sge && w->virt_len)))
        return -EINVAL;
    if ((op_is_atomic(w->op) || w->op == WR_ATOMIC_WRITE) && len != 8)
        return -EINVAL;
    if (op_is_local(w->op) && len)
        return -EINVAL;
    if (w->op == WR_SEND_INV && qp->type != QP_RC)
        return -EINVAL;
    if (qp->type == QP_UD && (!send || len > mtu))
        return -EINVAL;
    if (w->frag != WQE_WHOLE &&
        (!send || qp->type == QP_UD || (!(w->frag & WQE_LAST) && (len == 0 || (len & (mtu - 1))))))
        return -EINVAL;
    return (int64_t)len;
}

static void post_payload(union sdata *d, const struct wqe *w, uint32_t len)
{
    if (w->held) {
        d->held.mbuf = w->held, d->held.off = w->held_off, d->held.len = w->held_len;
        if (!w->given)
            rte_pktmbuf_refcnt_update(w->held, 1);
    } else if (w->flags & WR_F_INLINE) {
        memcpy(d->inl, w->inl, len);
    } else if (w->n_sge) {
        memcpy(d->sge, w->sge, w->n_sge * sizeof(w->sge[0]));
    }
}

static void post_extra(const struct qp *qp, union sextra *x, const struct wqe *w)
{
    if (op_is_atomic(w->op))
        x->compare_add = w->compare_add, x->swap = w->swap;
    else if (w->op == WR_BIND_MW)
        x->bind = w->bind;
    else if (qp->type == QP_UD)
        x->ud = w->ud;
}

int qp_post_send(struct qp *qp, const struct wqe *w)
{
    struct requester *q = &qp->rqr;
    int64_t len = check_post(qp, w);
    struct swqe *e;

    if (len < 0)
        return (int)len;
    if (q->tail - q->head == q->depth)
        return -ENOMEM;
    if (q->head == q->tail) /* starts over at the first entry, whose cache lines were used last */
        q->head = q->cur = q->tail = q->seen = 0;
    e = sq_at(qp, q->tail);
    *e = (struct swqe){.wr_id = w->wr_id,
                       .raddr = w->raddr,
                       .len = (uint32_t)len,
                       .imm = w->imm,
                       .rkey = w->rkey,
                       .first_psn = q->post_psn,
                       .op = w->op,
                       .flags = w->flags,
                       .frag = w->frag,
                       .n_sge = w->n_sge,
                       .holds = w->held != NULL};
    e->n_pkts = op_is_local(w->op) ? 0 : op_is_atomic(w->op) ? 1 : packets_of(e->len, post_mtu(qp));
    post_payload(e->data, w, e->len);
    post_extra(qp, sq_extra(qp, q->tail), w);
    q->post_psn = psn_add(q->post_psn, e->n_pkts);
    q->tail++;
    T_ASSERT_HOT(q->tail - q->head <= q->depth, "a send queue holds more requests than its depth");
    fetch_post(qp);
    if (qp->state == QP_ERR || qp->state == QP_SQE)
        rnic_want_flush(qp);
    else
        rnic_want_send(qp);
    return 0;
}

uint32_t qp_sq_free(const struct qp *qp)
{
    return qp->rqr.depth - (qp->rqr.tail - qp->rqr.head);
}

uint32_t qp_sq_used(const struct qp *qp)
{
    return qp->rqr.tail - qp->rqr.head;
}

void qp_set_window(struct qp *qp, uint32_t pkts)
{
    T_ASSERT(pkts && pkts < PSN_HALF, "a window that no PSN can count");
    qp->rqr.window = pkts;
    if (qp->state == QP_RTS)
        rnic_want_send(qp);
}

void send_queue_release(struct swqe *w)
{
    if (w->holds)
        rte_pktmbuf_free(w->data->held.mbuf);
    w->holds = false;
}

void qp_complete_send(struct qp *qp, uint8_t status)
{
    struct requester *q = &qp->rqr;
    struct swqe *w = sq_at(qp, q->head);
    struct cqe c = {.wr_id = w->wr_id,
                    .qp = qp,
                    .status = status,
                    .op = w->op,
                    .byte_len = w->len,
                    .ended = q->silent + 1,
                    .virt = w->virt};
    bool say = status != WC_SUCCESS || qp->sig_all || (w->flags & WR_F_SIGNALED);

    T_ASSERT_HOT(q->head != q->tail, "a request completes that was not posted");
    send_queue_release(w);
    if (q->cur == q->head)
        q->cur++, q->cur_pkt = 0;
    q->head++;
    q->silent = say ? 0 : c.ended;
    if (say)
        qp->r->cfg.ops.complete(qp->r->cfg.user, &c);
}
