/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A switch fails permanently, at any moment: if there is an alternative (by policy and fabric),
 * every rank has the right sums; else every rank ends with an error that names a rank or switch,
 * within the time that ranks wait for each other.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

#include "collective/sched.h"
#include "tests/sim/one_job.h"
#include "tests/support/eal.h"

#define RANKS 8
#define BOUND (70 * PS_PER_S) /* they wait for a minute */
#define RAIL  "conf/rail-2x4.conf"
#define NODE  "conf/h100-node.conf"
#define TREE  "conf/leaf-spine-8.conf"

static struct rte_mempool *pool;
static const uint16_t hosts[RANKS] = {0, 1, 2, 3, 4, 5, 6, 7};

struct row {
    const char *conf, *node;
    unsigned n_policy;
    enum coll_algo policy[2];
    bool goes_on;
};

struct fixture {
    struct one_job at;
    const struct row *row;
};

static void hit(void *ctx)
{
    struct fixture *b = ctx;
    uint16_t node = (uint16_t)(fabric_node(b->at.f, b->row->node) - b->at.f->nodes);

    world_alarm(b->at.w, PS_NEVER, NULL, NULL);
    assert_int_equal(net_set_node(world_net(b->at.w), node, false, world_now(b->at.w)), 0);
}

static void up(struct fixture *b)
{
    struct job_cfg jc = {.nranks = RANKS,
                         .host_of_rank = hosts,
                         .n_policy = b->row->n_policy,
                         .policy = b->row->policy,
                         .any_order = true,
                         .buffer_bytes = 1u << 20,
                         .limit_ps = 2 * BOUND};

    for (unsigned i = 0; i < b->row->n_policy; i++)
        jc.algos |= 1u << b->row->policy[i];
    one_job_up(&b->at, b->row->conf, pool, jc);
}

/* The switch itself, or the rank that cannot be reached. */
static void expect_name(const struct fixture *b, unsigned rank)
{
    const char *text = comm_error(job_comm(b->at.j, rank)), *at = strstr(text, "rank ");

    if (!strstr(text, b->row->node) && (!at || !strchr(at, '(')))
        fail_msg("%s: rank %u: \"%s\"", b->row->node, rank, text);
}

/* Two operations: one under way when it goes, which some may have finished, and one behind it. */
static void run(const struct row *row, int64_t at)
{
    struct fixture b = {.row = row};
    struct job_op op = {.algo = row->policy[0], .type = DT_FP32, .count = 60000, .seed = 3};
    struct job_result res;
    int failed = 0;

    up(&b);
    world_alarm(b.at.w, world_now(b.at.w) + at, hit, &b);
    for (unsigned k = 0; k < 2; k++) {
        if (job_run(b.at.j, &op, &res))
            fail_msg("%s, %s: %s", sched_algo_name(op.algo), row->node, res.text);
        failed = res.failed_ranks;
        if (res.wrong || res.unnamed || res.time_ps > BOUND || (k && failed && failed != RANKS))
            fail_msg("%s, %s: %lu wrong, %d failed, %d without a name, after %.1f s",
                     sched_algo_name(op.algo), row->node, res.wrong, failed, res.unnamed,
                     (double)res.time_ps / PS_PER_S);
    }
    for (unsigned r = 0; r < RANKS && failed; r++)
        expect_name(&b, r);
    if (row->goes_on == (failed != 0))
        fail_msg("%s, %s: %s", sched_algo_name(op.algo), row->node, failed ? res.text : "no error");
    one_job_down(&b.at);
}

static void who_has_another_way_goes_on_and_others_end_by_name(void **state)
{
    static const struct row rows[] = {
        /* The only leaf of these hosts. */
        {TREE, "leaf1", 2, {ALGO_SHARP, ALGO_RING}, false},
        {TREE, "leaf0", 1, {ALGO_SHARP}, false},
        {TREE, "leaf1", 1, {ALGO_RING}, false},
        {TREE, "spine0", 2, {ALGO_SHARP, ALGO_RING}, true},
        /* The only leaf of a rail; the ring crosses between the nodes by others. */
        {RAIL, "leaf1", 2, {ALGO_HIER_SHARP, ALGO_RING}, true},
        {RAIL, "leaf1", 2, {ALGO_NVLS_SHARP, ALGO_RING}, true},
        {RAIL, "leaf1", 2, {ALGO_HIER_SHARP, ALGO_HIER}, false},
        {RAIL, "leaf1", 1, {ALGO_HIER_SHARP}, false},
        {RAIL, "leaf0", 2, {ALGO_HIER_SHARP, ALGO_RING}, false},
        /* A plane, on which connections of every rank in the node are. */
        {RAIL, "n0s0", 2, {ALGO_NVLS_SHARP, ALGO_RING}, false},
        {RAIL, "n1s1", 2, {ALGO_NVLS_SHARP, ALGO_HIER}, false},
        {RAIL, "n0s2", 1, {ALGO_HIER}, false},
        {NODE, "n0s0", 2, {ALGO_NVLS, ALGO_RING}, false},
        {NODE, "n0s1", 2, {ALGO_NVLS, ALGO_RING}, false},
        {NODE, "n0s3", 1, {ALGO_NVLS}, false},
    };
    static const int64_t at[] = {0, 3 * PS_PER_US, 7 * PS_PER_US};

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        for (unsigned k = 0; k < sizeof(at) / sizeof(*at); k++)
            run(&rows[i], at[k]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_has_another_way_goes_on_and_others_end_by_name),
    };

    test_eal_init();
    pool = test_pool(60000);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
