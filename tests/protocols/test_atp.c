/* SPDX-License-Identifier: BSD-3-Clause */
/* ATP: aggregators of several jobs, collisions, resends, with packets lost, repeated, overtaken. */
#include "base/random.h"
#include "protocols/builtin.h"
#include "tests/protocols/star_sum.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static const struct star_conf perfect = {.protocol = &trib_atp, .leaves = 1, .seed = 1};

static void exact_at_every_length(void **state)
{
    static const uint64_t counts[] = {1,     2, 255,      256,      257,  4096,
                                      10000, 1, 256 * 64, 256 * 65, 50000};

    (void)state;
    for (int64_t servers = 0; servers < 3; servers++)
        for (unsigned leaves = 1; leaves <= 4; leaves++)
            for (unsigned ranks = 1; ranks <= 9; ranks += 4) {
                struct star_conf c = perfect;
                struct star *s;
                int job;

                c.leaves = leaves;
                c.key[0] = "servers";
                c.value[0] = servers < ranks ? servers : ranks;
                s = star_new(&c);
                job = star_job(s, ranks);
                for (unsigned i = 0; i < 2 * LEN(counts); i++)
                    star_sum(s, &c, job, ranks, counts[i % LEN(counts)],
                             i % 3 == 2 ? TRIB_FLOAT32
                             : i % 3    ? TRIB_INT32
                                        : TRIB_UINT32,
                             i & 1);
                assert_int_equal(star_counter(s, "bad"), 0);
                if (ranks > 4 * leaves)
                    assert_true(star_counter(s, "sums") > 0);
                assert_int_equal(star_slots_in_use(s), 0);
                star_job_end(s, job);
                assert_int_equal(star_free(s), 0);
            }
}

/* Places below a switch are those of the whole job's ranks at the server; more than a switch may have
 * are refused. */
static void exact_with_all_ranks_there_are(void **state)
{
    (void)state;
    for (unsigned lost = 0; lost < 2; lost++) {
        struct star_conf c = perfect;
        struct star *s;
        int job;

        c.leaves = TRIB_RANKS / TRIB_MAX_CHILDREN;
        c.loss_ppm = lost * 1000;
        c.key[0] = "servers";
        c.value[0] = 3;
        s = star_new(&c);
        job = star_job(s, TRIB_RANKS);
        star_sum(s, &c, job, TRIB_RANKS, 600, TRIB_INT32, false);
        assert_int_equal(star_counter(s, "bad"), 0);
        assert_int_equal(star_counter(s, "resent") > 0, lost);
        if (!lost) {
            c.leaves--;
            star_job_end(s, job);
            assert_int_equal(star_free(s), 0);
            s = star_new(&c);
            assert_int_equal(star_job(s, TRIB_RANKS), -EINVAL);
        }
        assert_int_equal(star_free(s), 0);
    }
}

static void exact_under_faults(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct star_conf c = {.protocol = &trib_atp, .seed = seed};
        unsigned ranks = 1 + (unsigned)(random_next(&star_random) % 12);
        struct star *s;
        int job;

        c.leaves = 1 + (unsigned)(seed % 4);
        c.loss_ppm = seed % 5 ? 20000 : 200000;
        c.repeat_ppm = 50000;
        c.delay_ppm = 100000;
        c.mark_ppm = seed % 3 ? 0 : 100000;
        c.buffers = seed % 2 ? 2 : 64;
        c.key[0] = "aggregators";
        c.value[0] = 1 << seed % 8;
        c.key[1] = "servers";
        c.value[1] = (int64_t)(seed % 3 < ranks ? seed % 3 : ranks);
        c.key[2] = "window";
        c.value[2] = seed % 7 * 5;
        s = star_new(&c);
        job = star_job(s, ranks);
        for (unsigned i = 0; i < 6; i++)
            star_sum(s, &c, job, ranks, 1 + random_next(&star_random) % (i % 2 ? 600 : 20000),
                     i % 3 ? TRIB_INT32 : TRIB_FLOAT32, i & 1);
        assert_int_equal(star_counter(s, "bad"), 0);
        star_job_end(s, job);
        assert_int_equal(star_slots_in_use(s), 0);
        assert_int_equal(star_free(s), 0);
    }
}

