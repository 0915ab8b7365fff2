/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/heap.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#define WAYS 4u

static inline bool before(struct heap_item x, struct heap_item y)
{
    return x.t < y.t || (x.t == y.t && x.i < y.i);
}

static inline void put(struct heap *h, uint32_t at, struct heap_item x)
{
    h->a[at] = x;
    h->place[x.i] = at;
}

/* Towards the top from `at`, then x is there. */
static void up(struct heap *h, uint32_t at, struct heap_item x)
{
    while (at && before(x, h->a[(at - 1) / WAYS])) {
        put(h, at, h->a[(at - 1) / WAYS]);
        at = (at - 1) / WAYS;
    }
    put(h, at, x);
}

static void down(struct heap *h, uint32_t at, struct heap_item x)
{
    for (;;) {
        uint32_t first = WAYS * at + 1, c = first;
        uint32_t end = first + WAYS < h->n ? first + WAYS : h->n;

        if (first >= h->n)
            break;
        for (uint32_t k = first + 1; k < end; k++)
            if (before(h->a[k], h->a[c]))
                c = k;
        if (!before(h->a[c], x))
            break;
        put(h, at, h->a[c]);
        at = c;
    }
    put(h, at, x);
}

static void take_out(struct heap *h, uint32_t at)
{
    struct heap_item last = h->a[--h->n];

    if (at == h->n)
        return;
    if (at && before(last, h->a[(at - 1) / WAYS]))
        up(h, at, last);
    else
        down(h, at, last);
}

void heap_set(struct heap *h, uint32_t i, int64_t t)
{
    uint32_t at = h->place[i];
    struct heap_item x = {t, i};

    if (at == HEAP_NONE) {
        if (t != INT64_MAX)
            up(h, h->n++, x);
        return;
    }
    if (h->a[at].t == t)
        return;
    if (t == INT64_MAX) {
        h->place[i] = HEAP_NONE;
        take_out(h, at);
    } else if (t < h->a[at].t) {
        up(h, at, x);
    } else {
        down(h, at, x);
    }
}

int heap_init(struct heap *h, uint32_t n)
{
    h->n = 0;
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
