/* SPDX-License-Identifier: BSD-3-Clause */
/* SwitchML over one switch and a tree, with packets lost, repeated and overtaken. */
#include "base/random.h"
#include "protocols/builtin.h"
#include "tests/protocols/star_sum.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static const struct star_conf perfect = {.protocol = &trib_switchml, .leaves = 1, .seed = 1};

static void exact_at_every_length(void **state)
{
    static const uint64_t counts[] = {1,     2, 255,      256,      257,  4096,
                                      10000, 1, 256 * 64, 256 * 65, 50000};
    struct star_conf c = perfect;

    (void)state;
    c.key[0] = "slots";
    c.value[0] = 16;
    for (c.leaves = 1; c.leaves <= 4; c.leaves++)
        for (unsigned ranks = 1; ranks <= 9; ranks += 4) {
            struct star *s = star_new(&c);
            int job = star_job(s, ranks);

            for (unsigned i = 0; i < 2 * LEN(counts); i++)
                star_sum(s, &c, job, ranks, counts[i % LEN(counts)],
                         i % 3 == 2 ? TRIB_FLOAT32
                         : i % 3    ? TRIB_INT32
                                    : TRIB_UINT32,
                         i & 1);
            assert_int_equal(star_counter(s, "resent"), 0);
            assert_int_equal(star_counter(s, "bad"), 0);
            star_job_end(s, job);
            assert_int_equal(star_slots_in_use(s), 0);
            assert_int_equal(star_free(s), 0);
        }
}

static void exact_with_all_ranks_there_are(void **state)
{
    struct star_conf c = perfect;
    struct star *s;
    int job;

    (void)state;
    c.leaves = TRIB_RANKS / TRIB_MAX_CHILDREN;
    s = star_new(&c);
    job = star_job(s, TRIB_RANKS);
    star_sum(s, &c, job, TRIB_RANKS, 300, TRIB_INT32, false);
    assert_int_equal(star_counter(s, "resent"), 0);
    assert_int_equal(star_free(s), 0);
}

static void exact_under_faults(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct star_conf c = {.protocol = &trib_switchml, .seed = seed};
        unsigned ranks = 1 + (unsigned)(random_next(&star_random) % 12);
        struct star *s;
        int job;

        c.leaves = 1 + (unsigned)(seed % 4);
        c.loss_ppm = seed % 5 ? 20000 : 200000;
        c.repeat_ppm = 50000;
        c.delay_ppm = 100000;
        c.buffers = seed % 2 ? 2 : 64;
        c.key[0] = "slots";
        c.value[0] = 1u << seed % 7;
        s = star_new(&c);
        job = star_job(s, ranks);
        for (unsigned i = 0; i < 6; i++)
            star_sum(s, &c, job, ranks, 1 + random_next(&star_random) % (i % 2 ? 600 : 20000),
                     i % 3 ? TRIB_INT32 : TRIB_FLOAT32, i & 1);
        assert_int_equal(star_counter(s, "bad"), 0);
        assert_int_equal(star_free(s), 0);
    }
}

/* What does not depend on the seed of faults: the bits. */
static void floats_repeat(void **state)
{
    enum { RANKS = 7, COUNT = 5000 };
    float *send = star_random_floats(RANKS, COUNT), *recv[3];

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        struct star_conf c = perfect;
        struct star *s;
        int job;

        c.seed = i;
        c.leaves = 1 + i;
        c.loss_ppm = i * 10000;
        s = star_new(&c);
        job = star_job(s, RANKS);
        recv[i] = calloc(RANKS * COUNT, sizeof(float));
        assert_null(star_reduce(s, job, send, recv[i], COUNT, TRIB_FLOAT32, TRIB_SUM, 0));
        assert_int_equal(star_free(s), 0);
        assert_memory_equal(recv[0], recv[i], sizeof(float) * RANKS * COUNT);
    }
    for (unsigned i = 0; i < 3; i++)
        free(recv[i]);
    free(send);
}

