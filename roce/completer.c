/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Responses to completions. Acknowledgements are cumulative, but an acknowledgement of packets after a
 * READ must wait for the READ's data: it has a queue of its own and may overtake them. So an early one is
 * recorded and does not mean that a response was lost.
 */
#include "roce/engine.h"

#include <errno.h>
#include <string.h>

/* IBTA table 45, in units of 10 us. */
static int64_t rnr_timer_ps(uint8_t code)
{
    static const uint32_t t[32] = {65536, 1,    2,    3,     4,     6,     8,     12,
                                   16,    24,   32,   48,    64,    96,    128,   192,
                                   256,   384,  512,  768,   1024,  1536,  2048,  3072,
                                   4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152};

    return t[code & 31] * 10 * PS_PER_US;
}

static void check_drained(struct qp *qp)
{
    if (qp->state != QP_SQD || qp->drained_said || qp->rqr.cur_pkt ||
        psn_cmp(qp->rqr.una, qp->rqr.max) < 0)
        return;
    qp->drained_said = true;
    qp_event(qp, QP_EV_SQ_DRAINED);
}

/* Moves the cursor up to una if it is behind: acknowledged packets are not sent again. */
static void sync_cursor(struct qp *qp)
{
    struct requester *q = &qp->rqr;

    if (psn_cmp(q->nxt, q->una) >= 0)
        return;
    q->nxt = q->una;
    q->cur = q->head;
    q->cur_pkt = q->head == q->tail ? 0 : psn_sub(q->una, sq_at(qp, q->head)->first_psn);
}

/* Completes in order the requests that acked and una cover, up to a READ that lacks data. */
void completer_advance(struct qp *qp)
{
    struct requester *q = &qp->rqr;

    while (q->head != q->tail) {
        struct swqe *w = sq_at(qp, q->head);
        uint32_t end = psn_add(w->first_psn, w->n_pkts);

        if (op_is_local(w->op)) /* completes in its turn, not by an acknowledgement */
            break;
        if (!op_is_read(w->op) && psn_cmp(psn_add(q->acked, 1), q->una) > 0)
            q->una = psn_cmp(q->acked, end) < 0 ? psn_add(q->acked, 1) : end;
        if (psn_cmp(q->una, end) < 0)
            break;
        sync_cursor(qp);
        qp_complete_send(qp, WC_SUCCESS);
        if (qp->state == QP_ERR)
            return;
    }
    sync_cursor(qp);
    if (q->failed && q->head == q->cur)
        qp_fail(qp, q->failed);
    else
        check_drained(qp);
}

/* Resets retries and the timer if una has moved. */
static void progressed(struct qp *qp, uint32_t una_before, int64_t now_ps)
{
    struct requester *q = &qp->rqr;

    if (qp->state == QP_ERR || q->una == una_before) {
        q->heard++;
        return;
    }
    q->retry_left = qp->attr.retry_cnt;
    q->rnr_left = qp->attr.rnr_retry;
    q->paused = 0;
    requester_arm(qp, now_ps);
    rnic_want_send(qp);
}

static void psn_acknowledge(struct qp *qp, uint32_t psn, int64_t now_ps)
{
    struct requester *q = &qp->rqr;
    uint32_t before = q->una;

    if (psn_cmp(psn, q->acked) > 0)
        q->acked = psn;
    completer_advance(qp);
    if (qp->state != QP_ERR && psn_cmp(q->acked, psn_add(q->una, PSN_MASK)) < 0)
        q->acked = psn_add(q->una, PSN_MASK);
    progressed(qp, before, now_ps);
}

/*
 * Whether a repeated NAK shows progress although una has not moved. A peer sends one NAK for a gap, and
 * the next one only when the gap is filled and it sees another: so each NAK but the first means that
 * requests have got further. una may stay because it waits for READ data, or because the peer holds
 * WRITEs and may not acknowledge them. Such NAKs take no retry, up to as many as packets are in flight: a
 * peer that only sends NAKs is given up.
 */
