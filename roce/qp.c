/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/cacheline.h"
#include "roce/engine.h"
#include "roce/rate_limiter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- posting and completing ---- */

/* A QP that failed before it was connected has no MTU, but flushes what is posted. */
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
    if ((w->flags & WR_F_INLINE) && w->op != WR_ATOMIC_WRITE && /* eight bytes fit always */
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
    if (q->head == q->tail) /* from the beginning: lines that were in use are used again */
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

void qp_event(struct qp *qp, enum qp_event e)
{
    if (qp->r->cfg.ops.event)
        qp->r->cfg.ops.event(qp->r->cfg.user, qp, e);
}

static void release(struct swqe *w)
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
                    .virt = w->virt};
    bool say = status != WC_SUCCESS || qp->sig_all || (w->flags & WR_F_SIGNALED);

    release(w);
    if (q->cur == q->head)
        q->cur++, q->cur_pkt = 0;
    q->head++;
    if (say)
        qp->r->cfg.ops.complete(qp->r->cfg.user, &c);
}

void qp_complete_recv(struct qp *qp, const struct cqe *c)
{
    qp->r->cfg.ops.complete(qp->r->cfg.user, c);
}

static void flush_recv(struct qp *qp, uint64_t wr_id)
{
    struct cqe c = {
        .wr_id = wr_id, .qp = qp, .status = WC_WR_FLUSH_ERR, .op = WR_SEND, .is_recv = true};

    qp_complete_recv(qp, &c);
}

void qp_flush(struct qp *qp)
{
    uint32_t n = qp->rqr.tail - qp->rqr.head;

    if (qp->state != QP_ERR && qp->state != QP_SQE)
        return;
    while (n--)
        qp_complete_send(qp, WC_WR_FLUSH_ERR);
    qp->rqr.seen = qp->rqr.tail;
    if (qp->state == QP_SQE) {
        qp->rqr.post_psn = qp->rqr.nxt;
        return;
    }
    if (qp->rsp.have_rwqe) {
        qp->rsp.have_rwqe = false;
        flush_recv(qp, qp->rsp.rwqe.wr_id);
    }
    if (!qp->rq || qp->rq->shared)
        return;
    for (n = rq_level(qp->rq); n; n--)
        if (rq_take(qp->rq, &qp->rsp.rwqe))
            flush_recv(qp, qp->rsp.rwqe.wr_id);
}

static void enter_error(struct qp *qp, uint8_t status)
{
    qp->state = qp->attr.state = QP_ERR;
    qp_timer_clear(qp);
    rnic_unlist(qp, false);
    qp->rsp.n_reads = 0;
    qp->rsp.ack_deferred = false;
    if (qp->rqr.head != qp->rqr.tail)
        qp_complete_send(qp, status);
    qp_flush(qp);
    if (qp->rq && qp->rq->shared)
        qp_event(qp, QP_EV_LAST_WQE);
}

void qp_fail(struct qp *qp, uint8_t status)
{
    if (qp->state == QP_ERR)
        return;
    qp->r->cnt.qp_errors++;
    enter_error(qp, status);
}

void qp_fail_send(struct qp *qp, uint8_t status)
{
    qp->r->cnt.qp_errors++;
    qp->state = qp->attr.state = QP_SQE;
    qp_complete_send(qp, status);
    qp_flush(qp);
}

/* ---- states ---- */

/* Of a connected queue pair, from when it can send until it is reset. */
static void list_lines(struct qp *qp)
{
    struct cacheline_list *l = &qp->r->lines;

    if (qp->type != QP_RC)
        return;
    cacheline_list_add(l, qp, offsetof(struct qp, rsp.reads));
    cacheline_list_add(l, qp->rqr.ring, RTE_CACHE_LINE_SIZE);
    if (qp->rq)
        cacheline_list_add(l, qp->rq, sizeof(*qp->rq));
}

