/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * READs and WRITEs that the owner answers (struct deferred_ops). READs wait in the queue of reads.c until
 * the owner has data. WRITEs are accepted at once and acknowledged when the owner releases them. Until
 * then acknowledgements and NAKs stop before the first held WRITE, because both acknowledge everything
 * before their PSN; for the same reason a READ after a held WRITE is not answered. Retransmissions of held
 * WRITEs are dropped as duplicates.
 */
#include "roce/engine.h"

#include <errno.h>

static const struct deferred_ops *ops_of(const struct qp *qp)
{
    return qp->r->cfg.ops.deferred;
}

void deferred_reads(struct qp *qp, bool again)
{
    if (!qp->deferred)
        return;
    qp->rsp.reads_blocked = false;
    ops_of(qp)->reads(qp->r->cfg.user, qp, again);
}

struct qp_mark qp_mark_of(const struct qp *qp)
{
    return (struct qp_mark){qp->rsp.epsn, qp->rsp.msn};
}

enum exec deferred_write(struct qp *qp, const struct roce_pkt *k, struct rte_mbuf *m, bool *taken)
{
    struct responder *s = &qp->rsp;
    bool first = !s->holding;

    if (first)
        s->hold = qp_mark_of(qp);
    s->holding = true;
    switch (ops_of(qp)->write(qp->r->cfg.user, qp, k, m, s->va)) {
    case SINK_TAKEN:
        *taken = true;
        break;
    case SINK_COPIED:
        break;
    case SINK_RNR:
        s->holding = !first;
        return EXEC_RNR;
    default:
        s->holding = !first;
        return EXEC_INVALID;
    }
    if (first && s->holding)
        qp_record(qp, RNIC_EV_HOLD_STARTED, s->hold.psn);
    return EXEC_OK;
}

static enum built wait(struct qp *qp, uint32_t psn)
{
    T_ASSERT(!qp->rsp.reads_blocked, "a READ is answered while it waits for the owner");
    qp_record(qp, RNIC_EV_READS_WAIT, psn);
    qp->rsp.reads_blocked = true;
    return BUILT_NOTHING;
}

enum built deferred_build(struct qp *qp, struct roce_pkt *k, struct rte_mbuf **m)
{
    struct responder *s = &qp->rsp;
    int rc = 0;

    if (s->holding && psn_cmp(k->psn, s->hold.psn) > 0)
        return wait(qp, k->psn);
    *m = frame_alloc(qp->r->cfg.pool);
    if (!*m)
        return BUILT_NO_MBUF;
    if (k->len)
        rc = ops_of(qp)->fill(
            qp->r->cfg.user, qp, k->psn,
            rte_pktmbuf_mtod_offset(*m, uint8_t *, roce_built_bytes(k->opcode, k->v6)), k->len,
            &k->virt);
    if (rc) {
        rte_pktmbuf_free(*m);
        if (rc == -EAGAIN)
            return wait(qp, k->psn);
        qp_refuse(qp);
        return BUILT_NOTHING;
    }
    roce_build(*m, k);
    roce_seal(*m, k);
    reads_answered(s);
    return BUILT;
}

bool qp_read_from(const struct qp *qp, uint32_t psn, bool first, struct qp_read *r)
{
    const struct responder *s = &qp->rsp;

    for (uint32_t i = 0; i < s->n_reads; i++) {
        const struct rd_res *e = &s->reads[i];
        uint32_t from = e->next, off;

        if (!first && psn_cmp(psn, psn_add(e->psn, e->n_pkts)) >= 0)
            continue;
        if (!first && psn_cmp(psn, psn_add(e->psn, from)) > 0)
            from = psn_sub(psn, e->psn);
        off = from * qp->attr.mtu;
        *r = (struct qp_read){
            .psn = psn_add(e->psn, from), .rkey = e->rkey, .len = e->len - off, .va = e->va + off};
        return true;
    }
    return false;
}

void qp_reads_resume(struct qp *qp)
{
    T_ASSERT(qp->deferred, "READs of a queue pair resume that answers from memory");
    if (qp->rsp.reads_blocked)
        qp_record(qp, RNIC_EV_READS_RESUMED, qp->rsp.n_reads);
    qp->rsp.reads_blocked = false;
    rnic_want_send(qp);
}

void qp_writes_release(struct qp *qp, const struct qp_mark *held)
{
    struct responder *s = &qp->rsp;

    if (!s->holding)
        return;
    T_ASSERT(!held || (psn_cmp(held->psn, s->hold.psn) >= 0 && psn_cmp(held->psn, s->epsn) <= 0),
             "WRITEs are released that are not held");
    s->holding = held != NULL;
    if (held)
        s->hold = *held;
    else
        qp_record(qp, RNIC_EV_HOLD_ENDED, s->epsn);
    responder_ack(qp, true, 0);
    qp_reads_resume(qp);
}

void qp_refuse(struct qp *qp)
{
    struct responder *s = &qp->rsp;
    struct qp_read r;

    if (qp->state < QP_RTR || qp->state == QP_ERR)
        return;
    /* The NAK names the oldest request that is held or not answered. */
    if (qp_read_from(qp, 0, true, &r) && (!s->holding || psn_cmp(r.psn, s->hold.psn) < 0)) {
        s->holding = true;
        s->hold = (struct qp_mark){r.psn, s->msn};
    }
    responder_nak(qp, NAK_REMOTE_OP);
    qp_fail(qp, WC_WR_FLUSH_ERR);
}
