/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of both shapes, and what is told below them, line by line. */
#include "collective/file/sched_file.h"
#include "host/bench/result_rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char text[8192];

static const char *print_as(const struct row *r, bool wide)
{
    FILE *f = fmemopen(text, sizeof(text), "w");

    memset(text, 0, sizeof(text));
    result_rows_print(f, r, wide);
    fclose(f);
    return text;
}

/* 1 GB/s of algbw at 1 us, of two ranks; a link of 8 Gb/s carries 1,000 bytes in 1 us. */
static struct row round_row(void)
{
    struct row r = {.emulated = true,
                    .coll = COLL_ALLREDUCE,
                    .algo = ALGO_RING,
                    .type = DT_FP32,
                    .op = OP_SUM,
                    .nranks = 2,
                    .count = 250,
                    .bytes = 1000,
                    .link_bps = 8000000000,
                    .pred = {.time_ps = 2000000, .busiest_link_bytes = 1000}};

    for (int p = 0; p < PLACES; p++)
        r.run[p] =
            (struct run_result){.valid = true,
                                .checked = true,
                                .iters = 5,
                                .dilation = 3,
                                .time_us = 1 + p,
                                .link = {.known = true, .bytes = 2500, .rate_bps = 8000000000},
                                .fid = {.ok = true, .needed = 1}};
    return r;
}

#define OUT "        1000          250    float    sum       ring out"
#define IN  "        1000          250    float    sum       ring  in"

/* ---- a line for each place ---- */

static void heads_name_the_columns(void **state)
{
#define WIDE_HEAD                                                                                  \
    "#\n# Algorithm: tree\n"                                                                       \
    "#                                                            out-of-place              "      \
    "             in-place             \n"                                                         \
    "#       size        count     type  redop  root       time    algbw    busbw  #wrong      "   \
    " time    algbw    busbw  #wrong       link   util     model meas/model link/model "
#define WIDE_UNITS                                                                                 \
    "#        (B)   (elements)                             (us)   (GB/s)   (GB/s)              "   \
    " (us)   (GB/s)   (GB/s)               (MB)    (%)      (us)"
    static const struct {
        bool wide, staged;
        const char *says;
    } rows[] = {
        {false, true,
         "#\n# Algorithm: tree\n"
         "#       size        count     type  redop       algo in?     time   algbw   busbw #wrong "
         "/model\n"
         "#        (B)   (elements)                                    (us)  (GB/s)  (GB/s)\n"},
        {true, false, WIDE_HEAD "dilation  fidelity\n" WIDE_UNITS "\n"},
        {true, true,
         WIDE_HEAD "  staging dilation  fidelity\n" WIDE_UNITS
                   "                            (us)\n"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        FILE *f = fmemopen(text, sizeof(text), "w");

        memset(text, 0, sizeof(text));
        result_rows_heads(f, "tree", rows[i].wide, rows[i].staged);
        fclose(f);
        assert_string_equal(text, rows[i].says);
    }
}

static void cells_keep_their_width(void **state)
{
    static const struct {
        double us;
        uint64_t bytes;
        const char *cells; /* time, algbw, busbw, #wrong, /model */
    } rows[] = {
        {9999.99, 1000, "  9999.99   0.000   0.000      0   5000\n"},
        {10000, 1000, "  10000.0   0.000   0.000      0   5000\n"},
        {99999.9, 1000, "  99999.9   0.000   0.000      0  50000\n"},
        {100000, 1000, "   100000   0.000   0.000      0  50000\n"},
        {1, 999999, "     1.00 999.999 999.999      0  0.500\n"},
        {1, 1000000, "     1.00 1000.00 1000.00      0  0.500\n"},
        {1, 9999990, "     1.00 9999.99 9999.99      0  0.500\n"},
        {1, 10000000, "     1.00   10000   10000      0  0.500\n"},
        {199.98, 199980, "   199.98   1.000   1.000      0 99.990\n"},
        {200, 200000, "   200.00   1.000   1.000      0    100\n"},
    };
    struct row r = round_row();

    (void)state;
    r.run[IN_PLACE].valid = false;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        r.bytes = rows[i].bytes;
        r.run[OUT_OF_PLACE].time_us = rows[i].us;
        assert_string_equal(strstr(print_as(&r, false), " out") + 4, rows[i].cells);
    }
}

static void long_names_are_cut(void **state)
{
    static struct sched_file file;
    static const struct {
        const char *name, *cell;
    } rows[] = {{"ten-letter", " ten-letter out"}, {"eleven-char", " eleven-ch~ out"}};
    struct row r = round_row();

    (void)state;
    r.algo = ALGO_SCHEDULE;
    r.file = &file;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        snprintf(file.name, sizeof(file.name), "%s", rows[i].name);
        assert_non_null(strstr(print_as(&r, false), rows[i].cell));
    }
}

