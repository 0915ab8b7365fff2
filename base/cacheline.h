/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory in whole cache lines, for structures that lay out their fields in order of use and of which a
 * simulated fabric has thousands. free() releases it.
 */
#ifndef TRIB_BASE_CACHELINE_H
#define TRIB_BASE_CACHELINE_H

#include "base/assert.h"

#include <rte_common.h>
#include <rte_prefetch.h>
#include <stdlib.h>
#include <string.h>

/* The line size of the CPUs for which fields are laid out. DPDK's own constant is 128 on many Arm builds,
 * whose cores have lines of 64. */
#define CACHELINE         64u
#define CACHELINE_ALIGNED __attribute__((aligned(CACHELINE)))

/* Allocates without initialising, for queues whose entries are written before they are read: entries that
 * are never reached (nearly all, in queues for thousands of peers) take no memory. */
static inline void *cacheline_take(size_t bytes)
{
    return aligned_alloc(CACHELINE, RTE_ALIGN_CEIL(bytes, CACHELINE));
}

/* Prefetches `bytes` bytes from p, line by line. */
static inline void cacheline_prefetch(const void *p, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += CACHELINE)
        rte_prefetch0((const char *)p + i);
}

/*
 * A list of cache lines that are used together again and again, and that are reached by following pointers:
 * cacheline_list_prefetch() prefetches all of them at once. The list holds CACHELINE_LISTED entries; more
 * are left out. An entry is the address of its first line; the bits below the line size count the lines
 * that follow. A list owns nothing: an entry for memory that has been freed only costs time. One thread at
 * a time uses a list.
 */
#define CACHELINE_LISTED 23u
struct cacheline_list {
    uint64_t n;
    uintptr_t at[CACHELINE_LISTED];
} CACHELINE_ALIGNED;

/* Adds the lines of `bytes` bytes from p, where a line begins: 64 lines at most. 0 bytes: adds
 * nothing. */
static inline void cacheline_list_add(struct cacheline_list *l, const void *p, size_t bytes)
{
    T_ASSERT((uintptr_t)p % CACHELINE == 0, "what is listed does not begin a cache line");
    T_ASSERT(bytes <= CACHELINE * CACHELINE, "an entry of a list counts at most 64 cache lines");
    T_ASSERT(l->n <= CACHELINE_LISTED, "a list of cache lines is longer than it can be");
    if (bytes && l->n < CACHELINE_LISTED)
        l->at[l->n++] = (uintptr_t)p | (bytes - 1) / CACHELINE;
}

/* Removes the entry that begins at p, if there is one. */
static inline void cacheline_list_drop(struct cacheline_list *l, const void *p)
{
    for (uint64_t i = 0; i < l->n; i++)
        if ((l->at[i] & ~(uintptr_t)(CACHELINE - 1)) == (uintptr_t)p) {
            l->at[i] = l->at[--l->n];
            return;
        }
}

static inline void cacheline_list_prefetch(const struct cacheline_list *l)
{
    T_ASSERT_HOT(l->n <= CACHELINE_LISTED, "a list of cache lines is longer than it can be");
    for (uint64_t i = 0; i < l->n; i++) {
        const char *p = (const char *)(l->at[i] & ~(uintptr_t)(CACHELINE - 1));

        rte_prefetch0(p);
        for (uintptr_t k = l->at[i] % CACHELINE; k; k--)
            rte_prefetch0(p += CACHELINE);
    }
}

/* Allocates and zeroes. */
static inline void *cacheline_alloc(size_t bytes)
{
    void *p = cacheline_take(bytes);

    return p ? memset(p, 0, bytes) : NULL;
}

#endif
