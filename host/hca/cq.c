/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion queues, each a bounded ring. One that overruns is lost (IBTA 10.7.3.3): the completion
 * that did not fit is dropped, an async event reports it, and the queue pairs that use the queue go
 * to error.
 */
#include "host/hca/hca_priv.h"

#include "base/cacheline.h"

#include <stdlib.h>
#include <string.h>

/* ---- the path of a completion ---- */

static const uint8_t wc_opcode_of[] = {
    [WR_WRITE] = IBV_WC_RDMA_WRITE,
    [WR_WRITE_IMM] = IBV_WC_RDMA_WRITE,
    [WR_SEND] = IBV_WC_SEND,
    [WR_SEND_IMM] = IBV_WC_SEND,
    [WR_READ] = IBV_WC_RDMA_READ,
    [WR_CMP_SWAP] = IBV_WC_COMP_SWAP,
    [WR_FETCH_ADD] = IBV_WC_FETCH_ADD,
    [WR_LOCAL_INV] = IBV_WC_LOCAL_INV,
    [WR_BIND_MW] = IBV_WC_BIND_MW,
    [WR_SEND_INV] = IBV_WC_SEND,
    [WR_ATOMIC_WRITE] = IBV_WC_ATOMIC_WRITE,
};

static void cq_notify(struct hca_cq *cq, bool solicited)
{
    if (cq->armed == CQ_IDLE || (cq->armed == CQ_SOLICITED && !solicited))
        return;
    cq->armed = CQ_IDLE;
    cq->notified = true;
    if (cq->channel)
        channel_push(cq);
}

/* Updates the owner's bit. A queue that overran keeps it set: each poll of it returns an error. */
static void publish_waiting(struct hca *h)
{
    uint64_t bit = 1ull << h->cfg.port;

    if (!h->cfg.waiting)
        return;
    *h->cfg.waiting &= ~bit;
    *h->cfg.waiting |= h->n_waiting || h->overrun ? bit : 0;
}

/* Called after every change of a ring: counts the queues that have completions to poll. */
static void count_waiting(struct hca_cq *cq)
{
    bool waits = cq->head != cq->tail;

    T_ASSERT_HOT(cq->tail - cq->head <= cq->cap, "more completions than the queue holds");
    if (!waits) /* restart an empty ring at its first entries, which are in the cache */
        cq->head = cq->tail = 0;
    if (waits == cq->waits)
        return;
    cq->waits = waits;
    T_ASSERT_HOT(waits ? cq->hca->n_waiting < cq->hca->n_cq : cq->hca->n_waiting > 0,
                 "the count of queues with completions is not that of the queues");
    cq->hca->n_waiting += waits ? 1u : -1u;
    publish_waiting(cq->hca);
}

static void cq_overrun(struct hca_cq *cq)
{
    struct ibv_async_event e = {.element.cq = &cq->v, .event_type = IBV_EVENT_CQ_ERR};

    if (cq->overrun)
        return;
    cq->overrun = cq->hca->overrun = true;
    events_add(&cq->hca->events, cq->hca->now_ps, HCA_EV_CQ_OVERRUN, cq->cap, cq->refs);
    publish_waiting(cq->hca);
    async_push(cq->ctx, &e);
    cq_notify(cq, true);
    hlist_add(&cq->hca->overrun_cqs, &cq->overrun_link);
    cq->hca->deferred = true;
}

void cq_push(struct hca_cq *cq, const struct hca_cqe *e, bool solicited)
{
    if (cq->tail - cq->head == cq->cap) {
        slots_free(e); /* a shared receive queue outlives the queue pairs that this ends */
        cq_overrun(cq);
        return;
    }
    /* IBTA 11.4.2.2: a completion in error counts as solicited. */
    solicited |= e->status != IBV_WC_SUCCESS;
    cq->ring[cq->tail & (cq->cap - 1)] = *e;
    cq->ring[cq->tail++ & (cq->cap - 1)].solicited = solicited;
    cq->hca->completions++;
    count_waiting(cq);
    cq_notify(cq, solicited);
}

bool cq_pop(struct hca_cq *cq, struct hca_cqe *e)
{
    cq->notified = false;
    if (cq->head == cq->tail)
        return false;
    *e = cq->ring[cq->head++ & (cq->cap - 1)];
    slots_free(e);
    count_waiting(cq);
    return true;
}

