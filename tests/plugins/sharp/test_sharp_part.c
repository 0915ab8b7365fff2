/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows of vectors: which part of which block lies in them. */
#include "plugins/common/block_window.h"
#include "plugins/sharp/sharp_priv.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void parts(void **state)
{
    static const struct {
        uint32_t rank;
        size_t block, offset, bytes, n, at;
    } row[] = {
        {0, 10, 0, 30, 10, 0}, {2, 10, 0, 30, 10, 20},                        /* whole */
        {0, 10, 7, 10, 3, 0},  {1, 10, 7, 10, 7, 3},                          /* over a border */
        {2, 10, 7, 10, 0, 0},  {0, 10, 10, 5, 0, 0},                          /* outside */
        {1, 10, 12, 3, 3, 0},                                                 /* inside of one */
        {0, 10, 5, 30, 5, 0},  {1, 10, 5, 30, 10, 5},  {3, 10, 5, 30, 5, 25}, /* several */
        {1, 10, 5, 0, 0, 0},   {1, 0, 0, 0, 0, 0},                            /* nothing */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        size_t at = 0,
               n = block_window_part(row[i].rank, row[i].block, row[i].offset, row[i].bytes, &at);

        assert_int_equal(n, row[i].n);
        if (n)
            assert_int_equal(at, row[i].at);
    }
}

/* Every byte of every window belongs to one rank, and they follow each other. */
static void windows_are_covered(void **state)
{
    (void)state;
    for (uint32_t ranks = 1; ranks < 6; ranks++)
        for (size_t block = 1; block < 8; block++)
            for (size_t offset = 0; offset <= ranks * block; offset++)
                for (size_t bytes = 0; bytes <= ranks * block - offset; bytes++) {
                    size_t next = 0, at = 0;

                    assert_true(block_window_fits(ranks, block, offset, bytes));
                    for (uint32_t r = 0; r < ranks; r++) {
                        size_t n = block_window_part(r, block, offset, bytes, &at);

                        if (!n)
                            continue;
                        assert_int_equal(at, next);
                        assert_int_equal((offset + at) / block, r);
                        assert_int_equal((offset + at + n - 1) / block, r);
                        next += n;
                    }
                    assert_int_equal(next, bytes);
                }
}

static void what_does_not_fit(void **state)
{
    (void)state;
    assert_false(block_window_fits(4, 10, 0, 41));
    assert_false(block_window_fits(4, 10, 41, 0));
    assert_false(block_window_fits(4, 10, SIZE_MAX, 2));
    assert_false(block_window_fits(4, 10, 2, SIZE_MAX));
    assert_false(block_window_fits(4, SIZE_MAX / 2, 0, 8));
    assert_true(block_window_fits(4, SIZE_MAX / 4, SIZE_MAX / 4 * 4, 0));
}

static void even_parts(void **state)
{
    (void)state;
    for (uint32_t ranks = 1; ranks < 9; ranks++)
        for (size_t count = 0; count < 40; count++) {
            size_t next = 0, at;

            for (uint32_t r = 0; r < ranks; r++) {
                size_t n = sharp_even_part(r, ranks, count, &at);

                assert_int_equal(at, next);
                assert_true(n == count / ranks || (r < count % ranks && n == count / ranks + 1));
                next += n;
            }
            assert_int_equal(next, count);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts),
        cmocka_unit_test(windows_are_covered),
        cmocka_unit_test(what_does_not_fit),
        cmocka_unit_test(even_parts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
