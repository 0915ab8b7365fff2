/* SPDX-License-Identifier: BSD-3-Clause */
/* The busiest direction of a link is the one that its bytes keep busy for the longest time. */
#include "host/bench/link_use.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define SLOW 100000000000u /* 100 Gb/s */
#define FAST 400000000000u

static struct fab_link links[2] = {{.rate_bps = FAST}, {.rate_bps = SLOW}};
static const struct fabric fab = {.n_links = 2, .links = links};

static void the_longest_busy_is_the_busiest(void **state)
{
    static const uint64_t before[4] = {1000, 5, 7, 100000};
    static const uint64_t after[4] = {3000, 5, 1007, 100008};
    struct link_use u = link_use_busiest(&fab, before, after);

    (void)state;
    assert_true(u.known);
    assert_int_equal(u.bytes, 1000); /* 80 ns at the slow link's rate, 2000 at the fast one's 40 */
    assert_int_equal(u.rate_bps, SLOW);
    assert_float_equal(link_use_bytes(&u, 4), 250, 1e-9);
    assert_float_equal(link_use_share(&u, 4, 0.04), 0.5, 1e-9);
    assert_float_equal(link_use_share(&u, 4, 0.08), 0.25, 1e-9);
}

static void links_that_carry_nothing_are_not_busy(void **state)
{
    static const uint64_t sent[4] = {3, 4, 5, 6};
    struct link_use u = link_use_busiest(&fab, sent, sent);

    (void)state;
    assert_true(u.known);
    assert_int_equal(u.bytes, 0);
    assert_float_equal(link_use_share(&u, 1, 1), 0, 1e-9);
    assert_float_equal(link_use_share(&u, 1, 0), 0, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_longest_busy_is_the_busiest),
        cmocka_unit_test(links_that_carry_nothing_are_not_busy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
