/* SPDX-License-Identifier: BSD-3-Clause */
/* Results at samples: of the switches' trees, of rings, and of whatever schedule there is. */
#include "collective/sched.h"
#include "host/bench/verify/expected.h"
#include "host/bench/verify/rule.h"
#include "sim/job/oracle.h"
#include "tests/fabric/load.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#define MOST 64u

static uint16_t hosts[MOST];
static struct samples samples;
static uint8_t got[SAMPLES_MAX * 8], other[SAMPLES_MAX * 8], *in[MOST];

static struct expected_job job_on(const struct fabric *f, unsigned nranks)
{
    static const uint16_t trees[] = {0, 1};

    for (unsigned r = 0; r < nranks; r++)
        hosts[r] = (uint16_t)r;
    return (struct expected_job){.fab = f,
                                 .nranks = nranks,
                                 .host_of_rank = hosts,
                                 .n_trees = f->n_trees < 2 ? f->n_trees : 2,
                                 .tree = trees,
                                 .n_rail_trees = f->n_trees < 2 ? f->n_trees : 2,
                                 .rail_tree = trees};
}

static void choose(const struct coll_args *a, unsigned nranks)
{
    struct layout l = {.kind = a->kind, .nranks = nranks, .root = a->root, .count = a->count};

    samples_choose(&samples, &l, a->type, 4096);
    for (unsigned r = 0; r < nranks; r++) {
        in[r] = realloc(in[r], sizeof(got));
        for (unsigned i = 0; i < samples.n; i++) {
            uint64_t u = samples_value(a->type, a->op, nranks, r, samples.at[i]);

            memcpy(in[r] + i * dtype_size(a->type), &u, dtype_size(a->type));
        }
    }
}

/* The tree that carries element i of `count` over n trees in equal shares. */
static unsigned tree_of(uint64_t i, uint64_t count, unsigned n)
{
    for (unsigned k = n; --k;)
        if (i >= k * (count / n) + (k < count % n ? k : count % n))
            return k;
    return 0;
}

static void sharp_is_the_sum_of_the_trees(void **state)
{
    static const char *const confs[] = {"conf/leaf-spine-8.conf", "tests/clocks/uneven.conf",
                                        "tests/clocks/half-reduces.conf"};

    (void)state;
    for (unsigned c = 0; c < LEN(confs); c++) {
        struct fabric *f = load_file(confs[c]);
        struct expected_job j = job_on(f, f->n_hosts);
        struct coll_args a = {
            .kind = COLL_ALLREDUCE, .algo = ALGO_SHARP, .count = 40001, .type = DT_FP16};
        struct fab_members m = {.ranks_per_host = 1};
        const void *each[MOST];

        choose(&a, j.nranks);
        for (unsigned r = 0; r < j.nranks; r++) {
            each[r] = in[r];
            fab_members_add(&m, r);
        }
        assert_int_equal(expected_values(&j, &a, false, false, &samples, got), 0);
        for (unsigned k = 0; k < j.n_trees; k++) {
            assert_int_equal(oracle_tree(f, &f->trees[k], &m, a.type, a.op, samples.n, each, other),
                             0);
            for (unsigned i = 0; i < samples.n; i++)
                if (tree_of(samples.at[i], a.count, j.n_trees) == k)
                    assert_memory_equal(got + 2 * i, other + 2 * i, 2);
        }
        fabric_free(f);
    }
}

/* Every block begins at another rank, and goes around once. */
static void a_ring_sums_in_its_order(void **state)
{
    struct fabric *f = load_file("conf/leaf-spine-8.conf");
    struct expected_job j = job_on(f, 8);
    struct coll_args a = {
        .kind = COLL_ALLREDUCE, .algo = ALGO_RING, .count = 4096, .type = DT_FP32};
    unsigned begins = 0;

    (void)state;
    choose(&a, 8);
    assert_int_equal(expected_values(&j, &a, false, false, &samples, got), 0);
    for (unsigned block = 0; block < 8; block++) {
        unsigned fits = 0;

        for (unsigned first = 0; first < 8; first++) {
            uint8_t sum[512 * 4], next[512 * 4];

            memcpy(sum, in[first] + block * sizeof(sum), sizeof(sum));
            for (unsigned k = 1; k < 8; k++) {
                const void *two[2] = {sum, in[(first + k) % 8] + block * sizeof(sum)};

                rule_reduce(OP_SUM, DT_FP32, next, two, 2, 512);
                memcpy(sum, next, sizeof(sum));
            }
            if (!memcmp(sum, got + block * sizeof(sum), sizeof(sum))) {
                fits++;
                begins |= 1u << first;
            }
        }
        assert_int_equal(fits, 1);
    }
    assert_int_equal(begins, 0xff);
    fabric_free(f);
}

