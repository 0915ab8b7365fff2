/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/heap.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#define WAYS 4u

static inline bool heap_item_before(struct heap_item x, struct heap_item y)
{
    return x.t < y.t || (x.t == y.t && x.i < y.i);
}

static inline void heap_put(struct heap *h, uint32_t at, struct heap_item x)
{
    h->a[at] = x;
    h->place[x.i] = at;
}

/* Moves the hole at `at` towards the top as far as x belongs, and puts x there. */
static void heap_up(struct heap *h, uint32_t at, struct heap_item x)
{
    while (at && heap_item_before(x, h->a[(at - 1) / WAYS])) {
        heap_put(h, at, h->a[(at - 1) / WAYS]);
        at = (at - 1) / WAYS;
    }
    heap_put(h, at, x);
}

static void item_sift_down(struct heap *h, uint32_t at, struct heap_item x)
{
    for (;;) {
        uint32_t first = WAYS * at + 1, c = first;
        uint32_t end = first + WAYS < h->n ? first + WAYS : h->n;

        if (first >= h->n)
            break;
        for (uint32_t k = first + 1; k < end; k++)
            if (heap_item_before(h->a[k], h->a[c]))
                c = k;
        if (!heap_item_before(h->a[c], x))
            break;
        heap_put(h, at, h->a[c]);
        at = c;
    }
    heap_put(h, at, x);
}

static void take_out(struct heap *h, uint32_t at)
{
    struct heap_item last = h->a[--h->n];

    T_ASSERT_HOT(h->place[last.i] == h->n || at == h->n,
                 "the last deadline of a heap is not at its end");
    if (at == h->n)
        return;
    if (at && heap_item_before(last, h->a[(at - 1) / WAYS]))
        heap_up(h, at, last);
    else
        item_sift_down(h, at, last);
}

/* Checks that an entry is where its index says, and not earlier than its parent. */
static inline void check_place(const struct heap *h, uint32_t at)
{
    T_ASSERT_HOT(at < h->n && h->n <= h->size, "a deadline's place is outside of its heap");
    T_ASSERT_HOT(h->a[at].i < h->size && h->place[h->a[at].i] == at,
                 "a deadline is not at the place that its index has");
    T_ASSERT_HOT(!at || !heap_item_before(h->a[at], h->a[(at - 1) / WAYS]),
                 "a deadline stands below a later one");
}

void heap_set(struct heap *h, uint32_t i, int64_t t)
{
    uint32_t at;
    struct heap_item x = {t, i};

    T_ASSERT_HOT(i < h->size, "a deadline has an index that its heap was not made for");
    at = h->place[i];
    if (at != HEAP_NONE)
        check_place(h, at);
    if (at == HEAP_NONE) {
        if (t != INT64_MAX)
            heap_up(h, h->n++, x);
        return;
    }
    if (h->a[at].t == t)
        return;
    if (t == INT64_MAX) {
        h->place[i] = HEAP_NONE;
        take_out(h, at);
    } else if (t < h->a[at].t) {
        heap_up(h, at, x);
    } else {
        item_sift_down(h, at, x);
    }
}

int heap_init(struct heap *h, uint32_t n)
{
    h->n = 0;
    h->size = n;
    h->a = calloc(n + 1u, sizeof(*h->a));
    h->place = malloc((n + 1u) * sizeof(*h->place));
    if (!h->a || !h->place) {
        heap_fini(h);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < n; i++)
        h->place[i] = HEAP_NONE;
    return 0;
}

void heap_fini(struct heap *h)
{
    free(h->a);
    free(h->place);
    h->a = NULL;
    h->place = NULL;
}