static void extreme_floats(void **state)
{
    static const float x[] = {0,           -0.0f,      1e-45f, -1e-45f, 0x1p-126f,       0x1p-149f,
                              0x1p127f,    -0x1p127f,  1,      -1,      0x1.fffffep125f, 3.5f,
                              0x1.8p-140f, 0x1.8p-130f};
    struct star_conf c = perfect;

    (void)state;
    for (unsigned i = 0; i < LEN(x); i++)
        for (unsigned k = 0; k < LEN(x); k++) {
            struct star *s = star_new(&c);
            int job = star_job(s, 2);
            float send[2] = {x[i], x[k]}, recv[2];
            double max = fmax(fabs((double)x[i]), fabs((double)x[k]));

            assert_null(star_reduce(s, job, send, recv, 1, TRIB_FLOAT32, TRIB_SUM, 0));
            if (max < 0x1p127)
                star_check_floats(&c, send, recv, 2, 1, max);
            assert_int_equal(star_free(s), 0);
        }
}

static void no_fixed_point_is_named(void **state)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};

    (void)state;
    for (unsigned i = 0; i < LEN(bad); i++) {
        struct star_conf c = perfect;
        struct star *s = star_new(&c);
        int job = star_job(s, 4);
        float *send = star_random_floats(4, 3000), *recv = calloc(4ul * 3000, 4);
        const char *why;

        send[3000 * i + 1000 * i] = bad[i];
        why = star_reduce(s, job, send, recv, 3000, TRIB_FLOAT32, TRIB_SUM, 0);
        assert_non_null(why);
        assert_non_null(strstr(why, "fixed point"));
        free(send);
        free(recv);
        assert_int_equal(star_free(s), 0);
    }
}

static void silence_is_named(void **state)
{
    struct star_conf c = perfect;
    struct star *s;
    int32_t x[2] = {1, 2}, y[2];
    const char *why;

    (void)state;
    c.loss_ppm = 1000000;
    s = star_new(&c);
    why = star_reduce(s, star_job(s, 2), x, y, 1, TRIB_INT32, TRIB_SUM, 0);
    assert_non_null(why);
    assert_non_null(strstr(why, "patience_ms"));
    assert_int_equal(star_free(s), 0);
}

/* Random bytes may end an operation by name or be ignored; nothing else. */
static void garbage_is_ignored(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct star_conf c = {.protocol = &trib_switchml, .leaves = 2, .seed = seed};
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

static void memory_that_is_not_there(void **state)
{
    struct star_conf c = perfect;
    struct star *s;

    (void)state;
    c.memory = 1000;
    s = star_new(&c);
    assert_int_equal(star_job(s, 4), -28); /* ENOSPC */
    assert_int_equal(star_free(s), 0);
}

/* Without loss the formula is the time, from pools that bind to such that do not. */
static void takes_what_the_formula_says(void **state)
{
    static const uint64_t counts[] = {1, 1000, 100000, 1000000};

    (void)state;
    for (unsigned leaves = 1; leaves <= 2; leaves++)
        for (int64_t slots = 16; slots <= 1024; slots *= 2)
            for (unsigned i = 0; i < 2 * LEN(counts); i++) {
                struct star_conf c = perfect;
                enum trib_type type = i & 1 ? TRIB_FLOAT32 : TRIB_INT32;
                uint64_t count = counts[i / 2];
                struct star *s;
                double took, model;
                int job;
                void *x = calloc(4 * count, 4);

                c.leaves = leaves;
                c.key[0] = "slots";
                c.value[0] = slots;
                c.latency_ps = 5000000;
                s = star_new(&c);
                job = star_job(s, 4);
                assert_null(star_reduce(s, job, x, x, count, type, TRIB_SUM, 0));
                took = (double)star_took_ps(s, job);
                model = (double)star_model_ps(s, job, count, type);
                if (fabs(model / took - 1) > 0.02)
                    fail_msg("%u leaves, %d slots, %lu %s: took %.0f ps, predicted %.0f", leaves,
                             (int)slots, count, type == TRIB_INT32 ? "int32" : "float32", took,
                             model);
                free(x);
                assert_int_equal(star_free(s), 0);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_at_every_length),
        cmocka_unit_test(exact_with_all_ranks_there_are),
        cmocka_unit_test(exact_under_faults),
        cmocka_unit_test(floats_repeat),
        cmocka_unit_test(extreme_floats),
        cmocka_unit_test(no_fixed_point_is_named),
        cmocka_unit_test(silence_is_named),
        cmocka_unit_test(garbage_is_ignored),
        cmocka_unit_test(memory_that_is_not_there),
        cmocka_unit_test(takes_what_the_formula_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