/* Jobs that share the aggregators do not see each other's sums; one that ends gives back its own. */
static void jobs_share_aggregators(void **state)
{
    enum { JOBS = 4, COUNT = 20000 };

    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct star_conf c = {.protocol = &trib_atp, .leaves = 2, .seed = seed};
        uint32_t *send[JOBS], *recv[JOBS];
        int job[JOBS];
        struct star *s;

        c.loss_ppm = seed % 2 ? 10000 : 0;
        c.key[0] = "aggregators";
        c.value[0] = 64;
        s = star_new(&c);
        for (unsigned j = 0; j < JOBS; j++) {
            job[j] = star_job(s, 4 + j);
            send[j] = star_random_ints(4 + j, COUNT);
            recv[j] = calloc((4ul + j) * COUNT, 4);
            star_begin(s, job[j], send[j], recv[j], COUNT, TRIB_INT32, TRIB_SUM, 1000000);
        }
        star_job_end(s, job[3]); /* in the middle of it */
        assert_null(star_run(s));
        assert_true(star_counter(s, "collisions") > 0);
        for (unsigned j = 0; j < JOBS; j++) {
            if (j < 3)
                star_check_ints(send[j], recv[j], 4 + j, COUNT);
            free(send[j]);
            free(recv[j]);
        }
        for (unsigned j = 0; j < 3; j++)
            star_job_end(s, job[j]);
        assert_int_equal(star_slots_in_use(s), 0);
        assert_int_equal(star_free(s), 0);
    }
}

/* The share of blocks that collide: m / (A + m), with m others in flight; less by the share of their
 * flight that they are not at the switch. */
static void collides_as_the_hash_says(void **state)
{
    (void)state;
    for (int64_t aggregators = 32; aggregators <= 1024; aggregators *= 2) {
        enum { COUNT = 2000000, WINDOW = 128 };
        struct star_conf c = perfect;
        double share, p = (WINDOW - 1.0) / ((double)aggregators + WINDOW - 1);
        uint32_t *x;
        struct star *s;
        int job;

        c.key[0] = "aggregators";
        c.value[0] = aggregators;
        c.key[1] = "window";
        c.value[1] = WINDOW;
        c.key[2] = "servers";
        c.value[2] = 1;
        s = star_new(&c);
        job = star_job(s, 4);
        x = calloc(4ul * COUNT, 4);
        assert_null(star_reduce(s, job, x, x, COUNT, TRIB_INT32, TRIB_SUM, 0));
        share = (double)star_counter(s, "collisions") / 3 / (COUNT / 256.0);
        if (share > 1.03 * p || share < 0.85 * p)
            fail_msg("%d aggregators: %.4f collide, formula %.4f", (int)aggregators, share, p);
        free(x);
        assert_int_equal(star_free(s), 0);
    }
}

/* Blocks whose first part found its aggregator taken wait for no gap: without loss nothing is resent. */
static void resends_nothing_without_loss(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct star_conf c = perfect;
        unsigned ranks;
        struct star *s;
        int job;

        c.seed = seed;
        c.buffers = 256;
        c.leaves = 1 + (unsigned)(seed % 4);
        c.key[0] = "servers";
        c.value[0] = (int64_t)(seed % 3);
        c.key[1] = "aggregators";
        c.value[1] = 256 << seed % 5;
        s = star_new(&c);
        ranks = 2 + (unsigned)(random_next(&star_random) % 15);
        job = star_job(s, ranks);
        star_sum(s, &c, job, ranks, 100000, TRIB_INT32, false);
        if (star_counter(s, "resent"))
            fail_msg("seed %u: %u parts are sent again", (unsigned)seed,
                     (unsigned)star_counter(s, "resent"));
        assert_int_equal(star_free(s), 0);
    }
}

static void marks_halve_the_window(void **state)
{
    struct star_conf c = perfect;
    struct star *s;
    int job;

    (void)state;
    c.mark_ppm = 20000;
    s = star_new(&c);
    job = star_job(s, 6);
    star_sum(s, &c, job, 6, 300000, TRIB_INT32, false);
    assert_true(star_counter(s, "halved") > 0);
    assert_int_equal(star_free(s), 0);
}

/* Beyond what four ranks may add up as integers, infinite or no number: as floats, in one part or in
 * two of a block, beside others in fixed point. */
