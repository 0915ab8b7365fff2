/* SPDX-License-Identifier: BSD-3-Clause */
/* A job's buffers: two of each rank, in one registered block. */
#include "sim/job/sim_job_priv.h"

#include <errno.h>
#include <sys/mman.h>

/* From this size on, buffers that are used in part take little more memory in pages of 2 MiB. */
#define LARGE_BYTES (32u << 20)

/* Lengths without data need addresses only. */
static char *take_memory(const struct job *j, size_t bytes)
{
    char *p = world_map(j->cfg.w, bytes, j->cfg.lengths ? PROT_NONE : PROT_READ | PROT_WRITE);

    if (p && !j->cfg.lengths && bytes >= LARGE_BYTES)
        madvise(p, bytes, MADV_HUGEPAGE);
    return p;
}

void job_unmap(const struct job *j, char *mem)
{
    if (mem)
        munmap(mem, 2 * j->bytes);
}

/* Allocated and registered once, at the first operation: later operations must fit. */
int job_make_buffers(struct job *j, size_t bytes)
{
    if (j->bytes)
        return j->bytes >= bytes ? 0 : -EFBIG;
    if (bytes < j->cfg.buffer_bytes)
        bytes = j->cfg.buffer_bytes;
    j->bytes = bytes;
    for (unsigned r = 0; r < j->cfg.nranks; r++) {
        struct member *m = &j->mem[r];
        char *mem = take_memory(j, 2 * bytes);

        if (!mem)
            return -ENOMEM;
        T_ASSERT(!m->mem, "buffers of a rank are allocated twice");
        m->mem = mem;
        m->in = mem;
        m->out = mem + bytes;
        if (comm_register(m->comm, mem, 2 * bytes))
            return -ENOMEM;
    }
    return 0;
}
