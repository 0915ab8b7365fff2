/* SPDX-License-Identifier: BSD-3-Clause */
/* Pace, table and JSON: figures of one known row come out as they must. */
#include "host/bench/report.h"
#include "host/bench/result_rows.h"
#include "host/bench/result_table.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* 16 MiB among 8 ranks at 400 Gb/s; ring 587 us, SHARP 336 us, both as predicted. */
static int report_write(const char *path, const struct perf_opts *o, unsigned nranks,
                        const struct row *rows, unsigned n, const char *error)
{
    return report_write_more(path, o, nranks, rows, n, error, NULL, NULL, NULL);
}

static struct row make_row(enum coll_algo algo)
{
    bool ring = algo == ALGO_RING;
    struct row r = {.emulated = algo != PERF_NVLS_HW,
                    .coll = COLL_ALLREDUCE,
                    .algo = algo,
                    .type = DT_FP32,
                    .op = OP_SUM,
                    .nranks = 8};

    r.count = 4 << 20;
    r.bytes = 16 << 20;
    r.pred.busiest_link_bytes = ring ? 29360128 : 16777216;
    r.pred.time_ps = ring ? 587202560 : 335544320;
    r.pred.handoffs = ring ? 28 : 4;
    r.link_bps = 400000000000;
    for (int p = 0; p < PLACES; p++) {
        r.run[p] = (struct run_result){.valid = true, .checked = true, .iters = 5, .dilation = 400};
        r.run[p].time_us = (double)r.pred.time_ps * 1e-6;
        r.run[p].link = (struct link_use){.known = true, /* 25 % more than the model has */
                                          .bytes = 5 * r.pred.busiest_link_bytes * 5 / 4,
                                          .rate_bps = 2 * r.link_bps};
        r.run[p].fid = dilation_judge(&r.pred, 100000, 0, 400);
    }
    return r;
}

/* What fn prints; valid until the next call. */
static const char *print(void (*fn)(FILE *, const struct row *, unsigned), const struct row *rows,
                         unsigned n)
{
    static char text[8192];
    FILE *f = fmemopen(text, sizeof(text), "w");

    memset(text, 0, sizeof(text));
    fn(f, rows, n);
    fclose(f);
    return text;
}

static void print_rows(FILE *f, const struct row *rows, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        result_rows_print(f, &rows[i], true);
}

static void footer(FILE *f, const struct row *rows, unsigned n)
{
    table_footer(f, true, 10, rows, n);
}

static void bandwidths_follow_nccl_tests(void **state)
{
    struct row r = make_row(ALGO_RING);

    (void)state;
    assert_float_equal(row_algbw(&r, 587.20256), 28.571, 0.001); /* 50 * 8 / 14 */
    assert_float_equal(row_busbw(&r, 587.20256), 50.0, 0.001);
    assert_float_equal(row_predicted_utilisation(&r), 1.0, 1e-9);
    assert_float_equal(row_asymptote(8), 1.75, 1e-12);
}

