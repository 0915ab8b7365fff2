/* SPDX-License-Identifier: BSD-3-Clause */
/* Wrong schedules are refused, each by its line and reason. */
#include "collective/file/sched_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* An all-reduce of two ranks, half of the vector each. Lines 1 to 16. */
static const char good[] = "schedule two\n"
                           "collective all_reduce\n"
                           "ranks 2\n"
                           "chunks 2\n"
                           "scratch 2\n"
                           "rank 0\n"
                           "0 send 1 in:1\n"
                           "1 recv_reduce 1 in:0 out:0\n"
                           "2 send 1 out:0 after 1\n"
                           "3 recv 1 out:1\n"
                           "rank 1\n"
                           "0 send 0 in:0\n"
                           "1 recv_reduce 0 in:1 out:1\n"
                           "2 send 0 out:1 after 1\n"
                           "3 recv 0 out:0\n";

/* `was` of the good file becomes `now`: the line of the first mistake, and words of it. */
struct wrong {
    const char *was, *now;
    int line;
    const char *reason;
};

static const struct wrong rows[] = {
    /* header */
    {"schedule two\n", "", 5, "found no schedule before the first rank"},
    {"schedule two", "schedule a/b", 1, "expected a name of 1 to 31 letters"},
    {"schedule two", "schedule ring", 1, "expected a name that no algorithm has"},
    {"schedule two", "schedule two words", 1, "found 2 words, expected one value"},
    {"all_reduce", "barrier", 2, "found \"barrier\", expected all_reduce, reduce"},
    {"ranks 2", "ranks 1", 3, "found \"1\", expected a number from 2 to 1024"},
    {"ranks 2", "ranks two", 3, "found \"two\", expected a number"},
    {"chunks 2", "chunks 99999999999999999999", 4, "expected a number from 1 to 4096"},
    {"chunks 2", "chunks 2\nchunks 2", 5, "found chunks twice, expected the one of line 4"},
    {"chunks 2", "chunks 2\nroot 0", 7, "found a root, expected none with all_reduce"},
    {"all_reduce", "reduce", 6, "found no root, expected one with reduce"},
    {"scratch 2", "place anywhere", 5, "expected both or out"},
    {"scratch 2", "colour blue", 5, "found \"colour\", expected schedule, collective"},
    /* ranks */
    {"rank 0\n", "rank 3\n", 6, "found rank 3, expected rank 0"},
    {"rank 1\n", "rank 0\n", 11, "found rank 0, expected rank 1: each of 0 to 1, in order"},
    {"ranks 2", "ranks 3", 15, "found the end of the file after 2 ranks, expected rank 2"},
    {"ranks 2", "ranks 4\nscratch 1\n#", 7, "found scratch twice"},
    {"3 recv 0 out:0\n", "3 recv 0 out:0\nrank 2\n", 16, "expected no more: there are 2 ranks"},
    /* steps */
    {"0 send 1 in:1", "1 send 1 in:1", 7, "found \"1\", expected 0, the number of the step"},
    {"0 send 1 in:1", "0 sent 1 in:1", 7, "found \"sent\", expected send, recv, recv_reduce"},
    {"0 send 1 in:1", "0 send 1", 7, "found 3 words, expected 0 send RANK FROM [after STEP,...]"},
    {"0 send 1 in:1", "0 send 0 in:1", 7, "found \"0\", expected another rank than 0"},
    {"0 send 1 in:1", "0 send 2 in:1", 7, "found \"2\", expected another rank than 0, from 0 to 1"},
    {"0 send 1 in:1", "0 send 1 in:2", 7, "found in:2, expected a chunk from 0 to 1 of in"},
    {"0 send 1 in:1", "0 send 1 in:1-0", 7, "expected chunks such as in:3"},
    {"0 send 1 in:1", "0 send 1 inn:1", 7, "found \"inn:1\", expected chunks such as"},
    {"3 recv 1 out:1", "3 recv 1 in:1", 10, "in is read only"},
    {"in:0 out:0\n", "in:0 out:0-1\n", 8, "found 1 chunk in in:0 and 2 in out:0-1"},
    {"2 send 1 out:0 after 1", "2 send 1 out:0 after 2", 9,
     "found \"2\", expected numbers of steps"},
    {"2 send 1 out:0 after 1", "2 send 1 out:0 after 1,1", 9, "before step 2, ascending"},
    {"2 send 1 out:0 after 1", "2 send 1 out:0 later 1", 9, "[after STEP,...]"},
    /* messages */
    {"2 send 1 out:0 after 1\n3 recv", "2 recv", 14,
     "found a receive from rank 0, which has no send"},
    {"3 recv 1 out:1\n", "", 13, "found a send to rank 0, which has no receive for it"},
    {"0 send 1 in:1", "0 send 1 in:0-1", 7,
     "found 2 chunks sent to rank 1, which receives 1 in line 13"},
    /* deadlocks */
    {"0 send 1 in:1\n1 recv_reduce 1 in:0 out:0\n2 send 1 out:0 after 1\n3 recv 1 out:1\n",
     "0 recv_reduce 1 in:0 out:0\n1 recv 1 out:1\n2 send 1 in:1 after 1\n3 send 1 out:0 after 0\n",
     9,
     "found a deadlock, expected steps that can run: this send waits for line 14 (rank 1), that "
     "for line 9 (rank 0); a send ends when it is received"},
    /* races */
    {"2 send 1 out:0 after 1", "2 send 1 out:0", 9,
     "found out:0 used while line 8 (step 1) may not be done with it, expected after 1"},
    {"2 send 1 out:0 after 1", "2 send 1 out:0 after 0", 9, "expected after 1"},
    {"0 send 1 in:1\n1", "0 send 1 in:1\n1 copy in:1 scratch:0\n2 copy scratch:0 scratch:1\n3", 11,
     "found \"2\", expected 4"},
    {"3 recv 1 out:1\n", "3 copy in:1 out:1\n4 recv 1 out:1\n", 11,
     "found out:1 used while line 10 (step 3) may not be done with it, expected after 3"},
    /* results */
    {"1 recv_reduce 1 in:0 out:0", "1 recv_reduce 1 scratch:0 out:0", 8,
     "found scratch:0 read before anything is written to it"},
    {"1 recv_reduce 1 in:0 out:0", "1 recv_reduce 1 in:1 out:0", 8,
     "found a sum of chunk 0 and chunk 1, expected the same chunk twice"},
    {"1 recv_reduce 1 in:0 out:0", "1 recv 1 out:0", 8,
     "found out:0 of rank 0 without the contribution of rank 0 at the end"},
    {"0 send 1 in:1", "0 send 1 in:0", 13, "found a sum of chunk 0 and chunk 1"},
    {"3 recv 1 out:1\n", "3 recv 1 scratch:1\n", 10, "found nothing in out:1 of rank 0 at the end"},
    {"3 recv 1 out:1\n", "3 recv 1 scratch:1\n4 reduce scratch:1 in:1 out:1 after 3\n", 11,
     "found the contribution of rank 0 twice in a sum of chunk 1"},
    {"3 recv 1 out:1\n", "3 recv 1 scratch:1\n4 copy scratch:1 out:0 after 2,3\n", 11,
     "found chunk 1 written to out:0, expected scratch or a place of its length"},
};

