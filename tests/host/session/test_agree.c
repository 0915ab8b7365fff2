/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks with other lists of trees than rank 0 are named with both lists. */
#include "host/session/agree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static void lists_of_trees(void **state)
{
    static const struct {
        struct agreed mine, rank0;
        const char *why; /* NULL: they agree */
    } row[] = {
        {{0, {0}}, {0, {7}}, NULL},
        {{2, {3, 5, 9}}, {2, {3, 5}}, NULL},
        {{1, {3}}, {2, {3, 5}}, "found aggregation trees 3, expected 3, 5, which rank 0"},
        {{2, {5, 3}}, {2, {3, 5}}, "found aggregation trees 5, 3, expected 3, 5, which rank 0"},
        {{0, {3}}, {1, {3}}, "found aggregation trees none, expected 3, which rank 0"},
        {{UINT16_MAX, {0}}, {UINT16_MAX, {0}}, "found aggregation trees 0, 0"},
    };
    (void)state;

    for (unsigned i = 0; i < sizeof(row) / sizeof(*row); i++) {
        char why[160] = "";

        if (agree_with(&row[i].mine, &row[i].rank0, why, sizeof(why)) != !row[i].why ||
            (row[i].why && strncmp(why, row[i].why, strlen(row[i].why)) != 0))
            fail_msg("row %u: %s", i, why);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lists_of_trees)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
