/* SPDX-License-Identifier: BSD-3-Clause */
/* Offset and drift of another machine's clock, from exchanges with waits on either way. */
#include "io/trunk/trunk_follow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define MS 1000000LL
#define S  (1000 * MS)

/* Their clock, where ours is at_ns. */
static int64_t theirs(int64_t at_ns, int64_t offset, double drift)
{
    return at_ns + offset + (int64_t)(drift * (double)at_ns);
}

/* `seconds` of exchanges every 50 ms on a way of 100 us, one in four of them with a wait of up to
 * 5 ms on one side. */
static int64_t exchange(struct follow *f, int64_t seconds, int64_t offset, double drift)
{
    int64_t now = 5 * S;

    srand(7);
    for (int i = 0; i < seconds * 20; i++, now += 50 * MS) {
        int64_t there = 50000 + (rand() % 4 ? rand() % 3000 : rand() % (5 * MS));
        int64_t back = 50000 + (rand() % 4 ? rand() % 3000 : rand() % (5 * MS));
        int64_t c = now, d = theirs(c + there, offset, drift), a = d + 20000;
        int64_t b = c + there + 20000 + back;

        follow_take(f, a, b, c, d);
    }
    return now;
}

static void finds_offset_and_drift(void **state)
{
    static const struct {
        int64_t offset;
        double drift;
    } cases[] = {{0, 0}, {10 * S, 0}, {-10 * S, 200e-6}, {123456789, -200e-6}, {0, 500e-6}};
    (void)state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct follow f = {0};
        struct follow_line l;
        int64_t now = exchange(&f, 20, cases[i].offset, cases[i].drift);

        assert_true(follow_line(&f, now, &l));
        /* a second later, too: within 10 us, a tenth of the way */
        assert_true(llabs(follow_theirs(&l, now) - theirs(now, cases[i].offset, cases[i].drift)) <
                    10000);
        assert_true(llabs(follow_theirs(&l, now + S) -
                          theirs(now + S, cases[i].offset, cases[i].drift)) < 10000);
        assert_true(llabs(follow_ours(&l, follow_theirs(&l, now + S)) - (now + S)) < 10);
        assert_true(l.unsure_ns >= 50000 &&
                    l.unsure_ns < 120000); /* half of the way, and its weights */
        assert_in_range(follow_way(&f), 100000, 101000);
    }
}

static void one_exchange_says_the_offset(void **state)
{
    struct follow f = {0};
    struct follow_line l;
    (void)state;

    assert_false(follow_line(&f, S, &l));
    assert_true(follow_take(&f, 20 * S + 60000, S + 110000, S, 20 * S + 50000));
    assert_true(follow_line(&f, S, &l));
    assert_int_equal(l.offset_ns, 19 * S);
    assert_true(l.drift == 0);
}

static void refuses_what_cannot_be(void **state)
{
    struct follow f = {0};
    struct follow_line l;
    (void)state;

    assert_false(follow_take(&f, S, 10, 20, S)); /* received before it was sent */
    assert_false(follow_take(&f, S, 30, 20, 2 * S));
    assert_false(follow_take(&f, 3 * S, S + 10, S, S)); /* it took longer than there and back */
    assert_false(follow_line(&f, S, &l));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_offset_and_drift),
        cmocka_unit_test(one_exchange_says_the_offset),
        cmocka_unit_test(refuses_what_cannot_be),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