void hca_complete(void *user, const struct cqe *c)
{
    struct hca *h = user;
    struct hca_qp *qp = qp_user(c->qp);
    struct hca_cqe e = {.ts_ps = h->now_ps,
                        .wr_id = c->wr_id,
                        .status = c->status,
                        .byte_len = c->byte_len,
                        .qp_num = qp->v.qp_num,
                        .src_qp = c->src_qpn};

    T_ASSERT_HOT(qp->qp == c->qp, "a completion of a queue pair that is not its owner's");
    if (!c->is_recv) {
        T_ASSERT_HOT(c->op < RTE_DIM(wc_opcode_of),
                     "a completion of an operation without an opcode");
        e.opcode = wc_opcode_of[c->op];
        e.free = &qp->sq_free;
        e.slots = (uint16_t)(qp->slot * c->ended);
        cq_push(qp->scq, &e, false);
        return;
    }
    e.opcode = c->op == WR_WRITE_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
    e.free = qp->shared ? &qp->srq->free : &qp->rq_free;
    e.slots = qp->slot;
    if (c->has_imm) {
        e.imm = c->imm;
        e.wc_flags |= IBV_WC_WITH_IMM;
    }
    if (c->has_inv) {
        e.imm = c->inv_rkey;
        e.wc_flags |= IBV_WC_WITH_INV;
    }
    if (c->has_grh)
        e.wc_flags |= IBV_WC_GRH;
    /* RoCE providers put the packet's type here, RoCE v2 over IPv4 or IPv6, and UCX reads it. */
    if (qp->v.qp_type == IBV_QPT_UD)
        e.sl = c->v6 ? 0x9 : 0xa;
    if (h->delays && (c->status == WC_SUCCESS || delayed_any(h)))
        delayed_push(qp->rcq, &e, c->solicited);
    else
        cq_push(qp->rcq, &e, c->solicited);
}

static int cq_take(struct hca_cq *cq, int n, struct ibv_wc *wc)
{
    int k = 0;

    while (k < n && cq->head != cq->tail) {
        const struct hca_cqe *e = &cq->ring[cq->head++ & (cq->cap - 1)];

        slots_free(e);
        wc[k++] = (struct ibv_wc){.wr_id = e->wr_id,
                                  .status = (enum ibv_wc_status)e->status,
                                  .opcode = (enum ibv_wc_opcode)e->opcode,
                                  .byte_len = e->byte_len,
                                  .imm_data = e->imm,
                                  .qp_num = e->qp_num,
                                  .src_qp = e->src_qp,
                                  .wc_flags = e->wc_flags,
                                  .sl = e->sl};
    }
    cq->notified = false;
    count_waiting(cq);
    return k ? k : cq->overrun ? -EIO : 0;
}

int hca_poll_cq(struct ibv_cq *v, int n, struct ibv_wc *wc)
{
    struct hca_cq *cq = to_cq(v);
    struct hca *h = cq->hca;
    int k;

    if (hca_dead(h))
        return -EIO;
    hca_lock(h);
    k = cq_take(cq, n, wc);
    hca_unlock(h);
    if (k || !h->cfg.drv.idle || n <= 0)
        return k;
    h->cfg.drv.idle(h->cfg.drv.ctx);
    hca_lock(h);
    k = cq_take(cq, n, wc);
    hca_unlock(h);
    return k;
}

/*
 * Completions between the last poll and the request for notification count, as with the adapters
 * that UCX is written for: UCX does not poll again after the request and would wait for ever.
 * Completions that an event has reported since that poll do not count twice.
 */
static void notify_unseen(struct hca_cq *cq)
{
    bool solicited = false;

    if (cq->notified || cq->head == cq->tail)
        return;
    for (uint32_t i = cq->head; i != cq->tail && !solicited; i++)
        solicited = cq->ring[i & (cq->cap - 1)].solicited;
    cq_notify(cq, solicited);
}

int hca_req_notify_cq(struct ibv_cq *v, int solicited_only)
{
    struct hca_cq *cq = to_cq(v);
    struct hca *h = cq->hca;

    if (hca_dead(h))
        return EIO;
    hca_lock(h);
    if (!solicited_only)
        cq->armed = CQ_ANY;
    else if (cq->armed == CQ_IDLE)
        cq->armed = CQ_SOLICITED;
    notify_unseen(cq);
    hca_unlock(h);
    if (h->cfg.drv.block)
        h->cfg.drv.block(h->cfg.drv.ctx);
    return 0;
}

/* ---- control ---- */

/* Drops the completions of a destroyed or reset queue pair. */
void cq_clean(struct hca_cq *cq, uint32_t qpn)
{
    uint32_t to = cq->head;

    for (uint32_t i = cq->head; i != cq->tail; i++) {
        const struct hca_cqe *e = &cq->ring[i & (cq->cap - 1)];

        if (e->qp_num == qpn)
            slots_free(e);
        else
            cq->ring[to++ & (cq->cap - 1)] = *e;
    }
    cq->tail = to;
    count_waiting(cq);
    if (delayed_any(cq->hca))
        delayed_clean(cq, qpn);
}

/* Adds the cache lines that producer and pollers read. Of the ring these are the first entries, at
 * which an empty ring starts again. */
static void list_cachelines(struct hca_cq *cq)
{
    struct cacheline_list *l = rnic_cachelines(cq->hca->rnic);

    cacheline_list_add(l, &cq->hca, CACHELINE);
    cacheline_list_add(l, cq->ring, RTE_MIN(cq->cap, 2u) * sizeof(*cq->ring));
}

static void unlist_cachelines(struct hca_cq *cq)
{
    struct cacheline_list *l = rnic_cachelines(cq->hca->rnic);

    cacheline_list_drop(l, &cq->hca);
    cacheline_list_drop(l, cq->ring);
}