static void unlist_lines(struct qp *qp)
{
    struct cacheline_list *l = &qp->r->lines;

    cacheline_list_drop(l, qp);
    cacheline_list_drop(l, qp->rqr.ring);
    if (qp->rq)
        cacheline_list_drop(l, qp->rq);
}

static void reset(struct qp *qp)
{
    struct requester *q = &qp->rqr;

    unlist_lines(qp);
    qp_timer_clear(qp);
    rnic_unlist(qp, true);
    if (qp->pace)
        rate_limiter_reset(qp->pace);
    for (; q->head != q->tail; q->head++)
        release(sq_at(qp, q->head));
    *q = (struct requester){.ring = q->ring,
                            .extra = q->extra,
                            .stride = q->stride,
                            .max_sge = q->max_sge,
                            .max_inline = q->max_inline,
                            .depth = q->depth,
                            .mask = q->mask};
    memset(&qp->rsp, 0, sizeof(qp->rsp));
    if (qp->rq && !qp->rq->shared)
        qp->rq->head = qp->rq->tail;
    qp->established = qp->drained_said = qp->reply_turn = false;
    memset(&qp->attr, 0, sizeof(qp->attr));
    qp->state = qp->attr.state = QP_RESET;
}

static bool mtu_ok(uint32_t mtu)
{
    return mtu >= 256 && mtu <= ROCE_MAX_MTU && (mtu & (mtu - 1)) == 0;
}

const struct roce_pkt qp_any_packet = {.ttl = 64, .pkey = ROCE_DEFAULT_PKEY};

/* Source port: all of a QP's packets take one path, different QPs different ones (IBTA A17.4.3). */
static uint16_t flow_port(uint32_t sqpn, uint32_t dqpn)
{
    uint64_t h = ((uint64_t)sqpn << 24 | dqpn) * 0x9e3779b97f4a7c15u;

    return 0xc000 | (uint16_t)(h >> 50);
}

static int to_init(struct qp *qp, const struct qp_attr *a)
{
    qp->attr.access = a->access;
    qp->attr.qkey = a->qkey;
    return 0;
}

static void take_optional(struct qp *qp, const struct qp_attr *a)
{
    if (a->access || a->exact)
        qp->attr.access = a->access;
    if (a->qkey || a->exact)
        qp->attr.qkey = a->qkey;
    if (a->min_rnr_timer || a->exact)
        qp->attr.min_rnr_timer = a->min_rnr_timer;
}

static int to_rtr(struct qp *qp, const struct qp_attr *a)
{
    uint32_t mtu = qp->type == QP_UD && a->mtu == 0 ? ROCE_MAX_MTU : a->mtu;

    if (!mtu_ok(mtu) || a->max_dest_rd_atomic > ROCE_MAX_RD_ATOMIC || a->min_rnr_timer > 31)
        return -EINVAL;
    take_optional(qp, a);
    qp->attr.mtu = mtu;
    qp->attr.min_rnr_timer = a->min_rnr_timer;
    if (qp->type != QP_UD) {
        qp->attr.dest_qpn = a->dest_qpn & PSN_MASK;
        qp->attr.dest_ip = a->dest_ip;
        qp->attr.dest_v6 = a->dest_v6;
        memcpy(qp->attr.dest_mac, a->dest_mac, 6);
        qp->attr.rq_psn = a->rq_psn & PSN_MASK;
        qp->attr.max_dest_rd_atomic = a->max_dest_rd_atomic;
    }
    qp->rsp.epsn = qp->attr.rq_psn;
    qp->udp_src = flow_port(qp->num, qp->attr.dest_qpn);
    return 0;
}

