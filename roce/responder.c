/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests in order of PSN: to memory, to receives, to the sink. Acknowledgements are state of the QP, not
 * packets: one is built when the link pulls it and covers all packets received by then.
 *
 * A packet goes through check_order, execute and accept. execute changes nothing that lasts unless it ends
 * in EXEC_OK, or in an error that ends the QP.
 */
#include "roce/engine.h"

#include <errno.h>
#include <string.h>

/* ---- acknowledgements ---- */

/* Cancels the delayed acknowledgement. */
static void acknowledged(struct qp *qp)
{
    qp->rsp.unacked = 0;
    if (qp->in_delayed_acks)
        TAILQ_REMOVE(&qp->r->delayed_acks, qp, delayed_ack_link);
    qp->in_delayed_acks = false;
}

/*
 * Acknowledges at once, after ack_every packets, or after the delay. A streaming sender does not know when
 * its next packet follows and sets no AckReq: it relies on ack_every, and on the delay when it pauses.
 */
void responder_ack(struct qp *qp, bool now, int64_t now_ps)
{
    struct responder *s = &qp->rsp;

    if (!now && ++s->unacked < qp->r->cfg.ack_every) {
        if (qp->in_delayed_acks)
            return;
        qp->in_delayed_acks = true;
        qp->ack_due = now_ps + ROCE_ACK_DELAY_PS;
        TAILQ_INSERT_TAIL(&qp->r->delayed_acks, qp, delayed_ack_link);
        return;
    }
    acknowledged(qp);
    s->ack_want = true;
    rnic_want_ack(qp);
}

void responder_send_delayed_acks(struct rnic *r, int64_t now_ps)
{
    struct qp *qp;

    while ((qp = TAILQ_FIRST(&r->delayed_acks)) != NULL && qp->ack_due <= now_ps)
        responder_ack(qp, true, now_ps);
}

void responder_nak(struct qp *qp, uint8_t syndrome)
{
    qp->rsp.nak = syndrome;
    rnic_want_ack(qp);
}

static void count_nak(struct qp *qp, uint32_t psn)
{
    struct roce_counters *c = &qp->r->cnt;
    uint8_t nak = qp->rsp.nak;

    if (nak == NAK_SEQUENCE) {
        c->seq_naks_sent++;
        qp_record(qp, RNIC_EV_SEQ_NAK_SENT, psn);
    } else if ((nak & AETH_MASK) == AETH_RNR) {
        c->rnr_naks_sent++;
        qp_record(qp, RNIC_EV_RNR_NAK_SENT, psn);
    } else {
        c->error_naks_sent++;
        qp_record(qp, RNIC_EV_ERROR_NAK_SENT, nak);
    }
}

static enum built responder_build(struct qp *qp, struct rte_mbuf **m)
{
    struct responder *s = &qp->rsp;
    struct roce_pkt k;

    *m = frame_alloc(qp->r->cfg.pool);
    if (!*m)
        return BUILT_NO_MBUF;
    qp_packet(qp, &k);
    k.opcode = ROCE_OP_RC_ACKNOWLEDGE;
    k.psn = s->holding ? s->hold.psn : s->epsn; /* everything before it is done */
    if (!s->nak)
        k.psn = psn_add(k.psn, PSN_MASK);
    k.syndrome = s->nak ? s->nak : AETH_ACK | AETH_NO_CREDITS;
    k.msn = s->holding ? s->hold.msn : s->msn;
    if (!s->nak)
        qp->r->cnt.acks_sent++;
    else
        count_nak(qp, k.psn);
    roce_build(*m, &k);
    roce_seal(*m, &k);
    s->nak = 0;
    s->ack_want = false;
    acknowledged(qp);
    return BUILT;
}

enum built responder_build_ack(struct qp *qp, struct rte_mbuf **m)
{
    struct responder *s = &qp->rsp;

