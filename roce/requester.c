/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Send queue to packets. A packet is built when the link pulls it, so no mbufs wait, and a retransmission
 * only moves the cursor back: the peer may have seen PSNs from una to max, and nxt is sent next.
 *
 * AckReq is set on the last packet of a message, four times a window, and on a packet after which nothing
 * more can be sent: so whenever the sender stops, an acknowledgement is under way that restarts it, or the
 * timer runs. Fragments do not each request an acknowledgement, although they often empty the queue: the
 * responder acknowledges by itself when the sender pauses (responder_ack).
 */
#include "base/cacheline.h"
#include "roce/engine.h"
#include "roce/icrc.h"

#include <string.h>

int requester_create(struct requester *q, const struct qp_cfg *cfg)
{
    uint32_t size = rte_align32pow2(cfg->sq_depth ? cfg->sq_depth : 1);
    size_t data;

    q->depth = cfg->sq_depth ? cfg->sq_depth : 1;
    q->max_sge = cfg->bounded ? cfg->max_sge : ROCE_MAX_SGE;
    q->max_inline = cfg->bounded ? cfg->max_inline : ROCE_MAX_INLINE;
    data = RTE_MAX(q->max_sge * sizeof(struct sge), q->max_inline);
    data = RTE_MAX(data, sizeof(union sdata));
    q->stride = (uint32_t)(sizeof(struct swqe) + RTE_ALIGN(data, sizeof(struct sge)));
    q->mask = size - 1;
    q->ring = cacheline_take((size_t)size * (q->stride + sizeof(union sextra)));
    q->extra = (void *)(q->ring + (size_t)size * q->stride);
    return q->ring ? 0 : -ENOMEM;
}

/* ---- sending conditions ---- */

bool requester_ready(const struct qp *qp)
{
    const struct requester *q = &qp->rqr;
    const struct swqe *w = sq_at(qp, q->cur);
    uint32_t span = psn_sub(q->nxt, q->una);

    if (q->cur == q->seen || q->rnr_wait || q->failed)
        return false;
    /* Draining: messages that have begun continue. */
    if (qp->state != QP_RTS &&
        !(qp->state == QP_SQD && (q->cur_pkt || psn_cmp(q->nxt, q->max) < 0)))
        return false;
    if (op_is_local(w->op))
        return q->head == q->cur;
    if (qp->type != QP_RC)
        return true;
    if ((w->flags & WR_F_FENCE) && q->n_rd && q->cur_pkt == 0)
        return false;
    if (op_is_read(w->op))
        return q->n_rd < qp->attr.max_rd_atomic && span + w->n_pkts < PSN_HALF;
    return span - q->rd_psns + q->n_rd < q->window && span + 1 < PSN_HALF;
}

/* ---- payload ---- */

/* CRC of a piece of a held payload. The mbuf caches the last one for other requests with the same
 * piece. */
static uint32_t held_crc(struct rte_mbuf *held, uint32_t off, const uint8_t *p, uint32_t len)
{
    struct frame_meta *meta = frame_meta(held);

    if ((meta->flags & FRAME_F_CRC) && meta->crc_off == off && meta->crc_len == len)
        return meta->crc;
    meta->crc = roce_crc(0, p, len);
    meta->crc_off = off, meta->crc_len = len;
    meta->flags |= FRAME_F_CRC;
    return meta->crc;
}

/* Copies to dst the bytes of [off, off + len) that request `index` carries; computes their CRC if it
 * carries all of them. Negative: a local key or address is wrong. */
