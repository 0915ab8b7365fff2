#include "sim/memory.h"

#include "host/perf/room.h"
#include "roce/frame.h"

#include <limits.h>
#include <malloc.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define MIB     (1u << 20)
#define CACHE   512u /* frames used last are used next: they are still in the CPU's caches */
#define EAL_MIB 64u  /* its own lists, and rings of pools */

static int first_core(void)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        for (int c = 0; c < CPU_SETSIZE; c++)
            if (CPU_ISSET(c, &set))
                return c;
    return 0;
}

int memory_start_eal(unsigned mib)
{
    char prog[] = "trib-sim", no_huge[] = "--no-huge", no_shconf[] = "--no-shconf",
         no_pci[] = "--no-pci", no_telemetry[] = "--no-telemetry", m[] = "-m", mb[16],
         iova[] = "--iova-mode=va", log[] = "--log-level=*:error", prefix[48], l[] = "-l", core[16];
    char *argv[] = {prog, no_huge, no_shconf, no_pci, no_telemetry, m,   mb,
                    iova, log,     prefix,    l,      core,         NULL};

    cpu_set_t set;
    bool known = sched_getaffinity(0, sizeof(set), &set) == 0;

    snprintf(mb, sizeof(mb), "%u", mib);
    snprintf(prefix, sizeof(prefix), "--file-prefix=trib%d", (int)getpid());
    snprintf(core, sizeof(core), "%d", first_core());
    if (rte_eal_init((int)(sizeof(argv) / sizeof(argv[0])) - 1, argv) < 0)
        return -1;
    if (known) /* the EAL binds us to that core, and others like us to the same */
        sched_setaffinity(0, sizeof(set), &set);
    return 0;
}

void memory_end_eal(void)
{
    char dir[256];

    /* The EAL makes it even where nothing is shared, and leaves it. */
    snprintf(dir, sizeof(dir), "%s", rte_eal_get_runtime_dir());
    rte_eal_cleanup();
    rmdir(dir);
}

void memory_lay_out(unsigned nranks)
{
    if (nranks > MEMORY_DENSE_RANKS)
        prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
    mallopt(M_MMAP_MAX, INT_MAX);
}

/* Frames and what is beside them are looked up all over: in pages of 2 MiB, where there are any. */
static void *take(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);

    if (p == MAP_FAILED)
        return NULL;
    madvise(p, bytes, MADV_HUGEPAGE);
    return p;
}

struct rte_mempool *memory_frames(struct memory *m, unsigned n, unsigned threads, bool lengths,
                                  size_t more, char *err, size_t size)
{
    unsigned cache = RTE_MIN(CACHE, n / 2);
    size_t have = room_bytes();
    struct rte_mempool *p = NULL;

    n += (threads - 1) * (cache + cache / 2);
    /* The EAL's sizes of elements need no EAL. */
    m->bytes = frame_pool_bytes(n, lengths);
    m->at = NULL;
    if (m->bytes + more > have) {
        snprintf(
            err, size,
            "found %zu MiB of memory, expected %zu: %zu for %u frames, %zu for data (--frames, "
            "--payload none and fewer ranks need less)",
            have / MIB, (m->bytes + more) / MIB, m->bytes / MIB, n, more / MIB);
        return NULL;
    }
    if (!memory_start_eal(EAL_MIB + (unsigned)(n * sizeof(void *) * 2 / MIB)))
        m->at = take(m->bytes);
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
    memory_end_eal();
}