static bool has_moved_on(struct requester *q)
{
    if (!q->naks || q->nak_una != q->una) {
        q->nak_una = q->una;
        q->naks = 1;
        return false;
    }
    return q->naks++ < psn_sub(q->max, q->una);
}

static void sequence_nak(struct qp *qp)
{
    struct requester *q = &qp->rqr;

    qp->r->cnt.seq_naks_received++;
    if (q->rnr_wait) /* everything will be sent again afterwards */
        return;
    if (!has_moved_on(q)) {
        if (q->retry_left == 0) {
            qp_fail(qp, WC_RETRY_EXC_ERR);
            return;
        }
        q->retry_left--;
    }
    qp_record(qp, RNIC_EV_SEQ_NAK_RECEIVED, q->una);
    qp_timer_clear(qp);
    requester_rewind(qp);
    rnic_want_send(qp);
}

static void rnr_nak(struct qp *qp, uint8_t code, int64_t now_ps)
{
    struct requester *q = &qp->rqr;

    qp->r->cnt.rnr_naks_received++;
    if (q->rnr_wait)
        return;
    if (q->rnr_left == 0) {
        qp_fail(qp, WC_RNR_RETRY_EXC_ERR);
        return;
    }
    if (qp->attr.rnr_retry != 7)
        q->rnr_left--;
    qp_record(qp, RNIC_EV_RNR_NAK_RECEIVED, code);
    requester_rewind(qp);
    q->rnr_wait = true;
    rnic_unlist(qp, false);
    qp_timer_set(qp, now_ps + rnr_timer_ps(code));
    if (qp->rsp.n_reads || qp->rsp.ack_deferred)
        rnic_want_send(qp);
}

static enum roce_reason nak(struct qp *qp, uint8_t syndrome, int64_t now_ps)
{
    static const uint8_t status[4] = {[NAK_INVALID_REQUEST & 3] = WC_REM_INV_REQ_ERR,
                                      [NAK_REMOTE_ACCESS & 3] = WC_REM_ACCESS_ERR,
                                      [NAK_REMOTE_OP & 3] = WC_REM_OP_ERR};

    if ((syndrome & AETH_MASK) == AETH_RNR) {
        rnr_nak(qp, syndrome & 31, now_ps);
    } else if (syndrome == NAK_SEQUENCE) {
        sequence_nak(qp);
    } else if ((syndrome & AETH_MASK) == AETH_NAK && syndrome <= NAK_REMOTE_OP) {
        qp->r->cnt.error_naks_received++;
        qp_record(qp, RNIC_EV_ERROR_NAK_RECEIVED, syndrome);
        qp_fail(qp, status[syndrome & 3]);
    } else {
        return ROCE_STALE;
    }
    return ROCE_OK;
}

static enum roce_reason ack_input(struct qp *qp, const struct roce_pkt *k, int64_t now_ps)
{
    struct requester *q = &qp->rqr;

    if (psn_cmp(k->psn, q->max) >= 0)
        return ROCE_STALE;
    if ((k->syndrome & AETH_MASK) == AETH_ACK) {
        qp->r->cnt.acks_received++;
        psn_acknowledge(qp, k->psn, now_ps);
        return ROCE_OK;
    }
    /* A NAK acknowledges the packets before it. A NAK for an acknowledged packet is stale. */
    if (psn_cmp(k->psn, q->una) < 0)
        return ROCE_STALE;
    psn_acknowledge(qp, psn_add(k->psn, PSN_MASK), now_ps);
    if (qp->state == QP_ERR || q->head == q->tail)
        return ROCE_OK;
    return nak(qp, k->syndrome, now_ps);
}

/* ---- READ and atomic responses ---- */

/*
 * Handles a response ahead of the expected one, which shows that a response was lost. Requests the READ
 * again, once for a gap: later responses to the first request are further ahead. A response that is no
 * further ahead than the one that showed the gap answers the repeated request, of which the first packets
 * were lost as well.
 */