static int copy_payload(struct qp *qp, uint32_t index, uint32_t off, uint8_t *dst, uint32_t len,
                        uint32_t *carried, uint32_t *crc)
{
    const struct swqe *w = sq_at(qp, index);
    const union sdata *d = w->data;

    *carried = 0;
    if (w->flags & WR_F_INLINE) {
        *crc = roce_crc_copy(0, dst, d->inl + off, len);
        *carried = len;
        return 0;
    }
    if (w->holds) {
        uint32_t n = off < d->held.len ? RTE_MIN(len, d->held.len - off) : 0;
        const void *p = n ? rte_pktmbuf_read(d->held.mbuf, d->held.off + off, n, dst) : dst;

        if (p != dst)
            memcpy(dst, p, n);
        *carried = n;
        if (n == len)
            *crc = held_crc(d->held.mbuf, d->held.off + off, dst, n);
        return 0;
    }
    return sge_gather(qp, d->sge, w->n_sge, off, dst, len, carried, crc);
}

/* Below this size a copy takes less time than two more mbufs. */
#define SHARE_MIN 1024u

static bool packet_shares(const struct qp *qp, const struct swqe *w, uint32_t off, uint32_t len)
{
    const union sdata *d = w->data;

    return w->holds && qp->r->cfg.parts && len >= SHARE_MIN && off + len <= d->held.len &&
           d->held.mbuf->nb_segs == 1 && rte_mbuf_refcnt_read(d->held.mbuf) > 1;
}

/* Adds the payload by reference. False: the pool of parts is empty, and m is unchanged. */
static bool share_payload(struct qp *qp, const struct swqe *w, uint32_t off, struct roce_pkt *k,
                          struct rte_mbuf *m)
{
    struct rte_mbuf *held = w->data->held.mbuf;
    uint8_t *tail;

    off += w->data->held.off;
    roce_build(m, k);
    tail = frame_share(m, held, off, k->len, k->pad + ROCE_ICRC_BYTES, qp->r->cfg.parts);
    if (!tail)
        return false;
    roce_seal_shared(
        m, k, held_crc(held, off, rte_pktmbuf_mtod_offset(held, uint8_t *, off), k->len), tail);
    return true;
}

enum built request_payload(struct qp *qp, uint32_t index, uint32_t off, struct roce_pkt *k,
                           struct rte_mbuf **m)
{
    const struct swqe *w = sq_at(qp, index);
    uint32_t carried, crc, hdr = roce_built_bytes(k->opcode, k->v6);
    uint8_t *payload;

    *m = frame_alloc(qp->r->cfg.pool);
    if (!*m)
        return BUILT_NO_MBUF;
    if (packet_shares(qp, w, off, k->len) && share_payload(qp, w, off, k, *m))
        return BUILT;
    payload = rte_pktmbuf_mtod_offset(*m, uint8_t *, hdr);
    if (copy_payload(qp, index, off, payload, k->len, &carried, &crc)) {
        rte_pktmbuf_free(*m);
        return BUILT_NOTHING;
    }
    k->virt = k->len - carried;
    roce_build(*m, k);
    roce_seal_crc(*m, k, k->virt ? 0 : crc);
    return BUILT;
}

/* ---- packets ---- */

/* Opcode of a packet of a SEND or WRITE by its place in the message. */
static uint8_t data_opcode(const struct qp *qp, const struct swqe *w, bool first, bool last)
{
    bool imm = w->op == WR_SEND_IMM || w->op == WR_WRITE_IMM;
    uint8_t base;

    if (w->op == WR_SEND_INV && last)
        return first ? ROCE_OP_RC_SEND_ONLY_INV : ROCE_OP_RC_SEND_LAST_INV;
    base =
        qp->transport | (w->op == WR_WRITE || w->op == WR_WRITE_IMM ? ROCE_OP_RC_WRITE_FIRST : 0);

    if (first && last)
        return base + ROCE_OP_RC_SEND_ONLY + imm;
    if (last)
        return base + ROCE_OP_RC_SEND_LAST + imm;
    return base + (first ? ROCE_OP_RC_SEND_FIRST : ROCE_OP_RC_SEND_MIDDLE);
}

