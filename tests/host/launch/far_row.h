/* SPDX-License-Identifier: BSD-3-Clause */
/* A sweep of one row whose ranks are far_players.h's. */
#ifndef TRIB_TESTS_HOST_LAUNCH_FAR_ROW_H
#define TRIB_TESTS_HOST_LAUNCH_FAR_ROW_H

#include "host/launch/job_processes_priv.h"
#include "tests/host/launch/far_players.h"

#include <stdlib.h>

#define SEC 1000000000ll /* ns */

struct fixture {
    struct job_processes j;
    struct job_process rank[N];
    struct pollfd pfd[N + 1];
    struct inbox in[N];
    int fd[N];
    struct perf_opts o;
    struct sweep s;
    struct row r;
    struct rundir rd;
    struct shared sh;
    struct clock_page clock;
    struct script script;
    struct play play;
};

static inline void abort_job(struct sweep *s, const char *why)
{
    (void)s;
    fail_msg("%s", why);
}

#define DILATION 1000

/* A row of four floats by ring, of which an operation is said to last one_s of wall time. */
static inline struct fixture *set_up(double one_s)
{
    struct fixture *b = calloc(1, sizeof(*b));
    struct fabric *f = fabric_load("conf/leaf-spine-8.conf", NULL);

    assert_true(b && f);
    far_ranks_open(&b->j, b->rank, b->pfd, b->fd);
    b->j.fab = f;
    b->o = (struct perf_opts){.place = PLACE_BOTH,
                              .max_wall = 6000, /* so that no machine is too slow */
                              .run_wall = 1200,
                              .iters = 20,
                              .warmup = 1,
                              .check = 1,
                              .max_bytes = 16};
    clock_set_dilation(&b->clock, DILATION);
    b->sh.clock = &b->clock;
    snprintf(b->rd.path, sizeof(b->rd.path), "/nonexistent");
    b->rd.sh = &b->sh;
    b->s = (struct sweep){.o = &b->o,
                          .fab = f,
                          .rd = &b->rd,
                          .job = &b->j,
                          .nranks = N,
                          .host_of_rank = {0, 1, 2},
                          .n_trees = 1,
                          .exist = 1u << ALGO_RING | 1u << ALGO_SHARP,
                          .slow = 1,
                          .abort_job = abort_job};
    dilation_init(&b->s.dilation, false, 1200);
    b->r = (struct row){.emulated = true,
                        .coll = COLL_ALLREDUCE,
                        .algo = ALGO_RING,
                        .type = DT_FP32,
                        .op = OP_SUM,
                        .nranks = N,
                        .count = 4,
                        .bytes = 16,
                        .pred = {.time_ps = (int64_t)(one_s * 1e12 / DILATION), .handoffs = 2}};
    return b;
}

static inline int place(struct fixture *b, int where)
{
    int rc;

    b->play = (struct play){.fd = b->fd, .script = &b->script};
    assert_int_equal(pthread_create(&b->play.thread, NULL, play, &b->play), 0);
    rc = ranks_place(&b->s, &b->r, where);
    b->play.over = true;
    pthread_join(b->play.thread, NULL);
    return rc;
}

static inline void tear_down(struct fixture *b)
{
    for (int p = 0; p < PLACES; p++)
        op_times_free(&b->r.run[p].times);
    sampled_free(&b->s.sampled);
    far_ranks_close(b->rank, b->fd, b->in);
    fabric_free((struct fabric *)(uintptr_t)b->s.fab);
    free(b);
}

#endif
