/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Switches that lose their memory at any moment, alone or with their power (all links go down, and
 * come up a while later), under operations of the aggregation trees, of several levels and by
 * multimem, or by a protocol of the switches: every rank has the right sums all the same, in place and out of place, of the
 * interrupted operation and of later ones, and the communicator reports why.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "collective/sched.h"
#include "host/coll/comm.h"
#include "tests/sim/one_job.h"
#include "tests/support/eal.h"

#define OPS       3u
#define MAX_COUNT 30000u
#define SEEDS     10u

static struct rte_mempool *pool;
static const uint16_t hosts[8] = {0, 1, 2, 3, 4, 5, 6, 7};

/* The failure of the switch: it loses its memory; all its links, for a while; or both. */
enum what { MEMORY, LINKS, POWER };

struct fixture {
    const char *name; /* of the switch that is hit */
    struct one_job at;
    unsigned n;
    enum coll_kind kind;
    enum coll_algo algo;
    size_t count; /* as in coll_args */
    bool in_place;
    enum what what;
    unsigned started[8];
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

static float sum(const struct fixture *b, unsigned k, size_t i)
{
    float s = 0;

    for (unsigned r = 0; r < b->n; r++)
        s += value(k, r, i);
    return s;
}

static size_t sends(const struct fixture *b)
{
    return b->kind == COLL_REDUCE_SCATTER ? b->count * b->n : b->count;
}

static size_t gets(const struct fixture *b)
{
    return b->kind == COLL_ALLGATHER ? b->count * b->n : b->count;
}

/* Every operation has memory of its own. */
static float *memory(struct fixture *b, unsigned rank, unsigned which, unsigned k)
{
    return (float *)job_buffer(b->at.j, rank, which) + (size_t)k * MAX_COUNT;
}

static float *in_of(struct fixture *b, unsigned rank, unsigned k)
{
    if (b->in_place && b->kind == COLL_ALLGATHER)
        return memory(b, rank, 1, k) + rank * b->count;
    return memory(b, rank, b->in_place && (b->kind == COLL_ALLREDUCE || b->kind == COLL_BROADCAST),
                  k);
}

static float *out_of(struct fixture *b, unsigned rank, unsigned k)
{
    if (b->in_place && b->kind == COLL_REDUCE_SCATTER)
        return memory(b, rank, 0, k) + rank * b->count;
    return memory(b, rank, 1, k);
}

static void args(void *ctx, unsigned rank, struct coll_args *a)
{
    struct fixture *b = ctx;
    unsigned k = b->started[rank]++;

    *a = (struct coll_args){.kind = b->kind,
                            .algo = b->algo,
                            .send = in_of(b, rank, k),
                            .recv = out_of(b, rank, k),
                            .count = b->count,
                            .type = DT_FP32,
                            .op = OP_SUM};
}

static void check(struct fixture *b, uint64_t seed)
{
    for (unsigned r = 0; r < b->n; r++)
        for (unsigned k = 0; k < OPS; k++)
            for (size_t i = 0; i < gets(b); i++) {
                float got = out_of(b, r, k)[i], want;

                if (b->kind == COLL_ALLGATHER)
                    want = value(k, (unsigned)(i / b->count), i % b->count);
                else if (b->kind == COLL_BROADCAST)
                    want = value(k, 0, i);
                else
                    want = sum(b, k, b->kind == COLL_REDUCE_SCATTER ? r * b->count + i : i);
                if (!(fabsf(got - want) <=
                      (coll_is_protocol(b->algo) ? 1e-6f : 0))) /* fixed point */
                    fail_msg("%s, seed %lu: operation %u, rank %u, element %zu: %g, not %g",
                             sched_algo_name(b->algo), seed, k, r, i, (double)got, (double)want);
            }
}

static uint16_t node_of(const struct fixture *b)
{
    return (uint16_t)(fabric_node(b->at.f, b->name) - b->at.f->nodes);
}

static void light(void *ctx)
{
    struct fixture *b = ctx;

    world_alarm(b->at.w, PS_NEVER, NULL, NULL);
    assert_int_equal(net_set_node(world_net(b->at.w), node_of(b), true, world_now(b->at.w)), 0);
}

static void hit(void *ctx)
{
    struct fixture *b = ctx;
    struct net *net = world_net(b->at.w);
    int64_t now = world_now(b->at.w);

    world_alarm(b->at.w, PS_NEVER, NULL, NULL);
    if (b->what != MEMORY) {
        assert_int_equal(net_set_node(net, node_of(b), false, now), 0);
        world_alarm(b->at.w, now + 1 + (int64_t)below(b, 100 * PS_PER_US), light, b);
    }
    if (b->what != LINKS)
        assert_int_equal(net_restart(net, node_of(b), now), 0);
}

static void up(struct fixture *b, const char *conf, unsigned n_policy, const enum coll_algo *policy)
{
    struct job_cfg jc = {.nranks = b->n,
                         .host_of_rank = hosts,
                         .algos = 1u << b->algo,
                         .n_policy = n_policy,
                         .policy = policy,
                         .any_order = true,
                         .limit_ps = 100 * PS_PER_S};

    for (unsigned i = 0; i < n_policy; i++)
        jc.algos |= 1u << policy[i];
    one_job_up(&b->at, conf, pool, jc);
    assert_int_equal(job_buffers(b->at.j, OPS * MAX_COUNT * sizeof(float)), 0);
}

static void fill(struct fixture *b)
{
    memset(b->started, 0, sizeof(b->started));
    for (unsigned r = 0; r < b->n; r++)
        for (unsigned k = 0; k < OPS; k++) {
            for (unsigned which = 0; which < 2; which++)
                memset(memory(b, r, which, k), 0xee, MAX_COUNT * sizeof(float));
            for (size_t i = 0; i < sends(b); i++)
                in_of(b, r, k)[i] = value(k, r, i);
        }
}

static bool never(void *ctx)
{
    (void)ctx;
    return false;
}

struct row {
    const char *conf, *node;
    unsigned n;
    enum coll_kind kind;
    enum coll_algo algo;
    unsigned n_policy;
    enum coll_algo policy[3];
    enum coll_algo then; /* what runs after the fall */
};

static unsigned run(const struct row *w, enum what what, uint64_t seed)
{
    struct fixture b = {.name = w->node, .n = w->n, .kind = w->kind, .algo = w->algo, .rng = seed};
    struct job_loop l = {.n = OPS, .args = args, .ctx = &b, .limit_ps = 100 * PS_PER_S};
    size_t most = w->kind == COLL_ALLREDUCE ? MAX_COUNT : MAX_COUNT / w->n;
    struct coll_args a;
    const char *why;
    int rc;

    b.in_place = seed % 2;
    b.what = what;
    b.count = 8 + below(&b, seed % 5 ? most - 8 : 60); /* every rank has a share in it */
    up(&b, w->conf, w->n_policy, w->policy);
    fill(&b);
    world_alarm(b.at.w, world_now(b.at.w) + (int64_t)below(&b, 25 * PS_PER_US), hit, &b);
    rc = job_loop_run(b.at.j, &l);
    if (rc)
        fail_msg("%s, %s, seed %lu: %s", sched_algo_name(b.algo), w->node, seed, l.text);
    check(&b, seed);
    job_drive(b.at.j, world_now(b.at.w) + 60 * PS_PER_US, never, NULL);
    /* Once more, when all ranks know of the failure, or find out. */
    fill(&b);
    rc = job_loop_run(b.at.j, &l);
    if (rc)
        fail_msg("%s, %s, seed %lu, after it: %s", sched_algo_name(b.algo), w->node, seed, l.text);
    check(&b, seed);
    job_drive(b.at.j, world_now(b.at.w) + 20 * PS_PER_MS, never,
              NULL); /* who did not need it hears */
    why = comm_fell_back(job_comm(b.at.j, 0));
    assert_non_null(why);
    assert_non_null(strstr(why, w->node));
    b.started[0] = 0;
    args(&b, 0, &a);
    assert_int_equal(comm_runs_by(job_comm(b.at.j, 0), &a), w->then);
    rc = strstr(why, "starts over") || strstr(why, "from message");
    one_job_down(&b.at);
    return (unsigned)rc;
}

static void run_rows(const struct row *rows, unsigned n, enum what what)
{
    for (unsigned i = 0; i < n; i++) {
        unsigned over = 0;

        for (uint64_t seed = 1; seed <= SEEDS; seed++)
            over += run(&rows[i], what, seed);
        print_message("%s %s: %u of %u cut\n", sched_algo_name(rows[i].algo), rows[i].node, over,
                      SEEDS);
        assert_true(over > 1); /* the moments do hit operations */
    }
}

#define RAIL "conf/rail-2x4.conf"
#define NODE "conf/h100-node.conf"
#define TREE "conf/leaf-spine-8.conf"

static void multimem_that_ends_at_any_moment_costs_no_element(void **state)
{
    static const struct row rows[] = {
        {NODE, "n0s1", 8, COLL_ALLREDUCE, ALGO_NVLS, 0, {0}, ALGO_RING},
        {NODE, "n0s1", 8, COLL_REDUCE_SCATTER, ALGO_NVLS, 0, {0}, ALGO_RING},
        {NODE, "n0s1", 8, COLL_ALLGATHER, ALGO_NVLS, 2, {ALGO_NVLS, ALGO_DIRECT}, ALGO_DIRECT},
    };

    (void)state;
    run_rows(rows, sizeof(rows) / sizeof(*rows), MEMORY);
}

static void operations_of_several_levels_cost_no_element(void **state)
{
    static const struct row rows[] = {
        {RAIL, "leaf1", 8, COLL_ALLREDUCE, ALGO_HIER_SHARP, 0, {0}, ALGO_RING},
        {RAIL, "leaf1", 8, COLL_BROADCAST, ALGO_HIER_SHARP, 0, {0}, ALGO_RING},
        {RAIL,
         "leaf1",
         8,
         COLL_ALLREDUCE,
         ALGO_NVLS_SHARP,
         2,
         {ALGO_NVLS_SHARP, ALGO_HIER},
         ALGO_HIER},
        {RAIL,
         "n0s1",
         8,
         COLL_ALLREDUCE,
         ALGO_NVLS_SHARP,
         2,
         {ALGO_NVLS_SHARP, ALGO_RING},
         ALGO_RING},
    };

    (void)state;
    run_rows(rows, sizeof(rows) / sizeof(*rows), MEMORY);
}

static void protocols_of_switches_cost_no_element(void **state)
{
    const enum coll_algo ml = ALGO_PROTOCOL + (enum coll_algo)proto_seat("switchml");
    const enum coll_algo atp = ALGO_PROTOCOL + (enum coll_algo)proto_seat("atp");
    const struct row rows[] = {
        {TREE, "leaf1", 8, COLL_ALLREDUCE, ml, 2, {ml, ALGO_RING}, ALGO_RING},
        {TREE, "spine0", 8, COLL_ALLREDUCE, ml, 3, {ml, atp, ALGO_TREE}, ALGO_TREE},
        {TREE, "leaf0", 8, COLL_ALLREDUCE, atp, 2, {atp, ALGO_RING}, ALGO_RING},
    };

    (void)state;
    run_rows(rows, sizeof(rows) / sizeof(*rows), MEMORY);
    run_rows(rows, sizeof(rows) / sizeof(*rows), POWER);
}

/* The switch blames no member for links that went down at once, and reports nothing when it is
 * back. */
static void a_switch_without_power_for_a_while_costs_no_element(void **state)
{
    static const struct row rows[] = {
        {TREE, "leaf1", 8, COLL_ALLREDUCE, ALGO_SHARP, 0, {0}, ALGO_RING},
        {TREE, "spine0", 8, COLL_ALLREDUCE, ALGO_SHARP, 0, {0}, ALGO_RING},
        {RAIL, "leaf1", 8, COLL_ALLREDUCE, ALGO_HIER_SHARP, 0, {0}, ALGO_RING},
        {RAIL, "leaf1", 8, COLL_ALLGATHER, ALGO_HIER_SHARP, 0, {0}, ALGO_RING},
        {RAIL,
         "leaf0",
         8,
         COLL_ALLREDUCE,
         ALGO_NVLS_SHARP,
         2,
         {ALGO_NVLS_SHARP, ALGO_HIER},
         ALGO_HIER},
        {RAIL,
         "n0s1",
         8,
         COLL_ALLREDUCE,
         ALGO_NVLS_SHARP,
         2,
         {ALGO_NVLS_SHARP, ALGO_RING},
         ALGO_RING},
        {NODE, "n0s0", 8, COLL_ALLREDUCE, ALGO_NVLS, 0, {0}, ALGO_RING},
        {NODE, "n0s2", 8, COLL_REDUCE_SCATTER, ALGO_NVLS, 0, {0}, ALGO_RING},
    };

    (void)state;
    run_rows(rows, sizeof(rows) / sizeof(*rows), LINKS);
    run_rows(rows, sizeof(rows) / sizeof(*rows), POWER);
}

/* An operation that needs no trees goes on when they fail, and not by them when it starts over. */
static void what_starts_over_is_run_without_all_that_has_failed(void **state)
{
    static const enum coll_algo policy[] = {ALGO_HIER_SHARP, ALGO_SHARP, ALGO_RING};
    struct job_op op = {.kind = COLL_ALLREDUCE,
                        .algo = ALGO_HIER_SHARP,
                        .type = DT_FP32,
                        .count = MAX_COUNT,
                        .in_place = true};
    struct fixture b = {.n = 8, .algo = ALGO_HIER_SHARP};
    struct job_result res;

    (void)state;
    up(&b, RAIL, 3, policy);
    assert_int_equal(job_start(b.at.j, &op, &res), 0);
    failover_begin(job_comm(b.at.j, 0), PART_TREES, "no trees");
    job_drive(b.at.j, world_now(b.at.w) + 6 * PS_PER_US, never, NULL);
    failover_begin(job_comm(b.at.j, 3), PART_RAIL, "no rail");
    assert_int_equal(job_finish(b.at.j, &res), 0);
    assert_int_equal(res.wrong, 0);
    assert_string_equal(comm_fell_back(job_comm(b.at.j, 5)),
                        "no trees (from message 1 of the communicator's operation 1 on); then no "
                        "rail (the communicator's operation 1 starts over)");
    one_job_down(&b.at);
}

/* All three parts fail, one after the other, each with a reason of the greatest length. */
static void reasons_of_many_rounds_are_cut_where_the_text_ends(void **state)
{
    static const enum coll_algo policy[] = {ALGO_NVLS_SHARP, ALGO_SHARP, ALGO_RING};
    static const unsigned parts[PARTS] = {PART_MM, PART_RAIL, PART_TREES};
    struct fixture b = {.n = 8, .algo = ALGO_RING, .count = 1000};
    struct job_loop l = {.n = OPS, .args = args, .ctx = &b, .limit_ps = 100 * PS_PER_S};
    struct coll_args none = {.kind = COLL_BARRIER, .algo = ALGO_NVLS_SHARP};

    (void)state;
    up(&b, RAIL, 3, policy);
    for (unsigned i = 0; i <= PARTS; i++) {
        /* An algorithm that does not exist here is refused by every rank alike, whether it knows of
         * the failure or not; no rank replaces it by another one. */
        assert_int_equal(comm_runs_by(job_comm(b.at.j, 0), &none), none.algo);
        fill(&b);
        assert_int_equal(job_loop_run(b.at.j, &l), 0);
        check(&b, i);
        if (i == PARTS)
            break;
        failover_begin(job_comm(b.at.j, 0), parts[i], "%0200u", i);
        job_drive(b.at.j, world_now(b.at.w) + 100 * PS_PER_MS, never, NULL);
    }
    for (unsigned r = 0; r < b.n; r++) {
        const char *why = comm_fell_back(job_comm(b.at.j, r));

        assert_non_null(why);
        assert_non_null(strstr(why, " on); then 000"));
        assert_int_equal(strlen(why), COMM_TEXT - 1);
    }
    one_job_down(&b.at);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(multimem_that_ends_at_any_moment_costs_no_element),
        cmocka_unit_test(operations_of_several_levels_cost_no_element),
        cmocka_unit_test(protocols_of_switches_cost_no_element),
        cmocka_unit_test(a_switch_without_power_for_a_while_costs_no_element),
        cmocka_unit_test(what_starts_over_is_run_without_all_that_has_failed),
        cmocka_unit_test(reasons_of_many_rounds_are_cut_where_the_text_ends),
    };

    test_eal_init();
    pool = test_pool(60000);
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
