#include "tests/support/eal.h"

#include "sim/memory.h"

#include <rte_errno.h>
#include <rte_mempool.h>
#include <stdio.h>
#include <stdlib.h>

void test_eal_init(void)
{
    static int done;

    if (done)
        return;
    done = 1;
    if (memory_start_eal(1024)) {
        fprintf(stderr, "rte_eal_init: %s\n", rte_strerror(rte_errno));
        exit(2);
    }
    atexit(memory_end_eal);
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
