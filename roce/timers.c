#include "roce/timers.h"

#include "roce/frame.h"
#include "roce/lines.h"

#include <errno.h>
#include <stdlib.h>

static void put(struct timers *h, uint32_t at, struct timer_place p)
{
    h->heap[at] = p;
    p.t->at = at;
}

static void up(struct timers *h, uint32_t at, struct timer_place p)
{
    for (; at > 1 && p.key < h->heap[at / 2].key; at /= 2)
        put(h, at, h->heap[at / 2]);
    put(h, at, p);
}

static void down(struct timers *h, uint32_t at, struct timer_place p)
{
    for (uint32_t child; (child = 2 * at) <= h->n; at = child) {
        if (child < h->n && h->heap[child + 1].key < h->heap[child].key)
            child++;
        if (p.key <= h->heap[child].key)
            break;
        put(h, at, h->heap[child]);
    }
    put(h, at, p);
}

void timer_set(struct timers *h, struct timer *t, int64_t deadline)
{
    t->deadline = deadline;
    if (t->at && deadline >= h->heap[t->at].key)
        h->heap[t->at].deadline = deadline;
    else
        up(h, t->at ? t->at : ++h->n, (struct timer_place){deadline, deadline, t});
}

void timer_clear(struct timers *h, struct timer *t)
{
    uint32_t at = t->at;
    struct timer_place last;

    t->deadline = PS_NEVER;
    if (!at)
        return;
    t->at = 0;
    last = h->heap[h->n--];
    if (last.t == t)
        return;
    if (at > 1 && last.key < h->heap[at / 2].key)
        up(h, at, last);
    else
        down(h, at, last);
}

/* The first place has the earliest deadline then, if there is one. */
static void settle(struct timers *h)
{
    while (h->n && h->heap[1].key != h->heap[1].deadline) {
        struct timer_place p = h->heap[1];

        p.key = p.deadline;
        down(h, 1, p);
    }
}

struct timer *timer_first(struct timers *h)
{
    settle(h);
    return h->n ? h->heap[1].t : NULL;
}

int64_t timers_next(struct timers *h)
{
    settle(h);
    return h->n ? h->heap[1].deadline : PS_NEVER;
}

void timers_init(struct timers *h)
{
    h->n = 0;
    h->heap = h->few;
    h->room = TIMERS_FEW;
}

int timers_fit(struct timers *h, uint32_t n)
{
    struct timer_place *heap;

    if (n <= h->room)
        return 0;
    n = RTE_MAX(n, 2 * h->room);
    heap = lines_take((n + 1u) * sizeof(*heap));
    if (!heap)
        return -ENOMEM;
    memcpy(heap, h->heap, (h->n + 1u) * sizeof(*heap));
    timers_fini(h);
    h->heap = heap;
    h->room = n;
    return 0;
}

void timers_fini(struct timers *h)
{
    if (h->heap != h->few)
        free(h->heap);
    h->heap = h->few;
}
