/* SPDX-License-Identifier: BSD-3-Clause */
/* The parameter server on ranks, with packets lost, repeated and overtaken. */
#include "aggregation/arith.h"
#include "base/random.h"
#include "protocols/builtin.h"
#include "tests/protocols/star.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static uint64_t rnd = 1;

static const enum dtype dtypes[] = {DT_INT8,   DT_UINT8, DT_INT32, DT_UINT32, DT_INT64,
                                    DT_UINT64, DT_FP16,  DT_FP32,  DT_FP64,   DT_BF16};
static const enum redop redops[] = {OP_SUM, OP_PROD, OP_MIN, OP_MAX};

/* One operation on random bits, which must give those of a chain in order of rank. */
static const char *reduce(struct star *s, int job, unsigned ranks, uint64_t count,
                          enum trib_type type, enum trib_sum op, bool in_place)
{
    uint64_t bytes = count * trib_size(type);
    char *send = malloc(ranks * bytes), *recv = calloc(ranks, bytes), *sum = malloc(bytes);
    const char *why;

    for (uint64_t i = 0; i < ranks * bytes; i++)
        send[i] = (char)random_next(&rnd);
    memcpy(sum, send, bytes);
    for (unsigned r = 1; r < ranks; r++) {
        const void *in[2] = {sum, send + r * bytes};

        arith_scalar(redops[op], dtypes[type])(sum, in, 2, count);
    }
    why = star_reduce(s, job, send, in_place ? send : recv, count, type, op, 5000000);
    for (unsigned r = 0; r < ranks && !why && ranks > 1; r++)
        assert_memory_equal((in_place ? send : recv) + r * bytes, sum, bytes);
    free(send);
    free(recv);
    free(sum);
    return why;
}

static void exact_of_every_type(void **state)
{
    static const uint64_t counts[] = {1, 7, 1000, 254, 20000};

    (void)state;
    for (int64_t servers = 0; servers <= 3; servers++)
        for (unsigned ranks = 1; ranks <= 9; ranks += 2) {
            struct star_conf c = {.protocol = &trib_ps, .leaves = 1 + ranks % 3, .seed = 1};
            struct star *s;
            int job;

            c.key[0] = "servers";
            c.value[0] = servers < ranks ? servers : ranks;
            s = star_new(&c);
            job = star_job(s, ranks);
            for (unsigned i = 0; i < TRIB_TYPES * TRIB_REDUCTIONS; i++)
                assert_null(reduce(s, job, ranks, counts[i % LEN(counts)], i % TRIB_TYPES,
                                   i / TRIB_TYPES, i & 1));
            assert_int_equal(star_counter(s, "resent"), 0);
            assert_int_equal(star_counter(s, "bad"), 0);
            assert_int_equal(star_free(s), 0);
        }
}

static void exact_with_all_ranks_there_are(void **state)
{
    struct star_conf c = {.protocol = &trib_ps, .leaves = 1, .seed = 1};
    struct star *s;
    int job;

    (void)state;
    c.key[0] = "servers";
    c.value[0] = 2;
    c.key[1] = "window";
    c.value[1] = 1;
    s = star_new(&c);
    job = star_job(s, TRIB_RANKS);
    assert_null(reduce(s, job, TRIB_RANKS, 600, TRIB_INT32, TRIB_SUM, false));
    assert_int_equal(star_free(s), 0);
}

