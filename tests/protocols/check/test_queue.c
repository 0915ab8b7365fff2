/* SPDX-License-Identifier: BSD-3-Clause */
/* Events come in order of time, and those of one time in the order in which they were put in. */
#include "protocols/check/queue.h"

#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define N 2000

static void the_earliest_comes_first_whatever_was_put_in_between(void **state)
{
    struct queue q = {.e = NULL};
    struct queue_event e, last = {.at_ps = -1};
    uint64_t random = 3;
    unsigned in = 0, out = 0;

    (void)state;
    assert_false(queue_pop(&q, &e));
    while (out < N) {
        if (in < N && random_next(&random) % 3) {
            int64_t at = last.at_ps + 1 + (int64_t)(random_next(&random) % 50);

            assert_int_equal(queue_push(&q, at, in % 7, in, in + 1, NULL), 0);
            in++;
        } else if (queue_pop(&q, &e)) {
            assert_true(e.at_ps > last.at_ps || (e.at_ps == last.at_ps && e.order > last.order));
            assert_true(e.kind == e.a % 7 && e.b == e.a + 1 && e.order == e.a);
            last = e;
            out++;
        }
        assert_int_equal(q.n, in - out);
    }
    assert_false(queue_pop(&q, &e));
    queue_fini(&q);
}

static void events_of_one_time_come_as_they_were_put_in(void **state)
{
    struct queue q = {.e = NULL};
    struct queue_event e;

    (void)state;
    for (unsigned i = 0; i < 600; i++) /* more than there is room for at first */
        assert_int_equal(queue_push(&q, i % 3, 0, i, 0, NULL), 0);
    for (unsigned i = 0; i < 600; i++) {
        assert_true(queue_pop(&q, &e));
        assert_int_equal(e.at_ps, i / 200);
        assert_int_equal(e.a, i % 200 * 3 + i / 200);
    }
    queue_fini(&q);
}

static void what_is_left_is_freed(void **state)
{
    struct queue q = {.e = NULL};

    (void)state;
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(queue_push(&q, i, 0, 0, 0, malloc(16)), 0);
    queue_fini(&q);
    assert_int_equal(q.n, 0);
    assert_null(q.e);
    queue_fini(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_earliest_comes_first_whatever_was_put_in_between),
        cmocka_unit_test(events_of_one_time_come_as_they_were_put_in),
        cmocka_unit_test(what_is_left_is_freed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