/* The figure on the bus, with 8 ranks, of 1 GB/s of size over time. */
static void bus_bandwidth_has_a_factor_for_each_collective(void **state)
{
    static const struct {
        enum coll_kind kind;
        unsigned sparse;
        double factor;
    } rows[] = {
        {COLL_ALLREDUCE, 0, 1.75},       {COLL_REDUCE, 0, 1},
        {COLL_BROADCAST, 0, 1},          {COLL_ALLGATHER, 0, 0.875},
        {COLL_REDUCE_SCATTER, 0, 0.875}, {COLL_ALLTOALL, 0, 0.875},
        {COLL_ALLTOALL, 2, 0.5},         {COLL_GATHER, 0, 0.875},
        {COLL_SCATTER, 0, 0.875},        {COLL_SENDRECV, 0, 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct row r = {
            .coll = rows[i].kind, .nranks = 8, .sparse = rows[i].sparse, .bytes = 1000000};
        assert_float_equal(row_algbw(&r, 1000), 1, 1e-9);
        assert_float_equal(row_busbw(&r, 1000), rows[i].factor, 1e-9);
    }
}

/* Columns that a collective does not have are marked as in nccl-tests. */
/* A barrier has no bytes on a bus and no ratio to a prediction. */
static void a_single_rank_has_no_bus_and_no_ratio(void **state)
{
    static const enum coll_kind rooted[] = {COLL_REDUCE, COLL_BROADCAST};
    struct row rows[2] = {make_row(ALGO_RING), make_row(ALGO_SHARP)};
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        rows[i].nranks = 1;
        rows[i].pred.time_ps = 1;
        rows[i].pred.busiest_link_bytes = 0;
        rows[i].run[OUT_OF_PLACE].time_us = rows[i].run[IN_PLACE].time_us = 0;
        assert_float_equal(row_busbw(&rows[i], 1), 0, 0);
    }
    for (unsigned i = 0; i < 2; i++) {
        struct row r = {.coll = rooted[i], .nranks = 1, .bytes = 1000000};

        assert_float_equal(row_busbw(&r, 1000), 1, 1e-9);
    }
    print_rows(f, rows, 2);
    table_compare(f, rows, 2);
    fclose(f);
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "inf"));
    assert_non_null(
        strstr(text, " 0.00          -          - ")); /* model, meas/model, link/model */
    assert_non_null(strstr(text, "0.000         -         -\n")); /* speed-up, theory */
    free(text);
}

static void roots_and_reductions_are_shown_where_there_are_any(void **state)
{
    static const struct {
        enum coll_kind kind;
        const char *type, *op;
        int root;
    } rows[] = {
        {COLL_ALLREDUCE, "float", "sum", -1}, {COLL_REDUCE, "float", "sum", 3},
        {COLL_BROADCAST, "float", "none", 3}, {COLL_REDUCE_SCATTER, "float", "sum", -1},
        {COLL_GATHER, "float", "none", 3},    {COLL_SENDRECV, "float", "none", -1},
        {COLL_BARRIER, "none", "none", -1},
    };
    char type[16], op[16];
    int root;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct row r = make_row(ALGO_RING);
        r.coll = rows[i].kind;
        r.root = 3;
        const char *text = print(print_rows, &r, 1);
        assert_int_equal(sscanf(text, "%*s %*s %15s %15s %d", type, op, &root), 3);
        assert_string_equal(type, rows[i].type);
        assert_string_equal(op, rows[i].op);
        assert_int_equal(root, rows[i].root);
    }
}

/* GPUs have no model but that of nvls, where the fabric has it, and nothing that is emulated. */
static void gpus_have_what_is_known_of_them(void **state)
{
    struct row rows[2] = {make_row(ALGO_SHARP), make_row(PERF_NVLS_HW)};
    const char *text;

    (void)state;
    text = print(print_rows, &rows[1], 1);
    assert_non_null(strstr(text, " -      -    335.54      1.000          -        -  -\n"));
    text = print(table_compare, rows, 2);
    assert_non_null(strstr(text, "# nvls-hw against sharp, out-of-place"));
    assert_non_null(strstr(text, "     1.000     1.000\n"));
    rows[1].pred = (struct coll_prediction){0};
    text = print(print_rows, &rows[1], 1);
    assert_non_null(strstr(text, " -      -         -          -          -        -  -\n"));
    text = print(table_compare, rows, 2);
    assert_non_null(strstr(text, "     1.000         -\n"));
    text = print(footer, &rows[1], 1);
    assert_null(strstr(text, "Fidelity"));
}

static void what_auto_picked_is_told(void **state)
{
    struct row rows[2] = {make_row(ALGO_RING), make_row(ALGO_SHARP)};

    (void)state;
    rows[1].chosen = true;
    snprintf(rows[1].why, sizeof(rows[1].why), "sharp: 335.54 us");
    assert_non_null(strstr(print(print_rows, rows, 2), "picked sharp: 335.54 us"));
    assert_null(strstr(print(print_rows, rows, 1), "picked"));
    assert_non_null(strstr(print(table_compare, rows, 2), "auto against ring"));
}

