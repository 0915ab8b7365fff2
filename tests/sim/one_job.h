/* SPDX-License-Identifier: BSD-3-Clause */
/* A fabric from a file, its world, and one job in it; the test fails where one of them does. */
#ifndef TRIB_TESTS_SIM_ONE_JOB_H
#define TRIB_TESTS_SIM_ONE_JOB_H

#include "sim/job/sim_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct one_job {
    struct fabric *f;
    struct world *w;
    struct job *j;
};

/* The job is as jc says; its fabric, world, group and key are filled in here. */
static inline void one_job_up(struct one_job *b, const char *conf, struct rte_mempool *pool,
                              struct job_cfg jc)
{
    struct world_cfg wc = {
        .nranks = jc.nranks, .host_of_rank = jc.host_of_rank, .pool = pool, .seed = 1};
    char err[COMM_TEXT] = "";

    b->f = fabric_load(conf, NULL);
    assert_non_null(b->f);
    wc.fab = jc.fab = b->f;
    assert_int_equal(world_create(&b->w, &wc), 0);
    jc.w = b->w;
    jc.group = 1;
    jc.key = 7;
    if (job_create(&b->j, &jc, err))
        fail_msg("%s, %u ranks: %s", conf, jc.nranks, err);
}

static inline void one_job_down(struct one_job *b)
{
    assert_int_equal(job_destroy(b->j), 0);
    world_destroy(b->w);
    fabric_free(b->f);
}

#endif