    if (s->nak)
        return responder_build(qp, m);
    if (!s->ack_want)
        return s->keepalive ? keepalive_build(qp, m) : BUILT_NOTHING;
    /* An acknowledgement of packets behind a READ implies that the READ is answered, so it follows
     * the READ's responses. */
    if (s->n_reads || s->ack_deferred) {
        s->ack_want = false;
        s->ack_deferred = true;
        rnic_want_send(qp);
        return BUILT_NOTHING;
    }
    return responder_build(qp, m);
}

enum built responder_build_deferred(struct qp *qp, struct rte_mbuf **m)
{
    enum built b = responder_build(qp, m);

    if (b == BUILT)
        qp->rsp.ack_deferred = false;
    return b;
}

/* ---- execution ---- */

static bool need_receive(struct qp *qp)
{
    struct responder *s = &qp->rsp;

    if (!s->have_rwqe && qp->rq)
        s->have_rwqe = rq_take(qp->rq, &s->rwqe);
    return s->have_rwqe;
}

static enum exec exec_sink(struct qp *qp, const struct roce_pkt *k, struct rte_mbuf *m,
                           int64_t now_ps, bool *taken)
{
    switch (qp->r->cfg.ops.sink(qp->r->cfg.user, qp, k, m, now_ps)) {
    case SINK_TAKEN:
        *taken = true;
        return EXEC_OK;
    case SINK_COPIED:
        return EXEC_OK;
    case SINK_RNR:
        return EXEC_RNR;
    default:
        return EXEC_INVALID;
    }
}

static enum exec exec_send(struct qp *qp, const struct roce_pkt *k, const struct roce_opinfo *op)
{
    struct responder *s = &qp->rsp;
    uint8_t what = op->what;
    int rc = 0;

    if (what & ROCE_P_FIRST) {
        if (!need_receive(qp))
            return EXEC_RNR;
        s->got = 0;
    }
    if (k->len > ROCE_MAX_MSG - s->got)
        return EXEC_INVALID;
    if (k->len)
        rc = sge_scatter(qp, s->rwqe.sge, s->rwqe.n_sge, s->got, k->payload, k->len, k->virt);
    if (rc)
        return rc == -EMSGSIZE ? EXEC_LOC_LEN : EXEC_LOC_PROT;
    return (op->ext & ROCE_X_IETH) && local_invalidate(qp, k->rkey) ? EXEC_ACCESS : EXEC_OK;
}

static enum exec write_first(struct qp *qp, const struct roce_pkt *k)
{
    void *p = NULL;
    int rc = 0;

    if (!(qp->attr.access & ACCESS_REMOTE_WRITE))
        return EXEC_ACCESS;
    if (k->dma_len > ROCE_MAX_MSG)
        return EXEC_INVALID;
    if (k->dma_len)
        rc = qp_mem(qp, true, k->rkey, k->va, k->dma_len, ACCESS_REMOTE_WRITE, &p);
    return rc ? exec_denied(rc) : EXEC_OK;
}

static enum exec exec_write(struct qp *qp, const struct roce_pkt *k, struct rte_mbuf *m,
                            bool *taken)
{
    const struct roce_opinfo *op = &roce_opinfo[k->opcode];
    struct responder *s = &qp->rsp;
    enum exec x = EXEC_OK;
    void *p = NULL;

    if (op->what & ROCE_P_FIRST)
        x = write_first(qp, k);
    if (x != EXEC_OK)
        return x;
    if ((op->ext & ROCE_X_IMM) && !need_receive(qp))
        return EXEC_RNR;
    if (op->what & ROCE_P_FIRST)
        s->va = k->va, s->rkey = k->rkey, s->left = k->dma_len, s->got = 0;
    if (op->what & ROCE_P_LAST ? k->len != s->left : k->len >= s->left)
        return EXEC_INVALID;
    if (qp->deferred)
        x = deferred_write(qp, k, m, taken);
    else if (k->len && qp_mem(qp, true, s->rkey, s->va, k->len, ACCESS_REMOTE_WRITE, &p))
        x = EXEC_ACCESS;
    if (x != EXEC_OK)
        return x;
    if (p && k->payload && !copy_to_user(qp, p, k->payload, k->len - k->virt))
        return EXEC_ACCESS;
    s->va += k->len;
    s->left -= k->len;
    return EXEC_OK;
}