static void each_algorithm_is_compared_with_the_first(void **state)
{
    struct row rows[3] = {make_row(ALGO_SHARP), make_row(ALGO_DIRECT), make_row(ALGO_TREE)};

    (void)state;
    rows[1].run[OUT_OF_PLACE].time_us *= 2;
    const char *text = print(table_compare, rows, 3);
    assert_non_null(strstr(text, "# tree against sharp, out-of-place"));
    assert_non_null(strstr(text, "# direct against sharp, out-of-place"));
    assert_null(strstr(text, "tree against direct"));
    assert_true(strstr(text, "direct against sharp") < strstr(text, "tree against sharp"));
    rows[0].coll = rows[1].coll = rows[2].coll = COLL_BARRIER; /* no bandwidth: times */
    text = print(table_compare, rows, 3);
    assert_non_null(strstr(text, "sharp time"));
    assert_non_null(strstr(text, " 335.544 "));
}

static void errors_have_a_table_of_their_own(void **state)
{
    struct row rows[2] = {make_row(ALGO_RING), make_row(ALGO_SHARP)};
    double mean, max;

    (void)state;
    assert_string_equal(print(table_error, rows, 2), "");
    rows[1].ulp = (struct ulp){.max = 1.5, .sum = 100, .n = 400};
    const char *line = strstr(print(table_error, rows, 2), "    16777216");
    assert_non_null(line);
    assert_int_equal(sscanf(line, "%*s float sum sharp %lf %lf", &mean, &max), 2);
    assert_float_equal(mean, 0.25, 1e-4);
    assert_float_equal(max, 1.5, 1e-4);
}

static void a_row_shows_every_column(void **state)
{
    struct row r = make_row(ALGO_RING);
    char size[32], type[16], op[8], root[8], wrong0[8], wrong1[8], fid[8];
    double t0, a0, b0, t1, a1, b1, link, util, model, ratio, link_ratio;
    unsigned long count;
    unsigned dilation;

    (void)state;
    r.run[IN_PLACE].wrong = 3;
    const char *text = print(print_rows, &r, 1);
    assert_int_equal(
        sscanf(text,
               "%31s %lu %15s %7s %7s %lf %lf %lf %7s %lf %lf %lf %7s %lf %lf %lf %lf %lf %u %7s",
               size, &count, type, op, root, &t0, &a0, &b0, wrong0, &t1, &a1, &b1, wrong1, &link,
               &util, &model, &ratio, &link_ratio, &dilation, fid),
        20);
    assert_string_equal(size, "16777216");
    assert_int_equal(count, 4 << 20);
    assert_string_equal(type, "float");
    assert_string_equal(wrong0, "0");
    assert_string_equal(wrong1, "3");
    assert_float_equal(b0, 50, 0.01);
    assert_float_equal(util, 62.5, 0.1);
    assert_float_equal(ratio, 1, 0.001);
    assert_float_equal(link, 36.7, 0.001);
    assert_float_equal(link_ratio, 0.625, 0.001); /* in link time, of a link of twice the rate */
    assert_int_equal(dilation, 400);
    assert_string_equal(fid, "ok");
}

/* Not even by the model: its figures have columns and keys of their own. */
static void links_that_were_not_measured_have_no_figure(void **state)
{
    struct perf_opts o = {.conf = "conf/x.conf"};
    struct row r = make_row(ALGO_RING);
    char path[] = "/tmp/test_report.XXXXXX";

    (void)state;
    for (int p = 0; p < PLACES; p++)
        r.run[p].link = (struct link_use){.why = "all does not answer"};
    assert_non_null(
        strstr(print(print_rows, &r, 1), " -      -    587.20      1.000          -      400  ok"));
    assert_non_null(strstr(print(footer, &r, 1), "measured   : all does not answer\n"));
    close(mkstemp(path));
    assert_int_equal(report_write(path, &o, 8, &r, 1, ""), 0);
    json_t *top = json_load_file(path, 0, NULL);
    json_t *j = json_array_get(json_object_get(top, "results"), 0);
    assert_true(json_is_null(json_object_get(j, "link_bytes")));
    assert_true(json_is_null(json_object_get(j, "link_utilisation")));
    assert_int_equal(json_integer_value(json_object_get(j, "model_link_bytes")), 29360128);
    assert_string_equal(json_string_value(json_object_get(j, "link_not_measured")),
                        "all does not answer");
    json_decref(top);
    unlink(path);
}

