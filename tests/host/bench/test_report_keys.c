/* SPDX-License-Identifier: BSD-3-Clause */
/* The report for programs, key by key; as CSV; and files that are refused before anything runs. */
#include "host/bench/report.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void expect_json(json_t *j, const char *expected)
{
    char *text = json_dumps(j, JSON_COMPACT | JSON_REAL_PRECISION(9));

    assert_string_equal(text, expected);
    free(text);
    json_decref(j);
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

    r.run[IN_PLACE] = (struct run_result){
        .valid = true,
        .checked = true,
        .wrong = 3,
        .iters = 5,
        .dilation = 4,
        .time_us = 1,
        .link = {.known = true, .bytes = 2497, .rate_bps = 8000000000}, /* 499.4 an operation */
        .fid = {.ok = true, .p99_lag_us = 0.25, .needed = 2}};
    return r;
}

/* ---- rows ---- */

#define HEAD                                                                                       \
    "{\"collective\":\"all_reduce\",\"algo\":\"ring\",\"size_bytes\":1000,\"count\":250,"          \
    "\"type\":\"float\",\"op\":\"sum\",\"root\":-1,\"in_place\":"
#define TIME "\"time_us\":1.0,\"algbw_GBps\":1.0,\"busbw_GBps\":"
#define NEXT                                                                                       \
    "\"dilation\":4,\"iters\":5,\"fidelity\":{\"ok\":true,\"p99_lag_us\":0.25,"                    \
    "\"dilation_needed\":2},"
#define TIMES                                                                                      \
    "\"times_us\":null,\"min_us\":null,\"median_us\":null,\"p99_us\":null,\"stddev_us\":null,"

static void a_usual_row_has_these_keys(void **state)
{
    struct row r = round_row();

    (void)state;
    expect_json(report_rows(&r, 1),
                "[" HEAD "true," TIME "1.0,\"wrong\":3,\"predicted_us\":2.0," NEXT TIMES
                "\"link_bytes\":499,\"link_utilisation\":0.4994,\"model_link_bytes\":1000,"
                "\"model_link_utilisation\":0.5,\"asked\":\"ring\"}]");
    r.run[IN_PLACE].link = (struct link_use){.why = "no answer"};
    r.run[IN_PLACE].checked = false;
    r.pred.guessed = true;
    expect_json(report_rows(&r, 1),
                "[" HEAD "true," TIME "1.0,\"wrong\":null,\"predicted_us\":null," NEXT TIMES
                "\"link_bytes\":null,\"link_utilisation\":null,\"model_link_bytes\":1000,"
                "\"model_link_utilisation\":0.0,\"link_not_measured\":\"no answer\",\"asked\":"
                "\"ring\"}]");
    r = round_row();
    r.emulated = false; /* GPUs' links are not known */
    strcpy(r.run[IN_PLACE].link.why, "no answer");
    r.pred.time_ps = 0;
    expect_json(report_rows(&r, 1),
                "[" HEAD "true," TIME "1.0,\"wrong\":3,\"predicted_us\":null," NEXT TIMES
                "\"link_bytes\":null,\"link_utilisation\":null,\"model_link_bytes\":null,"
                "\"model_link_utilisation\":null,\"asked\":\"ring\"}]");
}

static void a_special_row_has_these_keys_as_well(void **state)
{
    struct row r = round_row();
    struct run_result *run = &r.run[OUT_OF_PLACE];
    json_t *links = json_object();

    (void)state;
    *run = r.run[IN_PLACE];
    r.run[IN_PLACE].valid = false;
    r.nranks = 4;
    r.chosen = true;
    strcpy(r.why, "because");
    r.pred.from_ranks = 2;
    r.pred.within_percent = 6;
    r.pred.hashed = true;
    r.until = 999;
    r.bound = 0.5;
    r.staged = r.mm_self = true;
    r.sparse = 3;
    r.ulp = (struct ulp){.max = 1.5, .sum = 1, .n = 4};
    strcpy(run->fell_back, "no tree");
    strcpy(run->cut, "not checked");
    run->aggregated = 3;
    run->end.goes_on = true;
    run->staging_us = 7.5;
    run->links = links;
    run->link.bytes = 2498; /* 499.6 */
    row_counters_add(&run->counted, "sent", 9, false);
    expect_json(report_rows(&r, 1),
                "[" HEAD "false," TIME "1.5,\"wrong\":3,\"predicted_us\":2.0," NEXT
                "\"model_ranks\":2,\"predicted_within_percent\":6,\"predicted_paths\":\"balanced\","
                "\"extrapolated_from_bytes\":999," TIMES
                "\"link_bytes\":500,\"link_utilisation\":0.4996,\"model_link_bytes\":1000,"
                "\"model_link_utilisation\":0.5,\"asked\":\"auto\",\"why\":\"because\","
                "\"fell_back\":\"no tree\",\"aggregated_iters\":3,\"goes_on\":true,\"protocol\":{"
                "\"sent\":9},\"bound\":0.5,\"cut\":\"not checked\",\"links\":{},\"staging_us\":7.5,"
                "\"mm_self\":true,\"sparse\":3,\"ulp\":{\"max\":1.5,\"mean\":0.25}}]");
    json_decref(links);
}

