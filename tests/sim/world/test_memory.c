/* SPDX-License-Identifier: BSD-3-Clause */
/* Pages of 2 MiB for simulations that use them whole; none with thousands of ranks, which leave
 * most of their memory untouched. */
#include "sim/world/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>

#include <cmocka.h>

static void large_pages_are_for_dense_simulations(void **state)
{
    (void)state;
    memory_lay_out(true);
    assert_int_equal(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0), 0);
    memory_lay_out(false);
    assert_int_equal(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(large_pages_are_for_dense_simulations)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
