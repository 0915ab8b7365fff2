/*
 * Memory in whole lines of the CPU's caches, zeroed: for what a simulated fabric has thousands of,
 * whose fields stand in order of use. Freed by free().
 */
#ifndef TRIB_ROCE_LINES_H
#define TRIB_ROCE_LINES_H

#include <rte_common.h>
#include <stdlib.h>
#include <string.h>

static inline void *lines_alloc(size_t bytes)
{
    size_t all = RTE_CACHE_LINE_ROUNDUP(bytes);
    void *p = aligned_alloc(RTE_CACHE_LINE_SIZE, all);

    return p ? memset(p, 0, all) : NULL;
}

#endif