/* Whether the packet continues the current message and has the right length for its position. */
static bool check_order(const struct qp *qp, const struct roce_pkt *k, uint8_t what)
{
    enum msg_kind kind = what & ROCE_P_SEND ? MSG_SEND : what & ROCE_P_WRITE ? MSG_WRITE : MSG_NONE;

    if (qp->rsp.msg != (what & ROCE_P_FIRST ? MSG_NONE : kind))
        return false;
    return what & ROCE_P_LAST ? k->len <= qp->attr.mtu : k->len == qp->attr.mtu;
}

static enum exec execute(struct qp *qp, const struct roce_pkt *k, struct rte_mbuf *m,
                         int64_t now_ps, bool *taken)
{
    const struct roce_opinfo *op = &roce_opinfo[k->opcode];

    if (!check_order(qp, k, op->what) || (qp->streaming && (op->ext & ROCE_X_IETH)))
        return EXEC_INVALID;
    if (qp->deferred && k->opcode == ROCE_OP_RC_ATOMIC_WRITE)
        return EXEC_INVALID;
    if (op->what & (ROCE_P_READ | ROCE_P_ATOMIC))
        return reads_request(qp, k);
    if (qp->deferred && ((op->what & ROCE_P_SEND) || (op->ext & ROCE_X_IMM)))
        return EXEC_INVALID;
    if (op->what & ROCE_P_WRITE)
        return exec_write(qp, k, m, taken);
    return qp->streaming ? exec_sink(qp, k, m, now_ps, taken) : exec_send(qp, k, op);
}

static void complete_receive(struct qp *qp, const struct roce_pkt *k, uint8_t status)
{
    const struct roce_opinfo *op = &roce_opinfo[k->opcode];
    bool imm = op->ext & ROCE_X_IMM;
    struct responder *s = &qp->rsp;
    struct cqe c = {.wr_id = s->rwqe.wr_id,
                    .qp = qp,
                    .status = status,
                    .is_recv = true,
                    .has_imm = imm,
                    .imm = imm ? k->imm : 0,
                    .has_inv = op->ext & ROCE_X_IETH,
                    .inv_rkey = op->ext & ROCE_X_IETH ? k->rkey : 0,
                    .solicited = k->solicited,
                    .byte_len = s->got,
                    .src_qpn = qp->attr.dest_qpn,
                    .src_ip = k->src_ip,
                    .tos = k->tos,
                    .ttl = k->ttl};

    c.op = op->what & ROCE_P_WRITE ? WR_WRITE_IMM : imm ? WR_SEND_IMM : WR_SEND;
    memcpy(c.src_mac, k->src_mac, 6);
    s->have_rwqe = false;
    qp_complete_recv(qp, &c);
}

/* After the execution of a request: advances the message, and ends it with its last packet. */
static void accept(struct qp *qp, const struct roce_pkt *k)
{
    const struct roce_opinfo *op = &roce_opinfo[k->opcode];
    struct responder *s = &qp->rsp;

    s->got += k->len;
    if (!(op->what & ROCE_P_LAST)) {
        s->msg = op->what & ROCE_P_SEND ? MSG_SEND : MSG_WRITE;
        return;
    }
    s->msg = MSG_NONE;
    s->msn = psn_add(s->msn, 1);
    if (s->have_rwqe && ((op->what & ROCE_P_SEND) || (op->ext & ROCE_X_IMM)))
        complete_receive(qp, k, WC_SUCCESS);
}

/* ---- RC ---- */

