/* SPDX-License-Identifier: BSD-3-Clause */
/* A bench of four ranks below two leaves and a spine, with a row that is an all-reduce by a ring unless row_of() says
 * otherwise. A test has a pool. */
#ifndef TRIB_TESTS_SIM_REPORT_BENCH_BED_H
#define TRIB_TESTS_SIM_REPORT_BENCH_BED_H

#include "model/predict.h"
#include "sim/report/bench.h"
#include "tests/fabric/load.h"
#include "tests/support/eal.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#define NRANKS 4u
#define COUNT  8192u /* a multiple of the ranks */
#define FRAMES 40000u

static struct rte_mempool *pool;
static const uint16_t hosts[NRANKS] = {0, 1, 2, 3};
static const volatile int go_on;

struct bed {
    struct fabric *f;
    struct perf_opts o;
    struct bench_cfg cfg;
    struct bench *b;
    struct row row;
    char err[COMM_TEXT];
};

static inline void row_of(struct bed *t, enum coll_kind kind, enum coll_algo algo)
{
    const bool parts = kind == COLL_REDUCE_SCATTER || kind == COLL_ALLTOALL;
    struct coll_args a;

    t->row = (struct row){.coll = kind,
                          .algo = algo,
                          .type = DT_FP32,
                          .op = OP_SUM,
                          .nranks = NRANKS,
                          .emulated = true,
                          .bytes = kind == COLL_BARRIER ? 0 : COUNT * 4,
                          .count = kind == COLL_BARRIER ? 0
                                   : parts              ? COUNT / NRANKS
                                                        : COUNT};
    a = row_args(&t->row);
    assert_int_equal(coll_predict(t->f, &a, NRANKS, hosts, 0, 0, &t->row.pred), 0);
}

static inline void bed_init(struct bed *t)
{
    static const uint16_t tree;

    *t = (struct bed){.f = load_leaf_spine(2, 1, 2, 1, "")};
    t->o = (struct perf_opts){.iters = 3,
                              .warmup = 1,
                              .check = 1,
                              .min_bytes = COUNT * 4,
                              .max_bytes = COUNT * 4,
                              .max_wall = 600};
    t->cfg = (struct bench_cfg){.fab = t->f,
                                .o = &t->o,
                                .nranks = NRANKS,
                                .host_of_rank = hosts,
                                .algos = 1u << ALGO_RING | 1u << ALGO_SHARP,
                                .n_trees = 1,
                                .tree = &tree,
                                .seed = 5,
                                .pool = pool,
                                .frames = FRAMES,
                                .threads = 1,
                                .stop = &go_on};
    row_of(t, COLL_ALLREDUCE, ALGO_RING);
}

static inline void bed_up(struct bed *t)
{
    if (bench_create(&t->b, &t->cfg, t->err))
        fail_msg("%s", t->err);
}

static inline void bed_down(struct bed *t)
{
    if (t->b)
        bench_destroy(t->b);
    for (unsigned p = 0; p < PLACES; p++)
        op_times_free(&t->row.run[p].times);
    fabric_free(t->f);
}

static inline void place(struct bed *t, int where)
{
    if (bench_place(t->b, &t->row, where, t->err))
        fail_msg("%s", t->err);
}

#endif
