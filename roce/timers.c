#include "roce/timers.h"

#include "roce/frame.h"
#include "roce/lines.h"

#include <errno.h>
#include <stdlib.h>

static void put(struct timers *h, uint32_t at, struct timer *t)
{
    h->heap[at] = t;
    t->at = at;
}

static void up(struct timers *h, uint32_t at, struct timer *t)
{
    for (; at > 1 && t->key < h->heap[at / 2]->key; at /= 2)
        put(h, at, h->heap[at / 2]);
    put(h, at, t);
}

static void down(struct timers *h, uint32_t at, struct timer *t)
{
    for (uint32_t child; (child = 2 * at) <= h->n; at = child) {
        if (child < h->n && h->heap[child + 1]->key < h->heap[child]->key)
            child++;
        if (t->key <= h->heap[child]->key)
            break;
        put(h, at, h->heap[child]);
    }
    put(h, at, t);
}

void timer_set(struct timers *h, struct timer *t, int64_t deadline)
{
    t->deadline = deadline;
    if (t->at && deadline >= t->key)
        return;
    t->key = deadline;
    up(h, t->at ? t->at : ++h->n, t);
}

void timer_clear(struct timers *h, struct timer *t)
{
    uint32_t at = t->at;
    struct timer *last;

    t->deadline = PS_NEVER;
    if (!at)
        return;
    t->at = 0;
    last = h->heap[h->n--];
    if (last == t)
        return;
    if (at > 1 && last->key < h->heap[at / 2]->key)
        up(h, at, last);
    else
        down(h, at, last);
}

struct timer *timer_first(struct timers *h)
{
    while (h->n) {
        struct timer *t = h->heap[1];

        if (t->key == t->deadline)
            return t;
        t->key = t->deadline;
        down(h, 1, t);
    }
    return NULL;
}

int timers_init(struct timers *h, uint32_t most)
{
    h->n = 0;
    h->heap = lines_take((most + 1u) * sizeof(h->heap[0]));
    return h->heap ? 0 : -ENOMEM;
}

void timers_fini(struct timers *h)
{
    free(h->heap);
    h->heap = NULL;
}