static enum roce_reason responder_refuse(struct qp *qp, const struct roce_pkt *k, enum exec e)
{
    static const uint8_t syndrome[] = {[EXEC_INVALID] = NAK_INVALID_REQUEST,
                                       [EXEC_ACCESS] = NAK_REMOTE_ACCESS,
                                       [EXEC_LOC_LEN] = NAK_INVALID_REQUEST,
                                       [EXEC_LOC_PROT] = NAK_REMOTE_OP,
                                       [EXEC_OP] = NAK_REMOTE_OP};
    struct responder *s = &qp->rsp;

    s->nak_sent = true;
    if (e == EXEC_RNR) {
        responder_nak(qp, AETH_RNR | qp->attr.min_rnr_timer);
        return ROCE_RNR;
    }
    responder_nak(qp, syndrome[e]);
    if (e == EXEC_LOC_LEN || e == EXEC_LOC_PROT)
        complete_receive(qp, k, e == EXEC_LOC_LEN ? WC_LOC_LEN_ERR : WC_LOC_PROT_ERR);
    qp_fail(qp, WC_WR_FLUSH_ERR);
    if (e == EXEC_INVALID || e == EXEC_ACCESS)
        qp_event(qp, e == EXEC_ACCESS ? QP_EV_ACCESS_ERR : QP_EV_REQ_ERR);
    return ROCE_REFUSED;
}

enum roce_reason responder_input(struct qp *qp, const struct roce_pkt *k, struct rte_mbuf *m,
                                 int64_t now_ps, bool *taken)
{
    uint8_t what = roce_opinfo[k->opcode].what;
    int32_t ahead = psn_cmp(k->psn, qp->rsp.epsn);
    struct responder *s = &qp->rsp;
    enum exec e;

    if (ahead > 0) {
        if (!s->nak_sent)
            responder_nak(qp, NAK_SEQUENCE);
        s->nak_sent = true;
        return ROCE_OUT_OF_SEQUENCE;
    }
    if (ahead < 0) {
        qp->r->cnt.duplicates++;
        if (what & (ROCE_P_READ | ROCE_P_ATOMIC))
            return reads_duplicate(qp, k);
        responder_ack(qp, true, now_ps);
        return ROCE_DUPLICATE;
    }
    e = execute(qp, k, m, now_ps, taken);
    if (e != EXEC_OK)
        return responder_refuse(qp, k, e);
    s->nak_sent = false;
    s->nak = 0;
    if (what & (ROCE_P_READ | ROCE_P_ATOMIC)) {
        s->epsn = psn_add(s->epsn, what & ROCE_P_READ ? packets_of(k->dma_len, qp->attr.mtu) : 1);
        s->msn = psn_add(s->msn, 1);
        deferred_reads(qp, false);
        rnic_want_send(qp);
        return ROCE_OK;
    }
    s->epsn = psn_add(s->epsn, 1);
    if (!s->holding)
        responder_ack(qp, k->ack_req, now_ps);
    accept(qp, k);
    return ROCE_OK;
}

/* ---- UC ---- */

/* UC sends no responses. A message with a gap is dropped; its receive request serves the next. */

enum roce_reason responder_input_uc(struct qp *qp, const struct roce_pkt *k, struct rte_mbuf *m,
                                    int64_t now_ps, bool *taken)
{
    uint8_t what = roce_opinfo[k->opcode].what;
    struct responder *s = &qp->rsp;
    enum exec e;

    if (k->psn != s->epsn || (what & ROCE_P_FIRST))
        s->msg = MSG_NONE;
    s->epsn = psn_add(k->psn, 1);
    if (!(what & ROCE_P_FIRST) && s->msg == MSG_NONE)
        return ROCE_UC_SEQUENCE;
    e = execute(qp, k, m, now_ps, taken);
    if (e == EXEC_OK) {
        accept(qp, k);
        return ROCE_OK;
    }
    s->msg = MSG_NONE;
    return e == EXEC_RNR ? ROCE_NO_RECEIVE : e == EXEC_LOC_LEN ? ROCE_TOO_LONG : ROCE_UC_ERROR;
}