static void without_a_fixed_point_parts_go_as_floats(void **state)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY, 3e38f, 1000, -1000};
    enum { N = 3000 };

    (void)state;
    for (unsigned i = 0; i < 2 * LEN(odd); i++) {
        struct star_conf c = perfect;
        struct star *s = star_new(&c);
        int job = star_job(s, 4);
        float *send = star_random_floats(4, N), *recv = calloc(4ul * N, 4);
        const float x = odd[i % LEN(odd)];
        const unsigned at = 200 * i;

        send[N * (i % 4) + at] = x;
        if (i >= LEN(odd))
            send[N * ((i + 1) % 4) + at + 1] = 700;
        assert_null(star_reduce(s, job, send, recv, N, TRIB_FLOAT32, TRIB_SUM, 0));
        assert_int_equal(star_counter(s, "overflows"), i >= LEN(odd) ? 2 : 1);
        for (unsigned k = 0; k < 4 * N; k++) {
            double want = 0;

            for (unsigned r = 0; r < 4; r++)
                want += send[N * r + k % N];
            if (isnan(want))
                assert_true(isnan(recv[k]));
            else if (isinf(want))
                assert_true(recv[k] == (float)want);
            else
                assert_true(fabs(recv[k] - want) <= 4e-6 + fabs(want) * 1e-6);
        }
        free(send);
        free(recv);
        assert_int_equal(star_free(s), 0);
    }
}

static void silence_is_named(void **state)
{
    struct star_conf c = perfect;
    struct star *s;
    int32_t x[3] = {1, 2, 3}, y[3];
    const char *why;

    (void)state;
    c.loss_ppm = 1000000;
    s = star_new(&c);
    why = star_reduce(s, star_job(s, 3), x, y, 1, TRIB_INT32, TRIB_SUM, 0);
    assert_non_null(why);
    assert_non_null(strstr(why, "patience_ms"));
    assert_int_equal(star_free(s), 0);
}

static void garbage_is_ignored(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct star_conf c = {.protocol = &trib_atp, .leaves = 2, .seed = seed};
        struct star *s;
        int job;

        c.garbage_ppm = 500000;
        s = star_new(&c);
        job = star_job(s, 5);
        for (unsigned i = 0; i < 4; i++)
            star_sum(s, &c, job, 5, 5000, i & 1 ? TRIB_INT32 : TRIB_FLOAT32, false);
        assert_true(star_counter(s, "bad") > 0);
        assert_int_equal(star_free(s), 0);
    }
}

/* With as many send buffers as a host has. From 64 KiB on within a tenth, where all ranks are servers or
 * one is; longer where blocks have waited for a gap. */
static void takes_what_the_formula_says(void **state)
{
    static const uint64_t counts[] = {1, 4000, 16384, 65536, 262144, 1000000};
    static const int64_t servers[] = {0, 1, 2};
    unsigned waited = 0;

    (void)state;
    for (unsigned i = 0; i < LEN(counts) * 3 * 3 * 3; i++) {
        struct star_conf c = perfect;
        const uint64_t count = counts[i % LEN(counts)];
        const unsigned ranks = 2u << i / LEN(counts) % 3;
        double took, model, off;
        struct star *s;
        int job;
        void *x = calloc(ranks * count, 4);

        c.leaves = 1u << i / LEN(counts) / 3 % 3;
        c.buffers = 256;
        c.key[0] = "servers";
        c.value[0] = servers[i / LEN(counts) / 9];
        off = count < 16384 || c.value[0] > 1 ? 0.15 : 0.1;
        s = star_new(&c);
        job = star_job(s, ranks);
        assert_null(star_reduce(s, job, x, x, count, TRIB_INT32, TRIB_SUM, 0));
        took = (double)star_took_ps(s, job);
        model = (double)star_model_ps(s, job, count, TRIB_INT32);
        waited += star_counter(s, "resent") > 0;
        if (model / took > 1 + off || (model / took < 1 - off && !star_counter(s, "resent")))
            fail_msg("%u leaves, %u ranks, %d servers, %lu: took %.0f ps, predicted %.0f", c.leaves,
                     ranks, (int)c.value[0], count, took, model);
        free(x);
        assert_int_equal(star_free(s), 0);
    }
    assert_true(waited < 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_at_every_length),
        cmocka_unit_test(exact_with_all_ranks_there_are),
        cmocka_unit_test(exact_under_faults),
        cmocka_unit_test(jobs_share_aggregators),
        cmocka_unit_test(collides_as_the_hash_says),
        cmocka_unit_test(resends_nothing_without_loss),
        cmocka_unit_test(marks_halve_the_window),
        cmocka_unit_test(without_a_fixed_point_parts_go_as_floats),
        cmocka_unit_test(silence_is_named),
        cmocka_unit_test(garbage_is_ignored),
        cmocka_unit_test(takes_what_the_formula_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