static void places_have_whole_lines(void **state)
{
    struct row r = round_row();

    (void)state;
    r.run[IN_PLACE].wrong = 7;
    r.run[IN_PLACE].fid.ok = false;
    r.run[OUT_OF_PLACE].checked = false;
    assert_string_equal(print_as(&r, false), OUT "     1.00   1.000   1.000    N/A  0.500\n" IN
                                                 "     2.00   0.500   0.500      7  1.000 lag\n");
    r.emulated = false; /* GPUs do not lag */
    assert_null(strstr(print_as(&r, false), "lag"));
    r.emulated = true;
    r.pred.guessed = true;
    r.run[OUT_OF_PLACE].valid = false;
    assert_string_equal(print_as(&r, false), IN "     2.00   0.500   0.500      7      - lag\n");
    r.run[IN_PLACE].valid = false; /* nothing ran: one line says so */
    assert_string_equal(print_as(&r, false), OUT "        -       -       -      -      -\n");
    strcpy(r.run[OUT_OF_PLACE].cut, "no time");
    strcpy(r.run[IN_PLACE].cut, "no time either");
    assert_string_equal(print_as(&r, false),
                        OUT "        -       -       -      -      -\n" IN
                            "        -       -       -      -      -\n"
                            "#            cut by --max-wall, out-of-place: no time\n"
                            "#            cut by --max-wall, in-place: no time either\n");
    r.run[IN_PLACE].valid = true; /* out of place stays, because it says what was cut */
    assert_int_equal(strncmp(print_as(&r, false), OUT, strlen(OUT)), 0);
}

/* ---- everything on one line ---- */

#define WIDE "        1000          250    float    sum    -1"
#define RUN0 "       1.00    1.000    1.000       0"
#define RUN1 "       2.00    0.500    0.500       0"
#define NONE "          -        -        -       -"

static void wide_rows_have_whole_lines(void **state)
{
    struct row r = round_row();

    (void)state;
    /* 500 bytes of an operation of 1 us: half of the link's time. */
    assert_string_equal(print_as(&r, true), WIDE RUN0 RUN1
                        "      0.001   50.0      2.00      0.500      0.500        3  ok\n");
    r.run[OUT_OF_PLACE].valid = false; /* in place of 2 us */
    assert_string_equal(print_as(&r, true), WIDE NONE RUN1
                        "      0.001   25.0      2.00      1.000      0.500        3  ok\n");
    r.run[IN_PLACE].link.known = false;
    r.pred.guessed = true;
    assert_string_equal(print_as(&r, true), WIDE NONE RUN1
                        "          -      -         -          -          -        3  ok\n");
    r.run[IN_PLACE].valid = false;
    assert_string_equal(
        print_as(&r, true), WIDE NONE NONE
        "          -      -         -          -          -        -  not measured\n");
    r = round_row();
    r.staged = true;
    r.run[IN_PLACE].dilation = 4;
    r.run[IN_PLACE].staging_us = 12345;
    assert_string_equal(
        print_as(&r, true), WIDE RUN0 RUN1
        "      0.001   50.0      2.00      0.500      0.500   12345.0        4  ok\n");
    r.emulated = false;
    assert_string_equal(print_as(&r, true), WIDE RUN0 RUN1
                        "          -      -      2.00      0.500          -        -  -\n");
}

