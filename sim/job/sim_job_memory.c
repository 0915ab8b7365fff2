/* SPDX-License-Identifier: BSD-3-Clause */
/* A job's buffers: two of each rank, in one registered block. */
#include "sim/job/sim_job_priv.h"

#include <errno.h>
#include <sys/mman.h>

/* From there on what is used in part takes little more in pages of 2 MiB. */
#define LARGE_BYTES (32u << 20)

/* Where nobody looks at data, addresses will do. */
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

/* Made at the first operation, registered once: later operations must fit into them. */
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
        m->mem = mem;
        m->in = mem;
        m->out = mem + bytes;
        if (comm_register(m->comm, mem, 2 * bytes))
            return -ENOMEM;
    }
    return 0;
}
