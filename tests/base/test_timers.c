/* SPDX-License-Identifier: BSD-3-Clause */
/* The heap of deadlines gives the earliest one, whatever was set, moved and cleared before. */
#include "roce/engine.h"
#include "tests/support/eal.h"
#include "tests/support/roce_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define N 40

static void the_first_timer_is_the_earliest(void **state)
{
    struct pair_cfg cfg = {.seed = 11, .mbufs = 15};
    struct pair *p = pair_create(&cfg);
    struct rnic *r = p->s[0].r;
    struct qp *qp[N];

    (void)state;
    for (unsigned i = 0; i < N; i++) {
        struct qp_cfg c = {.type = QP_RC, .sq_depth = 1};

        assert_int_equal(qp_create(r, &c, &qp[i]), 0);
        timer_set(&r->timers, &qp[i]->timer, 1000 - i);
        assert_ptr_equal(timer_first(&r->timers),
                         &qp[i]->timer); /* there is room for more of them */
    }
    for (unsigned i = 0; i < N; i++) {
        assert_ptr_equal(timer_first(&r->timers), &qp[N - 1 - i]->timer);
        assert_int_equal(timers_next(&r->timers), 1000 - (N - 1 - i));
        timer_clear(&r->timers, &qp[N - 1 - i]->timer);
    }
    assert_int_equal(timers_next(&r->timers), PS_NEVER);
    assert_null(timer_first(&r->timers));
    for (unsigned step = 0; step < 50000; step++) {
        struct qp *q = qp[pair_random(p, N)];
        struct timer *first;
        int64_t least = PS_NEVER;

        if (pair_random(p, 3))
            timer_set(&r->timers, &q->timer, 1 + pair_random(p, 1000));
        else
            timer_clear(&r->timers, &q->timer);
        for (unsigned i = 0; i < N; i++)
            least = RTE_MIN(least, qp[i]->timer.deadline);
        if (pair_random(p, 3)) /* moved deadlines keep their heap position until the next query */
            continue;
        first = timer_first(&r->timers);
        assert_int_equal(first ? first->deadline : PS_NEVER, least);
        assert_int_equal(timers_next(&r->timers), least);
    }
    for (unsigned i = 0; i < N; i++)
        timer_clear(&r->timers, &qp[i]->timer);
    assert_null(timer_first(&r->timers));
    pair_destroy(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_timer_is_the_earliest),
    };

    test_eal_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