/* Integers have one sum, whatever the order; in place and out of place are one order. */
static void every_schedule_reduces_every_element_once(void **state)
{
    static const char *const confs[] = {"conf/leaf-spine-8.conf", "conf/h100-node.conf",
                                        "conf/rail-2x4.conf", "tests/clocks/uneven.conf"};
    static const enum coll_kind kinds[] = {COLL_ALLREDUCE, COLL_REDUCE, COLL_REDUCE_SCATTER};
    static const uint64_t counts[] = {1, 125, 5003};
    unsigned done = 0;

    (void)state;
    for (unsigned c = 0; c < LEN(confs); c++) {
        struct fabric *f = load_file(confs[c]);
        struct expected_job j = job_on(f, f->n_hosts);

        for (unsigned i = 0; i < 3 * 3 * 2 * 2 * ALGO_USUAL; i++) {
            struct coll_args a = {.kind = kinds[i % 3],
                                  .count = counts[i / 3 % 3],
                                  .type = i / 9 % 2 ? DT_UINT32 : DT_FP64,
                                  .mm_self = i / 18 % 2,
                                  .algo = i / 36,
                                  .root = 1};
            const void *each[MOST];
            int rc;

            choose(&a, j.nranks);
            for (unsigned r = 0; r < j.nranks; r++)
                each[r] = in[r];
            rc = expected_values(&j, &a, false, false, &samples, got);
            assert_int_equal(expected_values(&j, &a, true, false, &samples, other), rc);
            if (rc == -ENOTSUP)
                continue;
            assert_int_equal(rc, 0);
            assert_memory_equal(got, other, samples.n * dtype_size(a.type));
            rule_reduce(OP_SUM, a.type, other, each, j.nranks, samples.n);
            if (a.type == DT_UINT32)
                assert_memory_equal(got, other, samples.n * 4);
            done++;
        }
        fabric_free(f);
    }
    assert_true(done >= 36 * (5 + 4 + 4));
}

static void sums_in_order_of_arrival_are_unknown(void **state)
{
    struct fabric *f = load_text(LINKS "single_switch = { hosts = 4; };\n"
                                       "reduce = { order = \"arrival\"; };\n");
    struct expected_job j = job_on(f, 4);
    struct coll_args a = {.kind = COLL_ALLREDUCE, .algo = ALGO_SHARP, .count = 10, .type = DT_FP32};

    (void)state;
    choose(&a, 4);
    assert_int_equal(expected_values(&j, &a, false, false, &samples, got), -ENODATA);
    a.algo = ALGO_RING;
    assert_int_equal(expected_values(&j, &a, false, false, &samples, got), 0);
    fabric_free(f);
}

struct patience {
    unsigned asked, most;
};

static bool is_over(void *ctx)
{
    struct patience *p = ctx;

    return p->asked++ == p->most;
}

/* While schedules are made, and while they run. */
static void the_caller_can_stop_it(void **state)
{
    struct fabric *f = load_file("conf/leaf-spine-8.conf");
    struct expected_job j = job_on(f, 8);
    struct coll_args a = {
        .kind = COLL_ALLREDUCE, .algo = ALGO_RING, .count = 4u << 20, .type = DT_FP32};
    struct patience p = {.most = UINT_MAX};
    unsigned n;

    (void)state;
    choose(&a, 8);
    j.stop = is_over, j.stop_ctx = &p;
    assert_int_equal(expected_values(&j, &a, false, false, &samples, got), 0);
    n = p.asked;
    assert_true(n > 8 + 1);
    for (unsigned i = 0; i < n; i++) {
        p = (struct patience){.most = i};
        assert_int_equal(expected_values(&j, &a, false, false, &samples, got), -ECANCELED);
        assert_int_equal(p.asked, i + 1);
    }
    fabric_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sharp_is_the_sum_of_the_trees),
        cmocka_unit_test(a_ring_sums_in_its_order),
        cmocka_unit_test(every_schedule_reduces_every_element_once),
        cmocka_unit_test(sums_in_order_of_arrival_are_unknown),
        cmocka_unit_test(the_caller_can_stop_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