static void data_packet(const struct qp *qp, const struct swqe *w, uint32_t i, struct roce_pkt *k)
{
    bool first = (w->frag & WQE_FIRST) && i == 0, last = (w->frag & WQE_LAST) && i == w->n_pkts - 1;

    k->opcode = data_opcode(qp, w, first, last);
    k->len = RTE_MIN(w->len - i * qp->attr.mtu, (uint32_t)qp->attr.mtu);
    k->va = w->raddr, k->rkey = w->rkey, k->dma_len = w->len;
    k->imm = w->imm;
    k->solicited = last && (w->flags & WR_F_SOLICITED) && w->op != WR_WRITE;
    k->ack_req = last;
}

/* Builds the headers of a READ request; a repeated one starts at the first byte that has not arrived. */
static void read_packet(const struct qp *qp, uint32_t index, uint32_t i, struct roce_pkt *k)
{
    const struct swqe *w = sq_at(qp, index);
    const union sextra *x = sq_extra(qp, index);

    k->len = 0;
    k->rkey = w->rkey;
    if (w->op == WR_READ) {
        k->opcode = ROCE_OP_RC_READ_REQUEST;
        k->va = w->raddr + (uint64_t)i * qp->attr.mtu;
        k->dma_len = w->len - i * qp->attr.mtu;
        return;
    }
    k->va = w->raddr;
    if (w->op == WR_ATOMIC_WRITE) {
        k->opcode = ROCE_OP_RC_ATOMIC_WRITE;
        k->len = k->dma_len = 8;
        return;
    }
    k->opcode = w->op == WR_CMP_SWAP ? ROCE_OP_RC_CMP_SWAP : ROCE_OP_RC_FETCH_ADD;
    k->compare = w->op == WR_CMP_SWAP ? x->compare_add : 0;
    k->swap_add = w->op == WR_CMP_SWAP ? x->swap : x->compare_add;
}

/* Moves the cursor past the packet to send next; for a READ past all its PSNs. */
static void advance_cursor(struct qp *qp)
{
    struct requester *q = &qp->rqr;
    const struct swqe *w = sq_at(qp, q->cur);
    uint32_t n = op_is_read(w->op) ? w->n_pkts - q->cur_pkt : 1;

    T_ASSERT_HOT(q->cur_pkt + n <= w->n_pkts, "a request sends more packets than it has");
    if (op_is_read(w->op))
        q->rd_psns += n, q->n_rd++;
    q->nxt = psn_add(q->nxt, n);
    q->cur_pkt += n;
    if (q->cur_pkt == w->n_pkts)
        q->cur++, q->cur_pkt = 0;
}

/* Decides on AckReq (see above). w: the packet's request. The cursor is already past the packet. */
static bool wants_ack(struct qp *qp, const struct swqe *w, bool last)
{
    struct requester *q = &qp->rqr;
    uint32_t every = RTE_MAX(qp->r->cfg.window_pkts / 4, 1u);
    bool pausing = w->frag == WQE_WHOLE && !requester_ready(qp);

    if (!last && ++q->since_ackreq < every && !pausing)
        return false;
    q->since_ackreq = 0;
    return true;
}

/* The local memory of the request at the cursor is not accessible: fails the request when all requests
 * before it are done. */
static void local_error(struct qp *qp)
{
    if (qp->type == QP_UC) {
        qp_fail_send(qp, WC_LOC_PROT_ERR);
        return;
    }
    qp->rqr.failed = WC_LOC_PROT_ERR;
    completer_advance(qp);
}

enum built requester_build(struct qp *qp, struct rte_mbuf **m, int64_t now_ps)
{
    struct requester *q = &qp->rqr, before = *q;
    uint32_t index = q->cur, i = q->cur_pkt;
    struct swqe *w = sq_at(qp, index);
    struct roce_pkt k;
    enum built b;

