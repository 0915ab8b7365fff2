/*
 * What a message costs a GPU (hca_cfg.gpu_ps): the program sees a received message so much later
 * than the port did, as a kernel that polls a flag in memory does, or one that a proxy thread
 * wakes. What it asked for itself, by READ, comes to it without the detour. So do errors, unless a
 * message is still on it: a receive queue's completions stay in their order.
 *
 * The delay is the same for all, so they become due in the order in which they came.
 */
#include "host/hca/hca_priv.h"

#include <stdlib.h>

struct hca_late {
    struct hca_cq *cq; /* NULL: of nobody any more */
    struct hca_cqe e;
    bool solicited;
};

static struct hca_late *late_at(const struct hca *h, uint32_t i)
{
    return &h->late[i & (h->late_cap - 1)];
}

/* The first message that does not fit makes room for twice as many. */
static bool late_grow(struct hca *h)
{
    uint32_t cap = h->late_cap ? 2 * h->late_cap : 64, n = h->late_tail - h->late_head;
    struct hca_late *ring = calloc(cap, sizeof(*ring));

    if (!ring)
        return false;
    for (uint32_t i = 0; i < n; i++)
        ring[i] = *late_at(h, h->late_head + i);
    free(h->late);
    h->late = ring;
    h->late_cap = cap;
    h->late_head = 0, h->late_tail = n;
    return true;
}

void late_push(struct hca_cq *cq, const struct hca_cqe *e, bool solicited)
{
    struct hca *h = cq->ctx->hca;

    if (h->late_tail - h->late_head == h->late_cap && !late_grow(h)) {
        cq_push(cq, e, solicited); /* no memory: early is better than lost */
        return;
    }
    *late_at(h, h->late_tail++) = (struct hca_late){cq, *e, solicited};
}

void late_show(struct hca *h)
{
    while (late_any(h)) {
        const struct hca_late *l = late_at(h, h->late_head);

        if (l->e.ts_ps + h->cfg.gpu_ps > h->now_ps)
            return;
        h->late_head++;
        if (l->cq)
            cq_push(l->cq, &l->e, l->solicited);
    }
}

int64_t late_next(const struct hca *h)
{
    return late_any(h) ? late_at(h, h->late_head)->e.ts_ps + h->cfg.gpu_ps : PS_NEVER;
}

void late_clean(struct hca_cq *cq, uint32_t qpn)
{
    struct hca *h = cq->ctx->hca;

    for (uint32_t i = h->late_head; i != h->late_tail; i++)
        if (late_at(h, i)->cq == cq && late_at(h, i)->e.wc.qp_num == qpn)
            late_at(h, i)->cq = NULL;
}
