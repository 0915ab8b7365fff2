/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posting: translates work requests of verbs to those of the engine. Both use the same numbers for
 * opcodes, flags and states, so this checks and copies. A list stops at its first bad request,
 * which the caller gets back.
 */
#include "host/hca/hca_priv.h"

#include <string.h>

static_assert((int)WR_WRITE == IBV_WR_RDMA_WRITE && (int)WR_SEND_IMM == IBV_WR_SEND_WITH_IMM &&
                  (int)WR_FETCH_ADD == IBV_WR_ATOMIC_FETCH_AND_ADD,
              "opcodes pass through");
static_assert((int)WR_LOCAL_INV == IBV_WR_LOCAL_INV && (int)WR_BIND_MW == IBV_WR_BIND_MW &&
                  (int)WR_SEND_INV == IBV_WR_SEND_WITH_INV &&
                  (int)WR_ATOMIC_WRITE == IBV_WR_ATOMIC_WRITE,
              "opcodes pass through");
static_assert((int)WR_F_INLINE == IBV_SEND_INLINE && (int)WR_F_FENCE == IBV_SEND_FENCE &&
                  (int)WR_F_SIGNALED == IBV_SEND_SIGNALED &&
                  (int)WR_F_SOLICITED == IBV_SEND_SOLICITED,
              "flags pass through");
static_assert(sizeof(struct sge) == sizeof(struct ibv_sge) &&
                  offsetof(struct sge, len) == offsetof(struct ibv_sge, length) &&
                  offsetof(struct sge, lkey) == offsetof(struct ibv_sge, lkey),
              "scatter lists pass through");

#define OPS_UD (1u << WR_SEND | 1u << WR_SEND_IMM)
#define OPS_UC                                                                                     \
    (OPS_UD | 1u << WR_WRITE | 1u << WR_WRITE_IMM | 1u << WR_LOCAL_INV | 1u << WR_BIND_MW)
#define OPS_RC                                                                                     \
    (OPS_UC | 1u << WR_READ | 1u << WR_CMP_SWAP | 1u << WR_FETCH_ADD | 1u << WR_SEND_INV |         \
     1u << WR_ATOMIC_WRITE)

/* Whether the transport has the operation (IBTA table 37) and the state allows posting. 0
 * or errno. */
int post_check(const struct hca_qp *qp, unsigned opcode)
{
    uint32_t ops = qp->v.qp_type == IBV_QPT_RC   ? OPS_RC
                   : qp->v.qp_type == IBV_QPT_UC ? OPS_UC
                                                 : OPS_UD;
    enum qp_state s = qp_state_of(qp->qp);

    if (opcode > WR_ATOMIC_WRITE || !(ops >> opcode & 1))
        return hca_refuse(
            qp->hca, EOPNOTSUPP,
            "a work request of opcode %u on a queue pair of type %u is not supported, "
            "expected those of IBTA table 37: SEND on RC, UC and UD, WRITE on RC and "
            "UC, the others on RC",
            opcode, qp->v.qp_type);
    return s == QP_RESET || s == QP_INIT || s == QP_RTR ? EINVAL : 0;
}

/* Reports a send queue that no poll can empty: all of its requests have ended without a completion.
 */
void post_say_stuck(const struct hca_qp *qp)
{
    const struct hca_cq *cq = qp->scq;

    if (qp->sq_free || !qp->cap.max_send_wr || qp_sq_free(qp->qp) != qp->cap.max_send_wr)
        return;
    for (uint32_t i = cq->head; i != cq->tail; i++)
        if (cq->ring[i & (cq->cap - 1)].free == &qp->sq_free)
            return;
    hca_refuse(
        qp->hca, ENOMEM,
        "ibv_post_send, ibv_wr_complete: found a send queue full of %u ended requests "
        "without a completion, expected IBV_SEND_SIGNALED on one of them: they leave the queue "
        "when a later completion is polled",
        qp->cap.max_send_wr);
}

/* Posts w. The check of sq_free also refuses requests of a queue of depth 0, for which the engine
 * has one entry. */
int post_engine(struct hca_qp *qp, const struct wqe *w)
{
    int rc = qp->sq_free ? qp_post_send(qp->qp, w) : -ENOMEM;

    if (!rc)
        qp->sq_free = (uint16_t)(qp->sq_free - qp->slot);
    else
        post_say_stuck(qp);
    return rc;
}

