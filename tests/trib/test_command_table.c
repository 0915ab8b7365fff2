/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of commands: each is found, says what it does, and knows where its options are. */
#include "trib/command_table.h"

#include "tests/trib/words_test.h"

#include <stdio.h>

static void rows_are_whole(void **state)
{
    const struct command_row *row;

    (void)state;
    for (unsigned i = 0; (row = command_table_row(i)) != NULL; i++) {
        assert_ptr_equal(command_table_find(row->name), row);
        assert_true(row->text[0] && row->text[strlen(row->text) - 1] != '.');
        assert_null(strchr(row->text, '|')); /* which is between the fields of --help=complete */
        assert_null(strchr(row->options, '|'));
    }
    assert_null(command_table_find(""));
    assert_null(command_table_find("stat"));
}

static void options_stand_in_the_arguments(void **state)
{
    const struct command_row *row;
    char options[256], *rest, *one;

    (void)state;
    for (unsigned i = 0; (row = command_table_row(i)) != NULL; i++) {
        snprintf(options, sizeof(options), "%s", row->options);
        for (rest = options; (one = strsep(&rest, " ")) != NULL;)
            assert_non_null(strstr(row->args, one));
    }
}

/* A command that looks into run directories answers --help before it looks; a command with a
 * program has that program's help. */
static void flags_are_those_of_the_kind(void **state)
{
    const struct command_row *row;

    (void)state;
    for (unsigned i = 0; (row = command_table_row(i)) != NULL; i++)
        if (row->answers)
            assert_true(row->looks);
    assert_true(command_table_find("perf")->looks && !command_table_find("perf")->answers);
    assert_false(command_table_find("sim")->looks);
    assert_string_equal(command_table_find("check-nccl-plugin")->program, "trib-check-nccl-plugin");
    assert_null(command_table_find("exec")->program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_whole),
        cmocka_unit_test(options_stand_in_the_arguments),
        cmocka_unit_test(flags_are_those_of_the_kind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
