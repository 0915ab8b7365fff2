/* SPDX-License-Identifier: BSD-3-Clause */
/* The plain rule gives the bits of the definition (arith.h's scalar row), although it shares no
 * code with it. */
#include "host/bench/verify/rule.h"
#include "tests/support/reduce_ref.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define COUNT  4000u
#define INPUTS 5u

static uint8_t in[INPUTS][COUNT * 8], got[COUNT * 8], want[COUNT * 8];

static void fill(enum dtype t, uint64_t seed)
{
    for (unsigned k = 0; k < INPUTS; k++)
        ref_fill(t, in[k], COUNT, &seed);
}

static void every_operation_of_every_type(void **state)
{
    const void *each[INPUTS];

    (void)state;
    for (unsigned k = 0; k < INPUTS; k++)
        each[k] = in[k];
    for (int t = 0; t < DT_COUNT; t++)
        for (int op = 0; op < OP_COUNT; op++)
            for (unsigned n = 1; n <= INPUTS && arith_valid((enum redop)op, (enum dtype)t); n++) {
                fill((enum dtype)t, n + 10u * (unsigned)op);
                arith_scalar((enum redop)op, (enum dtype)t)(want, each, n, COUNT);
                rule_reduce((enum redop)op, (enum dtype)t, got, each, n, COUNT);
                if (memcmp(got, want, COUNT * dtype_size((enum dtype)t)) != 0)
                    fail_msg("%s of %u x %s", redop_name((enum redop)op), n,
                             dtype_name((enum dtype)t));
            }
}

static void means(void **state)
{
    (void)state;
    for (int t = 0; t < DT_COUNT; t++)
        for (unsigned n = 1; n <= 1000 && arith_valid(OP_AVG, (enum dtype)t); n += 37) {
            fill((enum dtype)t, n);
            memcpy(want, in[0], sizeof(want));
            arith_divide(want, (enum dtype)t, n, COUNT);
            rule_divide((enum dtype)t, got, in[0], n, COUNT);
            if (memcmp(got, want, COUNT * dtype_size((enum dtype)t)) != 0)
                fail_msg("mean of %u x %s", n, dtype_name((enum dtype)t));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_of_every_type),
        cmocka_unit_test(means),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