/* Translates everything but the payload into *w. 0 or errno. */
static int head_from_wr(struct wqe *w, const struct ibv_send_wr *wr, const struct hca_qp *qp)
{
    memset(w, 0, offsetof(struct wqe, sge));
    w->wr_id = wr->wr_id;
    w->op = (uint8_t)wr->opcode;
    w->flags = wr->send_flags & (WR_F_FENCE | WR_F_SIGNALED | WR_F_SOLICITED | WR_F_INLINE);
    w->frag = WQE_WHOLE;
    if (wr->opcode == IBV_WR_SEND_WITH_IMM || wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
        w->imm = wr->imm_data;
    if (wr->opcode == IBV_WR_BIND_MW)
        return wr->bind_mw.mw && wr->bind_mw.mw->type == IBV_MW_TYPE_2
                   ? mw_bind_from(w, qp, wr->bind_mw.mw, wr->bind_mw.rkey, &wr->bind_mw.bind_info)
                   : EINVAL;
    if (wr->opcode == IBV_WR_SEND_WITH_INV || wr->opcode == IBV_WR_LOCAL_INV) {
        w->rkey = wr->invalidate_rkey;
    } else if (qp->v.qp_type == IBV_QPT_UD) {
        w->ud = to_ah(wr->wr.ud.ah)->to;
        w->ud.qpn = wr->wr.ud.remote_qpn;
        /* IBTA 10.2.5: with the high bit set, the queue pair's own key is meant. */
        w->ud.qkey = wr->wr.ud.remote_qkey >> 31 ? qp->attr.qkey : wr->wr.ud.remote_qkey;
    } else if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
               wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        w->raddr = wr->wr.atomic.remote_addr;
        w->rkey = wr->wr.atomic.rkey;
        w->compare_add = wr->wr.atomic.compare_add;
        w->swap = wr->wr.atomic.swap;
    } else {
        w->raddr = wr->wr.rdma.remote_addr;
        w->rkey = wr->wr.rdma.rkey;
    }
    return 0;
}

static int body_from_wr(struct wqe *w, const struct ibv_send_wr *wr, const struct hca_qp *qp)
{
    uint64_t len = 0;

    for (int i = 0; i < wr->num_sge; i++)
        len += wr->sg_list[i].length;
    if (len > ROCE_MAX_MSG)
        return EINVAL;
    if (!(w->flags & WR_F_INLINE)) {
        if (wr->num_sge)
            memcpy(w->sge, wr->sg_list, (size_t)wr->num_sge * sizeof(*w->sge));
        w->n_sge = (uint8_t)wr->num_sge;
        return 0;
    }
    if (len > qp->cap.max_inline_data || wr->opcode == IBV_WR_RDMA_READ ||
        (wr->opcode >= IBV_WR_ATOMIC_CMP_AND_SWP && wr->opcode != IBV_WR_SEND_WITH_INV &&
         wr->opcode != IBV_WR_ATOMIC_WRITE))
        return EINVAL;
    T_ASSERT_HOT(len <= sizeof(w->inl),
                 "a queue pair allows more inline data than a request holds");
    for (int i = 0; i < wr->num_sge; i++) {
        const struct ibv_sge *s = &wr->sg_list[i];

        if (s->length)
            memcpy(w->inl + w->len, (const void *)(uintptr_t)s->addr, s->length);
        w->len += s->length;
    }
    return 0;
}

static int post_one(struct hca_qp *qp, const struct ibv_send_wr *wr)
{
    int rc = post_check(qp, wr->opcode);
    struct wqe w;

    if (rc)
        return rc;
    if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->cap.max_send_sge)
        return EINVAL;
    if (qp->v.qp_type == IBV_QPT_UD && !ah_usable(qp, wr->wr.ud.ah))
        return EINVAL;
    rc = head_from_wr(&w, wr, qp);
    if (!rc)
        rc = body_from_wr(&w, wr, qp);
    return rc ? rc : -post_engine(qp, &w);
}

int hca_post_send(struct ibv_qp *v, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    struct hca_qp *qp = to_qp(v);
    struct hca *h = qp->hca;
    int rc = hca_dead(h);

    hca_lock(h);
    for (; wr && !rc; wr = rc ? wr : wr->next)
        rc = post_one(qp, wr);
    hca_kick(h);
    hca_unlock(h);
    if (rc)
        *bad = wr;
    return rc;
}

/* ---- receive ---- */

int rwqe_from_wr(struct rwqe *w, const struct ibv_recv_wr *wr, uint32_t max_sge)
{
    T_ASSERT_HOT(max_sge <= ROCE_MAX_SGE,
                 "a receive queue allows more pieces than a request holds");
    if (wr->num_sge < 0 || (uint32_t)wr->num_sge > max_sge)
        return EINVAL;
    w->wr_id = wr->wr_id;
    w->n_sge = (uint32_t)wr->num_sge;
    if (wr->num_sge)
        memcpy(w->sge, wr->sg_list, (size_t)wr->num_sge * sizeof(*w->sge));
    return 0;
}

int hca_post_recv(struct ibv_qp *v, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct hca_qp *qp = to_qp(v);
    struct hca *h = qp->hca;
    int rc = hca_dead(h);
    enum qp_state s;

    hca_lock(h);
    s = qp_state_of(qp->qp);
    if (!rc && (qp->shared || s == QP_RESET))
        rc = EINVAL;
    for (; wr && !rc; wr = rc ? wr : wr->next) {
        struct rwqe w;

        rc = rwqe_from_wr(&w, wr, qp->cap.max_recv_sge);
        if (!rc)
            rc = qp->rq_free ? -rq_post(qp->rq, &w) : ENOMEM;
        if (!rc)
            qp->rq_free = (uint16_t)(qp->rq_free - qp->slot);
    }
    if (s == QP_ERR) /* a request posted in error is flushed */
        hca_kick(h);
    hca_unlock(h);
    if (rc)
        *bad = wr;
    return rc;
}
