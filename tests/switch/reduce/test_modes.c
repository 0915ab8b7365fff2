/* SPDX-License-Identifier: BSD-3-Clause */
/* Modes of reduction other than the default "nearest, by child". */
#include "aggregation/narrow.h"
#include "tests/support/agg_fixture.h"
#include "tests/support/reduce_ref.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define N     5u
#define COUNT 3000u

static void run(const char *reduce, uint64_t seed, enum dtype t, uint8_t *got, uint8_t **in)
{
    static const unsigned ids[N] = {0, 1, 2, 3, 4};
    char conf[400];
    struct agg_fixture *b;
    struct member *m;
    uint64_t data = 11;

    snprintf(conf, sizeof(conf),
             "link_defaults = { rate = \"400Gb/s\"; latency = \"300ns\"; };\nmtu = 512;\n"
             "reduce = { %s };\nsingle_switch = { hosts = %u; };\n",
             reduce, N);
    b = agg_fixture_create(&(struct agg_fixture_cfg){.conf = conf, .seed = seed});
    m = agg_fixture_group(b, 0, 7, 512, 64, 1, ids, N);
    for (unsigned i = 0; i < N; i++)
        agg_fixture_join(&m[i]);
    assert_true(agg_fixture_run(b, agg_fixture_all_in, 400 * PS_PER_MS));
    for (unsigned i = 0; i < N; i++) {
        struct agg_fixture_op o = {.coll = AGG_ALLREDUCE,
                                   .dtype = t,
                                   .op = OP_SUM,
                                   .total = COUNT * dtype_size(t),
                                   .in = agg_fixture_alloc(b, COUNT * 8),
                                   .out = agg_fixture_alloc(b, COUNT * 8)};

        for (unsigned k = 0; k < COUNT; k++) { /* of a size at which sums round */
            float f = (float)((int64_t)(random_next(&data) % 20001) - 10000) / 777.0f;
            uint16_t h = fp32_to_bf16(f);

            memcpy(o.in + k * dtype_size(t), t == DT_BF16 ? (void *)&h : (void *)&f, dtype_size(t));
        }
        memcpy(in[i], o.in, o.total);
        agg_fixture_start(&m[i], &o);
    }
    assert_true(agg_fixture_run(b, agg_fixture_all_done, 2000 * PS_PER_MS));
    for (unsigned i = 1; i < N; i++)
        assert_memory_equal(m[i].op.out, m[0].op.out, m[0].op.total);
    memcpy(got, m[0].op.out, m[0].op.total);
    agg_fixture_destroy(b);
}

static uint8_t mem[N][COUNT * 8];
static uint8_t *in[N] = {mem[0], mem[1], mem[2], mem[3], mem[4]};

static void results_are_rounded_as_the_conf_says(void **state)
{
    static const char *const confs[ROUND_COUNT] = {
        "rounding = \"nearest\";", "rounding = \"zero\";", "rounding = \"up\";",
        "rounding = \"down\";", "rounding = \"stochastic\"; seed = 77;"};
    static uint8_t got[ROUND_COUNT][COUNT * 2], want[COUNT * 2];

    (void)state;
    for (int r = 0; r < ROUND_COUNT; r++) {
        run(confs[r], (uint64_t)r + 1, DT_BF16, got[r], in);
        arith_rounded((enum rounding)r, 77, 0, OP_SUM, DT_BF16, want, (const void *const *)in, N,
                      COUNT);
        assert_memory_equal(got[r], want, sizeof(want));
        for (int other = 0; other < r; other++)
            assert_memory_not_equal(got[r], got[other], sizeof(want));
    }
}

/* By child: the same bits whatever comes first. By arrival: not, and each element is a sum in some
 * order. */
static void arrival_order_shows_in_the_bits_and_child_order_does_not(void **state)
{
    static uint8_t a[COUNT * 4], b[COUNT * 4];

    (void)state;
    run("", 1, DT_FP32, a, in);
    run("", 2, DT_FP32, b, in);
    assert_memory_equal(a, b, sizeof(a));
    run("order = \"arrival\";", 1, DT_FP32, a, in);
    run("order = \"arrival\";", 2, DT_FP32, b, in);
    assert_memory_not_equal(a, b, sizeof(a));
    for (unsigned k = 0; k < COUNT; k++) {
        double exact = 0;
        float x, y;

        for (unsigned i = 0; i < N; i++) {
            memcpy(&x, in[i] + 4 * k, 4);
            exact += (double)x;
        }
        memcpy(&x, a + 4 * k, 4);
        memcpy(&y, b + 4 * k, 4);
        assert_true((double)x - exact < 1e-4 && exact - (double)x < 1e-4);
        assert_true((double)y - exact < 1e-4 && exact - (double)y < 1e-4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_rounded_as_the_conf_says),
        cmocka_unit_test(arrival_order_shows_in_the_bits_and_child_order_does_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
