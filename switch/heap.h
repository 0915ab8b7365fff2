/*
 * The earliest of a fixed set of deadlines, by (time, index): a binary heap with the place of every
 * index, so that a deadline moves in O(log n). Equal times are served in order of index, which
 * makes runs repeatable.
 */
#ifndef TRIB_SWITCH_HEAP_H
#define TRIB_SWITCH_HEAP_H

#include <stdint.h>

struct heap {
    struct heap_item {
        int64_t t;
        uint32_t i;
    } * a;
    uint32_t *place; /* of index i in a[] */
    uint32_t n;
};

/* All of 0..n-1, at INT64_MAX. 0 or -ENOMEM. */
int heap_init(struct heap *h, uint32_t n);
void heap_fini(struct heap *h);
void heap_set(struct heap *h, uint32_t i, int64_t t);

static inline int64_t heap_time(const struct heap *h)
{
    return h->n ? h->a[0].t : INT64_MAX;
}

static inline uint32_t heap_top(const struct heap *h)
{
    return h->a[0].i;
}

static inline int64_t heap_time_of(const struct heap *h, uint32_t i)
{
    return h->a[h->place[i]].t;
}

#endif
