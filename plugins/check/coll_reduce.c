/* SPDX-License-Identifier: BSD-3-Clause */
/* All-reduce. */
#include "plugins/check/coll_cases.h"
#include "plugins/check/coll_group.h"

#include <string.h>

static void coll_reduce_allreduce(struct plugin_rank *r, struct coll_group *g, int type, int op,
                                  size_t n, size_t at)
{
    size_t bytes = n * element_size(type);

    buffer_clear(&g->in);
    elements_fill(r, type, g->in.at + at, 0, n);
    group_finish(r, group_allreduce(r, g, g->in.at + at, g->out.at + at, n, type, op));
    elements_expect(r, type, op, g->out.at + at, 0, n, "iallreduce");
    buffer_untouched(r, &g->out, at, bytes, "iallreduce");
    buffer_untouched(r, &g->in, at, bytes, "iallreduce, what is sent");
    for (size_t i = 0; i < n; i++)
        EXPECT(r, element_is(type, g->in.at + at, i, element_value(r->me, i)),
               "iallreduce of %s: it has changed what is sent", element_name(type));
    buffer_clear(&g->out);
    rank_barrier(r);
}

static void coll_reduce_end(struct plugin_rank *r, struct coll_group *g)
{
    buffer_clear(&g->in);
    buffer_clear(&g->out);
    rank_barrier(r);
    group_close(r, g);
}

/* reduceSupport must give the same answer each time, and support something. */
void coll_support(struct plugin_rank *r)
{
    unsigned some = 0;

    for (int type = 0; type < NCCL_TYPES; type++)
        for (int op = 0; op < NCCL_OPS; op++) {
            bool yes = group_supports(r, type, op);

            some += yes;
            EXPECT(r, yes == group_supports(r, type, op),
                   "reduceSupport of %s of %s: found two answers", reduction_name(op),
                   element_name(type));
        }
    EXPECT(r, some, "reduceSupport: found no type and reduction that is supported");
}

/* Results of all supported types and reductions are right. The mean is left out, because its
 * rounding is not defined, and so are sums of many ranks that the narrowest floats cannot hold. */
void coll_types(struct plugin_rank *r)
{
    const int n_types = r->n > 4 ? NCCL_FLOAT8E4M3 : NCCL_TYPES;
    struct coll_group g;

    group_open(r, &g);
    for (int type = 0; type < n_types; type++)
        for (int op = 0; op < NCCL_AVG; op++)
            if (group_supports(r, type, op)) {
                coll_reduce_allreduce(r, &g, type, op, 1, 0);
                coll_reduce_allreduce(r, &g, type, op, 3001, 0);
            }
    coll_reduce_end(r, &g);
}

/* A type whose sum is supported; float if there are several. */
static int type_of(struct plugin_rank *r)
{
    if (group_supports(r, NCCL_FLOAT32, NCCL_SUM))
        return NCCL_FLOAT32;
    for (int type = 0; type < NCCL_TYPES; type++)
        if (group_supports(r, type, NCCL_SUM))
            return type;
    rank_fail(r, "reduceSupport: found no sum that is supported");
}

void coll_sizes(struct plugin_rank *r)
{
    static const size_t counts[] = {1, 2, 3, 31, 255, 1000, 1024, 4097, 65536};
    struct coll_group g;
    int type = type_of(r);
    size_t element = element_size(type);

    group_open(r, &g);
    for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        coll_reduce_allreduce(r, &g, type, NCCL_SUM, counts[i], 0);
    for (unsigned i = 1; i < 6; i++)
        coll_reduce_allreduce(r, &g, type, NCCL_SUM, 100 * i, i * 8);
    coll_reduce_allreduce(r, &g, type, NCCL_SUM, 77, GROUP_BYTES - 77 * element);
    coll_reduce_end(r, &g);
}

void coll_in_place(struct plugin_rank *r)
{
    struct coll_group g;
    int type = type_of(r);

    group_open(r, &g);
    for (size_t n = 1; n < 20000; n = n * 5 + 2) {
        elements_fill(r, type, g.out.at, 0, n);
        group_finish(r, group_allreduce(r, &g, g.out.at, g.out.at, n, type, NCCL_SUM));
        elements_expect(r, type, NCCL_SUM, g.out.at, 0, n, "iallreduce in place");
        buffer_untouched(r, &g.out, 0, n * element_size(type), "iallreduce in place");
        buffer_clear(&g.out);
    }
    coll_reduce_end(r, &g);
}

/* As many operations in flight as NCCL's proxy has steps; tested from the last one, and from the
 * first. */
void coll_in_flight(struct plugin_rank *r)
{
    void *req[GROUP_FLIGHT];
    struct coll_group g;
    const size_t n = 500;
    int type = type_of(r);
    size_t bytes = n * element_size(type);

    group_open(r, &g);
    for (unsigned round = 0; round < 6; round++) {
        elements_fill(r, type, g.in.at, 0, n * GROUP_FLIGHT);
        for (unsigned k = 0; k < GROUP_FLIGHT; k++)
            req[k] = group_allreduce(r, &g, g.in.at + k * bytes, g.out.at + k * bytes, n, type,
                                     NCCL_SUM);
        for (unsigned k = 0; k < GROUP_FLIGHT; k++)
            group_finish(r, req[round % 2 ? k : GROUP_FLIGHT - 1 - k]);
        elements_expect(r, type, NCCL_SUM, g.out.at, 0, n * GROUP_FLIGHT, "eight iallreduce");
        buffer_untouched(r, &g.out, 0, bytes * GROUP_FLIGHT, "eight iallreduce");
        buffer_clear(&g.out);
    }
    coll_reduce_end(r, &g);
}

void coll_flush(struct plugin_rank *r)
{
    struct coll_group g;
    int type = type_of(r);
    const size_t n = 300;

    group_open(r, &g);
    for (unsigned i = 0; i < 3; i++) {
        void *req;

        elements_fill(r, type, g.in.at, i, n);
        group_finish(r, group_allreduce(r, &g, g.in.at, g.out.at, n, type, NCCL_SUM));
        req = RANK_POISON;
        MUST(r, "iflush",
             coll_iflush(&r->t, g.comm, g.out.at, (int)(n * element_size(type)), g.out.mh, &req));
        EXPECT(r, req != RANK_POISON, "iflush: it has left the request unset");
        if (req)
            group_finish(r, req);
        elements_expect(r, type, NCCL_SUM, g.out.at, i, n, "iallreduce and its flush");
    }
    coll_reduce_end(r, &g);
}