static struct fab_errors errs;

static char *change(const struct wrong *w)
{
    const char *at = strstr(good, w->was);
    char *text = malloc(sizeof(good) + strlen(w->now) + 1);

    assert_non_null(at);
    sprintf(text, "%.*s%s%s", (int)(at - good), good, w->now, at + strlen(w->was));
    return text;
}

static void each_is_refused_by_line_and_reason(void **state)
{
    struct sched_file *f = sched_file_parse(good, "two", &errs);

    (void)state;
    assert_non_null(f);
    sched_file_free(f);
    for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct wrong *w = &rows[i];
        char *text = change(w);

        f = sched_file_parse(text, "two", &errs);
        if (!f != !!w->reason)
            fail_msg("row %u: %s: accepted or refused", i, w->now);
        if (w->reason && (errs.e[0].line != w->line || !strstr(errs.e[0].text, w->reason)))
            fail_msg("row %u: found line %d: %s; expected line %d: %s", i, errs.e[0].line,
                     errs.e[0].text, w->line, w->reason);
        sched_file_free(f);
        free(text);
    }
}

/* Right out of place only: in place the second read finds the sum. */
static const char once[] = "schedule once\ncollective all_reduce\nranks 2\nchunks 1\nscratch 1\n%s"
                           "rank 0\n0 send 1 in:0\n1 recv 1 scratch:0\n"
                           "2 reduce in:0 scratch:0 out:0 after 1\n"
                           "rank 1\n0 send 0 in:0\n1 recv 0 scratch:0\n"
                           "2 reduce in:0 scratch:0 out:0 after 1\n";

