/* SPDX-License-Identifier: BSD-3-Clause */
/* All-gather and reduce-scatter, whole and in windows, as NCCL's proxy cuts them. */
#include "plugins/check/coll_cases.h"
#include "plugins/check/coll_group.h"

#include <string.h>

static uint8_t byte_of(unsigned rank, size_t i)
{
    return (uint8_t)(i * 7 + i / 251 + rank * 31 + 1);
}

/* Offset in a rank's own block to which NCCL points: the start of the window, if it is in the
 * block. */
static size_t own_place(const struct plugin_rank *r, size_t at, size_t block)
{
    size_t own = block * r->me;

    return at > own && at < own + block ? at - own : 0;
}

static void coll_windows_gather(struct plugin_rank *r, size_t block, size_t step)
{
    size_t all = block * r->n, n;
    struct coll_group g;

    group_open(r, &g);
    for (size_t i = 0; i < block; i++)
        g.in.at[i] = byte_of(r->me, i);
    for (size_t at = 0; at < all; at += n) {
        n = all - at < step ? all - at : step;
        group_finish(r, group_allgather(r, &g, g.in.at + own_place(r, at, block), g.out.at + at,
                                        block, at, n));
        buffer_untouched(r, &g.out, 0, at + n, "iallgather");
    }
    for (size_t i = 0; i < all; i++)
        EXPECT(r, g.out.at[i] == byte_of((unsigned)(i / block), i % block),
               "iallgather of blocks of %zu by windows of %zu: byte %zu of rank %zu: found %#x, "
               "expected %#x",
               block, step, i % block, i / block, g.out.at[i],
               byte_of((unsigned)(i / block), i % block));
    buffer_untouched(r, &g.in, 0, block, "iallgather, what is sent");
    buffer_clear(&g.in);
    buffer_clear(&g.out);
    rank_barrier(r);
    group_close(r, &g);
}

void coll_gather(struct plugin_rank *r)
{
    coll_windows_gather(r, 4096, 4096 * r->n);
    coll_windows_gather(r, 1, r->n);
    coll_windows_gather(r, 50001, 50001 * r->n);
}

void coll_gather_windows(struct plugin_rank *r)
{
    coll_windows_gather(r, 4096, 4096);
    coll_windows_gather(r, 4096, 3333);
    coll_windows_gather(r, 4096, 10000);
}

static void scatter(struct plugin_rank *r, int type, int op, size_t count, size_t step_count)
{
    size_t element = element_size(type), block = count * element, all = block * r->n, n;
    size_t step = step_count * element;
    struct coll_group g;

    group_open(r, &g);
    elements_fill(r, type, g.in.at, 0, count * r->n);
    for (size_t at = 0; at < all; at += n) {
        n = all - at < step ? all - at : step;
        group_finish(r, group_reducescatter(r, &g, g.in.at + at, g.out.at + own_place(r, at, block),
                                            block, at, n, type, op));
    }
    elements_expect(r, type, op, g.out.at, count * r->me, count, "ireducescatter");
    buffer_untouched(r, &g.out, 0, block, "ireducescatter");
    buffer_untouched(r, &g.in, 0, all, "ireducescatter, what is sent");
    buffer_clear(&g.in);
    buffer_clear(&g.out);
    rank_barrier(r);
    group_close(r, &g);
}

/* Reduce-scatters of all supported sums. */
static void scatters(struct plugin_rank *r, size_t count, size_t step)
{
    for (int type = 0; type < NCCL_TYPES; type++)
        if (group_supports(r, type, NCCL_SUM))
            scatter(r, type, NCCL_SUM, count, step);
}

void coll_scatter(struct plugin_rank *r)
{
    scatters(r, 1000, 1000 * r->n);
    if (group_supports(r, NCCL_FLOAT32, NCCL_MAX))
        scatter(r, NCCL_FLOAT32, NCCL_MAX, 10001, 10001 * r->n);
}

void coll_scatter_windows(struct plugin_rank *r)
{
    if (!group_supports(r, NCCL_FLOAT32, NCCL_SUM)) {
        scatters(r, 1000, 333);
        return;
    }
    scatter(r, NCCL_FLOAT32, NCCL_SUM, 1024, 1024);
    scatter(r, NCCL_FLOAT32, NCCL_SUM, 1024, 833);
    scatter(r, NCCL_FLOAT32, NCCL_SUM, 1024, 2500);
}
