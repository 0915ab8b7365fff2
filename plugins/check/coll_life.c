/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators of CollNet: several at a time, their ends, misuse, and the death of a rank. */
#include "plugins/check/coll_cases.h"
#include "plugins/check/coll_group.h"

#include <stdlib.h>
#include <string.h>

#define REFUSED(r, call, what)                                                                     \
    EXPECT(r, CALL(r, call, what), "%s: found success, expected an error", call)

#define N ((size_t)200)

static int type_of(struct plugin_rank *r)
{
    int type = NCCL_FLOAT32;

    if (group_supports(r, type, NCCL_SUM))
        return type;
    for (type = 0; type < NCCL_TYPES - 1 && !group_supports(r, type, NCCL_SUM);)
        type++;
    return type;
}

static void coll_life_allreduce(struct plugin_rank *r, struct coll_group *g, unsigned seed)
{
    int type = type_of(r);

    elements_fill(r, type, g->in.at, seed, N);
    group_finish(r, group_allreduce(r, g, g->in.at, g->out.at, N, type, NCCL_SUM));
    elements_expect(r, type, NCCL_SUM, g->out.at, seed, N, "iallreduce");
    buffer_clear(&g->in);
    buffer_clear(&g->out);
}

static void coll_life_end(struct plugin_rank *r, struct coll_group *g)
{
    coll_life_allreduce(r, g, 5);
    rank_barrier(r);
    group_close(r, g);
}

/* Ranks use several communicators in different orders: these must not wait for each other. */
void coll_several(struct plugin_rank *r)
{
    struct coll_group g[3];
    int type = type_of(r);
    void *req[3];

    for (unsigned i = 0; i < 3; i++)
        group_open(r, &g[i]);
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned k = 0; k < 3; k++) {
            unsigned i = (k + r->me) % 3;

            elements_fill(r, type, g[i].in.at, i * 100 + round, N);
            req[i] = group_allreduce(r, &g[i], g[i].in.at, g[i].out.at, N, type, NCCL_SUM);
        }
        for (unsigned i = 3; i-- > 0;) {
            group_finish(r, req[i]);
            elements_expect(r, type, NCCL_SUM, g[i].out.at, i * 100 + round, N,
                            "iallreduce of one of three communicators");
        }
    }
    for (unsigned i = 0; i < 3; i++) {
        buffer_clear(&g[i].in);
        buffer_clear(&g[i].out);
        coll_life_end(r, &g[i]);
    }
}

void coll_reopen(struct plugin_rank *r)
{
    for (unsigned i = 0; i < 5; i++) {
        struct coll_group g;

        group_open(r, &g);
        coll_life_allreduce(r, &g, i);
        rank_barrier(r);
        group_close(r, &g);
    }
}

/* A communicator is closed while an operation runs that only this rank has begun. */
void coll_close_requests(struct plugin_rank *r)
{
    struct coll_group g, other;

    group_open(r, &g);
    group_open(r, &other);
    if (!r->me)
        (void)group_allreduce(r, &g, g.in.at, g.out.at, N, type_of(r), NCCL_SUM);
    rank_barrier(r);
    buffer_clear(&g.out);
    MUST(r, "closeColl", coll_close(&r->t, g.comm));
    free(g.in.all);
    free(g.out.all);
    rank_barrier(r);
    coll_life_end(r, &other);
}

/* ---- what NCCL never does ---- */

static void refuse_all(struct plugin_rank *r, void *x, const struct coll_group *g)
{
    int done = 0, type = type_of(r);
    void *got = NULL;

    REFUSED(r, "regMr", table_reg_mr(&r->t, x, g->in.at, 100, NCCL_PTR_HOST, &got));
    REFUSED(r, "iallreduce",
            coll_iallreduce(&r->t, x, g->in.at, g->out.at, 1, type, NCCL_SUM, g->in.mh, g->out.mh,
                            &got));
    REFUSED(r, "test", table_test(&r->t, x, &done, NULL));
    REFUSED(r, "closeColl", coll_close(&r->t, x));
    REFUSED(r, "closeListen", table_close_listen(&r->t, x));
}

void coll_null(struct plugin_rank *r)
{
    struct coll_group g;

    group_open(r, &g);
    refuse_all(r, NULL, &g);
    coll_life_end(r, &g);
}

void coll_stale(struct plugin_rank *r)
{
    struct coll_group g, old;
    int type = type_of(r), done = 0;
    void *req;

    group_open(r, &g);
    group_open(r, &old);
    elements_fill(r, type, old.in.at, 0, N);
    req = group_allreduce(r, &old, old.in.at, old.out.at, N, type, NCCL_SUM);
    group_finish(r, req);
    REFUSED(r, "test of a request that has ended", table_test(&r->t, req, &done, NULL));
    buffer_clear(&old.in);
    buffer_clear(&old.out);
    rank_barrier(r);
    group_close(r, &old);
    refuse_all(r, old.comm, &g);
    coll_life_end(r, &g);
}

void coll_bad_arguments(struct plugin_rank *r)
{
    char handle[NCCL_HANDLE] = {0};
    void *handles[] = {handle, handle}, *got = NULL;
    struct coll_group g;
    int type = type_of(r), supported;

    group_open(r, &g);
    REFUSED(r, "listen at no device", table_listen(&r->t, r->ctx, r->devices, handle, &got));
    REFUSED(r, "connect as rank 2 of 2", coll_connect(&r->t, handles, 2, 2, g.comm, &got));
    REFUSED(r, "iallreduce of a type that is none",
            coll_iallreduce(&r->t, g.comm, g.in.at, g.out.at, 1, NCCL_TYPES + 5, NCCL_SUM, g.in.mh,
                            g.out.mh, &got));
    REFUSED(r, "iallreduce by a reduction that is none",
            coll_iallreduce(&r->t, g.comm, g.in.at, g.out.at, 1, type, NCCL_OPS + 5, g.in.mh,
                            g.out.mh, &got));
    REFUSED(r, "iallgather of a window behind the blocks",
            coll_iallgather(&r->t, g.comm, g.in.at, g.out.at, 100, 100 * r->n, 100, g.in.mh,
                            g.out.mh, &got));
    supported = 1;
    if (!CALL(r, "reduceSupport", coll_reduce_support(&r->t, NCCL_TYPES + 5, NCCL_SUM, &supported)))
        EXPECT(r, !supported, "reduceSupport: found a type that is none supported");
    coll_life_end(r, &g);
}

/* ---- a rank is killed ---- */

/* Rank 1, which is neither first nor last, dies before it begins an operation: the others, which
 * have begun it, must get an error. */
void coll_killed(struct plugin_rank *r)
{
    struct coll_group g;
    int rc = 0, done = 0;
    int64_t since;
    void *req;

    group_open(r, &g);
    coll_life_allreduce(r, &g, 1);
    rank_barrier(r);
    if (r->me == 1)
        rank_dies(r);
    since = board_ms();
    req = group_allreduce(r, &g, g.in.at, g.out.at, N, type_of(r), NCCL_SUM);
    while (!rc) {
        rc = CALL(r, "test", table_test(&r->t, req, &done, NULL));
        EXPECT(r, rc || !done, "test: found an iallreduce done that a killed rank has not begun");
        EXPECT(r, rc || board_ms() - since < r->b->dead_s * 1000ll,
               "rank 1 was killed %u s ago: found no error of test, expected one", r->b->dead_s);
        rank_pause(r);
    }
    buffer_clear(&g.in);
    buffer_clear(&g.out);
    group_close(r, &g);
}