static int to_rts(struct qp *qp, const struct qp_attr *a)
{
    struct requester *q = &qp->rqr;

    if (a->max_rd_atomic > ROCE_MAX_RD_ATOMIC || a->timeout > 31 || a->retry_cnt > 7 ||
        a->rnr_retry > 7 || a->min_rnr_timer > 31)
        return -EINVAL;
    take_optional(qp, a);
    qp->attr.timeout = a->timeout;
    qp->attr.retry_cnt = a->retry_cnt;
    qp->attr.rnr_retry = a->rnr_retry;
    if (qp->state == QP_RTR) {
        qp->attr.sq_psn = a->sq_psn & PSN_MASK;
        qp->attr.max_rd_atomic = a->max_rd_atomic;
        q->post_psn = q->una = q->nxt = q->max = qp->attr.sq_psn;
        q->acked = psn_add(q->una, PSN_MASK);
        q->retry_left = a->retry_cnt;
        q->rnr_left = a->rnr_retry;
        q->paused = q->pause = 0;
    }
    return 0;
}

static int in_sqd(struct qp *qp, const struct qp_attr *a)
{
    int rc = a->exact ? to_rts(qp, a) : 0;

    if (!a->exact || rc)
        return rc;
    if (a->max_dest_rd_atomic > ROCE_MAX_RD_ATOMIC)
        return -EINVAL;
    qp->attr.max_rd_atomic = a->max_rd_atomic;
    qp->attr.max_dest_rd_atomic = a->max_dest_rd_atomic;
    qp->attr.dest_ip = a->dest_ip;
    qp->attr.dest_v6 = a->dest_v6;
    memcpy(qp->attr.dest_mac, a->dest_mac, 6);
    qp->udp_src = flow_port(qp->num, qp->attr.dest_qpn);
    return 0;
}

int qp_modify(struct qp *qp, const struct qp_attr *a)
{
    enum qp_state from = qp->state, to = a->state;
    int rc = -EINVAL;

    if (to == QP_RESET) {
        reset(qp);
        return 0;
    }
    if (to == QP_ERR) {
        if (from != QP_ERR)
            enter_error(qp, WC_WR_FLUSH_ERR);
        qp->attr.state = QP_ERR;
        return 0;
    }
    if (to == QP_INIT && (from == QP_RESET || from == QP_INIT))
        rc = to_init(qp, a);
    else if (to == QP_RTR && from == QP_INIT)
        rc = to_rtr(qp, a);
    else if (to == QP_RTS && from >= QP_RTR && from <= QP_SQE)
        rc = to_rts(qp, a);
    else if (to == QP_SQD && from == QP_RTS)
        rc = 0;
    else if (to == QP_SQD && from == QP_SQD)
        rc = in_sqd(qp, a);
    if (rc)
        return rc;
    qp->state = qp->attr.state = to;
    if (to == QP_RTS && from == QP_RTR)
        list_lines(qp);
    if (from != QP_SQD || to != QP_SQD)
        qp->drained_said = false;
    if (to == QP_SQD)
        completer_advance(qp);
    rnic_want_send(qp);
    return 0;
}

const struct qp_attr *qp_attributes(const struct qp *qp)
{
    return &qp->attr;
}

enum qp_state qp_state_of(const struct qp *qp)
{
    return qp->state;
}

uint32_t qp_num(const struct qp *qp)
{
    return qp->num;
}

void *qp_user(const struct qp *qp)
{
    return qp->user;
}

uint32_t qp_pd(const struct qp *qp)
{
    return qp->pd;
}

/* ---- life ---- */

/* The table has that index, for queue pairs of the rnic's own numbers. */
static int table_fit(struct rnic *r, uint32_t index)
{
    uint32_t n = rte_align32pow2(index + 1);
    struct qp **table;

    if (index < r->n_table)
        return 0;
    table = calloc(n, sizeof(*table));
    if (!table)
        return -ENOMEM;
    memcpy(table, r->table, r->n_table * sizeof(*table));
    if (r->table != r->few)
        free(r->table);
    r->table = table;
    r->n_table = n;
    return 0;
}

/* A place for the QP: next free index (so that a number is not used again at once), or the wanted
 * number. */
