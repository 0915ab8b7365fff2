/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A heap that finds the earliest of a fixed set of deadlines, by (time, index). It keeps the position of
 * every index, so moving a deadline takes O(log n), where n counts only the deadlines that are set: a
 * fabric with thousands of idle links costs what its busy links cost. A node has four children: half the
 * levels of a binary heap, and the four share a cache line. Equal times are served in order of index,
 * which makes runs repeatable. base/timers.h says why there are two heaps.
 */
#ifndef TRIB_BASE_HEAP_H
#define TRIB_BASE_HEAP_H

#include "base/assert.h"

#include <stdint.h>

#define HEAP_NONE UINT32_MAX

struct heap {
    struct heap_item {
        int64_t t;
        uint32_t i;
    } * a;
    uint32_t *place; /* [size] index i is a[place[i]]; HEAP_NONE: not set */
    uint32_t n;      /* deadlines that are set */
    uint32_t size;   /* indices are 0 to size - 1 */
};

/* Makes a heap for indices 0 to n - 1, none of them set. 0 or -ENOMEM. */
int heap_init(struct heap *h, uint32_t n);
void heap_fini(struct heap *h);
void heap_set(struct heap *h, uint32_t i, int64_t t); /* INT64_MAX: never */

static inline int64_t heap_time(const struct heap *h)
{
    return h->n ? h->a[0].t : INT64_MAX;
}

/* The index of the earliest deadline. At least one must be set. */
static inline uint32_t heap_top(const struct heap *h)
{
    T_ASSERT_HOT(h->n, "the earliest deadline of an empty heap is requested");
    return h->a[0].i;
}

#endif
