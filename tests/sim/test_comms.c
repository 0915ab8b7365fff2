/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several communicators on the same ranks' devices: overlapping sets of ranks in other orders, at
 * work at the same time; and one communicator on several aggregation trees.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>

#include "sim/job/sim_job.h"
#include "tests/support/eal.h"

#define ALGOS (1u << ALGO_RING | 1u << ALGO_SHARP | 1u << ALGO_DIRECT)

static const uint16_t hosts[8] = {0, 1, 2, 3, 4, 5, 6, 7};
static struct rte_mempool *pool;

static void world_up(struct fabric **f, struct world **w)
{
    struct world_cfg wc = {.nranks = 8, .host_of_rank = hosts, .pool = pool, .seed = 1};

    *f = fabric_load("conf/leaf-spine-8.conf", NULL);
    assert_non_null(*f);
    wc.fab = *f;
    assert_int_equal(world_create(w, &wc), 0);
}

static struct job *job_up(struct job_cfg *jc)
{
    char err[COMM_TEXT] = "";
    struct job *j = NULL;

    if (job_create(&j, jc, err))
        fail_msg("%s", err);
    return j;
}

static void check(const struct job_result *res)
{
    if (res->wrong || res->failed_ranks)
        fail_msg("%lu wrong, %d failed: %s", res->wrong, res->failed_ranks, res->text);
}

/* The second one's ranks are five of the first one's eight, backwards. */
static void two_communicators_of_shared_ranks_work_at_once(void **state)
{
    static const unsigned some[5] = {6, 5, 3, 1, 0};
    static const uint16_t some_hosts[5] = {6, 5, 3, 1, 0};
    static const enum coll_algo algo[] = {ALGO_RING, ALGO_SHARP, ALGO_DIRECT};
    struct fabric *f;
    struct world *w;
    struct job *a, *b;

    (void)state;
    world_up(&f, &w);
    struct job_cfg jc = {.w = w,
                         .fab = f,
                         .nranks = 8,
                         .host_of_rank = hosts,
                         .group = 1,
                         .key = 7,
                         .algos = ALGOS,
                         .buffer_bytes = 2 << 20,
                         .limit_ps = PS_PER_S};

    a = job_up(&jc);
    jc.nranks = 5;
    jc.host_of_rank = some_hosts;
    jc.world_rank = some;
    jc.group = 2;
    jc.sibling = a;
    b = job_up(&jc);
    for (unsigned i = 0; i < 9; i++) {
        struct job_op op = {.kind = COLL_ALLREDUCE,
                            .algo = algo[i / 3],
                            .type = DT_INT32,
                            .op = OP_SUM,
                            .count = 30011,
                            .seed = i};
        struct job_result ra, rb;

        assert_int_equal(job_start(a, &op, &ra), 0);
        op.algo = algo[i % 3];
        op.count = 40009;
        assert_int_equal(job_start(b, &op, &rb), 0);
        assert_int_equal(job_finish(b, &rb), 0);
        assert_int_equal(job_finish(a, &ra), 0);
        check(&ra);
        check(&rb);
    }
    assert_int_equal(job_destroy(b), 0);
    assert_int_equal(job_destroy(a), 0);
    assert_int_equal(world_busy_ans(w), 0);
    world_destroy(w);
    fabric_free(f);
}

static void vectors_are_shared_out_over_trees(void **state)
{
    struct fabric *f;
    struct world *w;
    struct job *j;
    struct job_result res;

    (void)state;
    world_up(&f, &w);
    assert_true(f->n_trees >= 2);
    struct job_cfg jc = {.w = w,
                         .fab = f,
                         .nranks = 8,
                         .host_of_rank = hosts,
                         .group = 1,
                         .key = 7,
                         .n_trees = 2,
                         .algos = 1u << ALGO_SHARP,
                         .buffer_bytes = 2 << 20,
                         .limit_ps = PS_PER_S};
    struct job_op op = {.kind = COLL_ALLREDUCE,
                        .algo = ALGO_SHARP,
                        .type = DT_INT32,
                        .op = OP_SUM,
                        .count = 100003};

    j = job_up(&jc);
    for (unsigned k = 0; k < 3; k++) {
        op.kind = k == 0 ? COLL_ALLREDUCE : k == 1 ? COLL_REDUCE_SCATTER : COLL_ALLGATHER;
        op.count = k ? 20011 : 100003;
        assert_int_equal(job_run(j, &op, &res), 0);
        check(&res);
    }
    assert_int_equal(job_destroy(j), 0);
    world_destroy(w);
    fabric_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_communicators_of_shared_ranks_work_at_once),
        cmocka_unit_test(vectors_are_shared_out_over_trees),
    };

    test_eal_init();
    pool = test_pool(60000);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
