/* SPDX-License-Identifier: BSD-3-Clause */
/* The earliest deadline of a heap, whatever was set, moved and cleared; of equal ones the lowest
 * index. */
#include "base/heap.h"

#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define N 61

static void expect_first(const struct heap *h, const int64_t *t)
{
    uint32_t first = HEAP_NONE;

    for (uint32_t i = 0; i < N; i++)
        if (t[i] != INT64_MAX && (first == HEAP_NONE || t[i] < t[first]))
            first = i;
    assert_int_equal(heap_time(h), first == HEAP_NONE ? INT64_MAX : t[first]);
    if (first != HEAP_NONE)
        assert_int_equal(heap_top(h), first);
}

static void the_first_is_the_earliest_and_of_equal_ones_the_lowest_index(void **state)
{
    uint64_t random = 7;
    int64_t t[N];
    struct heap h;

    (void)state;
    assert_int_equal(heap_init(&h, N), 0);
    for (uint32_t i = 0; i < N; i++)
        t[i] = INT64_MAX;
    expect_first(&h, t);
    for (unsigned step = 0; step < 20000; step++) {
        uint32_t i = (uint32_t)(random_next(&random) % N);
        uint64_t r = random_next(&random);

        t[i] = r % 4 ? (int64_t)(r >> 8) % 9 : INT64_MAX;
        heap_set(&h, i, t[i]);
        expect_first(&h, t);
    }
    heap_fini(&h);
}

static void all_of_one_time_are_served_in_order_of_index(void **state)
{
    struct heap h;

    (void)state;
    assert_int_equal(heap_init(&h, N), 0);
    for (uint32_t i = N; i--;)
        heap_set(&h, i, 5);
    for (uint32_t i = 0; i < N; i++) {
        assert_int_equal(heap_top(&h), i);
        heap_set(&h, i, INT64_MAX);
    }
    assert_int_equal(heap_time(&h), INT64_MAX);
    heap_fini(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_is_the_earliest_and_of_equal_ones_the_lowest_index),
        cmocka_unit_test(all_of_one_time_are_served_in_order_of_index),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