static void grants_are_told_as_far_as_there_were_any(void **state)
{
    static const struct {
        struct coll_grant g;
        const char *says;
    } rows[] = {
        {{.asked = 8, .trees = 1, .window = 4, .rail = 2}, "{\"window_asked\":8}"},
        {{.asked = 8, .trees_asked = 2, .trees = 1, .window = 4},
         "{\"window_asked\":8,\"trees_asked\":2,\"trees\":1,\"window\":4}"},
        {{.asked = 8, .rail_asked = true, .rail = 2, .why = "full"},
         "{\"window_asked\":8,\"rail_window\":2,\"why\":\"full\"}"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        expect_json(report_granted(&rows[i].g), rows[i].says);
}

/* ---- the report ---- */

/* The report's own keys, without those that say where it comes from. */
static char *report_text(const struct row *rows, unsigned n, const char *error,
                         const struct coll_grant *g, const char *key, json_t *more)
{
    static const char *const own[] = {"conf",         "ranks", "fidelity",    "results",
                                      "not_measured", "extra", "aggregation", "error"};
    struct perf_opts o = {.conf = "conf/x.conf"};
    char path[] = "/tmp/test_report.XXXXXX", *text;
    json_t *top, *kept = json_object();

    close(mkstemp(path));
    assert_int_equal(report_write_more(path, &o, 8, rows, n, error, g, key, more), 0);
    top = json_load_file(path, 0, NULL);
    assert_non_null(top);
    unlink(path);
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        if (json_object_get(top, own[i]))
            json_object_set(kept, own[i], json_object_get(top, own[i]));
    text = json_dumps(kept, JSON_COMPACT);
    json_decref(top);
    json_decref(kept);
    return text;
}

#define CONF "{\"conf\":\"conf/x.conf\",\"ranks\":8,\"fidelity\":{\"ok\":true},\"results\":[]"
#define CUT                                                                                        \
    "{\"collective\":\"all_reduce\",\"algo\":\"ring\",\"size_bytes\":1000,\"type\":\"float\","     \
    "\"op\":\"sum\",\"in_place\":"

static void a_report_has_what_there_is(void **state)
{
    static const struct coll_grant none = {.asked = 8}, trees = {.asked = 8, .trees_asked = 1},
                                   rails = {.asked = 8, .rail_asked = true};
    struct row rows[2] = {round_row(), round_row()};
    char *text[6];

    (void)state;
    text[0] = report_text(rows, 0, "", NULL, NULL, NULL);
    assert_string_equal(text[0], CONF "}");
    text[1] = report_text(rows, 0, "it failed", &none, "extra", json_integer(7));
    assert_string_equal(text[1], CONF ",\"extra\":7,\"error\":\"it failed\"}");
    text[2] = report_text(rows, 0, "", &trees, NULL, NULL);
    assert_non_null(strstr(text[2], "\"aggregation\":{\"window_asked\":8,\"trees_asked\":1,"));
    text[3] = report_text(rows, 0, "", &rails, NULL, NULL);
    assert_non_null(strstr(text[3], "\"aggregation\":{\"window_asked\":8,\"rail_window\":0}"));
    rows[0].run[IN_PLACE].valid = rows[1].run[IN_PLACE].valid = false;
    rows[0].run[IN_PLACE].fid.ok = false; /* of no run */
    strcpy(rows[0].run[IN_PLACE].cut, "no time");
    strcpy(rows[1].run[OUT_OF_PLACE].cut, "none");
    text[4] = report_text(rows, 2, "", NULL, NULL, NULL);
    assert_string_equal(text[4], CONF ",\"not_measured\":[" CUT "true,\"reason\":\"no time\"}," CUT
                                      "false,\"reason\":\"none\"}]}");
    rows[1].run[OUT_OF_PLACE] = (struct run_result){.valid = true}; /* and it lagged */
    text[5] = report_text(rows, 2, "", NULL, NULL, NULL);
    assert_non_null(strstr(text[5], "\"fidelity\":{\"ok\":false},\"results\":[{"));
    for (int i = 0; i < 6; i++)
        free(text[i]);
}

/* ---- files ---- */

static char *read_file(const char *path)
{
    static char text[8192];
    FILE *f = fopen(path, "r");

    assert_non_null(f);
    text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
    fclose(f);
    return text;
}

/* RFC 4180. */
static void rows_as_csv_have_a_column_for_each_key(void **state)
{
    struct row rows[2] = {round_row(), round_row()};
    char path[] = "/tmp/test_report.XXXXXX";

    (void)state;
    close(mkstemp(path));
    rows[1].chosen = true;
    strcpy(rows[1].why, "so \"it\", said");
    rows[1].run[IN_PLACE].checked = false;
    rows[1].run[IN_PLACE].time_us = 1.25;
    assert_int_equal(report_csv(path, rows, 2), 0);
    assert_string_equal(
        read_file(path),
        "collective,algo,size_bytes,count,type,op,root,in_place,time_us,algbw_GBps,busbw_GBps,"
        "wrong,predicted_us,dilation,iters,fidelity.ok,fidelity.p99_lag_us,fidelity.dilation_"
        "needed,"
        "times_us,min_us,median_us,p99_us,stddev_us,link_bytes,link_utilisation,model_link_bytes,"
        "model_link_utilisation,asked,why\r\n"
        "all_reduce,ring,1000,250,float,sum,-1,true,1,1,1,3,2,4,5,true,0.25,2,,,,,,499,0.4994,1000,"
        "0.5,ring,\r\n"
        "all_reduce,ring,1000,250,float,sum,-1,true,1.25,0.8,0.8,,2,4,5,true,0.25,2,,,,,,499,"
        "0.39952,1000,0.5,auto,\"so \"\"it\"\", said\"\r\n");
    strcpy(rows[1].why, "a\nline");
    assert_int_equal(report_csv(path, rows + 1, 1), 0);
    assert_non_null(strstr(read_file(path), ",auto,\"a\nline\"\r\n"));
    assert_int_equal(report_csv(path, rows, 0), 0);
    assert_string_equal(read_file(path), "\r\n");
    unlink(path);
    assert_true(report_csv("/nonexistent/dir/x.csv", rows, 1) < 0);
}

/* What a process says on standard error is kept in a file meanwhile. */
static bool can_write(struct perf_opts *o, char *says, size_t size)
{
    FILE *f = tmpfile();
    int err = dup(STDERR_FILENO);
    bool can;

    dup2(fileno(f), STDERR_FILENO);
    can = report_can_write("prog", o);
    fflush(stderr);
    dup2(err, STDERR_FILENO);
    close(err);
    rewind(f);
    says[fread(says, 1, size - 1, f)] = '\0';
    fclose(f);
    return can;
}

static void files_are_refused_before_anything_runs(void **state)
{
    static const char a[] = "/tmp/test_report.a", b[] = "/tmp/test_report.b",
                      c[] = "/tmp/test_report.c";
    static const struct {
        const char *json, *csv, *timeline, *says; /* NULL: it can be written */
    } rows[] = {
        {NULL, NULL, NULL, NULL},
        {a, b, c, NULL},
        {a, a, NULL,
         "prog: --csv: found /tmp/test_report.a, which is -J's file, expected another one\n"},
        {a, NULL, a,
         "prog: --timeline: found /tmp/test_report.a, which is -J's file, expected another one\n"},
        {NULL, a, a,
         "prog: --timeline: found /tmp/test_report.a, which is --csv's file, expected another "
         "one\n"},
        {"-", "-", NULL, "prog: --csv: found -, which is -J's file, expected another one\n"},
        {"/dev/null", "/dev/null", "/dev/null", NULL},
        {NULL, "/nonexistent/x", NULL,
         "prog: --csv: cannot write /nonexistent/x: No such file or directory\n"},
        {"/nonexistent/x", NULL, NULL,
         "prog: -J: cannot write /nonexistent/x: No such file or directory\n"},
        {NULL, NULL, "/nonexistent/x",
         "prog: --timeline: cannot write /nonexistent/x: No such file or directory\n"},
    };
    char says[512];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct perf_opts o = {
            .json = rows[i].json, .csv = rows[i].csv, .timeline = rows[i].timeline};

        assert_int_equal(can_write(&o, says, sizeof(says)), !rows[i].says);
        assert_string_equal(says, rows[i].says ? rows[i].says : "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_usual_row_has_these_keys),
        cmocka_unit_test(a_special_row_has_these_keys_as_well),
        cmocka_unit_test(grants_are_told_as_far_as_there_were_any),
        cmocka_unit_test(a_report_has_what_there_is),
        cmocka_unit_test(rows_as_csv_have_a_column_for_each_key),
        cmocka_unit_test(files_are_refused_before_anything_runs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
