/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/world/memory.h"

#include "base/assert.h"
#include "host/bench/host_resources.h"
#include "roce/frame.h"
#include "sim/eal/sim_eal.h"

#include <limits.h>
#include <malloc.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#define MIB     (1u << 20)
#define CACHE   512u /* frames freed last are taken next, while they are in the CPU's caches */
#define EAL_MIB 64u  /* for its own lists, and rings of pools */

/* glibc.malloc.hugetlb=1, which trib sim sets, needs a kernel with such pages. */
bool memory_can_be_dense(void)
{
    const char *tunables = getenv("GLIBC_TUNABLES");
    FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "re");
    char line[64] = "";

    if (f && !fgets(line, sizeof(line), f))
        line[0] = '\0';
    if (f)
        fclose(f);
    return strstr(line, "[always]") ||
           (strstr(line, "[madvise]") && tunables && strstr(tunables, "glibc.malloc.hugetlb=1"));
}

void memory_lay_out(bool dense)
{
    if (!dense)
        prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
    mallopt(M_MMAP_MAX, INT_MAX);
}

/* Accesses to frames are scattered: pages of 2 MiB, where the kernel has them, save TLB misses. */
static void *memory_take(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);

    if (p == MAP_FAILED)
        return NULL;
    madvise(p, bytes, MADV_HUGEPAGE);
    return p;
}

static unsigned cache_of(unsigned n)
{
    return RTE_MIN(CACHE, n / 2);
}

/* Including those that caches of further threads may hold. */
static unsigned all_frames(unsigned n, unsigned threads)
{
    T_ASSERT(threads, "a pool is used by one thread at least");
    return n + (threads - 1) * (cache_of(n) + cache_of(n) / 2);
}

size_t memory_frames_bytes(unsigned n, unsigned threads, bool lengths)
{
    return frame_pool_bytes(all_frames(n, threads), lengths);
}

struct rte_mempool *memory_frames(struct memory *m, unsigned n, unsigned threads, bool lengths,
                                  char *err, size_t size)
{
    char what[64];
    unsigned cache = cache_of(n);
    struct rte_mempool *p = NULL;

    n = all_frames(n, threads);
    /* The EAL's sizes of elements need no EAL. */
    m->bytes = frame_pool_bytes(n, lengths);
    m->at = NULL;
    snprintf(what, sizeof(what), " for %u frames (--frames)", n);
    if (!host_resources_has(m->bytes, m->bytes, what, err, size))
        return NULL;
    if (!sim_eal_start(EAL_MIB + (unsigned)(n * sizeof(void *) * 2 / MIB)))
        m->at = memory_take(m->bytes);
    if (m->at)
        p = frame_pool_create_at("frames", n, cache, lengths, m->at, m->bytes);
    if (!p)
        snprintf(err, size, "cannot get %zu MiB for %u frames: %s", m->bytes / MIB, n,
                 rte_strerror(rte_errno));
    m->pool = p;
    return p;
}

void memory_end(struct memory *m)
{
    rte_mempool_free(m->pool);
    if (m->at)
        munmap(m->at, m->bytes);
    sim_eal_end();
}