static void a_late_run_makes_the_row_lag(void **state)
{
    struct row r = make_row(ALGO_RING);

    (void)state;
    r.run[IN_PLACE].fid = dilation_judge(&r.pred, 10000000, 0, 400);
    assert_false(r.run[IN_PLACE].fid.ok);
    const char *text = print(print_rows, &r, 1);
    assert_non_null(strstr(text, "lag (needs 23842)"));
    text = print(footer, &r, 1);
    assert_non_null(strstr(text, "lag in 1 of 2 runs"));
}

static void unchecked_rows_do_not_claim_to_be_right(void **state)
{
    struct row r = make_row(ALGO_RING);

    (void)state;
    r.run[0].checked = r.run[1].checked = false;
    const char *text = print(print_rows, &r, 1);
    assert_non_null(strstr(text, "N/A"));
    text = print(footer, &r, 1);
    assert_non_null(strstr(text, "not checked"));
}

static void wrong_elements_fail_the_footer(void **state)
{
    struct row r = make_row(ALGO_RING);

    (void)state;
    const char *text = print(footer, &r, 1);
    assert_non_null(strstr(text, "values : 0 OK"));
    r.run[0].wrong = 2;
    text = print(footer, &r, 1);
    assert_non_null(strstr(text, "values : 2 FAILED"));
}

static void comparison_pairs_sizes_and_shows_theory(void **state)
{
    struct row rows[3] = {make_row(ALGO_RING), make_row(ALGO_SHARP), make_row(ALGO_RING)};
    double ring, sharp, speed, theory;

    (void)state;
    rows[2].bytes *= 4; /* without a partner */
    const char *text = print(table_compare, rows, 3);
    const char *line = strstr(text, "    16777216");
    assert_non_null(line);
    assert_null(strstr(text, "67108864"));
    assert_int_equal(sscanf(line, "%*s %*s %*s %lf %lf %lf %lf", &ring, &sharp, &speed, &theory),
                     4);
    assert_float_equal(ring, 28.571, 0.001);
    assert_float_equal(sharp, 50, 0.001);
    assert_float_equal(speed, 1.75, 0.001);
    assert_float_equal(theory, 1.75, 0.001);
    text = print(table_compare, rows, 1);
    assert_string_equal(text, "");
}

static const char *const result_keys[] = {
    "collective",
    "algo",
    "size_bytes",
    "count",
    "type",
    "op",
    "root",
    "in_place",
    "time_us",
    "algbw_GBps",
    "busbw_GBps",
    "wrong",
    "dilation",
    "fidelity",
    "predicted_us",
    "link_bytes",
    "link_utilisation",
    "model_link_bytes",
    "model_link_utilisation",
};

static void json_has_the_agreed_names(void **state)
{
    struct perf_opts o = {.conf = "conf/x.conf"};
    struct row rows[2] = {make_row(ALGO_RING), make_row(ALGO_SHARP)};
    char path[] = "/tmp/test_report.XXXXXX";
    json_error_t err;

    (void)state;
    close(mkstemp(path));
    rows[1].run[IN_PLACE].fid.ok = false;
    assert_int_equal(report_write(path, &o, 8, rows, 2, ""), 0);
    json_t *top = json_load_file(path, 0, &err);
    assert_non_null(top);
    assert_string_equal(json_string_value(json_object_get(top, "conf")), "conf/x.conf");
    assert_non_null(json_object_get(top, "version"));
    assert_int_equal(json_integer_value(json_object_get(top, "ranks")), 8);
    assert_true(json_is_false(json_object_get(json_object_get(top, "fidelity"), "ok")));
    json_t *results = json_object_get(top, "results");
    assert_int_equal(json_array_size(results), 4);
    json_t *r = json_array_get(results, 1);
    for (size_t i = 0; i < sizeof(result_keys) / sizeof(result_keys[0]); i++)
        if (!json_object_get(r, result_keys[i]))
            fail_msg("no %s", result_keys[i]);
    assert_true(json_is_true(json_object_get(r, "in_place")));
    assert_float_equal(json_real_value(json_object_get(r, "time_us")), 587.20256, 1e-4);
    assert_int_equal(json_integer_value(json_object_get(r, "link_bytes")), 36700160);
    assert_float_equal(json_real_value(json_object_get(r, "link_utilisation")), 0.625, 1e-6);
    assert_int_equal(json_integer_value(json_object_get(r, "model_link_bytes")), 29360128);
    assert_float_equal(json_real_value(json_object_get(r, "model_link_utilisation")), 1, 1e-6);
    assert_null(json_object_get(r, "link_not_measured"));
    json_t *fid = json_object_get(r, "fidelity");
    assert_true(json_is_true(json_object_get(fid, "ok")));
    assert_float_equal(json_real_value(json_object_get(fid, "p99_lag_us")), 0.25, 1e-9);
    json_decref(top);
    unlink(path);
}

