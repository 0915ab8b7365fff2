/* SPDX-License-Identifier: BSD-3-Clause */
/* What stands above and below rows, line by line. */
#include "host/bench/result_table.h"

#include "base/table.h"
#include "base/version.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char *text;
static size_t size;

static FILE *open_text(void)
{
    FILE *f;

    free(text);
    text = NULL;
    f = open_memstream(&text, &size);
    assert_non_null(f);
    return f;
}

/* ---- above ---- */

#define HOSTS 300
static struct fab_node nodes[HOSTS];
static fab_id hosts[HOSTS];
static const struct fabric fab = {.name = "many",
                                  .n_nodes = HOSTS,
                                  .n_hosts = HOSTS,
                                  .nodes = nodes,
                                  .hosts = hosts,
                                  .mtu = 4096};
static uint16_t host_of_rank[HOSTS];

static void name_hosts(void)
{
    for (unsigned i = 0; i < HOSTS; i++) {
        snprintf(nodes[i].name, sizeof(nodes[i].name), "h%u", i);
        hosts[i] = (fab_id)(HOSTS - 1 - i); /* host 0 is the last node */
        host_of_rank[i] = (uint16_t)i;
    }
}

static const char *print_header(struct perf_opts *o, unsigned nranks)
{
    FILE *f = open_text();

    table_header(f, "trib-perf", o, &fab, nranks, host_of_rank);
    fclose(f);
    return text;
}

#define BEGIN(coll)                                                                                \
    "# trib-perf " TRIB_VERSION " " coll                                                           \
    " on many (300 hosts, 2 ranks, MTU 4096), times in fabric time\n"

static void the_head_says_what_is_run(void **state)
{
    struct perf_opts o = {.coll = COLL_ALLREDUCE,
                          .min_bytes = 8,
                          .max_bytes = 64,
                          .factor = 4,
                          .warmup = 1,
                          .iters = 20,
                          .check = true};

    (void)state;
    assert_string_equal(
        print_header(&o, 2),
        BEGIN("all_reduce") "# minBytes 8 maxBytes 64 step: 4(factor) warmup iters: 1 iters: 20 "
                            "validation: 1\n"
                            "#\n# Ranks on hosts: 0:h299 1:h298\n");
    o = (struct perf_opts){.coll = COLL_REDUCE,
                           .root = 1,
                           .sparse = 3,
                           .mm_self = true,
                           .forced = true,
                           .min_bytes = 8,
                           .max_bytes = 64,
                           .step_bytes = 16,
                           .iters = 5};
    assert_string_equal(
        print_header(&o, 2),
        BEGIN("reduce") "# minBytes 8 maxBytes 64 step: 16(bytes) warmup iters: 0 iters: 5 "
                        "validation: 0\n"
                        "# root: 1\n"
                        "# sparse: each rank sends to itself and the 2 ranks after it\n"
                        "# multimem: a GPU's own share crosses the switch too\n"
                        "# TRIB_ALGO forces the algorithm\n"
                        "#\n# Ranks on hosts: 0:h299 1:h298\n");
}

static int entry(char one[64], unsigned r)
{
    return snprintf(one, 64, " %u:%s", r, nodes[hosts[r]].name);
}

