/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Invariants of a queue pair between two calls of the engine. Checked builds test them after every
 * packet received or sent and after every timeout.
 */
#include "roce/engine.h"
#include "roce/rate_limiter.h"

#ifdef TRIB_CHECKED

/* [head, cur) is sent, [cur, tail) waits, and nxt is the PSN of the packet at the cursor. */
static void check_send_queue(const struct qp *qp)
{
    const struct requester *q = &qp->rqr;
    const uint32_t n = q->tail - q->head, sent = q->cur - q->head, seen = q->seen - q->head;
    const struct swqe *w = sq_at(qp, q->cur);

    T_ASSERT(n <= q->depth, "a send queue holds more requests than its depth");
    T_ASSERT(sent <= n, "the cursor of a send queue is outside of it");
    T_ASSERT(seen <= n && sent <= seen, "a request was sent that the port has not fetched");
    T_ASSERT(q->failed || q->cur == q->tail || w->n_pkts == 0 || q->cur_pkt < w->n_pkts,
             "the cursor is behind the last packet of its request");
    T_ASSERT(q->cur == q->tail ? q->cur_pkt == 0 && q->nxt == q->post_psn
                               : q->nxt == psn_add(w->first_psn, q->cur_pkt),
             "the next PSN is not that of the packet at the cursor");
}

static void check_psns(const struct qp *qp)
{
    const struct requester *q = &qp->rqr;

    T_ASSERT(psn_cmp(q->una, q->nxt) <= 0, "a PSN is acknowledged and still to be sent");
    T_ASSERT(psn_cmp(q->nxt, q->max) <= 0, "a PSN was sent beyond the last one ever sent");
    T_ASSERT(psn_cmp(psn_add(q->acked, 1), q->una) >= 0 && psn_cmp(q->acked, q->max) < 0,
             "the last acknowledged PSN is outside of what was sent");
    T_ASSERT(q->rd_psns <= psn_sub(q->nxt, q->una), "READs have more PSNs than are in flight");
    T_ASSERT(!q->n_rd == !q->rd_psns, "the READs in flight do not match their PSNs");
    T_ASSERT(q->n_rd <= ROCE_MAX_RD_ATOMIC, "more READs are in flight than an rnic allows");
    T_ASSERT(q->retry_left <= 7 && q->rnr_left <= 7, "more retries are left than there can be");
    T_ASSERT(!q->rnr_wait || qp->timer.at, "nothing ends the wait for the peer's RNR timer");
}

static void check_reads(const struct qp *qp)
{
    const struct responder *s = &qp->rsp;

    T_ASSERT(s->n_reads <= 2 * ROCE_MAX_RD_ATOMIC, "more READs are open than there is room for");
    for (uint32_t i = 0; i < s->n_reads; i++) {
        const struct rd_res *e = &s->reads[i];

        T_ASSERT(e->start <= e->next && e->next < e->n_pkts, "an open READ is answered already");
        T_ASSERT(i == 0 || psn_cmp(s->reads[i - 1].psn, e->psn) <= 0,
                 "READs are not answered in order of PSN");
        T_ASSERT(psn_cmp(psn_add(e->psn, e->n_pkts), s->epsn) <= 0,
                 "a READ is open that was never accepted");
    }
}

static void check_responder(const struct qp *qp)
{
    const struct responder *s = &qp->rsp;

    check_reads(qp);
    T_ASSERT(s->msg <= MSG_WRITE, "a message is of no kind");
    T_ASSERT(qp->in_delayed_acks == (s->unacked > 0),
             "unacknowledged packets without a delayed acknowledgement, or the reverse");
    T_ASSERT(s->unacked < qp->r->cfg.ack_every, "an acknowledgement is due and not wanted");
    T_ASSERT(!(s->ack_want || s->nak) || qp->in_ack, "an acknowledgement is wanted and not listed");
    T_ASSERT(qp->deferred || (!s->holding && !s->reads_blocked),
             "responses are deferred by a queue pair that answers from memory");
    T_ASSERT(!s->holding || psn_cmp(s->hold.psn, s->epsn) < 0,
             "WRITEs are held that have not come");
}

static void check_lists(const struct qp *qp)
{
    const bool waits = qp->limiter && qp->limiter->waits;
    /* A repeated READ unblocks deferred ones; their turn comes when the owner resumes them. */
    const bool ready = requester_ready(qp) || (!qp->deferred && responder_ready(qp));

    T_ASSERT(!qp->limiter || waits == (qp->limiter->timer.at != 0),
             "a queue pair waits for its rate without a deadline, or the reverse");
    T_ASSERT(!(waits && qp->in_send), "a queue pair waits for its rate and its turn both");
    T_ASSERT(qp->in_send || waits || !ready, "a queue pair has something to send and no turn");
    T_ASSERT((qp->timer.at != 0) == (qp->timer.deadline != PS_NEVER),
             "a deadline is set without a heap entry, or the reverse");
}

void qp_check(const struct qp *qp)
{
    T_ASSERT(qp->state == qp->attr.state, "a queue pair has two states");
    if (qp->state < QP_RTR || qp->state == QP_ERR)
        return;
    check_lists(qp);
    if (qp->type == QP_RC)
        check_responder(qp);
    if (qp->state != QP_RTS && qp->state != QP_SQD)
        return;
    check_send_queue(qp);
    check_psns(qp);
}

#endif
