/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of a received message on a GPU (hca_cfg.notice). It stands for a kernel that polls a
 * flag in memory, or waits for a proxy thread: the program sees the completion that much later than
 * the port received the message. Completions of the program's own READs are not delayed. An error
 * is delayed only behind a delayed message, so a receive queue's completions stay in order.
 *
 * A solicited event asks for the delay of long operations. Short messages without one may have a
 * shorter delay, and overtake long messages of other queue pairs. So the ring is sorted by due
 * time; most completions are appended at its end.
 */
#include "host/hca/hca_priv.h"

#include <stdlib.h>

struct hca_delayed {
    struct hca_cq *cq; /* NULL: the queue pair is gone */
    struct hca_cqe e;
    int64_t due_ps;
    bool solicited;
};

static struct hca_delayed *delayed_at(const struct hca *h, uint32_t i)
{
    return &h->delayed[i & (h->delayed_cap - 1)];
}

/* Doubles the ring. false: out of memory. */
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

/* The place in the ring of a completion that is due at *due_ps: behind all that are due earlier. If
 * its queue pair has a later one, the completion goes behind that and *due_ps becomes its time. */
static uint32_t completion_delay_place(const struct hca *h, const struct hca_cqe *e,
                                       int64_t *due_ps)
{
    uint32_t at = h->delayed_tail;

    while (at != h->delayed_head && delayed_at(h, at - 1)->due_ps > *due_ps) {
        const struct hca_delayed *l = delayed_at(h, --at);

        if (l->cq && l->e.qp_num == e->qp_num) {
            *due_ps = l->due_ps;
            return at + 1;
        }
    }
    return at;
}

void delayed_push(struct hca_cq *cq, const struct hca_cqe *e, bool solicited)
{
    struct hca *h = cq->ctx->hca;
    int64_t due_ps =
        fab_noticed_ps(&h->cfg.notice, e->byte_len, solicited, e->ts_ps, &h->short_free_ps);
    uint32_t at;

    T_ASSERT_HOT(h->delayed_tail - h->delayed_head <= h->delayed_cap,
                 "more delayed completions than the ring holds");
    if (h->delayed_tail - h->delayed_head == h->delayed_cap && !delayed_grow(h)) {
        cq_push(cq, e,
                solicited); /* out of memory: an early completion is better than a lost one */
        return;
    }
    at = completion_delay_place(h, e, &due_ps);
    for (uint32_t i = h->delayed_tail++; i != at; i--)
        *delayed_at(h, i) = *delayed_at(h, i - 1);
    *delayed_at(h, at) = (struct hca_delayed){cq, *e, due_ps, solicited};
    T_ASSERT_HOT(at == h->delayed_head || delayed_at(h, at - 1)->due_ps <= due_ps,
                 "a delayed completion is due before the one in front of it");
}

void delayed_show(struct hca *h)
{
    while (delayed_any(h)) {
        const struct hca_delayed *l = delayed_at(h, h->delayed_head);

        T_ASSERT_HOT(h->delayed_tail - h->delayed_head <= h->delayed_cap,
                     "more delayed completions than the ring holds");
        if (l->due_ps > h->now_ps)
            return;
        h->delayed_head++;
        if (l->cq)
            cq_push(l->cq, &l->e, l->solicited);
    }
}

int64_t delayed_next(const struct hca *h)
{
    return delayed_any(h) ? delayed_at(h, h->delayed_head)->due_ps : PS_NEVER;
}

void delayed_clean(struct hca_cq *cq, uint32_t qpn)
{
    struct hca *h = cq->ctx->hca;

    for (uint32_t i = h->delayed_head; i != h->delayed_tail; i++) {
        struct hca_delayed *l = delayed_at(h, i);

        if (l->cq != cq || l->e.qp_num != qpn)
            continue;
        slots_free(&l->e);
        l->cq = NULL;
    }
}
