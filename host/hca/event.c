/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion channels and the asynchronous events of a context. Both are a descriptor that a
 * program can poll (notify.c counts events in it) with a queue behind it. A channel's queue is the
 * list of its CQs that have events, so it needs no bound. The asynchronous queue is bounded, and
 * its last entry reports the loss of later events (IBV_EVENT_DEVICE_FATAL).
 */
#include "host/hca/hca_priv.h"

#include <stdlib.h>

/* ---- from the engine ---- */

void channel_push(struct hca_cq *cq)
{
    struct hca_channel *ch = cq->channel;

    T_ASSERT_HOT(!cq->events == hlist_empty(&cq->pending),
                 "a queue's events and its place in the channel's list differ");
    if (!cq->events++)
        hlist_add(&ch->pending, &cq->pending);
    notify_post(ch->v.fd);
}

/* Drops the unfetched events of a CQ that goes away. */
void channel_purge(struct hca_cq *cq)
{
    if (cq->events)
        hlist_del(&cq->pending);
    for (; cq->events; cq->events--)
        notify_cancel(cq->channel->v.fd);
}

/* QPN of the event's object, for the ring of events; 0 if it is no queue pair. */
static uint32_t qpn_of(const struct ibv_async_event *e)
{
    switch (e->event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        return e->element.qp->qp_num;
    default:
        return 0;
    }
}

void async_push(struct hca_ctx *c, const struct ibv_async_event *e)
{
    uint32_t n = c->async_tail - c->async_head;

    T_ASSERT(n <= HCA_ASYNC_DEPTH, "more asynchronous events than the queue holds");
    events_add(&c->hca->events, c->hca->now_ps,
               n < HCA_ASYNC_DEPTH ? HCA_EV_ASYNC : HCA_EV_ASYNC_LOST, e->event_type, qpn_of(e));
    if (n >= HCA_ASYNC_DEPTH)
        return;
    c->async[c->async_tail % HCA_ASYNC_DEPTH] = *e;
    if (n == HCA_ASYNC_DEPTH - 1)
        c->async[c->async_tail % HCA_ASYNC_DEPTH] =
            (struct ibv_async_event){.event_type = IBV_EVENT_DEVICE_FATAL};
    c->async_tail++;
    notify_post(c->v.context.async_fd);
}

static bool names(const struct ibv_async_event *e, const void *object)
{
    switch (e->event_type) {
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_DEVICE_FATAL:
        return false;
    default:
        return (const void *)e->element.qp == object; /* a union of pointers */
    }
}

/* Drops the events of an object that goes away. */
void async_purge(struct hca_ctx *c, const void *object)
{
    uint32_t to = c->async_head;

    for (uint32_t i = c->async_head; i != c->async_tail; i++) {
        const struct ibv_async_event *e = &c->async[i % HCA_ASYNC_DEPTH];

        if (names(e, object))
            notify_cancel(c->v.context.async_fd);
        else
            c->async[to++ % HCA_ASYNC_DEPTH] = *e;
    }
    c->async_tail = to;
}

void hca_qp_event(void *user, struct qp *q, enum qp_event ev)
{
    static const enum ibv_event_type type_of[] = {
        [QP_EV_FATAL] = IBV_EVENT_QP_FATAL,        [QP_EV_ACCESS_ERR] = IBV_EVENT_QP_ACCESS_ERR,
        [QP_EV_REQ_ERR] = IBV_EVENT_QP_REQ_ERR,    [QP_EV_COMM_EST] = IBV_EVENT_COMM_EST,
        [QP_EV_SQ_DRAINED] = IBV_EVENT_SQ_DRAINED, [QP_EV_LAST_WQE] = IBV_EVENT_QP_LAST_WQE_REACHED,
    };
    struct hca_qp *qp = qp_user(q);
    struct ibv_async_event e = {.element.qp = &qp->v};

    (void)user;
    T_ASSERT(ev < RTE_DIM(type_of), "the engine reports an event that verbs do not have");
    e.event_type = type_of[ev];
    if (ev != QP_EV_SQ_DRAINED || qp->drain_event)
        async_push(qp->ctx, &e);
}

/* ---- completion channels ---- */

EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    struct hca_ctx *c = hca_ctx_of(context);
    struct hca_channel *ch;

    if (!c)
        return REAL(ibv_create_comp_channel)(context);
    if (hca_dead(c->hca))
        return NULL;
    ch = calloc(1, sizeof(*ch));
    if (!ch)
        return NULL;
    ch->v.fd = notify_open();
    if (ch->v.fd < 0) {
        errno = -ch->v.fd;
        free(ch);
        return NULL;
    }
    ch->v.context = context;
    ch->ctx = c;
    hlist_init(&ch->pending);
    hca_lock(c->hca);
    hlist_add(&c->channels, &ch->link);
    hca_unlock(c->hca);
    return &ch->v;
}

EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *v)
{
    struct hca_channel *ch = to_channel(v);
    struct hca *h;
    int rc;

    if (!hca_ctx_of(v->context))
        return REAL(ibv_destroy_comp_channel)(v);
    h = ch->ctx->hca;
    hca_lock(h);
    rc = ch->refs ? EBUSY : 0;
    if (!rc)
        hlist_del(&ch->link);
    hca_unlock(h);
    if (rc)
        return rc;
    notify_close(v->fd);
    free(ch);
    return 0;
}

/* Waits for one post of fd. EAGAIN in virtual time, where the only thread would wait for itself. */
static int wait_for(struct hca *h, int fd, bool pending)
{
    int rc;

    if (hca_dead(h))
        rc = -EIO;
    else if (!h->cfg.drv.idle && !pending)
        rc = -EAGAIN;
    else {
        if (!pending && h->cfg.drv.block)
            h->cfg.drv.block(h->cfg.drv.ctx);
        rc = notify_wait(fd);
    }
    if (rc)
        errno = -rc;
    return rc;
}

/* Whether a CQ of the channel has events: reads the CQs' counts, not the channel's list. */
static bool has_events(const struct hca_channel *ch)
{
    hlist_for(l, &ch->ctx->cqs)
    {
        const struct hca_cq *cq = hlist_entry(l, struct hca_cq, link);

        if (cq->channel == ch && cq->events)
            return true;
    }
    return false;
}

EXPORT int ibv_get_cq_event(struct ibv_comp_channel *v, struct ibv_cq **cq, void **user)
{
    struct hca_channel *ch = to_channel(v);
    struct hca *h;

    if (!hca_ctx_of(v->context))
        return REAL(ibv_get_cq_event)(v, cq, user);
    h = ch->ctx->hca;
    for (;;) {
        bool found;

        hca_lock(h);
        found = !hlist_empty(&ch->pending);
        T_ASSERT_HOT(found || !has_events(ch),
                     "a queue with events is missing in its channel's list");
        hca_unlock(h);
        if (wait_for(h, v->fd, found))
            return -1;
        hca_lock(h);
        found = !hlist_empty(&ch->pending);
        if (found) {
            struct hca_cq *q = hlist_entry(ch->pending.next, struct hca_cq, pending);

            if (!--q->events)
                hlist_del(&q->pending);
            q->unacked++;
            *cq = &q->v;
            *user = q->v.cq_context;
        }
        hca_unlock(h);
        if (found)
            return 0;
    }
}

EXPORT void ibv_ack_cq_events(struct ibv_cq *v, unsigned int n)
{
    struct hca_cq *cq = to_cq(v);

    if (!hca_ctx_of(v->context)) {
        REAL(ibv_ack_cq_events)(v, n);
        return;
    }
    hca_lock(cq->ctx->hca);
    cq->unacked -= n < cq->unacked ? n : cq->unacked;
    v->comp_events_completed += n;
    hca_unlock(cq->ctx->hca);
}

/* ---- asynchronous events ---- */

/* The event's object counts the events that were fetched and not acknowledged. NULL: no object. */
static uint32_t *unacked_of(const struct ibv_async_event *e)
{
    switch (e->event_type) {
    case IBV_EVENT_CQ_ERR:
        return &to_cq(e->element.cq)->async_unacked;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        return &to_srq(e->element.srq)->async_unacked;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        return &to_qp(e->element.qp)->async_unacked;
    default:
        return NULL;
    }
}

EXPORT int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    struct hca_ctx *c = hca_ctx_of(context);
    struct hca *h;

    if (!c)
        return REAL(ibv_get_async_event)(context, event);
    h = c->hca;
    for (;;) {
        bool found;

        hca_lock(h);
        found = c->async_head != c->async_tail;
        hca_unlock(h);
        if (wait_for(h, context->async_fd, found))
            return -1;
        hca_lock(h);
        found = c->async_head != c->async_tail;
        if (found) {
            uint32_t *n;

            *event = c->async[c->async_head++ % HCA_ASYNC_DEPTH];
            n = unacked_of(event);
            if (n)
                ++*n;
        }
        hca_unlock(h);
        if (found)
            return 0;
    }
}

/* The event's context. An event holds no context itself; its object does. */
static struct ibv_context *context_of(const struct ibv_async_event *e)
{
    switch (e->event_type) {
    case IBV_EVENT_CQ_ERR:
        return e->element.cq->context;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        return e->element.srq->context;
    case IBV_EVENT_WQ_FATAL:
        return e->element.wq->context;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        return e->element.qp->context;
    default:
        return NULL; /* port and device events need no acknowledgement */
    }
}

EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
    struct ibv_context *context = context_of(event);
    struct hca_ctx *c = context ? hca_ctx_of(context) : NULL;
    uint32_t *n;

    if (!context)
        return;
    if (!c) {
        REAL(ibv_ack_async_event)(event);
        return;
    }
    hca_lock(c->hca);
    n = unacked_of(event);
    if (n && *n)
        --*n;
    hca_unlock(c->hca);
}
