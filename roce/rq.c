/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/cacheline.h"
#include "roce/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static inline struct rwqe *at(struct rq *rq, uint32_t i)
{
    return (struct rwqe *)(void *)(rq->ring + (size_t)(i & rq->mask) * rq->stride);
}

int rq_post(struct rq *rq, const struct rwqe *w)
{
    struct rwqe *e = at(rq, rq->tail);

    if (w->n_sge > rq->max_sge)
        return -EINVAL;
    if (rq->tail - rq->head == rq->depth)
        return -ENOMEM;
    e->wr_id = w->wr_id;
    e->n_sge = w->n_sge;
    memcpy(e->sge, w->sge, w->n_sge * sizeof(w->sge[0]));
    rq->tail++;
    if (!rq->shared && rq->owner && rq->owner->state == QP_ERR)
        rnic_want_flush(rq->owner);
    return 0;
}

bool rq_take(struct rq *rq, struct rwqe *w)
{
    const struct rwqe *e = at(rq, rq->head);

    if (rq->head == rq->tail)
        return false;
    T_ASSERT_HOT(rq->tail - rq->head <= rq->depth, "a receive queue holds more than its depth");
    T_ASSERT_HOT(e->n_sge <= rq->max_sge,
                 "a receive request has more pieces than its queue allows");
    w->wr_id = e->wr_id;
    w->n_sge = e->n_sge;
    memcpy(w->sge, e->sge, e->n_sge * sizeof(e->sge[0]));
    rq->head++;
    return true;
}

uint64_t rq_first_bytes(const struct rq *rq)
{
    const struct rwqe *e = at((struct rq *)(uintptr_t)rq, rq->head);

    return rq->head == rq->tail ? 0 : sge_bytes(e->sge, e->n_sge);
}

uint32_t rq_level(const struct rq *rq)
{
    return rq->tail - rq->head;
}

void rq_set_shared(struct rq *rq)
{
    rq->shared = true;
    rq->owner = NULL;
}

struct rq *rq_create(uint32_t depth)
{
    return rq_create_for(depth, ROCE_MAX_SGE);
}

struct rq *rq_create_for(uint32_t depth, uint32_t max_sge)
{
    uint32_t size, stride = (uint32_t)(offsetof(struct rwqe, sge) + max_sge * sizeof(struct sge));
    struct rq *rq;

    if (depth == 0)
        depth = 1;
    if (depth > 1u << 24 || max_sge > ROCE_MAX_SGE)
        return NULL;
    size = rte_align32pow2(depth);
    rq = cacheline_take(sizeof(*rq) + (size_t)size * stride);
    if (!rq)
        return NULL;
    *rq = (struct rq){.depth = depth, .mask = size - 1, .stride = stride, .max_sge = max_sge};
    rq->ring = rq->first;
    return rq;
}

int rq_resize(struct rq *rq, uint32_t depth)
{
    uint32_t size, n = rq->tail - rq->head;
    uint8_t *ring;

    if (!depth || depth > 1u << 24 || depth < n)
        return -EINVAL;
    size = rte_align32pow2(depth);
    ring = cacheline_take((size_t)size * rq->stride);
    if (!ring)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++)
        memcpy(ring + (size_t)i * rq->stride, at(rq, rq->head + i), rq->stride);
    if (rq->ring != rq->first)
        free(rq->ring);
    rq->ring = ring;
    rq->depth = depth;
    rq->mask = size - 1;
    rq->head = 0, rq->tail = n;
    return 0;
}

void rq_destroy(struct rq *rq)
{
    T_ASSERT(!rq || rq->users == 0, "a receive queue is destroyed that queue pairs receive from");
    if (rq && rq->ring != rq->first)
        free(rq->ring);
    free(rq);
}
