/* SPDX-License-Identifier: BSD-3-Clause */
/* Times of its clock that another machine may say: none from which a sum or a product overflows. */
#include "io/trunk/trunk_priv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <rte_common.h>

#define MOST (1ull << 62)
#define LINE (1ll << 53)
#define PPB  1000000000

static const struct {
    struct trunk_state s;
    bool ok;
} rows[] = {
    {{.sent_ns = MOST}, true},
    {{.sent_ns = MOST + 1}, false},
    {{.heard_sent_ns = MOST}, true},
    {{.heard_sent_ns = MOST + 1}, false},
    {{.heard_ns = MOST}, true},
    {{.heard_ns = MOST + 1}, false},
    {{.change_ps = UINT64_MAX}, true}, /* it has no clock */
    {{.has_clock = 1, .dilation = 1, .before = 1}, true},
    {{.has_clock = 1, .dilation = 0, .before = 1}, false},
    {{.has_clock = 1, .dilation = 1, .before = 0}, false},
    {{.has_clock = 1, .dilation = 1, .before = 1, .sent_ns = MOST, .change_ns = MOST}, true},
    {{.has_clock = 1,
      .dilation = 1,
      .before = 1,
      .sent_ns = MOST,
      .change_ns = MOST + 1,
      .change_ps = 10000},
     false},
    {{.has_clock = 1, .dilation = 1, .before = 1, .change_ps = MOST - 1}, true},
    {{.has_clock = 1, .dilation = 1, .before = 1, .change_ps = MOST}, false},
    {{.has_clock = 1, .dilation = 2, .before = 1, .sent_ns = LINE}, true},
    {{.has_clock = 1, .dilation = 1, .before = 2, .sent_ns = LINE}, false},
    {{.has_clock = 1, .dilation = 2000, .before = 1, .sent_ns = LINE + 1}, false},
    /* before its last change: by the speed of before */
    {{.has_clock = 1, .dilation = 1, .before = 1000, .change_ns = LINE, .change_ps = LINE}, true},
    {{.has_clock = 1, .dilation = 1, .before = 1000, .change_ns = LINE, .change_ps = LINE - 1},
     false},
    {{.has_clock = 1, .dilation = 1, .before = 1000, .change_ns = LINE + 1, .change_ps = 2 * LINE},
     false},
    /* twice as fast by its skew */
    {{.has_clock = 1,
      .dilation = 1000,
      .before = 1,
      .sent_ns = LINE,
      .skew_ppb = PPB,
      .change_ps = MOST - 1 - 2 * LINE},
     true},
    {{.has_clock = 1,
      .dilation = 1000,
      .before = 1,
      .sent_ns = LINE,
      .skew_ppb = PPB,
      .change_ps = MOST - 2 * LINE},
     false},
    {{.has_clock = 1,
      .dilation = 1,
      .before = 1000,
      .change_ns = LINE,
      .before_skew_ppb = PPB,
      .change_ps = 2 * LINE},
     true},
    {{.has_clock = 1,
      .dilation = 1,
      .before = 1000,
      .change_ns = LINE,
      .before_skew_ppb = PPB,
      .change_ps = 2 * LINE - 1},
     false},
};

static void times_have_bounds(void **state)
{
    (void)state;

    for (unsigned i = 0; i < RTE_DIM(rows); i++)
        if (trunk_clock_plausible(&rows[i].s) != rows[i].ok)
            fail_msg("row %u: expected %d", i, rows[i].ok);
}

static void wall_time_does_not_overflow(void **state)
{
    (void)state;
    assert_int_equal(trunk_clock_wall_ns(1000, 1), 1);
    assert_int_equal(trunk_clock_wall_ns(-1500, 10), -15);
    assert_int_equal(trunk_clock_wall_ns(1500, 10), 15);
    assert_true(trunk_clock_wall_ns(INT64_MAX, UINT32_MAX) == INT64_MAX / 2);
    assert_true(trunk_clock_wall_ns(-INT64_MAX, UINT32_MAX) == -(INT64_MAX / 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_have_bounds),
        cmocka_unit_test(wall_time_does_not_overflow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
