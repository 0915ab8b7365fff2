#include "switch/heap.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

static inline bool before(struct heap_item x, struct heap_item y)
{
    return x.t < y.t || (x.t == y.t && x.i < y.i);
}

static inline void put(struct heap *h, uint32_t at, struct heap_item x)
{
    h->a[at] = x;
    h->place[x.i] = at;
}

void heap_set(struct heap *h, uint32_t i, int64_t t)
{
    uint32_t at = h->place[i];
    struct heap_item x = {t, i};

    if (h->a[at].t == t)
        return;
    while (at && before(x, h->a[(at - 1) / 2])) {
        put(h, at, h->a[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    for (;;) {
        uint32_t c = 2 * at + 1;

        if (c + 1 < h->n && before(h->a[c + 1], h->a[c]))
            c++;
        if (c >= h->n || !before(h->a[c], x))
            break;
        put(h, at, h->a[c]);
        at = c;
    }
    put(h, at, x);
}

int heap_init(struct heap *h, uint32_t n)
{
    h->n = n;
    h->a = calloc(n + 1u, sizeof(*h->a));
    h->place = calloc(n + 1u, sizeof(*h->place));
    if (!h->a || !h->place) {
        heap_fini(h);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < n; i++)
        put(h, i, (struct heap_item){INT64_MAX, i});
    return 0;
}

void heap_fini(struct heap *h)
{
    free(h->a);
    free(h->place);
    h->a = NULL;
    h->place = NULL;
}
