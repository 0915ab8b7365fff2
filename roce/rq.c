#include "roce/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int rq_post(struct rq *rq, const struct rwqe *w)
{
    struct rwqe *e = &rq->ring[rq->tail & rq->mask];

    if (w->n_sge > ROCE_MAX_SGE)
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
    const struct rwqe *e = &rq->ring[rq->head & rq->mask];

    if (rq->head == rq->tail)
        return false;
    w->wr_id = e->wr_id;
    w->n_sge = e->n_sge;
    memcpy(w->sge, e->sge, e->n_sge * sizeof(e->sge[0]));
    rq->head++;
    return true;
}

uint64_t rq_first_bytes(const struct rq *rq)
{
    const struct rwqe *e = &rq->ring[rq->head & rq->mask];

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
    uint32_t size;
    struct rq *rq;

    if (depth == 0)
        depth = 1;
    if (depth > 1u << 24)
        return NULL;
    size = rte_align32pow2(depth);
    rq = calloc(1, sizeof(*rq) + size * sizeof(rq->ring[0]));
    if (!rq)
        return NULL;
    rq->depth = depth;
    rq->mask = size - 1;
    return rq;
}

void rq_destroy(struct rq *rq)
{
    free(rq);
}
