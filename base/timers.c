/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/timers.h"

#include "base/assert.h"
#include "base/cacheline.h"
#include "base/units.h"

#include <errno.h>
#include <stdlib.h>

/* Positions are counted from 1. */
static struct timer_entry *timer_entry_at(const struct timers *h, uint32_t at)
{
    return &h->heap[at - 1];
}

static void timers_put(struct timers *h, uint32_t at, struct timer_entry p)
{
    *timer_entry_at(h, at) = p;
    p.t->at = at;
}

static void timers_up(struct timers *h, uint32_t at, struct timer_entry p)
{
    for (; at > 1 && p.key < timer_entry_at(h, at / 2)->key; at /= 2)
        timers_put(h, at, *timer_entry_at(h, at / 2));
    timers_put(h, at, p);
}

static void entry_sift_down(struct timers *h, uint32_t at, struct timer_entry p)
{
    for (uint32_t child; (child = 2 * at) <= h->n; at = child) {
        if (child < h->n && timer_entry_at(h, child + 1)->key < timer_entry_at(h, child)->key)
            child++;
        if (p.key <= timer_entry_at(h, child)->key)
            break;
        timers_put(h, at, *timer_entry_at(h, child));
    }
    timers_put(h, at, p);
}

static inline void timer_check(const struct timers *h, const struct timer *t)
{
    const struct timer_entry *p;

    T_ASSERT_HOT(t->at <= h->n && h->n <= h->capacity, "a timer's place is outside of its heap");
    if (!t->at)
        return;
    p = timer_entry_at(h, t->at);
    T_ASSERT_HOT(p->t == t, "a timer is not at its place in the heap");
    T_ASSERT_HOT(p->deadline == t->deadline, "a timer has another deadline than its heap");
    T_ASSERT_HOT(p->key <= p->deadline, "a deadline would be seen after it has passed");
    T_ASSERT_HOT(t->at == 1 || timer_entry_at(h, t->at / 2)->key <= p->key,
                 "a deadline stands below a later one");
}

void timer_set(struct timers *h, struct timer *t, int64_t deadline)
{
    timer_check(h, t);
    T_ASSERT_HOT(deadline != PS_NEVER, "a timer is set to never; timer_clear() does that");
    T_ASSERT_HOT(t->at || h->n < h->capacity, "timers_fit() made no room for this timer");
    t->deadline = deadline;
    if (t->at && deadline >= timer_entry_at(h, t->at)->key)
        timer_entry_at(h, t->at)->deadline = deadline;
    else
        timers_up(h, t->at ? t->at : ++h->n, (struct timer_entry){deadline, deadline, t});
}

void timer_clear(struct timers *h, struct timer *t)
{
    uint32_t at = t->at;
    struct timer_entry last;

    timer_check(h, t);
    t->deadline = PS_NEVER;
    if (!at)
        return;
    t->at = 0;
    last = *timer_entry_at(h, h->n--);
    if (last.t == t)
        return;
    if (at > 1 && last.key < timer_entry_at(h, at / 2)->key)
        timers_up(h, at, last);
    else
        entry_sift_down(h, at, last);
}

/* Brings the earliest deadline to the top. On the way, corrects keys that are too early. */
static void timers_settle(struct timers *h)
{
    while (h->n && timer_entry_at(h, 1)->key != timer_entry_at(h, 1)->deadline) {
        struct timer_entry p = *timer_entry_at(h, 1);

        T_ASSERT_HOT(p.key < p.deadline, "a deadline has moved earlier without its key");
        p.key = p.deadline;
        entry_sift_down(h, 1, p);
    }
}

struct timer *timer_first(struct timers *h)
{
    timers_settle(h);
    return h->n ? timer_entry_at(h, 1)->t : NULL;
}

int64_t timers_next(struct timers *h)
{
    timers_settle(h);
    return h->n ? timer_entry_at(h, 1)->deadline : PS_NEVER;
}

void timers_init(struct timers *h, struct timer_entry *few, uint32_t n_few)
{
    *h = (struct timers){.heap = few, .capacity = n_few};
}

int timers_fit(struct timers *h, uint32_t n)
{
    struct timer_entry *heap;

    if (n <= h->capacity)
        return 0;
    n = RTE_MAX(n, 2 * h->capacity);
    heap = cacheline_take(n * sizeof(*heap));
    if (!heap)
        return -ENOMEM;
    if (h->n)
        memcpy(heap, h->heap, h->n * sizeof(*heap));
    timers_fini(h);
    h->heap = heap;
    h->capacity = n;
    h->own = 1;
    return 0;
}

void timers_fini(struct timers *h)
{
    if (h->own)
        free(h->heap);
    h->heap = NULL;
}
