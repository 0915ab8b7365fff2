/* SPDX-License-Identifier: BSD-3-Clause */
/* Words of another machine in hexadecimal. */
#include "trib/run/remote_words.h"

#include "tests/trib/words_test.h"

static void reads_words(void **state)
{
    struct words w = {0};

    (void)state;
    assert_true(remote_words_read("7570006120620000", &w));
    assert_words(&w, "up|a b|");
}

static void refuses_what_is_none(void **state)
{
    static const char *const wrong[] = {"",     "0",   "00a",       "61",   "6g00",
                                        "zz00", "610", "7500 7000", "4A4B", "6J00"};
    struct words w = {0};

    (void)state;
    for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_false(remote_words_read(wrong[i], &w));
    assert_false(remote_words_read("6A00", &w)); /* small letters alone, as they are sent */
}

static void reads_every_byte(void **state)
{
    struct words w = {0};

    (void)state;
    assert_true(remote_words_read("01ff7f2700", &w));
    assert_int_equal(w.n, 1);
    assert_memory_equal(w.at[0], "\x01\xff\x7f'", 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_words),
        cmocka_unit_test(refuses_what_is_none),
        cmocka_unit_test(reads_every_byte),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
