/* SPDX-License-Identifier: BSD-3-Clause */
/* A group of GPUs: barriers between their streams, and operations between barriers. */
#include "host/kernels/multicast_priv.h"
#ifdef HAVE_MULTICAST
#include <errno.h>

static CUstream stream_of(const struct multicast_member *g)
{
    return g->d->stream[DEVICE_REDUCE].s;
}

struct device *multicast_device(struct multicast *m, unsigned i)
{
    device_use(m->member[i].d);
    return m->member[i].d;
}

uint8_t *multicast_memory(struct multicast *m, unsigned i)
{
    return (uint8_t *)(uintptr_t)m->member[i].own;
}

const char *multicast_error(struct multicast *m)
{
    const char *e = NULL;

    for (unsigned i = 0; !e && i < m->n; i++)
        e = m->member[i].d ? device_error(m->member[i].d) : NULL;
    return e;
}

/* No member continues before all have arrived: GPU 0 waits for the others, then they wait
 * for it. */
static int multicast_barrier(struct multicast *m)
{
    struct multicast_member *g = m->member, *first = &g[0];

    for (unsigned i = 0; i < m->n; i++) {
        if (device_use(g[i].d) ||
            cuda_check(g[i].d, g[i].d->cu.cuEventRecord(g[i].arrived, stream_of(&g[i])), "event"))
            return -EIO;
        g[i].given = device_given(g[i].d, DEVICE_REDUCE);
    }
    for (unsigned i = 1; i < m->n; i++)
        if (cuda_check(first->d, m->cu.cuStreamWaitEvent(stream_of(first), g[i].arrived, 0),
                       "barrier"))
            return -EIO;
    if (device_use(first->d) ||
        cuda_check(first->d, first->d->cu.cuEventRecord(m->all_arrived, stream_of(first)), "event"))
        return -EIO;
    for (unsigned i = 1; i < m->n; i++)
        if (cuda_check(g[i].d, m->cu.cuStreamWaitEvent(stream_of(&g[i]), m->all_arrived, 0),
                       "barrier"))
            return -EIO;
    return 0;
}

/* Makes a barrier, unless nothing was submitted since the last one, which then serves. */
static int barrier_if_needed(struct multicast *m)
{
    for (unsigned i = 0; i < m->n; i++)
        if (device_given(m->member[i].d, DEVICE_REDUCE) != m->member[i].given)
            return multicast_barrier(m);
    return 0;
}

int multicast_all_reduce(struct multicast *m, enum redop op, enum dtype t, size_t dst, size_t src,
                         size_t count)
{
    const struct kernel *k = kernel_multimem(op, t);
    uint64_t bytes = (uint64_t)count * dtype_size(t), units;

    if (!k)
        return -ENOTSUP;
    if (dst % MULTICAST_UNIT || src % MULTICAST_UNIT || dst > m->bytes || src > m->bytes ||
        bytes > m->bytes - (dst > src ? dst : src))
        return -EINVAL;
    if (barrier_if_needed(m))
        return -EIO;
    units = (bytes + k->unit - 1) / k->unit;
    for (unsigned i = 0; i < m->n; i++) {
        struct device *d = m->member[i].d;
        uint64_t from = units * i / m->n, to = units * (i + 1) / m->n;
        uint8_t *all = (uint8_t *)(uintptr_t)m->member[i].all + from * k->unit;
        struct multimem_args a = {all + dst, all + src, to - from};

        if (from < to &&
            (device_use(d) || cuda_launch(d, &d->stream[DEVICE_REDUCE], k, &a,
                                          multimem_grid(a.units, (unsigned)d->processors))))
            return -EIO;
    }
    return multicast_barrier(m);
}

struct bind_batch {
    struct multicast *m;
    enum redop op;
    enum dtype t;
    size_t dst, src, count;
    unsigned times;
    int rc;
};

static int give_batch(void *ctx)
{
    struct bind_batch *b = ctx;

    for (unsigned i = 0; !b->rc && i < b->times; i++)
        b->rc = multicast_all_reduce(b->m, b->op, b->t, b->dst, b->src, b->count);
    device_use(b->m->member[0].d);
    return b->rc;
}

int multicast_time(struct multicast *m, enum redop op, enum dtype t, size_t dst, size_t src,
                   size_t count, unsigned times, double *seconds)
{
    struct bind_batch b = {m, op, t, dst, src, count, times, 0};
    int rc = multicast_barrier(m);

    if (!rc && !device_use(m->member[0].d))
        rc = device_time(m->member[0].d, give_batch, &b, seconds);
    for (unsigned i = 0; i < m->n; i++)
        rc = device_wait(m->member[i].d) ? -EIO : rc;
    return b.rc ? b.rc : rc;
}
#endif