static void in_place_is_checked_apart(void **state)
{
    char text[600];
    struct sched_file *f;

    (void)state;
    snprintf(text, sizeof(text), once, "");
    f = sched_file_parse(text, "once", &errs);
    assert_null(f);
    assert_int_equal(errs.e[0].line, 9);
    assert_string_equal(errs.e[0].text, "found out:0 used, in place, while line 7 (step 0) may not "
                                        "be done with it, expected after 0");
    snprintf(text, sizeof(text), once, "place out\n");
    f = sched_file_parse(text, "once", &errs);
    assert_non_null(f);
    assert_true(f->place[0] && !f->place[1]);
    sched_file_free(f);
}

/* Each rank adds in an order of its own: sums of floats would differ between ranks. */
static void the_order_of_a_sum_is_everywhere_the_same(void **state)
{
    static const char three[] =
        "schedule three\ncollective all_reduce\nranks 3\nchunks 1\nplace out\n"
        "rank 0\n0 send 1 in:0\n1 send 2 in:0\n2 recv_reduce 1 in:0 out:0\n"
        "3 recv_reduce 2 out:0 out:0 after 2\n"
        "rank 1\n0 send 0 in:0\n1 send 2 in:0\n2 recv_reduce 0 in:0 out:0\n"
        "3 recv_reduce 2 out:0 out:0 after 2\n"
        "rank 2\n0 send 0 in:0\n1 send 1 in:0\n2 recv_reduce 1 in:0 out:0\n"
        "3 recv_reduce 0 out:0 out:0 after 2\n";

    (void)state;
    assert_null(sched_file_parse(three, "three", &errs));
    assert_int_equal(errs.n, 1);
    assert_int_equal(errs.e[0].line, 20);
    assert_non_null(strstr(errs.e[0].text, "found out:0 of rank 2 summed in another order than at "
                                           "rank 0"));
}

/* All mistakes of a kind are reported, in order of line. */
static void all_mistakes_are_reported(void **state)
{
    static const char text[] = "schedule x\ncollective all_gather\nranks 2\nchunks 1\n"
                               "rank 0\n0 send 9 in:0\n1 recv 1 out:7\nrank 1\n0 jump\n";

    (void)state;
    assert_null(sched_file_parse(text, "x", &errs));
    assert_int_equal(errs.n, 3);
    assert_int_equal(errs.e[0].line, 6);
    assert_int_equal(errs.e[1].line, 7);
    assert_int_equal(errs.e[2].line, 9);
    assert_string_equal(errs.e[2].file, "x");
}

static void what_is_too_large_is_refused(void **state)
{
    static const char head[] = "schedule x\ncollective alltoall\nranks 1024\nchunks 4096\nrank 0\n";
    char *text = malloc(SCHED_FILE_BYTES + 2);

    (void)state;
    assert_null(sched_file_parse(head, "x", &errs));
    assert_non_null(strstr(errs.e[0].text, "expected fewer: at most"));
    memset(text, '\n', SCHED_FILE_BYTES + 1);
    text[SCHED_FILE_BYTES + 1] = 0;
    assert_null(sched_file_parse(text, "x", &errs));
    assert_non_null(strstr(errs.e[0].text, "found a file of 4194305 bytes, expected at most"));
    free(text);
    assert_null(sched_file_load("/nonexistent", &errs));
    assert_null(sched_file_parse("", "x", &errs));
    assert_true(errs.n > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_refused_by_line_and_reason),
        cmocka_unit_test(in_place_is_checked_apart),
        cmocka_unit_test(the_order_of_a_sum_is_everywhere_the_same),
        cmocka_unit_test(all_mistakes_are_reported),
        cmocka_unit_test(what_is_too_large_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
