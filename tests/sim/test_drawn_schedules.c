/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whatever schedule the reader accepts ends, with the right result: when it is run by the executor
 * in virtual time, when the expected result is worked out, and in the model. SCHEDULES: how many are
 * tried, from seed FIRST on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collective/file/sched_file.h"
#include "host/bench/verify/expected.h"
#include "host/bench/verify/rule.h"
#include "model/predict.h"
#include "sim/job/sim_job.h"
#include "tests/support/draw_schedule.h"
#include "tests/support/eal.h"

enum { RANKS = 8, HANGS_S = 60 };

static const uint16_t hosts[RANKS] = {0, 1, 2, 3, 4, 5, 6, 7};
static struct rte_mempool *pool;
static struct fabric *fab;
static char text[DRAWN_BYTES];
static unsigned long long seed;

static bool hangs(void *ctx)
{
    return ++*(unsigned *)ctx > 100000;
}

/* The values of a sum at every element, as the schedules of all ranks make them. */
static void expect(const struct coll_args *a, unsigned n, bool in_place)
{
    static struct samples at;
    static uint8_t got[SAMPLES_MAX * 8], want[SAMPLES_MAX * 8], in[RANKS][SAMPLES_MAX * 8];
    struct layout l = {.kind = a->kind, .nranks = n, .root = a->root, .count = a->count};
    unsigned asked = 0;
    struct expected_job j = {
        .fab = fab, .nranks = n, .host_of_rank = hosts, .stop = hangs, .stop_ctx = &asked};
    const void *each[RANKS];
    int rc;

    samples_choose(&at, &l, a->type, 4096);
    for (unsigned r = 0; r < n; r++) {
        for (unsigned i = 0; i < at.n; i++) {
            uint64_t v = samples_value(a->type, a->op, n, r, at.at[i]);

            memcpy(in[r] + 4ul * i, &v, 4);
        }
        each[r] = in[r];
    }
    rc = expected_values(&j, a, in_place, false, &at, got);
    if (rc)
        fail_msg("seed %llu: expected values: %s\n%s", seed, strerror(-rc), text);
    rule_reduce(a->op, a->type, want, each, n, at.n);
    assert_memory_equal(got, want, 4ul * at.n);
}

static void simulate(const struct job_op *op, unsigned n, bool both)
{
    struct world_cfg wc = {
        .fab = fab, .nranks = n, .host_of_rank = hosts, .pool = pool, .seed = seed};
    struct job_cfg jc = {.fab = fab,
                         .nranks = n,
                         .host_of_rank = hosts,
                         .group = 1,
                         .key = 7,
                         .algos = 1u << ALGO_SCHEDULE,
                         .any_order = true,
                         .limit_ps = PS_PER_S};
    char err[COMM_TEXT] = "";
    struct job *j;

    assert_int_equal(world_create(&jc.w, &wc), 0);
    if (job_create(&j, &jc, err))
        fail_msg("%s", err);
    for (unsigned place = 0; place < 1u + both; place++) {
        struct job_op one = *op;
        struct job_result res;

        one.in_place = place;
        one.seed = seed + place;
        one.skew_ps = seed % 2 ? PS_PER_US : 0;
        if (job_run(j, &one, &res) || res.wrong || res.failed_ranks)
            fail_msg("seed %llu: %lu wrong, %d failed: %s\n%s", seed, res.wrong, res.failed_ranks,
                     res.text, text);
    }
    assert_int_equal(job_destroy(j), 0);
    world_destroy(jc.w);
}

static unsigned of_env(const char *name, unsigned usual)
{
    return getenv(name) ? (unsigned)strtoul(getenv(name), NULL, 0) : usual;
}

/* Everything that is done with a schedule, in both places. */
static void run(const struct sched_file *f, size_t count)
{
    struct job_op op = {.kind = f->kind,
                        .algo = ALGO_SCHEDULE,
                        .type = DT_UINT32,
                        .op = OP_SUM,
                        .count = count,
                        .root = f->root,
                        .file = f};
    struct coll_args a = {.kind = op.kind,
                          .algo = op.algo,
                          .type = op.type,
                          .op = op.op,
                          .count = op.count,
                          .root = op.root,
                          .file = f};
    struct coll_prediction p;

    alarm(HANGS_S);
    for (unsigned place = 0; coll_reduces(a.kind) && place < 1u + f->place[1]; place++)
        expect(&a, f->nranks, place);
    if (coll_predict(fab, &a, f->nranks, hosts, 0, 0, &p) || p.time_ps <= 0)
        fail_msg("seed %llu: the model has no time\n%s", seed, text);
    simulate(&op, f->nranks, f->place[1]);
    alarm(0);
}