static enum roce_reason response_gap(struct qp *qp, uint32_t psn)
{
    struct requester *q = &qp->rqr;

    if (q->rnr_wait || (q->gap_seen && psn_cmp(psn, q->gap_psn) > 0))
        return ROCE_OUT_OF_SEQUENCE;
    q->gap_seen = true;
    q->gap_psn = psn;
    qp->r->cnt.read_gaps++;
    qp_record(qp, RNIC_EV_READ_GAP, psn);
    if (q->retry_left == 0) {
        qp_fail(qp, WC_RETRY_EXC_ERR);
        return ROCE_OUT_OF_SEQUENCE;
    }
    q->retry_left--;
    qp_timer_clear(qp);
    requester_rewind(qp);
    rnic_want_send(qp);
    return ROCE_OUT_OF_SEQUENCE;
}

/* Copies the data of a response to the request's memory. False: it does not answer the request. */
static bool take_data(struct qp *qp, const struct swqe *w, const struct roce_pkt *k, int *rc)
{
    const union sdata *d = w->data;
    uint32_t i = psn_sub(k->psn, w->first_psn), off = i * qp->attr.mtu;

    if (op_is_atomic(w->op)) {
        if (k->opcode != ROCE_OP_RC_ATOMIC_ACKNOWLEDGE)
            return false;
        *rc = sge_scatter(qp, d->sge, w->n_sge, 0, (const uint8_t *)&k->orig, 8, 0);
        return true;
    }
    if (w->op == WR_ATOMIC_WRITE) {
        *rc = 0;
        return k->opcode == ROCE_OP_RC_READ_RESPONSE_ONLY && k->len == 0;
    }
    if (k->opcode == ROCE_OP_RC_ATOMIC_ACKNOWLEDGE ||
        k->len != RTE_MIN(w->len - off, (uint32_t)qp->attr.mtu))
        return false;
    *rc = w->n_sge ? sge_scatter(qp, d->sge, w->n_sge, off, k->payload, k->len, k->virt) : 0;
    return true;
}

static enum roce_reason response_input(struct qp *qp, const struct roce_pkt *k, int64_t now_ps)
{
    struct requester *q = &qp->rqr;
    uint32_t before = q->una;
    struct swqe *w;
    bool sent;
    int rc;

    if (psn_cmp(k->psn, q->max) >= 0)
        return ROCE_STALE;
    if (psn_cmp(k->psn, q->una) > 0) /* the peer has executed all requests before it */
        psn_acknowledge(qp, psn_add(k->psn, PSN_MASK), now_ps);
    if (qp->state == QP_ERR || q->head == q->tail || psn_cmp(k->psn, q->una) < 0)
        return ROCE_STALE;
    if (k->psn != q->una)
        return response_gap(qp, k->psn);
    w = sq_at(qp, q->head);
    if (!op_is_read(w->op) || !take_data(qp, w, k, &rc))
        return ROCE_STALE;
    if (rc) {
        qp_fail(qp, rc == -EMSGSIZE ? WC_LOC_LEN_ERR : WC_LOC_PROT_ERR);
        return ROCE_OK;
    }
    w->virt |= k->virt > 0;
    q->gap_seen = false;
    sent = psn_cmp(q->nxt, k->psn) > 0;
    q->una = psn_add(q->una, 1);
    if (sent) {
        q->rd_psns--;
        if (q->una == psn_add(w->first_psn, w->n_pkts))
            q->n_rd--;
    }
    psn_acknowledge(qp, k->psn, now_ps);
    progressed(qp, before, now_ps);
    return ROCE_OK;
}

enum roce_reason completer_input(struct qp *qp, const struct roce_pkt *k, int64_t now_ps)
{
    if (k->opcode == ROCE_OP_RC_ACKNOWLEDGE)
        return ack_input(qp, k, now_ps);
    if ((roce_opinfo[k->opcode].ext & ROCE_X_AETH) && (k->syndrome & AETH_MASK) != AETH_ACK)
        return ROCE_STALE;
    return response_input(qp, k, now_ps);
}