/* As long as a terminal allows; the wide table's have twelve ranks each. */
static void expect_full_lines(bool wide, unsigned nranks)
{
    char *save = NULL, *at = strstr(text, "# Ranks on hosts:"), one[64];
    unsigned r = 0;

    assert_non_null(at);
    for (char *line = strtok_r(at, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        size_t n = strlen(line);
        unsigned on_line = 0;

        assert_true(wide || n <= TABLE_WIDTH);
        for (char *p = line + strlen(r ? "#  " : "# Ranks on hosts:"); *p; on_line++, r++) {
            int len = entry(one, r);

            assert_memory_equal(p, one, (size_t)len);
            p += len;
        }
        assert_true(!wide || on_line == 12 || r == nranks);
        assert_true(wide || r == nranks || n + (size_t)entry(one, r) > TABLE_WIDTH);
    }
    assert_int_equal(r, nranks);
}

/* The first name has every length, so that lines end at every place. */
static void ranks_fill_lines(void **state)
{
    static const unsigned many[] = {12, 13, 24, 25, 256};
    struct perf_opts o = {.iters = 1};
    struct fab_node *first = &nodes[hosts[0]];

    (void)state;
    for (int wide = 0; wide < 2; wide++)
        for (unsigned i = 0; i < sizeof(many) / sizeof(many[0]); i++)
            for (unsigned length = 1; length < 20; length++) {
                memset(first->name, 'x', length);
                first->name[length] = '\0';
                o.wide = wide;
                print_header(&o, many[i]);
                expect_full_lines(wide, many[i]);
            }
    snprintf(first->name, sizeof(first->name), "h%d", HOSTS - 1);
    for (int wide = 0; wide < 2; wide++) {
        o.wide = wide;
        print_header(&o, 257);
        assert_string_equal(strstr(text, "# Ranks"),
                            "# Ranks on hosts: 0:h299 1:h298 2:h297 3:h296 4:h295 5:h294 6:h293 "
                            "7:h292 ... 256:h43\n");
    }
}

static void what_switches_grant_is_told_where_it_is_less(void **state)
{
    static const struct {
        struct coll_grant g;
        const char *says;
    } rows[] = {
        {{.trees = 2, .trees_asked = 2, .window = 8, .asked = 8}, ""},
        {{.trees = 1, .trees_asked = 2, .window = 4, .asked = 8, .why = "full"},
         "#\n# Aggregation: window 4 of 8 slots on 1 of 2 trees because full\n"},
        {{.trees_asked = 2, .asked = 8, .why = "full"},
         "#\n# Aggregation: none of 2 trees because full\n"},
        {{.rail_asked = true, .asked = 8, .why = "full"},
         "#\n# Aggregation: none of the rails because full\n"},
        {{.rail_asked = true, .rail = 2, .asked = 8, .why = "full"},
         "#\n# Aggregation: window 2 of 8 slots on the rail of rank 0 because full\n"},
        {{.trees_asked = 3, .rail_asked = true, .rail = 2, .asked = 8, .why = "full"},
         "#\n# Aggregation: none of 3 trees, window 2 of 8 slots on the rail of rank 0 because "
         "full\n"},
        {{.trees = 1, .trees_asked = 1, .window = 4, .asked = 8, .rail_asked = true, .why = "full"},
         "#\n# Aggregation: window 4 of 8 slots on 1 of 1 trees, none of the rails because full\n"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        FILE *f = open_text();

        table_granted(f, false, &rows[i].g);
        fclose(f);
        assert_string_equal(text, rows[i].says);
    }
}

static void headings_of_parts(void **state)
{
    FILE *f = open_text();

    (void)state;
    table_memory(f, false, "cuda:1");
    table_gpus(f, false, 4, "H100");
    table_left_out(f, false, PERF_NVLS_HW, "no GPU");
    fclose(f);
    assert_string_equal(text,
                        "#\n# Memory: cuda:1\n"
                        "#\n# GPUs of this machine: 4, H100; times by the clock of the first\n"
                        "#\n# Left out: nvls-hw: no GPU\n");
}

/* ---- below ---- */

/* 1 GB/s of algbw in its time; of two ranks busbw is as much. */
static struct row make_row(double us)
{
    struct row r = {.emulated = true,
                    .coll = COLL_ALLREDUCE,
                    .algo = ALGO_RING,
                    .type = DT_FP32,
                    .op = OP_SUM,
                    .nranks = 2,
                    .count = 250,
                    .bytes = 1000,
                    .pred.time_ps = 1000000};

    for (int p = 0; p < PLACES; p++)
        r.run[p] = (struct run_result){.valid = true,
                                       .checked = true,
                                       .iters = 5,
                                       .time_us = us,
                                       .dilation = 1,
                                       .fid = {.ok = true, .needed = 1}};
    return r;
}

static const char *print_footer(bool wide, double max_wall, const struct row *r, unsigned n)
{
    FILE *f = open_text();

    table_footer(f, wide, max_wall, r, n);
    fclose(f);
    return text;
}

#define RIGHT "# Out of bounds values : 0 OK\n"

static void the_foot_adds_up_all_runs(void **state)
{
    struct row rows[2] = {make_row(1), make_row(2)};

    (void)state;
    assert_string_equal(print_footer(false, 0, NULL, 0),
                        "# Out of bounds values : not checked\n"
                        "# Avg bus bandwidth    : 0.0000\n# Fidelity             : ok\n");
    assert_string_equal(print_footer(false, 0, rows, 2),
                        RIGHT "# Avg bus bandwidth    : 0.7500\n# Fidelity             : ok\n");
    rows[0].run[IN_PLACE].valid = false; /* 1, 0.5, 0.5 */
    rows[0].run[IN_PLACE].wrong = 100;   /* of no run */
    rows[0].run[OUT_OF_PLACE].wrong = 2;
    rows[1].run[IN_PLACE].wrong = 3;
    rows[0].run[OUT_OF_PLACE].checked = false;
    rows[1].run[OUT_OF_PLACE].dilation = 2;
    strcpy(rows[1].run[OUT_OF_PLACE].fell_back, "no tree");
    strcpy(rows[1].run[OUT_OF_PLACE].link.why, "first");
    strcpy(rows[1].run[IN_PLACE].link.why, "second");
    assert_string_equal(print_footer(false, 0, rows, 2),
                        "# Out of bounds values : 5 FAILED\n"
                        "# Avg bus bandwidth    : 0.6667\n"
                        "# Fidelity             : ok\n"
                        "# Dilation             : up to 2\n"
                        "# Links not measured   : first\n"
                        "# Fell back            : 1 of 3 runs, in all or in part by another "
                        "algorithm\n");
    assert_null(strstr(print_footer(true, 0, rows, 2), "Dilation"));
    strcpy(rows[0].run[IN_PLACE].cut, "no time");
    strcpy(rows[1].run[IN_PLACE].cut, "not checked"); /* but it ran */
    assert_non_null(strstr(print_footer(false, 0, rows, 2),
                           "\n# Not measured         : 1 of 4 runs, for which --max-wall left no "
                           "time\n"));
    rows[0].emulated = false; /* nothing is emulated that could lag */
    assert_null(strstr(print_footer(false, 0, rows, 2), "Fidelity"));
    assert_null(strstr(text, "Dilation"));
}

static void a_run_that_lags_says_what_it_needs(void **state)
{
    struct row rows[2] = {make_row(1e6), make_row(1e6)};

    (void)state;
    for (int i = 0; i < 2; i++)
        rows[i].bytes = 1000000000;
    rows[0].run[IN_PLACE].fid = (struct fidelity){.needed = 3};
    rows[1].run[OUT_OF_PLACE].fid = (struct fidelity){.needed = 2};
    rows[1].run[OUT_OF_PLACE].time_us = 2e6; /* 4 s of an operation, beside 3 */
    rows[1].run[OUT_OF_PLACE].dilation = 7;
    assert_string_equal(print_footer(false, 47.9, rows, 2),
                        RIGHT "# Avg bus bandwidth    : 0.8750\n"
                              "# Fidelity             : lag in 2 of 4 runs, the emulation did not "
                              "keep up there\n"
                              "# Dilation             : up to 7, needs 3\n"
                              "# To keep up           : about --max-wall 48, an operation takes 4 "
                              "s then\n");
    rows[0].run[IN_PLACE].fid.blind = true; /* of the shorter one */
    assert_non_null(strstr(print_footer(false, 47.9, rows, 2), ": about --max-wall 48,"));
    rows[1].run[OUT_OF_PLACE].fid.blind = true;
    assert_non_null(strstr(print_footer(false, 47.9, rows, 2), ": at least --max-wall 48,"));
    assert_null(strstr(print_footer(false, 48, rows, 2), "To keep up"));
    assert_null(strstr(print_footer(false, 0, rows, 2), "To keep up"));
    /* Where the longest comes first, it stays. */
    rows[0].run[OUT_OF_PLACE].fid = (struct fidelity){.needed = 8};
    assert_non_null(strstr(print_footer(false, 1, rows, 2), ": about --max-wall 96, an operation "
                                                            "takes 8 s then\n"));
    assert_non_null(strstr(text, "up to 7, needs 8\n"));
}

/* ---- side by side ---- */

static const char *print_compare(const struct row *rows, unsigned n)
{
    FILE *f = open_text();

    table_compare(f, rows, n);
    fclose(f);
    return text;
}

#define COLUMNS(a, b, unit)                                                                        \
    "#       size     type  redop  " a " " b "  speed-up    theory\n"                              \
    "#        (B)                  " unit " " unit "\n"

static void pairs_have_a_line_each(void **state)
{
    struct row rows[6];

    (void)state;
    for (int i = 0; i < 6; i++) {
        rows[i] = make_row(i < 3 ? 2 : 1);
        rows[i].algo = i < 3 ? ALGO_RING : ALGO_SHARP;
    }
    rows[1].bytes = rows[4].bytes = 2000;
    rows[2].op = OP_MAX;
    rows[5].op = OP_MIN; /* no partner of it */
    rows[4].pred.time_ps = 500000;
    assert_string_equal(
        print_compare(rows, 6),
        "#\n# SHARP against ring, out-of-place (for large sizes theory says 2(N-1)/N = "
        "1.000)\n" COLUMNS("      ring algbw", "     sharp algbw",
                           "          (GB/s)") "        1000    float    sum             0.500     "
                                               "       1.000     2.000     1.000\n"
                                               "        2000    float    sum             1.000     "
                                               "       2.000     2.000     2.000\n");
    rows[4].pred.guessed = true;           /* without theory */
    rows[3].run[OUT_OF_PLACE].time_us = 0; /* without a ratio */
    rows[0].coll = COLL_BROADCAST;         /* of which there is no such theory */
    assert_string_equal(print_compare(rows, 6),
                        "#\n# sharp against ring, out-of-place\n" COLUMNS(
                            "      ring algbw", "     sharp algbw",
                            "          (GB/s)") "        1000    float   none             0.500    "
                                                "        0.000         -     1.000\n"
                                                "        2000    float    sum             1.000    "
                                                "        2.000     2.000         -\n");
    rows[0].run[OUT_OF_PLACE].valid = false;
    rows[4].run[OUT_OF_PLACE].valid = false;
    assert_string_equal(print_compare(rows, 6), "");
    for (int i = 0; i < 6; i++) {
        rows[i] = make_row(2);
        rows[i].type = i % 2 ? DT_FP32 : DT_FP64;
        rows[i].algo = i < 2 ? ALGO_SHARP : i < 4 ? ALGO_RING : ALGO_TREE;
        rows[i].coll = COLL_BARRIER;
    }
    rows[4].chosen = rows[5].chosen = true;
    rows[3].type = DT_BF16; /* no partner */
    rows[2].run[OUT_OF_PLACE].time_us = 4;
    assert_string_equal(
        print_compare(rows, 6),
        "#\n# ring against sharp, out-of-place\n" COLUMNS(
            "      sharp time", "       ring time",
            "            (us)") "        1000     none   none             2.000            4.000   "
                                "  0.500     1.000\n"
                                "#\n# auto against sharp, out-of-place\n" COLUMNS(
                                    "      sharp time", "       auto time",
                                    "            (us)") "        1000     none   none             "
                                                        "2.000            2.000     1.000     "
                                                        "1.000\n"
                                                        "        1000     none   none             "
                                                        "2.000            2.000     1.000     "
                                                        "1.000\n");
    assert_string_equal(print_compare(rows, 0), "");
}

static void errors_are_of_rows_that_were_measured(void **state)
{
    struct row rows[3] = {make_row(1), make_row(1), make_row(1)};
    FILE *f = open_text();

    (void)state;
    rows[1].ulp = (struct ulp){.max = 2, .sum = 1, .n = 4};
    rows[2].ulp = (struct ulp){.max = 0.5, .sum = 1, .n = 8};
    rows[2].algo = ALGO_TREE;
    table_error(f, rows, 3);
    fclose(f);
    assert_string_equal(text, "#\n# Error against the exact sum of random numbers, out-of-place\n"
                              "#       size     type  redop    algorithm        mean        max\n"
                              "#        (B)                                    (ULP)      (ULP)\n"
                              "        1000    float    sum         ring      0.2500     2.0000\n"
                              "        1000    float    sum         tree      0.1250     0.5000\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_head_says_what_is_run),
        cmocka_unit_test(ranks_fill_lines),
        cmocka_unit_test(what_switches_grant_is_told_where_it_is_less),
        cmocka_unit_test(headings_of_parts),
        cmocka_unit_test(the_foot_adds_up_all_runs),
        cmocka_unit_test(a_run_that_lags_says_what_it_needs),
        cmocka_unit_test(pairs_have_a_line_each),
        cmocka_unit_test(errors_are_of_rows_that_were_measured),
    };
    int rc;

    name_hosts();
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    free(text);
    return rc;
}
