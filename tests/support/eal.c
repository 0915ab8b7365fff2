/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/eal.h"

#include "sim/eal/sim_eal.h"

#include <rte_errno.h>
#include <rte_mempool.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#include <string.h>

/* The lock of a pool is in DPDK, which is not built with this sanitizer, so it is annotated
 * here. */
static rte_mempool_enqueue_t put;
static rte_mempool_dequeue_t get;

static int told_put(struct rte_mempool *p, void *const *obj, unsigned n)
{
    __tsan_release(p);
    return put(p, obj, n);
}

static int told_get(struct rte_mempool *p, void **obj, unsigned n)
{
    int rc = get(p, obj, n);

    __tsan_acquire(p);
    return rc;
}

static void tell_of_pools(void)
{
    for (unsigned i = 0; i < rte_mempool_ops_table.num_ops; i++) {
        struct rte_mempool_ops *o = &rte_mempool_ops_table.ops[i];

        if (strcmp(o->name, "stack"))
            continue;
        put = o->enqueue;
        get = o->dequeue;
        o->enqueue = told_put;
        o->dequeue = told_get;
    }
}
#else
static void tell_of_pools(void)
{
}
#endif

void test_eal_init(void)
{
    static int done;

    if (done)
        return;
    done = 1;
    if (sim_eal_start(1024)) {
        fprintf(stderr, "rte_eal_init: %s\n", rte_strerror(rte_errno));
        exit(2);
    }
    tell_of_pools();
    atexit(sim_eal_end);
}

struct rte_mempool *test_pool(unsigned n)
{
    static unsigned count;
    char name[RTE_MEMPOOL_NAMESIZE];
    struct rte_mempool *p;

    snprintf(name, sizeof(name), "testpool%u", count++);
    p = frame_pool_create(name, n, 0);
    if (!p) {
        fprintf(stderr, "test_pool(%u): %s\n", n, rte_strerror(rte_errno));
        exit(2);
    }
    return p;
}
