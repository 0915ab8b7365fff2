/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory in whole lines of the CPU's caches: for what a simulated fabric has thousands of, whose
 * fields stand in order of use. Freed by free().
 */
#ifndef TRIB_BASE_CACHELINE_H
#define TRIB_BASE_CACHELINE_H

#include "base/assert.h"

#include <rte_common.h>
#include <rte_prefetch.h>
#include <stdlib.h>
#include <string.h>

/* Of any content, for queues whose places are written before they are read: those that nobody comes
 * to, of queues for thousands of peers nearly all, take no memory. */
static inline void *cacheline_take(size_t bytes)
{
    return aligned_alloc(RTE_CACHE_LINE_SIZE, RTE_CACHE_LINE_ROUNDUP(bytes));
}

/* On its way into the CPU's caches, line by line. */
static inline void cacheline_prefetch(const void *p, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += RTE_CACHE_LINE_SIZE)
        rte_prefetch0((const char *)p + i);
}

/*
 * Lines that are used together, time and again, through pointers from one to the next: all of them
 * are asked for at once. A few; beyond that they are left out. Each entry is where lines begin, and
 * in the bits below a line's size how many more of them.
 */
#define CACHELINE_LISTED 23u
struct cacheline_list {
    uint64_t n;
    uintptr_t at[CACHELINE_LISTED];
} __rte_cache_aligned;

/* Adds the lines of `bytes` bytes from p, which begins a line: 64 of them at most. No bytes: adds
 * nothing. */
static inline void cacheline_list_add(struct cacheline_list *l, const void *p, size_t bytes)
{
    T_ASSERT((uintptr_t)p % RTE_CACHE_LINE_SIZE == 0, "what is listed does not begin a cache line");
    T_ASSERT(bytes <= RTE_CACHE_LINE_SIZE * RTE_CACHE_LINE_SIZE,
             "an entry of a list counts at most 64 cache lines");
    T_ASSERT(l->n <= CACHELINE_LISTED, "a list of cache lines is longer than it can be");
    if (bytes && l->n < CACHELINE_LISTED)
        l->at[l->n++] = (uintptr_t)p | (bytes - 1) / RTE_CACHE_LINE_SIZE;
}

/* What begins at p, if it is there. */
static inline void cacheline_list_drop(struct cacheline_list *l, const void *p)
{
    for (uint64_t i = 0; i < l->n; i++)
        if ((l->at[i] & ~(uintptr_t)(RTE_CACHE_LINE_SIZE - 1)) == (uintptr_t)p) {
            l->at[i] = l->at[--l->n];
            return;
        }
}

static inline void cacheline_list_prefetch(const struct cacheline_list *l)
{
    T_ASSERT_HOT(l->n <= CACHELINE_LISTED, "a list of cache lines is longer than it can be");
    for (uint64_t i = 0; i < l->n; i++) {
        const char *p = (const char *)(l->at[i] & ~(uintptr_t)(RTE_CACHE_LINE_SIZE - 1));

        rte_prefetch0(p);
        for (uintptr_t k = l->at[i] % RTE_CACHE_LINE_SIZE; k; k--)
            rte_prefetch0(p += RTE_CACHE_LINE_SIZE);
    }
}

/* Zeroed. */
static inline void *cacheline_alloc(size_t bytes)
{
    void *p = cacheline_take(bytes);

    return p ? memset(p, 0, bytes) : NULL;
}

#endif