static void what_is_accepted_ends(void **state)
{
    unsigned want = of_env("SCHEDULES", 300), refused = 0, n[8] = {0};
    struct fab_errors errs;

    (void)state;
    seed = of_env("FIRST", 1);
    for (unsigned done = 0; done < want; seed++) {
        struct sched_file *f;

        draw_schedule(seed, text);
        f = sched_file_parse(text, "drawn", &errs);
        if (!f) {
            refused++;
            continue;
        }
        run(f, seed % 7 ? 1 + seed % 300 : 5000);
        n[f->kind]++;
        done++;
        sched_file_free(f);
    }
    print_message("%u schedules, %u refused\n", want, refused);
    for (unsigned k = 0; k < 8 && want >= 300; k++)
        assert_true(n[k] > 5);
    assert_true(refused < 3 * want);
}

/* Chunks lo to hi - 1 of a buffer. */
static int put_range(char *p, const char *buf, unsigned lo, unsigned hi)
{
    return hi - lo > 1 ? sprintf(p, " %s:%u-%u", buf, lo, hi - 1) : sprintf(p, " %s:%u", buf, lo);
}

/* Recursive halving and doubling as a reader of docs/labs/own-schedule.md writes it: a message
 * arrives while the step before is still open. */
static void recursive_halving_ends(void **state)
{
    struct fab_errors errs;
    struct sched_file *f;
    char *p = text;

    (void)state;
    seed = 0;
    p += sprintf(p, "schedule rhd\ncollective all_reduce\nranks %d\nchunks %d\n", RANKS, RANKS);
    for (unsigned r = 0; r < RANKS; r++) {
        unsigned lo = 0, hi = RANKS, n = 0;

        p += sprintf(p, "rank %u\n", r);
        for (unsigned d = RANKS / 2; d; d /= 2) {
            const char *from = d == RANKS / 2 ? "in" : "out";
            unsigned mid = (lo + hi) / 2, mine = r & d ? mid : lo, his = r & d ? lo : mid;

            p += sprintf(p, "%u send %u", n++, r ^ d);
            p += put_range(p, from, his, his + d);
            p += n > 1 ? sprintf(p, " after %u", n - 2) : 0;
            p += sprintf(p, "\n%u recv_reduce %u", n++, r ^ d);
            p += put_range(p, from, mine, mine + d);
            p += put_range(p, "out", mine, mine + d);
            p += n > 2 ? sprintf(p, " after %u\n", n - 3) : sprintf(p, "\n");
            lo = mine, hi = mine + d;
        }
        for (unsigned d = 1; d < RANKS; d *= 2) {
            unsigned his = lo ^ d;

            p += sprintf(p, "%u send %u", n++, r ^ d);
            p += put_range(p, "out", lo, hi);
            p += sprintf(p, " after %u\n%u recv %u", n - 2, n, r ^ d);
            n++;
            p += put_range(p, "out", his, his + d);
            p += sprintf(p, " after %u\n", n - 3);
            lo = lo < his ? lo : his, hi = lo + 2 * d;
        }
    }
    f = sched_file_parse(text, "rhd", &errs);
    if (!f)
        fab_errors_print(&errs, stderr);
    assert_non_null(f);
    run(f, 1024);
    run(f, 40001);
    sched_file_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_accepted_ends),
        cmocka_unit_test(recursive_halving_ends),
    };

    test_eal_init();
    pool = test_pool(30000);
    fab = fabric_load_string("name = \"drawn\"; ecmp = \"balanced\";\n"
                             "leaf_spine = { leaves = 2; spines = 1; hosts_per_leaf = 4;\n"
                             "  host_link = { rate = \"400Gb/s\"; latency = \"300ns\"; };\n"
                             "  spine_link = { rate = \"400Gb/s\"; latency = \"300ns\"; }; };\n",
                             "drawn.conf", NULL);
    return fab ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
