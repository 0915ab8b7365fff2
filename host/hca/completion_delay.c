/* SPDX-License-Identifier: BSD-3-Clause */
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

struct hca_delayed {
    struct hca_cq *cq; /* NULL: of nobody any more */
    struct hca_cqe e;
    bool solicited;
};

static struct hca_delayed *delayed_at(const struct hca *h, uint32_t i)
{
    return &h->delayed[i & (h->delayed_cap - 1)];
}

/* The first message that does not fit makes room for twice as many. */
static bool delayed_grow(struct hca *h)
{
    uint32_t cap = h->delayed_cap ? 2 * h->delayed_cap : 64, n = h->delayed_tail - h->delayed_head;
    struct hca_delayed *ring = calloc(cap, sizeof(*ring));

    if (!ring)
        return false;
    for (uint32_t i = 0; i < n; i++)
        ring[i] = *delayed_at(h, h->delayed_head + i);
    free(h->delayed);
    h->delayed = ring;
    h->delayed_cap = cap;
    h->delayed_head = 0, h->delayed_tail = n;
    return true;
}

void delayed_push(struct hca_cq *cq, const struct hca_cqe *e, bool solicited)
{
    struct hca *h = cq->ctx->hca;

    if (h->delayed_tail - h->delayed_head == h->delayed_cap && !delayed_grow(h)) {
        cq_push(cq, e, solicited); /* no memory: early is better than lost */
        return;
    }
    *delayed_at(h, h->delayed_tail++) = (struct hca_delayed){cq, *e, solicited};
}

void delayed_show(struct hca *h)
{
    while (delayed_any(h)) {
        const struct hca_delayed *l = delayed_at(h, h->delayed_head);

        if (l->e.ts_ps + h->cfg.gpu_ps > h->now_ps)
            return;
        h->delayed_head++;
        if (l->cq)
            cq_push(l->cq, &l->e, l->solicited);
    }
}

int64_t delayed_next(const struct hca *h)
{
    return delayed_any(h) ? delayed_at(h, h->delayed_head)->e.ts_ps + h->cfg.gpu_ps : PS_NEVER;
}

void delayed_clean(struct hca_cq *cq, uint32_t qpn)
{
    struct hca *h = cq->ctx->hca;

    for (uint32_t i = h->delayed_head; i != h->delayed_tail; i++)
        if (delayed_at(h, i)->cq == cq && delayed_at(h, i)->e.wc.qp_num == qpn)
            delayed_at(h, i)->cq = NULL;
}
