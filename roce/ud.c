/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams: one packet each, done when it is sent. A receive buffer begins with 40 bytes for the
 * global route header; RoCE v2 puts the IPv6 header there, or the IPv4 header into the last 20 of
 * them (IBTA A17.4.5.2).
 */
#include "roce/engine.h"

#include <string.h>

#define WR_QKEY_OF_QP 0x80000000u /* IBTA 10.2.5: such a Q_Key in a request selects the QP's own */

enum built ud_build(struct qp *qp, struct rte_mbuf **m)
{
    struct requester *q = &qp->rqr;
    const struct swqe *w = sq_at(qp, q->cur);
    const struct ud_dest *to = &sq_extra(qp, q->cur)->ud;
    struct roce_pkt k;
    enum built b;

    qp_packet(qp, &k);
    k.opcode = w->op == WR_SEND_IMM ? ROCE_OP_UD_SEND_ONLY_IMM : ROCE_OP_UD_SEND_ONLY;
    k.psn = q->nxt;
    k.len = w->len;
    k.imm = w->imm;
    k.solicited = w->flags & WR_F_SOLICITED;
    k.v6 = to->v6;
    k.dst_ip = to->ip;
    memcpy(k.dst_mac, to->mac, 6);
    k.dqpn = to->qpn & ROCE_PSN_MASK;
    k.qkey = to->qkey & WR_QKEY_OF_QP ? qp->attr.qkey : to->qkey;
    b = request_payload(qp, q->cur, 0, &k, m);
    if (b == BUILT_NO_MBUF)
        return b;
    if (b == BUILT_NOTHING) {
        qp_fail_send(qp, WC_LOC_PROT_ERR);
        return b;
    }
    q->nxt = q->una = q->max = psn_add(q->nxt, 1);
    q->acked = k.psn;
    q->cur++;
    qp_complete_send(qp, WC_SUCCESS);
    return b;
}

enum roce_reason ud_input(struct qp *qp, const struct roce_pkt *k, struct rte_mbuf *m)
{
    const uint8_t *ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, k->l3);
    const uint32_t ip_bytes = k->v6 ? 40 : 20;
    uint8_t grh[ROCE_GRH_BYTES] = {0};
    bool imm = k->opcode == ROCE_OP_UD_SEND_ONLY_IMM;
    struct cqe c = {.qp = qp,
                    .op = imm ? WR_SEND_IMM : WR_SEND,
                    .is_recv = true,
                    .has_imm = imm,
                    .has_grh = true,
                    .imm = imm ? k->imm : 0,
                    .solicited = k->solicited,
                    .byte_len = k->len + ROCE_GRH_BYTES,
                    .src_qpn = k->sqpn,
                    .src_ip = k->src_ip,
                    .tos = k->tos,
                    .ttl = k->ttl,
                    .v6 = k->v6};
    struct rwqe *w = &qp->rsp.rwqe;

    if (qp->state < QP_RTR || qp->state == QP_ERR)
        return ROCE_QP_STATE;
    if (k->qkey != qp->attr.qkey)
        return ROCE_QKEY;
    if (k->len > qp->attr.mtu)
        return ROCE_PAYLOAD;
    if (!qp->rq || rq_level(qp->rq) == 0)
        return ROCE_NO_RECEIVE;
    /* A packet too long for the receive request is dropped without consuming it. */
    if (rq_first_bytes(qp->rq) < c.byte_len)
        return ROCE_TOO_LONG;
    rq_take(qp->rq, w);
    memcpy(grh + sizeof(grh) - ip_bytes, ip, ip_bytes);
    if (sge_scatter(qp, w->sge, w->n_sge, 0, grh, sizeof(grh), 0) ||
        (k->len && sge_scatter(qp, w->sge, w->n_sge, ROCE_GRH_BYTES, k->payload, k->len, k->virt)))
        c.status = WC_LOC_PROT_ERR;
    c.wr_id = w->wr_id;
    memcpy(c.src_mac, k->src_mac, 6);
    qp_complete_recv(qp, &c);
    return ROCE_OK;
}
