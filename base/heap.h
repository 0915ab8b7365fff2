/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The earliest of a fixed set of deadlines, by (time, index): a heap with the place of every index,
 * so that a deadline moves in O(log n), n being those that are set: a fabric of thousands of idle
 * links costs what its busy ones do. Four children a node: half the levels of two, and they share a
 * cache line. Equal times are served in order of index, which makes runs repeatable.
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
    uint32_t *place; /* of index i in a[], HEAP_NONE: not in it */
    uint32_t n;      /* in it */
    uint32_t size;   /* indices are 0 to size - 1 */
};

/* For 0..n-1, all at INT64_MAX: never. 0 or -ENOMEM. */
int heap_init(struct heap *h, uint32_t n);
void heap_fini(struct heap *h);
void heap_set(struct heap *h, uint32_t i, int64_t t); /* INT64_MAX: never */

static inline int64_t heap_time(const struct heap *h)
{
    return h->n ? h->a[0].t : INT64_MAX;
}

/* Of a heap whose time is not INT64_MAX. */
static inline uint32_t heap_top(const struct heap *h)
{
    T_ASSERT_HOT(h->n, "the earliest of no deadlines is asked for");
    return h->a[0].i;
}

#endif
