/* SPDX-License-Identifier: BSD-3-Clause */
/* What trib status says, from answers of processes. */
#include "trib/status_lines.h"

#include "tests/trib/words_test.h"
#include "trib/run/text.h"
#include "trib/answers.h"

static json_t *json(const char *text)
{
    json_t *j = json_loads(text, 0, NULL);

    assert_non_null(j);
    return j;
}

static void processes_are_read(void **state)
{
    struct status_processes all = status_lines_read(text_of(
        "leaf0\t12\tready\nleaf1\t13\tnot ready yet\nspine\t0\tdead, killed by signal 9 (Killed)"));

    (void)state;
    assert_int_equal(all.n, 3);
    assert_string_equal(status_lines_process(&all.at[0]), "trib-switch leaf0: pid 12");
    all.at[0].silent = true;
    assert_string_equal(status_lines_process(&all.at[0]),
                        "trib-switch leaf0: pid 12, does not answer");
    assert_string_equal(status_lines_process(&all.at[1]),
                        "trib-switch leaf1: pid 13, not ready yet");
    assert_string_equal(status_lines_process(&all.at[2]),
                        "trib-switch spine: dead, killed by signal 9 (Killed)");
    assert_int_equal(status_lines_read(text_of("%s", "")).n, 0);
}

static void machines_of_a_trunk(void **state)
{
    json_t *j =
        json("{\"machine\": \"b\", \"clock\": \"a\", \"clock_unsure_ns\": 40, \"frames_by\": "
             "\"net_af_packet\", "
             "\"refused_mac\": 3, \"refused_old\": 0, \"c\": \"not there\", \"a\": \"there\"}");
    struct words lines = status_lines_machines(j);

    (void)state;
    assert_words(&lines, "machine b: this one, its clock follows a's within 40 ns, frames by "
                         "net_af_packet|machine a: there|machine c: "
                         "not there|datagrams refused: 3 mac");
    json_decref(j);
    j = json("{\"machine\": \"a\", \"clock\": \"a\", \"frames_by\": \"udp\"}");
    lines = status_lines_machines(j);
    assert_words(&lines, "machine a: this one, with the fabric's clock");
    json_decref(j);
}

static void counters_that_are_not_zero(void **state)
{
    json_t *j = json(
        "{\"y\": {\"tx\": 7, \"drop\": 0}, \"x\": {\"rx\": 1, \"error\": \"text\"}, \"z\": null}");
    struct words lines = status_lines_counters(j);

    (void)state;
    assert_words(&lines, "rx: 1|tx: 7");
    json_decref(j);
}

static void answers_of_processes(void **state)
{
    json_t *j = json("{\"y\": [\"h1 down\", \"h0 down\"], \"x\": [\"h1 down\", 3], \"z\": "
                     "{\"dilation\": 9, \"frames\": 2}}");
    struct words lines = answers_lines(j);

    (void)state;
    assert_words(&lines, "h1 down|h1 down|h0 down");
    assert_int_equal(answers_dilation(j), 9);
    assert_int_equal(answers_sum(j, "frames"), 2);
    assert_string_equal(answers_why(j), "a process that would know it does not answer");
    json_decref(j);
    j = json("{\"b\": {\"error\": \"found y\"}, \"a\": {\"error\": \"found x\"}, \"c\": "
             "{\"error\": \"found x\"}}");
    assert_string_equal(answers_why(j), "found x\nfound y");
    assert_int_equal(answers_dilation(j), 0);
    json_decref(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_are_read),
        cmocka_unit_test(machines_of_a_trunk),
        cmocka_unit_test(counters_that_are_not_zero),
        cmocka_unit_test(answers_of_processes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