    if (op_is_local(w->op))
        return local_build(qp);
    qp_packet(qp, &k);
    k.psn = q->nxt;
    if (op_is_read(w->op))
        read_packet(qp, index, i, &k);
    else
        data_packet(qp, w, i, &k);
    advance_cursor(qp);
    if (!op_is_read(w->op) && qp->type == QP_RC)
        k.ack_req = wants_ack(qp, w, k.ack_req);
    else
        k.ack_req = false;
    b = request_payload(qp, index, i * qp->attr.mtu, &k, m);
    if (b != BUILT) {
        *q = before;
        if (b == BUILT_NOTHING)
            local_error(qp);
        return b;
    }
    if (psn_cmp(k.psn, q->max) < 0)
        qp->r->cnt.retransmits++;
    if (psn_cmp(q->nxt, q->max) > 0)
        q->max = q->nxt;
    if (qp->type == QP_RC) {
        if (qp->timer.deadline == PS_NEVER)
            requester_arm(qp, now_ps);
        return BUILT;
    }
    q->una = q->nxt;
    q->acked = k.psn;
    if (q->cur != index)
        qp_complete_send(qp, WC_SUCCESS);
    return BUILT;
}

/* ---- time ---- */

static inline int64_t timeout_ps(const struct qp *qp)
{
    return 4096 * PS_PER_NS << qp->attr.timeout;
}

void requester_arm(struct qp *qp, int64_t now_ps)
{
    struct requester *q = &qp->rqr;

    if (q->rnr_wait)
        return;
    q->pause = 0;
    if (qp->attr.timeout && psn_cmp(q->una, q->nxt) < 0)
        qp_timer_set(qp, now_ps + timeout_ps(qp));
    else
        qp_timer_clear(qp);
}

void requester_rewind(struct qp *qp)
{
    struct requester *q = &qp->rqr;

    q->nxt = q->una;
    q->cur = q->head;
    q->cur_pkt = q->head == q->tail ? 0 : psn_sub(q->una, sq_at(qp, q->head)->first_psn);
    q->rd_psns = q->n_rd = q->since_ackreq = 0;
    q->failed = 0; /* the failing request will be found again */
}

/*
 * Extends the timeout by the time in which a process on the path did not run: that time says nothing about
 * the peer. The report is not trusted: extensions for one packet are limited to PAUSE_MOST units in total,
 * and those below PAUSE_LEAST units are not made.
 */
#define PAUSE_UNITS 1024
#define PAUSE_LEAST (PAUSE_UNITS / 64)
#define PAUSE_MOST  (10 * PAUSE_UNITS)

static bool pause_timer(struct qp *qp, int64_t now_ps)
{
    const struct rnic_cfg *cfg = &qp->r->cfg;
    struct requester *q = &qp->rqr;
    int64_t unit = timeout_ps(qp) / PAUSE_UNITS, n = q->pause ? q->pause : PAUSE_UNITS;

    if (!cfg->ops.lateness || !qp->attr.timeout || q->paused >= PAUSE_MOST)
        return false;
    n = RTE_MIN(n, cfg->ops.lateness(cfg->user, qp, n * unit) / unit);
    n = RTE_MIN(n, (int64_t)PAUSE_MOST - q->paused);
    if (n < PAUSE_LEAST)
        return false;
    q->pause = (uint16_t)n;
    q->paused = (uint16_t)(q->paused + n);
    qp->r->cnt.timer_pauses++;
    qp_record(qp, RNIC_EV_PAUSED, q->paused);
    qp_timer_set(qp, now_ps + n * unit);
    return true;
}

/* Handles a deadline: the end of the peer's RNR timer, or an overdue acknowledgement. */
void requester_timer(struct qp *qp, int64_t now_ps)
{
    struct requester *q = &qp->rqr;

    if (qp->state != QP_RTS && qp->state != QP_SQD)
        return;
    if (q->rnr_wait) {
        q->rnr_wait = false;
        qp_record(qp, RNIC_EV_RNR_OVER, q->una);
    } else if (pause_timer(qp, now_ps)) {
        return;
    } else {
        qp->r->cnt.timeouts++;
        qp_record(qp, RNIC_EV_TIMEOUT, q->retry_left);
        if (q->retry_left == 0) {
            qp_fail(qp, WC_RETRY_EXC_ERR);
            return;
        }
        q->retry_left--;
    }
    requester_rewind(qp);
    rnic_want_send(qp);
    qp_check(qp);
}