/* What only some rows have. */
static void json_has_what_is_special(void **state)
{
    struct perf_opts o = {.conf = "conf/x.conf"};
    struct row rows[2] = {make_row(ALGO_RING), make_row(ALGO_SHARP)};
    char path[] = "/tmp/test_report.XXXXXX";

    (void)state;
    close(mkstemp(path));
    rows[1].chosen = true;
    snprintf(rows[1].why, sizeof(rows[1].why), "because");
    rows[1].ulp = (struct ulp){.max = INFINITY, .sum = 4, .n = 8};
    strcpy(rows[1].run[IN_PLACE].fell_back, "no room");
    rows[1].run[IN_PLACE].aggregated = 3;
    assert_int_equal(report_write(path, &o, 8, rows, 2, ""), 0);
    json_t *top = json_load_file(path, 0, NULL), *results = json_object_get(top, "results");
    json_t *ring = json_array_get(results, 0), *picked = json_array_get(results, 2);
    assert_string_equal(json_string_value(json_object_get(ring, "asked")), "ring");
    assert_null(json_object_get(ring, "why"));
    assert_null(json_object_get(ring, "ulp"));
    assert_string_equal(json_string_value(json_object_get(picked, "asked")), "auto");
    assert_string_equal(json_string_value(json_object_get(picked, "algo")), "sharp");
    assert_string_equal(json_string_value(json_object_get(picked, "why")), "because");
    json_t *ulp = json_object_get(picked, "ulp");
    assert_float_equal(json_real_value(json_object_get(ulp, "mean")), 0.5, 1e-9);
    assert_true(json_is_null(json_object_get(ulp, "max")));
    assert_null(json_object_get(json_array_get(results, 3), "ulp")); /* in place */
    assert_null(json_object_get(picked, "fell_back"));
    json_t *fell = json_array_get(results, 3);
    assert_string_equal(json_string_value(json_object_get(fell, "fell_back")), "no room");
    assert_int_equal(json_integer_value(json_object_get(fell, "aggregated_iters")), 3);
    json_decref(top);
    unlink(path);
}

static void json_that_cannot_be_written_is_an_error(void **state)
{
    struct perf_opts o = {.conf = "x"};

    (void)state;
    assert_true(report_write("/nonexistent/dir/x.json", &o, 8, NULL, 0, "") < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bandwidths_follow_nccl_tests),
        cmocka_unit_test(bus_bandwidth_has_a_factor_for_each_collective),
        cmocka_unit_test(a_single_rank_has_no_bus_and_no_ratio),
        cmocka_unit_test(roots_and_reductions_are_shown_where_there_are_any),
        cmocka_unit_test(gpus_have_what_is_known_of_them),
        cmocka_unit_test(what_auto_picked_is_told),
        cmocka_unit_test(each_algorithm_is_compared_with_the_first),
        cmocka_unit_test(errors_have_a_table_of_their_own),
        cmocka_unit_test(a_row_shows_every_column),
        cmocka_unit_test(links_that_were_not_measured_have_no_figure),
        cmocka_unit_test(a_late_run_makes_the_row_lag),
        cmocka_unit_test(unchecked_rows_do_not_claim_to_be_right),
        cmocka_unit_test(wrong_elements_fail_the_footer),
        cmocka_unit_test(comparison_pairs_sizes_and_shows_theory),
        cmocka_unit_test(json_has_the_agreed_names),
        cmocka_unit_test(json_has_what_is_special),
        cmocka_unit_test(json_that_cannot_be_written_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
