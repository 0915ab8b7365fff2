/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues: one queue of receives for several queue pairs, with an event when it runs
 * low. */
#include "host/hca/hca_priv.h"

#include <stdlib.h>

int hca_post_srq_recv(struct ibv_srq *v, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct hca_srq *s = to_srq(v);
    struct hca *h = s->ctx->hca;
    int rc = hca_dead(h);

    hca_lock(h);
    for (; wr && !rc; wr = rc ? wr : wr->next) {
        struct rwqe w;

        rc = rwqe_from_wr(&w, wr, s->max_sge);
        if (!rc)
            rc = s->free ? -rq_post(s->rq, &w) : ENOMEM;
        if (!rc)
            s->free = (uint16_t)(s->free - s->slot);
    }
    hca_unlock(h);
    if (rc)
        *bad = wr;
    return rc;
}

/* Raises the limit events that are due. Each event disarms its limit (IBTA 10.2.9.3). */
void srq_check_limits(struct hca *h)
{
    struct hlist *l = h->limit_srqs.next;

    while (l != &h->limit_srqs) {
        struct hca_srq *s = hlist_entry(l, struct hca_srq, limit_link);

        l = l->next;
        T_ASSERT_HOT(s->limit, "a shared receive queue without a limit waits for it");
        if (rq_level(s->rq) < s->limit) {
            struct ibv_async_event e = {.element.srq = &s->v,
                                        .event_type = IBV_EVENT_SRQ_LIMIT_REACHED};

            s->limit = 0;
            hlist_del(&s->limit_link);
            async_push(s->ctx, &e);
        }
    }
}

/* Refuses all types: libibverbs' inline function creates basic ones by ibv_create_srq. */
struct ibv_srq *hca_create_srq_ex(struct ibv_context *v, struct ibv_srq_init_attr_ex *a)
{
    enum ibv_srq_type type = a->comp_mask & IBV_SRQ_INIT_ATTR_TYPE ? a->srq_type : IBV_SRQT_BASIC;

    errno = hca_refuse(hca_ctx_of(v)->hca, EOPNOTSUPP,
                       "ibv_create_srq_ex: found type %u%s, comp_mask 0x%x, expected "
                       "IBV_SRQT_BASIC (0) and a protection domain",
                       type,
                       type == IBV_SRQT_XRC  ? " (XRC)"
                       : type == IBV_SRQT_TM ? " (tag matching)"
                                             : "",
                       a->comp_mask);
    return NULL;
}

EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *a)
{
    struct hca_ctx *c = hca_ctx_of(pd->context);
    struct hca_srq *s;

    if (!c)
        return REAL(ibv_create_srq)(pd, a);
    if (hca_dead(c->hca))
        return NULL;
    if (!a->attr.max_wr || a->attr.max_wr > HCA_MAX_WR || a->attr.max_sge > ROCE_MAX_SGE) {
        errno = EINVAL;
        return NULL;
    }
    s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    s->rq = rq_create(a->attr.max_wr);
    if (!s->rq) {
        free(s);
        errno = ENOMEM;
        return NULL;
    }
    rq_set_shared(s->rq);
    s->v.context = pd->context;
    s->v.srq_context = a->srq_context;
    s->v.pd = pd;
    s->ctx = c;
    s->pd = to_pd(pd);
    s->max_wr = a->attr.max_wr;
    s->free = (uint16_t)a->attr.max_wr;
    s->slot = !c->hca->cfg.early_slots;
    s->max_sge = a->attr.max_sge;
    hlist_init(&s->limit_link);
    hca_lock(c->hca);
    if (c->hca->n_srq == HCA_MAX_SRQ) {
        hca_unlock(c->hca);
        rq_destroy(s->rq);
        free(s);
        errno = ENOMEM;
        return NULL;
    }
    c->hca->n_srq++;
    s->pd->refs++;
    hlist_add(&c->srqs, &s->link);
    hca_unlock(c->hca);
    return &s->v;
}

/* Sets the depth: at least the number of unpolled requests and the limit. Without IBV_SRQ_MAX_WR it
 * only checks the limit. */
static int srq_resize(struct hca_srq *s, const struct ibv_srq_attr *a, int mask)
{
    uint32_t max = mask & IBV_SRQ_MAX_WR ? a->max_wr : s->max_wr;
    uint32_t limit = mask & IBV_SRQ_LIMIT ? a->srq_limit : s->limit, used = s->max_wr - s->free;
    int rc;

    if (!max || max > HCA_MAX_WR || limit > max || used > max)
        return EINVAL;
    if (!(mask & IBV_SRQ_MAX_WR))
        return 0;
    rc = -rq_resize(s->rq, max);
    if (!rc)
        s->max_wr = max, s->free = (uint16_t)(max - used);
    return rc;
}

EXPORT int ibv_modify_srq(struct ibv_srq *v, struct ibv_srq_attr *a, int mask)
{
    struct hca_ctx *c = hca_ctx_of(v->context);
    struct hca_srq *s = to_srq(v);
    int rc;

    if (!c)
        return REAL(ibv_modify_srq)(v, a, mask);
    if (hca_dead(c->hca))
        return EIO;
    if (mask & ~(IBV_SRQ_LIMIT | IBV_SRQ_MAX_WR))
        return EINVAL;
    hca_lock(c->hca);
    rc = srq_resize(s, a, mask);
    if (rc || !(mask & IBV_SRQ_LIMIT)) {
        hca_unlock(c->hca);
        return rc;
    }
    hlist_del(&s->limit_link);
    s->limit = a->srq_limit;
    if (s->limit)
        hlist_add(&c->hca->limit_srqs, &s->limit_link);
    srq_check_limits(c->hca);
    hca_unlock(c->hca);
    return 0;
}

EXPORT int ibv_query_srq(struct ibv_srq *v, struct ibv_srq_attr *a)
{
    struct hca_ctx *c = hca_ctx_of(v->context);
    struct hca_srq *s = to_srq(v);

    if (!c)
        return REAL(ibv_query_srq)(v, a);
    if (hca_dead(c->hca))
        return EIO;
    hca_lock(c->hca);
    *a = (struct ibv_srq_attr){.max_wr = s->max_wr, .max_sge = s->max_sge, .srq_limit = s->limit};
    hca_unlock(c->hca);
    return 0;
}

/* With the lock held. */
void srq_free(struct hca_srq *s)
{
    T_ASSERT(!s->refs, "queue pairs still take receives from a shared receive queue that goes");
    T_ASSERT(s->pd->refs && s->ctx->hca->n_srq, "a shared receive queue goes that was not counted");
    T_ASSERT(!s->limit == hlist_empty(&s->limit_link), "a limit and its place in the list differ");
    async_purge(s->ctx, s);
    hlist_del(&s->limit_link);
    hlist_del(&s->link);
    s->pd->refs--;
    s->ctx->hca->n_srq--;
    rq_destroy(s->rq);
    free(s);
}

EXPORT int ibv_destroy_srq(struct ibv_srq *v)
{
    struct hca_ctx *c = hca_ctx_of(v->context);
    struct hca_srq *s = to_srq(v);
    int rc;

    if (!c)
        return REAL(ibv_destroy_srq)(v);
    hca_lock(c->hca);
    rc = s->refs ? EBUSY : 0;
    while (!rc && s->async_unacked)
        if (!hca_wait(c->hca))
            rc = EBUSY;
    if (!rc)
        srq_free(s);
    hca_unlock(c->hca);
    return rc;
}