static void exact_under_faults(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct star_conf c = {.protocol = &trib_ps, .leaves = 1 + (unsigned)seed % 4, .seed = seed};
        unsigned ranks = 2 + (unsigned)(random_next(&rnd) % 10);
        struct star *s;
        int job;

        c.loss_ppm = seed % 5 ? 20000 : 200000;
        c.repeat_ppm = 50000;
        c.delay_ppm = 100000;
        c.buffers = seed % 2 ? 2 : 64;
        c.key[0] = "servers";
        c.value[0] = (int64_t)seed % 3;
        c.key[1] = "window";
        c.value[1] = (int64_t)seed % 6;
        s = star_new(&c);
        job = star_job(s, ranks);
        for (unsigned i = 0; i < 6; i++) {
            const char *why = reduce(s, job, ranks, 1 + random_next(&rnd) % (i % 2 ? 600 : 20000),
                                     (enum trib_type)(random_next(&rnd) % TRIB_TYPES),
                                     (enum trib_sum)(i % 4), i & 1);

            if (why)
                fail_msg("seed %u: %s", (unsigned)seed, why);
        }
        assert_int_equal(star_counter(s, "bad"), 0);
        assert_int_equal(star_free(s), 0);
    }
}

/* Without loss no more packets are on their way to a rank than it has buffers. */
static void receive_buffers_suffice(void **state)
{
    (void)state;
    for (uint32_t window = 128; window <= 4096; window *= 2) {
        struct star_conf c = {.protocol = &trib_ps, .leaves = 2, .seed = 1, .window = window};
        struct star *s;
        int job;

        c.latency_ps = 50000000; /* so that they limit the window */
        s = star_new(&c);
        job = star_job(s, 16);
        assert_null(reduce(s, job, 16, 100000, TRIB_INT32, TRIB_SUM, false));
        assert_true(star_most_to_a_rank(s) <= window);
        assert_int_equal(star_free(s), 0);
    }
}

static void silence_is_named(void **state)
{
    struct star_conf c = {.protocol = &trib_ps, .leaves = 1, .loss_ppm = 1000000};
    struct star *s = star_new(&c);
    const char *why = reduce(s, star_job(s, 3), 3, 10, TRIB_INT32, TRIB_SUM, false);

    (void)state;
    assert_non_null(why);
    assert_non_null(strstr(why, "patience_ms"));
    assert_int_equal(star_free(s), 0);
}

static void garbage_is_ignored(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct star_conf c = {.protocol = &trib_ps, .leaves = 2, .seed = seed};
        struct star *s;
        int job;

        c.garbage_ppm = 500000;
        s = star_new(&c);
        job = star_job(s, 5);
        for (unsigned i = 0; i < 4; i++)
            assert_null(reduce(s, job, 5, 5000, TRIB_FLOAT64, TRIB_SUM, false));
        assert_true(star_counter(s, "bad") > 0);
        assert_int_equal(star_free(s), 0);
    }
}

static void takes_what_the_formula_says(void **state)
{
    static const uint64_t counts[] = {1, 10000, 100000, 1000000};

    (void)state;
    for (unsigned ranks = 2; ranks <= 16; ranks *= 2)
        for (int64_t servers = 0; servers <= 2; servers++)
            for (unsigned i = 0; i < LEN(counts); i++) {
                struct star_conf c = {.protocol = &trib_ps, .leaves = 1, .seed = 1};
                struct star *s;
                double took, model;
                int job;
                void *x = calloc(ranks * counts[i], 4);

                c.key[0] = "servers";
                c.value[0] = servers;
                s = star_new(&c);
                job = star_job(s, ranks);
                assert_null(star_reduce(s, job, x, x, counts[i], TRIB_INT32, TRIB_SUM, 0));
                took = (double)star_took_ps(s, job);
                model = (double)star_model_ps(s, job, counts[i], TRIB_INT32);
                /* Two servers: what they send as workers waits behind results. */
                if (fabs(model / took - 1) > (servers == 2 ? 0.25 : 0.07))
                    fail_msg("%u ranks, %d servers, %lu: took %.0f ps, predicted %.0f", ranks,
                             (int)servers, counts[i], took, model);
                free(x);
                assert_int_equal(star_free(s), 0);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_of_every_type),
        cmocka_unit_test(exact_with_all_ranks_there_are),
        cmocka_unit_test(exact_under_faults),
        cmocka_unit_test(receive_buffers_suffice),
        cmocka_unit_test(silence_is_named),
        cmocka_unit_test(garbage_is_ignored),
        cmocka_unit_test(takes_what_the_formula_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
