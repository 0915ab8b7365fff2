/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests whether the peer of an idle connection is there. An empty SEND with the PSN before the next one is
 * a duplicate to the responder, which acknowledges it whatever the program does, and which changes nothing
 * (IBTA 9.7.5.1.2). A queue pair that is gone does not answer.
 */
#include "roce/engine.h"

bool qp_keepalive(struct qp *qp)
{
    const struct requester *q = &qp->rqr;

    if (qp->type != QP_RC || qp->state != QP_RTS || q->head != q->tail || q->una != q->max)
        return false;
    qp->rsp.keepalive = true;
    rnic_want_ack(qp);
    return true;
}

uint64_t qp_activity(const struct qp *qp)
{
    return (uint64_t)qp->rsp.epsn << 40 | (uint64_t)qp->rqr.una << 16 | qp->rqr.heard;
}

enum built keepalive_build(struct qp *qp, struct rte_mbuf **m)
{
    struct roce_pkt k;

    *m = frame_alloc(qp->r->cfg.pool);
    if (!*m)
        return BUILT_NO_MBUF;
    qp_packet(qp, &k);
    k.opcode = ROCE_OP_RC_SEND_ONLY;
    k.psn = psn_add(qp->rqr.una, PSN_MASK);
    k.ack_req = true;
    roce_build(*m, &k);
    roce_seal(*m, &k);
    qp->rsp.keepalive = false;
    return BUILT;
}