/* The run that lagged most, else the slower clock. */
static void a_wide_row_shows_the_worse_run(void **state)
{
    static const struct {
        bool valid[2], ok[2];
        uint32_t needed[2], dilation[2];
        const char *end;
    } rows[] = {
        {{true, true}, {true, true}, {9, 1}, {5, 4}, "        5  ok\n"},
        {{true, true}, {true, true}, {1, 9}, {4, 5}, "        5  ok\n"},
        {{true, true}, {false, true}, {9, 1}, {4, 5}, "        4  lag (needs 9)\n"},
        {{true, true}, {true, false}, {1, 9}, {5, 4}, "        4  lag (needs 9)\n"},
        {{true, true}, {false, false}, {8, 9}, {5, 4}, "        4  lag (needs 9)\n"},
        {{true, true}, {false, false}, {9, 8}, {4, 5}, "        4  lag (needs 9)\n"},
        {{true, false}, {true, false}, {1, 9}, {4, 5}, "        4  ok\n"},
        {{false, true}, {false, true}, {9, 1}, {5, 4}, "        4  ok\n"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct row r = round_row();
        size_t n = strlen(rows[i].end);

        for (int p = 0; p < PLACES; p++) {
            r.run[p].valid = rows[i].valid[p];
            r.run[p].fid = (struct fidelity){.ok = rows[i].ok[p], .needed = rows[i].needed[p]};
            r.run[p].dilation = rows[i].dilation[p];
        }
        print_as(&r, true);
        assert_string_equal(text + strlen(text) - n, rows[i].end);
    }
}

/* ---- what is told below ---- */

static const char *below(const struct row *r)
{
    const char *at = strstr(print_as(r, false), "#  ");

    return at ? at : "";
}

static void predictions_say_what_they_are(void **state)
{
    struct row r = round_row();

    (void)state;
    assert_string_equal(below(&r), "");
    r.chosen = true;
    strcpy(r.why, "ring: 2 us");
    r.pred.from_ranks = 16;
    r.nranks = 64;
    r.pred.within_percent = 15;
    r.pred.hashed = true;
    r.until = 999;
    assert_string_equal(
        below(&r),
        "#            picked ring: 2 us\n"
        "#            the model ran 16 of 64 ranks, and extrapolated\n"
        "#            the formula of ring holds within 15 % here\n"
        "#            the model's paths are those of ecmp = \"balanced\", this conf's are hashed\n"
        "#            extrapolated: this conf's costs.aggregate holds for vectors up to 999 "
        "bytes\n");
    r.pred.guessed = true; /* nothing is told of what nobody sees */
    r.until = 1000;
    assert_string_equal(below(&r), "#            picked ring: 2 us\n");
}

static void when_it_fell_back_is_told(void **state)
{
    static const struct {
        bool goes_on;
        uint32_t aggregated;
        const char *says;
    } rows[] = {
        {true, 3, ", in-place, 3 of 5 operations wholly by ring: no tree\n"},
        {false, 3, ", in-place, from operation 4 of 5 on: no tree\n"},
        {false, 4, ", in-place, from operation 5 of 5 on: no tree\n"},
        {false, 5, ", in-place, after the timed operations: no tree\n"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *head = "#            fell back";
        struct row r = round_row();

        strcpy(r.run[IN_PLACE].fell_back, "no tree");
        r.run[IN_PLACE].aggregated = rows[i].aggregated;
        r.run[IN_PLACE].end.goes_on = rows[i].goes_on;
        assert_int_equal(strncmp(below(&r), head, strlen(head)), 0);
        assert_string_equal(strstr(text, head) + strlen(head), rows[i].says);
        r.run[IN_PLACE].valid = false;
        assert_string_equal(below(&r), "");
    }
}

static void what_switches_left_to_ranks_is_told(void **state)
{
    static const char parts[] = "#              9 parts had a number beyond what the key scale can "
                                "send, and went on as floats\n";
    static const struct {
        const char *name[2];
        uint64_t v[2];
        const char *says; /* "": nothing */
        bool parts;
    } rows[] = {
        {{"switch_sums", "overflows"}, {4, 0}, "", false},
        {{"other", "overflows"}, {0, 0}, "", false},
        {{"switch_sums", "overflows"}, {0, 0}, "switches have summed nothing\n", false},
        {{"switch_sums", "overflows"}, {4, 9}, "switches have not summed everything\n", true},
        {{"overflows", "other"}, {9, 0}, "switches have not summed everything\n", true},
        {{"switch_sums", "overflows"}, {0, 9}, "switches have summed nothing\n", true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct row r = round_row();
        char expected[256] = "";

        for (int k = 0; k < 2; k++)
            row_counters_add(&r.run[OUT_OF_PLACE].counted, rows[i].name[k], rows[i].v[k], false);
        if (*rows[i].says)
            snprintf(expected, sizeof(expected), "#            ring, out-of-place: %s%s",
                     rows[i].says, rows[i].parts ? parts : "");
        assert_string_equal(below(&r), expected);
        r.nranks = 1; /* nothing to sum */
        assert_string_equal(below(&r), "");
        r.nranks = 2;
        r.run[OUT_OF_PLACE].valid = false;
        assert_string_equal(below(&r), "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_name_the_columns),
        cmocka_unit_test(cells_keep_their_width),
        cmocka_unit_test(long_names_are_cut),
        cmocka_unit_test(places_have_whole_lines),
        cmocka_unit_test(wide_rows_have_whole_lines),
        cmocka_unit_test(a_wide_row_shows_the_worse_run),
        cmocka_unit_test(predictions_say_what_they_are),
        cmocka_unit_test(when_it_fell_back_is_told),
        cmocka_unit_test(what_switches_left_to_ranks_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
