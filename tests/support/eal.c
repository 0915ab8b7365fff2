#include "tests/support/eal.h"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mempool.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void end_eal(void)
{
    char dir[256];

    /* The EAL makes it even where nothing is shared, and leaves it. */
    snprintf(dir, sizeof(dir), "%s", rte_eal_get_runtime_dir());
    rte_eal_cleanup();
    rmdir(dir);
}

static int first_core(void)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        for (int c = 0; c < CPU_SETSIZE; c++)
            if (CPU_ISSET(c, &set))
                return c;
    return 0;
}

void test_eal_init(void)
{
    static int done;
    char prog[] = "test", no_huge[] = "--no-huge", no_shconf[] = "--no-shconf",
         no_pci[] = "--no-pci", no_telemetry[] = "--no-telemetry", m[] = "-m", mb[] = "1024",
         iova[] = "--iova-mode=va", log[] = "--log-level=*:error", prefix[64], l[] = "-l", core[16];

    if (done)
        return;
    done = 1;
    snprintf(prefix, sizeof(prefix), "--file-prefix=tribtest%d", (int)getpid());
    snprintf(core, sizeof(core), "%d", first_core());
    char *argv[] = {prog, no_huge, no_shconf, no_pci, no_telemetry, m,   mb,
                    iova, log,     prefix,    l,      core,         NULL};

    if (rte_eal_init((int)(sizeof(argv) / sizeof(argv[0])) - 1, argv) < 0) {
        fprintf(stderr, "rte_eal_init: %s\n", rte_strerror(rte_errno));
        exit(2);
    }
    atexit(end_eal);
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