static uint32_t ring_size(uint32_t cqe)
{
    uint32_t cap = 1;

    while (cap < cqe)
        cap *= 2;
    return cap;
}

struct hca_cq *cq_create(struct hca_ctx *c, uint32_t cqe, void *user, struct ibv_comp_channel *ch,
                         int vector)
{
    struct hca_cq *cq;

    if (hca_dead(c->hca))
        return NULL;
    if (!cqe || cqe > HCA_MAX_CQE || vector < 0 || vector >= c->v.context.num_comp_vectors ||
        (ch && ch->context != &c->v.context)) {
        errno = EINVAL;
        return NULL;
    }
    cq = cacheline_alloc(sizeof(*cq));
    if (!cq)
        return NULL;
    cq->cap = ring_size(cqe);
    T_ASSERT(cq->cap >= cqe && !(cq->cap & (cq->cap - 1)), "a ring's size must be a power of two");
    cq->ring = cacheline_take(cq->cap * sizeof(*cq->ring));
    if (!cq->ring) {
        free(cq);
        errno = ENOMEM;
        return NULL;
    }
    cq->v.context = &c->v.context;
    cq->v.channel = ch;
    cq->v.cq_context = user;
    cq->v.cqe = (int)cq->cap;
    cq->hca = c->hca;
    cq->ctx = c;
    cq->channel = ch ? to_channel(ch) : NULL;
    hlist_init(&cq->pending);
    hlist_init(&cq->overrun_link);
    hca_lock(c->hca);
    if (c->hca->n_cq == HCA_MAX_CQ) {
        hca_unlock(c->hca);
        free(cq->ring);
        free(cq);
        errno = ENOMEM;
        return NULL;
    }
    c->hca->n_cq++;
    list_cachelines(cq);
    hlist_add(&c->cqs, &cq->link);
    if (ch) {
        cq->channel->refs++;
        ch->refcnt++;
    }
    hca_unlock(c->hca);
    return cq;
}

/* With the lock held. */
void cq_free(struct hca_cq *cq)
{
    T_ASSERT(!cq->refs, "queue pairs still report to a completion queue that goes");
    T_ASSERT(cq->hca->n_cq, "more completion queues are destroyed than were created");
    T_ASSERT(cq->waits == (cq->head != cq->tail),
             "a completion queue with completions is not counted as such");
    async_purge(cq->ctx, cq);
    if (cq->channel) {
        channel_purge(cq);
        cq->channel->refs--;
        cq->channel->v.refcnt--;
    }
    cq->hca->n_cq--;
    unlist_cachelines(cq);
    cq->hca->n_waiting -= cq->waits;
    publish_waiting(cq->hca);
    hlist_del(&cq->link);
    hlist_del(&cq->overrun_link);
    free(cq->ring);
    free(cq);
}

EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *user,
                                    struct ibv_comp_channel *channel, int vector)
{
    struct hca_ctx *c = hca_ctx_of(context);
    struct hca_cq *cq;

    if (!c)
        return REAL(ibv_create_cq)(context, cqe, user, channel, vector);
    cq = cq_create(c, cqe > 0 ? (uint32_t)cqe : 0, user, channel, vector);
    return cq ? &cq->v : NULL;
}

EXPORT int ibv_resize_cq(struct ibv_cq *v, int cqe)
{
    struct hca_cq *cq = to_cq(v);
    struct hca_cqe *ring;
    uint32_t cap, n;
    struct hca *h;

    if (!hca_ctx_of(v->context))
        return REAL(ibv_resize_cq)(v, cqe);
    if (hca_dead(cq->hca))
        return EIO;
    if (cqe <= 0 || (uint32_t)cqe > HCA_MAX_CQE)
        return EINVAL;
    cap = ring_size((uint32_t)cqe);
    ring = cacheline_take(cap * sizeof(*ring));
    if (!ring)
        return ENOMEM;
    h = cq->hca;
    hca_lock(h);
    n = cq->tail - cq->head;
    if (n <= cap) {
        struct hca_cqe *old = cq->ring;

        for (uint32_t i = 0; i < n; i++)
            ring[i] = old[(cq->head + i) & (cq->cap - 1)];
        unlist_cachelines(cq);
        cq->ring = ring;
        ring = old;
        list_cachelines(cq);
        cq->head = 0, cq->tail = n, cq->cap = cap;
        cq->v.cqe = (int)cap;
    }
    hca_unlock(h);
    free(ring);
    return n <= cap ? 0 : EINVAL;
}

EXPORT int ibv_destroy_cq(struct ibv_cq *v)
{
    struct hca_cq *cq = to_cq(v);
    struct hca *h;
    int rc = 0;

    if (!hca_ctx_of(v->context))
        return REAL(ibv_destroy_cq)(v);
    h = cq->hca;
    hca_lock(h);
    if (cq->refs)
        rc = EBUSY;
    /* A thread must acknowledge the events that it fetched before their object goes away. */
    while (!rc && (cq->unacked || cq->async_unacked))
        if (!hca_wait(h))
            rc = EBUSY;
    if (!rc)
        cq_free(cq);
    hca_unlock(h);
    return rc;
}
