/* Check values: exact in every type whatever the order, and every wrong element is found. */
#include "host/perf/values.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT 1000

static uint32_t seed = 1;

static unsigned next_random(unsigned n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

/* Combines all ranks' contributions pairwise in a random order, rounding to the type each time. */
static void combine(enum dtype t, enum redop op, unsigned nranks, uint8_t *acc)
{
    uint8_t *part[64];
    unsigned left = nranks;

    for (unsigned r = 0; r < nranks; r++) {
        struct values v;
        assert_int_equal(values_init(&v), 0);
        values_set(&v, t, op, r, nranks, COUNT);
        part[r] = calloc(COUNT, 8);
        values_fill(&v, part[r], COUNT);
        values_free(&v);
    }
    while (left > 1) {
        unsigned a = next_random(left), b = next_random(left - 1);
        b += b >= a;
        const void *in[2] = {part[a], part[b]};
        arith_scalar(op == OP_AVG ? OP_SUM : op, t)(part[a], in, 2, COUNT);
        free(part[b]);
        part[b] = part[--left];
    }
    if (op == OP_AVG)
        arith_divide(part[0], t, nranks, COUNT);
    memcpy(acc, part[0], COUNT * dtype_size(t));
    free(part[0]);
}

static void any_order_gives_the_expected_bits(void **state)
{
    static const unsigned ranks[] = {1, 2, 3, 8, 16, 64};
    uint8_t acc[COUNT * 8];
    struct values v;

    (void)state;
    assert_int_equal(values_init(&v), 0);
    for (int t = 0; t < DT_COUNT; t++) {
        for (int op = 0; op < OP_COUNT; op++) {
            if (!arith_valid((enum redop)op, (enum dtype)t))
                continue;
            for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
                combine((enum dtype)t, (enum redop)op, ranks[i], acc);
                values_set(&v, (enum dtype)t, (enum redop)op, 0, ranks[i], COUNT);
                uint64_t wrong = values_wrong(&v, acc, COUNT);
                if (wrong)
                    fail_msg("%s %s %u ranks: %lu wrong", dtype_name(t), redop_name(op), ranks[i],
                             (unsigned long)wrong);
            }
        }
    }
    values_free(&v);
}

static void ranks_contribute_different_values(void **state)
{
    struct values a, b;

    (void)state;
    assert_int_equal(values_init(&a), 0);
    assert_int_equal(values_init(&b), 0);
    for (int t = 0; t < DT_COUNT; t++) {
        for (int op = 0; op < OP_COUNT; op++) {
            if (!arith_valid((enum redop)op, (enum dtype)t))
                continue;
            values_set(&a, (enum dtype)t, (enum redop)op, 0, 8, COUNT);
            values_set(&b, (enum dtype)t, (enum redop)op, 1, 8, COUNT);
            assert_memory_not_equal(a.mine, b.mine, COUNT * dtype_size(t));
            assert_memory_equal(a.want, b.want, COUNT * dtype_size(t));
        }
    }
    values_free(&a);
    values_free(&b);
}

/* Longer than a period, so that repetition is covered. */
static void every_wrong_element_is_counted(void **state)
{
    const size_t count = 2 * VALUES_PERIOD + 17;
    struct values v;

    (void)state;
    assert_int_equal(values_init(&v), 0);
    for (int t = 0; t < DT_COUNT; t++) {
        size_t size = dtype_size(t);
        uint8_t *buf = malloc(count * size);
        values_set(&v, (enum dtype)t, arith_valid(OP_SUM, (enum dtype)t) ? OP_SUM : OP_MINLOC, 0, 1,
                   count);
        values_fill(&v, buf, count); /* of one rank: contribution is result */
        assert_int_equal(values_wrong(&v, buf, count), 0);
        const size_t at[] = {0, 1, VALUES_PERIOD - 1, VALUES_PERIOD, count - 1};
        for (size_t i = 0; i < 5; i++)
            buf[at[i] * size + size - 1] ^= 1;
        assert_int_equal(values_wrong(&v, buf, count), 5);
        values_poison(&v, buf, count);
        assert_int_equal(values_wrong(&v, buf, count), count);
        free(buf);
    }
    values_free(&v);
}

/* What an algorithm with a wrong offset would do: everything shifted by a message, a packet, an
 * element. */
static void misplaced_data_is_found(void **state)
{
    static const size_t shifts[] = {1, 1024, 4096, 8 * 4096 - 32, 65536};
    const size_t count = 200000;
    struct values v;
    float *buf = malloc((count + 70000) * sizeof(float));

    (void)state;
    assert_int_equal(values_init(&v), 0);
    values_set(&v, DT_FP32, OP_SUM, 0, 1, count);
    values_fill(&v, buf, count + 70000);
    for (size_t i = 0; i < sizeof(shifts) / sizeof(shifts[0]); i++)
        assert_true(values_wrong(&v, buf + shifts[i] / 4 + (shifts[i] < 4), count) > count / 2);
    free(buf);
    values_free(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_order_gives_the_expected_bits),
        cmocka_unit_test(ranks_contribute_different_values),
        cmocka_unit_test(every_wrong_element_is_counted),
        cmocka_unit_test(misplaced_data_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