static struct qp **find_place(struct rnic *r, uint32_t *qpn)
{
    uint32_t max = r->cfg.max_qps, i;

    if (*qpn == 0) {
        for (uint32_t n = 0; n < max; n++) {
            i = r->next_index % max + 1;
            r->next_index = i;
            if (i < r->n_table && r->table[i])
                continue;
            *qpn = (r->cfg.qpn_base + i) & PSN_MASK;
            return table_fit(r, i) ? NULL : &r->table[i];
        }
        return NULL;
    }
    i = *qpn - r->cfg.qpn_base;
    if (i <= max)
        return table_fit(r, i) ? NULL : &r->table[i];
    for (unsigned s = 0; s < ROCE_SPECIAL_QPS; s++)
        if (!r->special[s])
            return &r->special[s];
    return NULL;
}

static void attach_rq(struct qp *qp, struct rq *rq)
{
    qp->rq = rq;
    if (!rq)
        return;
    if (++rq->users > 1)
        rq_set_shared(rq);
    else if (!rq->shared)
        rq->owner = qp;
}

static void free_qp(struct qp *qp)
{
    free(qp->rqr.ring);
    free(qp->pace);
    free(qp);
}

int qp_create(struct rnic *r, const struct qp_cfg *cfg, struct qp **out)
{
    uint32_t depth = cfg->sq_depth ? cfg->sq_depth : 1, qpn = cfg->qpn;
    struct qp **place, *qp;
    int rc;

    if ((cfg->type != QP_RC && cfg->type != QP_UC && cfg->type != QP_UD) || depth > 1u << 20 ||
        qpn > PSN_MASK || (cfg->streaming && !r->cfg.ops.sink) ||
        (cfg->served && (!r->cfg.ops.serve || cfg->streaming || cfg->type != QP_RC)))
        return -EINVAL;
    if (qpn && rnic_qp(r, qpn))
        return -EADDRINUSE;
    place = find_place(r, &qpn);
    if (!place || timers_fit(&r->timers, r->n_qps + 1) ||
        (r->cfg.dcqcn.on && timers_fit(&r->paces, r->n_qps + 1)))
        return -ENOMEM;
    qp = cacheline_alloc(sizeof(*qp));
    if (!qp)
        return -ENOMEM;
    qp->r = r, qp->num = qpn, qp->type = cfg->type;
    qp->pace = rate_limiter_create(qp, &rc);
    if (requester_create(&qp->rqr, cfg) || rc) {
        free_qp(qp);
        return -ENOMEM;
    }
    qp->transport = cfg->type == QP_RC ? ROCE_RC : cfg->type == QP_UC ? ROCE_UC : ROCE_UD;
    qp->sig_all = cfg->sig_all, qp->streaming = cfg->streaming, qp->served = cfg->served;
    qp->user = cfg->user, qp->pd = cfg->pd;
    qp->timer.deadline = PS_NEVER;
    attach_rq(qp, cfg->rq);
    *place = qp;
    r->n_qps++;
    *out = qp;
    return 0;
}

void qp_destroy(struct qp *qp)
{
    struct rnic *r = qp->r;
    uint32_t i = qp->num - r->cfg.qpn_base;

    reset(qp);
    for (i = 0; i < r->n_mcast;)
        if (r->mcast[i].qp == qp)
            r->mcast[i] = r->mcast[--r->n_mcast];
        else
            i++;
    if (qp->rq) {
        qp->rq->users--;
        if (qp->rq->owner == qp)
            qp->rq->owner = NULL;
    }
    i = qp->num - r->cfg.qpn_base;
    if (i < r->n_table && r->table[i] == qp)
        r->table[i] = NULL;
    for (unsigned s = 0; s < ROCE_SPECIAL_QPS; s++)
        if (r->special[s] == qp)
            r->special[s] = NULL;
    r->n_qps--;
    free_qp(qp);
}
