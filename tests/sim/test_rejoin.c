/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Links and spines of a job with two trees that fail and come back at drawn moments, again and again: every
 * sum is right, and once all is repaired, the job has both trees.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "host/coll/coll.h"
#include "tests/sim/one_job.h"
#include "tests/support/eal.h"

#define RANKS     6u
#define OPS       3u
#define MAX_COUNT 20000u
#define LOOPS     25u
#define SEEDS     12u

static struct rte_mempool *pool;
static const uint16_t hosts[RANKS] = {0, 1, 2, 4, 5, 6};

struct fixture {
    struct one_job at;
    size_t count;
    bool in_place, ends;
    unsigned started[RANKS];
    int down; /* a link; -1: none */
    uint64_t rng;
};

static uint64_t below(struct fixture *b, uint64_t n)
{
    return random_next(&b->rng) % n;
}

/* Small whole numbers: every sum is exact in fp32, whatever the order. */
static float value(unsigned k, unsigned rank, size_t i)
{
    return (float)((int)((i * 13 + rank * 7 + k * 3 + i / 97) % 29) - 11);
}

static float *memory(const struct fixture *b, unsigned rank, unsigned which, unsigned k)
{
    return (float *)job_buffer(b->at.j, rank, which) + (size_t)k * MAX_COUNT;
}

static void args(void *ctx, unsigned rank, struct coll_args *a)
{
    struct fixture *b = ctx;
    unsigned k = b->started[rank]++;

    *a = (struct coll_args){.kind = COLL_ALLREDUCE,
                            .algo = ALGO_SHARP,
                            .send = memory(b, rank, b->in_place, k),
                            .recv = memory(b, rank, 1, k),
                            .count = b->count,
                            .type = DT_FP32,
                            .op = OP_SUM};
}

/* A link between a leaf and a spine goes down or comes up, one at a time, or a spine loses its memory. */
static void fault(void *ctx)
{
    struct fixture *b = ctx;
    struct net *net = world_net(b->at.w);
    int64_t now = world_now(b->at.w);
    char name[40];

    if (b->down >= 0) {
        assert_int_equal(net_set_link(net, (unsigned)b->down, true, now), 0);
        b->down = -1;
    } else if (below(b, 4)) {
        snprintf(name, sizeof(name), "leaf%u-spine%u", (unsigned)below(b, 2),
                 (unsigned)below(b, 2));
        b->down = fabric_link_by_name(b->at.f, name);
        assert_true(b->down >= 0);
        assert_int_equal(net_set_link(net, (unsigned)b->down, false, now), 0);
    } else {
        snprintf(name, sizeof(name), "spine%u", (unsigned)below(b, 2));
        assert_int_equal(
            net_restart(net, (uint16_t)(fabric_node(b->at.f, name) - b->at.f->nodes), now), 0);
    }
    if (b->ends && b->down < 0)
        world_alarm(b->at.w, PS_NEVER, NULL, NULL);
    else
        world_alarm(b->at.w, now + 1 + ((int64_t)below(b, 1000) * PS_PER_NS << below(b, 12)), fault,
                    b);
}

static void up(struct fixture *b)
{
    struct job_cfg jc = {.nranks = RANKS,
                         .host_of_rank = hosts,
                         .algos = 1u << ALGO_SHARP | 1u << ALGO_RING,
                         .n_trees = 2,
                         .any_order = true,
                         .limit_ps = 100 * PS_PER_S};

    one_job_up(&b->at, "conf/leaf-spine-8.conf", pool, jc);
    assert_int_equal(job_buffers(b->at.j, OPS * MAX_COUNT * sizeof(float)), 0);
}

static bool never(void *ctx)
{
    (void)ctx;
    return false;
}

/* Three operations on new numbers, back to back. */
static void operate(struct fixture *b, uint64_t seed)
{
    struct job_loop l = {.n = OPS, .args = args, .ctx = b, .limit_ps = 100 * PS_PER_S};

    b->in_place = below(b, 2);
    b->count = 8 + below(b, below(b, 4) ? MAX_COUNT - 8 : 60);
    memset(b->started, 0, sizeof(b->started));
    for (unsigned r = 0; r < RANKS; r++)
        for (unsigned k = 0; k < OPS; k++)
            for (size_t i = 0; i < b->count; i++)
                memory(b, r, b->in_place, k)[i] = value(k, r, i);
    if (job_loop_run(b->at.j, &l))
        fail_msg("seed %lu: %s", seed, l.text);
    for (unsigned r = 0; r < RANKS; r++)
        for (unsigned k = 0; k < OPS; k++)
            for (size_t i = 0; i < b->count; i++) {
                float got = memory(b, r, 1, k)[i], want = 0;

                for (unsigned of = 0; of < RANKS; of++)
                    want += value(k, of, i);
                if (got > want || got < want)
                    fail_msg("seed %lu: operation %u, rank %u, element %zu: %g, not %g", seed, k, r,
                             i, (double)got, (double)want);
            }
}

static unsigned trees(const struct fixture *b, unsigned rank)
{
    struct coll_grant g;

    comm_granted(job_comm(b->at.j, rank), &g);
    return g.trees;
}

static bool all_have_both(const struct fixture *b)
{
    unsigned n = 0;

    for (unsigned r = 0; r < RANKS; r++)
        n += trees(b, r) == 2;
    return n == RANKS;
}

static void run(uint64_t seed)
{
    struct fixture b = {.down = -1, .rng = seed};
    unsigned tries = 0;

    up(&b);
    operate(&b, seed);
    assert_int_equal(trees(&b, 0), 2);
    world_alarm(b.at.w, world_now(b.at.w) + 1 + (int64_t)below(&b, 50 * PS_PER_US), fault, &b);
    for (unsigned i = 0; i < LOOPS; i++)
        operate(&b, seed);
    b.ends = true;
    /* What was aborted last is joined again after 20 ms at most. */
    while (tries++ < 30 && !(b.down < 0 && all_have_both(&b))) {
        job_drive(b.at.j, world_now(b.at.w) + PS_PER_MS, never, NULL);
        operate(&b, seed);
    }
    for (unsigned r = 0; r < RANKS; r++)
        if (trees(&b, r) != 2 || comm_lacks_trees(job_comm(b.at.j, r), ALGO_SHARP))
            fail_msg("seed %lu: rank %u has %u trees at the end: %s", seed, r, trees(&b, r),
                     comm_fell_back(job_comm(b.at.j, r)));
    one_job_down(&b.at);
}

static void trees_come_and_go_and_every_sum_is_right(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        run(seed);
    run(142); /* all trees fail again before the operation that was cut has gone on */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trees_come_and_go_and_every_sum_is_right),
    };

    test_eal_init();
    pool = test_pool(16384);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
