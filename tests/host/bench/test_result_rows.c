/* SPDX-License-Identifier: BSD-3-Clause */
/* The usual shape of rows: a line for each place, of nccl-tests' columns, that fits a terminal. */
#include "base/table.h"
#include "host/bench/result_rows.h"
#include "host/bench/result_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char text[8192];

static struct row make_row(void)
{
    struct row r = {.emulated = true,
                    .coll = COLL_ALLREDUCE,
                    .algo = ALGO_HIER_SHARP,
                    .type = DT_BF16,
                    .op = OP_MINLOC,
                    .nranks = 8,
                    .count = 1000,
                    .bytes = 2000};

    r.pred.time_ps = 10 * 1000000;
    for (int p = 0; p < PLACES; p++)
        r.run[p] = (struct run_result){.valid = true,
                                       .checked = true,
                                       .iters = 5,
                                       .dilation = 400,
                                       .time_us = 12.5 + p,
                                       .fid = {.ok = true, .needed = 1}};
    return r;
}

static const char *print(const struct row *r)
{
    FILE *f = fmemopen(text, sizeof(text), "w");

    memset(text, 0, sizeof(text));
    result_rows_print(f, r, false);
    fclose(f);
    return text;
}

static const char *print_footer(const struct row *r, double max_wall)
{
    FILE *f = fmemopen(text, sizeof(text), "w");

    memset(text, 0, sizeof(text));
    table_footer(f, false, max_wall, r, 1);
    fclose(f);
    return text;
}

static void each_place_has_a_line_of_its_own(void **state)
{
    struct row r = make_row();
    char type[16], op[16], algo[16], in[8];
    unsigned long size, count, wrong;
    double us, alg, bus, model;
    const char *line;

    (void)state;
    r.run[IN_PLACE].wrong = 7;
    line = print(&r);
    for (int p = 0; p < PLACES; p++) {
        assert_int_equal(sscanf(line, "%lu %lu %15s %15s %15s %7s %lf %lf %lf %lu %lf", &size,
                                &count, type, op, algo, in, &us, &alg, &bus, &wrong, &model),
                         11);
        assert_int_equal(size, 2000);
        assert_int_equal(count, 1000);
        assert_string_equal(algo, "hier_sharp");
        assert_string_equal(in, p == IN_PLACE ? "in" : "out");
        assert_float_equal(us, 12.5 + p, 1e-9);
        assert_float_equal(alg, row_algbw(&r, us), 1e-3);
        assert_float_equal(bus, row_busbw(&r, us), 1e-3);
        assert_int_equal(wrong, p == IN_PLACE ? 7 : 0);
        assert_float_equal(model, us / 10, 1e-3);
        line = strchr(line, '\n') + 1;
    }
    assert_string_equal(line, "");
}

static void what_did_not_run_is_told_apart(void **state)
{
    struct row r = make_row();

    (void)state;
    r.run[IN_PLACE].valid = false; /* the collective has no such place */
    assert_null(strstr(print(&r), " in "));
    snprintf(r.run[IN_PLACE].cut, ROW_CUT, "not measured");
    assert_non_null(strstr(print(&r), "  in        -       -       -      -      -\n"));
    assert_non_null(strstr(text, "cut by --max-wall, in-place: not measured"));
    r = make_row();
    r.run[OUT_OF_PLACE].valid = false;
    assert_null(strstr(print(&r), " out "));
    assert_non_null(strstr(text, " in "));
}

static void check_lines(void)
{
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        if (strlen(line) > TABLE_WIDTH)
            fail_msg("%zu characters: %s", strlen(line), line);
}

static void a_place_that_lagged_is_marked(void **state)
{
    struct row r = make_row();

    (void)state;
    assert_null(strstr(print(&r), "lag"));
    assert_non_null(strstr(print_footer(&r, 10), "up to 400\n"));
    r.run[IN_PLACE].fid = (struct fidelity){.needed = 800};
    assert_true(strstr(print(&r), " lag\n") > strstr(text, " in "));
    assert_non_null(strstr(print_footer(&r, 10), "up to 400, needs 800\n"));
    assert_null(strstr(text, "To keep up")); /* it had its time */
    r.run[IN_PLACE].fid.needed = 200000;     /* 13.5 us are 2.7 s, and ROW_OPS of them 32.4 */
    assert_non_null(strstr(print_footer(&r, 10), "about --max-wall 33, an operation takes 2.7 s"));
    r.run[IN_PLACE].fid.blind = true;
    assert_non_null(strstr(print_footer(&r, 10), "at least --max-wall 33"));
    check_lines();
    assert_null(strstr(print_footer(&r, 40), "To keep up")); /* more than that was not enough */
    assert_null(strstr(print_footer(&r, 0), "To keep up"));  /* the dilation is not this job's */
    r.run[0].dilation = r.run[1].dilation = 1;
    r.run[IN_PLACE].fid.ok = true;
    assert_null(strstr(print_footer(&r, 10), "Dilation"));
}

/* The largest of everything. */
static void no_line_is_longer_than_a_terminal(void **state)
{
    struct row r = make_row();
    FILE *f;

    (void)state;
    r.bytes = r.count = 1ull << 39;
    r.pred.time_ps = 1000 * 1000000000ll;
    for (int p = 0; p < PLACES; p++) {
        r.run[p].time_us = p ? 99999999 : 9999999;
        r.run[p].wrong = 999999;
        r.run[p].fid = (struct fidelity){.needed = 1};
        memset(r.run[p].fell_back, 'x', 121);
        r.run[p].fell_back[60] = ' ';
    }
    print(&r);
    check_lines();
    f = fmemopen(text, sizeof(text), "w");
    memset(text, 0, sizeof(text));
    result_rows_heads(f, "ring", false, true);
    fclose(f);
    check_lines();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_place_has_a_line_of_its_own),
        cmocka_unit_test(what_did_not_run_is_told_apart),
        cmocka_unit_test(a_place_that_lagged_is_marked),
        cmocka_unit_test(no_line_is_longer_than_a_terminal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
