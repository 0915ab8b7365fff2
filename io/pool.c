/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/pool.h"

#include "base/log.h"
#include "roce/frame.h"

#include <rte_errno.h>
#include <rte_malloc.h>

#define FIRST 8192u
#define CHUNK 1024u /* frames that get memory together: about a millisecond of page faults */

/* Free frames below which the pool grows: enough for the next round. */
static unsigned low_water(const struct rte_mempool *p)
{
    return RTE_MAX(FIRST / 2, p->size / 16);
}

static void pool_release(struct rte_mempool_memhdr *h, void *at)
{
    (void)h;
    rte_free(at);
}

/* Adds the memory of CHUNK frames. 0 or -errno. */
static int mempool_grow(struct rte_mempool *p)
{
    size_t bytes = frame_pool_bytes(RTE_MIN(CHUNK, p->size - p->populated_size), false);
    void *at = rte_malloc(p->name, bytes, RTE_MEMPOOL_ALIGN);
    int n = at ? frame_pool_extend(p, at, bytes, pool_release) : -ENOMEM;

    if (n > 0)
        return 0;
    rte_free(at);
    return n ? n : -ENOMEM;
}

struct rte_mempool *pool_create(const char *name, unsigned most, unsigned cache, bool whole)
{
    struct rte_mempool *p;
    int rc = 0;

    if (whole || most <= FIRST)
        return frame_pool_create(name, most, cache);
    p = frame_pool_reserve(name, most, cache);
    while (p && !rc && p->populated_size < RTE_MAX(FIRST, 2 * low_water(p)))
        rc = mempool_grow(p);
    if (!rc)
        return p;
    rte_mempool_free(p);
    rte_errno = -rc;
    return NULL;
}

void pool_grow(struct rte_mempool *p)
{
    static struct log_limit told;
    unsigned long long held;
    unsigned low;

    if (likely(p->populated_size == p->size))
        return;
    low = low_water(p);
    if (likely(rte_mempool_ops_get_count(p) >= low))
        return;
    do {
        if (!mempool_grow(p))
            continue;
        if (log_may(&told, &held))
            fprintf(stderr, "trib-switch: no memory for more than %u of %u frames\n",
                    p->populated_size, p->size);
        return;
    } while (p->populated_size < p->size && rte_mempool_ops_get_count(p) < low / 2);
}
