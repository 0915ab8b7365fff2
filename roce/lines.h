/*
 * Memory in whole lines of the CPU's caches: for what a simulated fabric has thousands of, whose
 * fields stand in order of use. Freed by free().
 */
#ifndef TRIB_ROCE_LINES_H
#define TRIB_ROCE_LINES_H

#include <rte_common.h>
#include <rte_prefetch.h>
#include <stdlib.h>
#include <string.h>

/* Of any content, for queues whose places are written before they are read: those that nobody comes
 * to, of queues for thousands of peers nearly all, take no memory. */
static inline void *lines_take(size_t bytes)
{
    return aligned_alloc(RTE_CACHE_LINE_SIZE, RTE_CACHE_LINE_ROUNDUP(bytes));
}

/* On its way into the CPU's caches, line by line. */
static inline void lines_soon(const void *p, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += RTE_CACHE_LINE_SIZE)
        rte_prefetch0((const char *)p + i);
}

/* Zeroed. */
static inline void *lines_alloc(size_t bytes)
{
    void *p = lines_take(bytes);

    return p ? memset(p, 0, bytes) : NULL;
}

#endif
