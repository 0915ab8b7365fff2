/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The report of jobs: its tables, what they were refused, deaths, and the JSON, each from results made by
 * hand and compared as a whole.
 */
#include "sim/jobs/jobs.h"
#include "tests/fabric/load.h"
#include "tests/support/captured.h"

#include <errno.h>
#include <jansson.h>

struct bed {
    struct fabric *f;
    struct jobs_plan plan;
    struct jobs_opts o;
    struct jobs_report r;
    uint16_t hosts[4];
};

static void open_bed(struct bed *b, unsigned jobs)
{
    memset(b, 0, sizeof(*b));
    b->f = load_file("conf/leaf-spine-8.conf");
    b->plan.n = jobs;
    b->o = (struct jobs_opts){
        .fab = b->f, .plan = &b->plan, .file = "some/folder/mix.conf", .seed = 7};
    b->r.o = &b->o;
    for (unsigned i = 0; i < LEN(b->hosts); i++)
        b->hosts[i] = (uint16_t)(2 * i);
    for (unsigned i = 0; i < jobs; i++) {
        struct jobs_job *j = &b->plan.job[i];

        snprintf(j->name, sizeof(j->name), "j%u", i);
        j->nranks = 4;
        j->host_of_rank = b->hosts;
        j->n_ops = 1;
        j->die_ps = JOBS_NEVER;
        j->op[0] = (struct jobs_op){.kind = COLL_ALLREDUCE,
                                    .algo = ALGO_RING,
                                    .asked = ALGO_RING,
                                    .type = DT_FP32,
                                    .bytes = 1024};
        b->r.together[i] = b->r.alone[i] = (struct jobs_result){
            .ended_ps = JOBS_NEVER, .died_ps = JOBS_NEVER, .released_ps = JOBS_NEVER};
    }
}

static void close_bed(struct bed *b)
{
    fabric_free(b->f);
}

static const char *printed(const struct bed *b)
{
    static struct captured c;

    captured_begin(&c, stdout);
    jobs_print(&b->r);
    return captured_end(&c);
}

static void same_text(const char *is, const char *expected)
{
    if (strcmp(is, expected))
        fail_msg("found:\n%s\nexpected:\n%s", is, expected);
}

/* Three jobs: one that nothing disturbed, one with two operations by two algorithms that began late, and
 * one without a time. */
static void make_three(struct bed *b)
{
    struct jobs_result *g, *a;

    open_bed(b, 3);
    g = b->r.together, a = b->r.alone;
    b->plan.job[0].op[0].bytes = 1536;
    g[0].iterations = 5;
    g[0].iteration_ps = 3e6;
    a[0].iteration_ps = 2e6;
    g[0].wrong = 3, a[0].wrong = 40;
    g[0].grant = (struct coll_grant){.trees = 1, .trees_asked = 1, .window = 16, .asked = 16};
    b->r.slowdown[0] = 1.5;
    b->plan.job[1].n_ops = 2;
    b->plan.job[1].start_ps = 1000000;
    g[1].ran_by[1] = ALGO_TREE;
    g[1].began_ps = 1500000;
    g[1].iteration_ps = 1;
    g[1].grant = (struct coll_grant){.rail_asked = true, .rail = 8, .window = 4, .asked = 32};
    b->plan.job[2].start_ps = 2500000;
    b->plan.job[2].nranks = 2;
    g[2].began_ps = JOBS_NEVER;
    g[2].ran_by[0] = ALGO_SHARP;
}

static void usual_table(void **state)
{
    struct bed b;

    (void)state;
    make_three(&b);
    same_text(printed(&b),
              "# trib-sim: 3 jobs of mix.conf on leaf-spine-8, virtual time, seed 7, data\n"
              "# us: of one iteration with the others; slowdown: times of that on a fabric without "
              "them\n"
              "  job  ranks  collective    size     by       us     slowdown  wrong  end\n"
              "  j0   4      all_reduce    1.5 KiB  ring     3.000  1.500     43     done\n"
              "  j1   4      2 operations  -        several  0.000  -         0      done\n"
              "  j2   2      all_reduce    1 KiB    sharp    -      -         0      done\n");
    close_bed(&b);
}

static void wide_table_of_lengths(void **state)
{
    struct bed b;

    (void)state;
    make_three(&b);
    b.o.wide = b.o.lengths = true;
    b.o.file = "mix.conf";
    b.r.compared = 2;
    b.r.fairness = 0.98765;
    same_text(
        printed(&b),
        "# trib-sim: 3 jobs of mix.conf on leaf-spine-8, virtual time, seed 7, lengths without "
        "data\n"
        "# us: of one iteration with the others; alone: on a fabric without them; start: of the "
        "first operation, in us; window: slots of a group, of those asked for\n"
        "  job  ranks  collective    size     by       window  start  times  us     alone  "
        "slowdown  "
        "wrong  end\n"
        "  j0   4      all_reduce    1.5 KiB  ring     16      0.00   5      3.000  2.000  1.500   "
        "  "
        "-      done\n"
        "  j1   4      2 operations  -        several  8/32    1.50   0      0.000  -      -       "
        "  "
        "-      done\n"
        "  j2   2      all_reduce    1 KiB    sharp    -       2.50   0      -      -      -       "
        "  "
        "-      done\n"
        "#\n"
        "# Jain's fairness index of 2 jobs' throughputs relative to running alone: 0.9877\n");
    close_bed(&b);
}

/* The lines behind the table of one job. */
static const char *behind_table(const struct bed *b)
{
    const char *at = strstr(printed(b), "  j0 ");

    assert_non_null(at);
    return strchr(at, '\n') + 1;
}

static void sizes_and_one_job(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } rows[] = {
        {0, " 0 B "},
        {1023, " 1023 B "},
        {1024, " 1 KiB "},
        {1024 * 1024 - 1, " 1024 KiB "},
        {1 << 20, " 1 MiB "},
        {1 << 30, " 1 GiB "},
        {5ull << 39, " 2560 GiB "},
    };
    struct bed b;

    (void)state;
    open_bed(&b, 1);
    for (unsigned i = 0; i < LEN(rows); i++) {
        b.plan.job[0].op[0].bytes = rows[i].bytes;
        if (!strstr(printed(&b), rows[i].text))
            fail_msg("no \"%s\" in:\n%s", rows[i].text, printed(&b));
    }
    assert_non_null(strstr(printed(&b), "# trib-sim: 1 job of mix.conf on"));
    same_text(behind_table(&b), "");
    b.r.totals.congestion.marks = 2;
    assert_non_null(strstr(behind_table(&b), "# Congestion: 2 frames marked"));
    close_bed(&b);
}

/* Each of the things that a job may not get, alone: the head is there with any of them. */
static void what_was_refused(void **state)
{
    static const struct {
        const char *fell, *why, *alone;
        enum jobs_end end;
        struct coll_grant grant;
        const char *text;
    } rows[] = {
        {"", "", "", JOBS_DONE, {0}, ""},
        {"no slots", "", "", JOBS_DONE, {0}, "#   j0: by tree: no slots\n"},
        {"", "", "late", JOBS_DONE, {0}, "#   j0: alone by direct: late\n"},
        {"", "it hangs", "", JOBS_HANGS, {0}, "#   j0: hangs: it hangs\n"},
        {"", "no room", "", JOBS_REFUSED, {0}, "#   j0: refused: no room\n"},
        {"few",
         "gone",
         "other",
         JOBS_FAILED,
         {.why = "unused", .trees_asked = 1},
         "#   j0: failed: gone\n#   j0: by tree: few\n#   j0: alone by direct: other\n"},
        {"",
         "",
         "",
         JOBS_DONE,
         {.trees = 1, .trees_asked = 2, .window = 16, .asked = 64, .why = "slots"},
         "#   j0: window 16 of 64 on 1 of 2 trees because slots\n"},
        {"",
         "",
         "",
         JOBS_DONE,
         {.rail_asked = true, .rail = 8, .window = 16, .asked = 64, .why = "rails"},
         "#   j0: window 8 of 64 on its rails because rails\n"},
    };
    struct bed b;

    (void)state;
    open_bed(&b, 1);
    for (unsigned i = 0; i < LEN(rows); i++) {
        struct jobs_result *g = &b.r.together[0], *a = &b.r.alone[0];
        char expected[512];

        g->end = rows[i].end;
        g->grant = rows[i].grant;
        g->ran_by[0] = ALGO_TREE;
        a->ran_by[0] = ALGO_DIRECT;
        snprintf(g->fell_back, sizeof(g->fell_back), "%s", rows[i].fell);
        snprintf(g->why, sizeof(g->why), "%s", rows[i].why);
        snprintf(a->fell_back, sizeof(a->fell_back), "%s", rows[i].alone);
        snprintf(expected, sizeof(expected), "%s%s",
                 *rows[i].text ? "#\n# Refusals and fallbacks\n" : "", rows[i].text);
        same_text(behind_table(&b), expected);
    }
    close_bed(&b);
}

/* Of several jobs the head comes once, and nothing of those that got all. */
static void refusals_have_one_head(void **state)
{
    struct bed b;

    (void)state;
    open_bed(&b, 4);
    b.r.together[1].end = JOBS_REFUSED;
    strcpy(b.r.together[1].why, "no group");
    strcpy(b.r.alone[3].fell_back, "no tree");
    same_text(strstr(printed(&b), "#\n"), "#\n# Refusals and fallbacks\n"
                                          "#   j1: refused: no group\n"
                                          "#   j3: alone by ring: no tree\n");
    close_bed(&b);
}

static void deaths(void **state)
{
    static const struct {
        enum jobs_end end;
        const char *why;
        unsigned groups;
        int64_t released_ps;
        const char *text;
    } rows[] = {
        {JOBS_DONE, "", 3, 5000000, ""},
        {JOBS_DIED, "", 0, 5000000, "#\n# j0 died at 2.000 us; it held no groups at switches\n"},
        {JOBS_DIED, "rank 1 missing", 0, JOBS_NEVER,
         "#\n# j0 died at 2.000 us (rank 1 missing); it held no groups at switches\n"},
        {JOBS_DIED, "", 2, JOBS_NEVER,
         "#\n# j0 died at 2.000 us; its 2 groups at switches were not gone 2 s later\n"},
        {JOBS_DIED, "", 3, 5500000,
         "#\n# j0 died at 2.000 us; its 3 groups were gone from the switches 3.500 us later\n"},
        {JOBS_DIED, "", 3, 0,
         "#\n# j0 died at 2.000 us; its 3 groups were gone from the switches -2.000 us later\n"},
    };
    struct bed b;

    (void)state;
    open_bed(&b, 1);
    for (unsigned i = 0; i < LEN(rows); i++) {
        struct jobs_result *g = &b.r.together[0];

        g->end = rows[i].end;
        g->died_ps = 2000000;
        g->groups = rows[i].groups;
        g->released_ps = rows[i].released_ps;
        snprintf(g->why, sizeof(g->why), "%s", rows[i].why);
        same_text(behind_table(&b), rows[i].text);
    }
    close_bed(&b);
}

/* ---- JSON ---- */

static json_t *written(struct bed *b)
{
    char path[] = "/tmp/trib-jobs.XXXXXX";
    int fd = mkstemp(path);
    json_error_t e;
    json_t *j;

    assert_true(fd >= 0);
    close(fd);
    b->o.json = path;
    assert_int_equal(jobs_write(&b->r), 0);
    j = json_load_file(path, 0, &e);
    unlink(path);
    assert_non_null(j);
    return j;
}

static void same_json(const json_t *is, const char *expected)
{
    json_error_t e;
    json_t *j = json_loads(expected, 0, &e);

    if (!j)
        fail_msg("line %d of what is expected: %s", e.line, e.text);
    if (!json_equal(j, is)) {
        char *a = json_dumps(is, JSON_INDENT(1)), *b = json_dumps(j, JSON_INDENT(1));

        fail_msg("found:\n%s\nexpected:\n%s", a, b);
    }
    json_decref(j);
}

#define CONGESTION                                                                                 \
    "\"congestion\": {\"ecn_marks\": 0, \"cnps\": 0, \"rate_cuts\": 0, \"pauses\": 0, "            \
    "\"paused_us\": 0.0, \"dropped_full\": 9, \"retransmits\": 0, \"timeouts\": 0, "               \
    "\"watchdog_trips\": 0, \"watchdog_dropped\": 0}"

static void make_one_that_ran(struct bed *b)
{
    struct jobs_job *job;
    struct jobs_result *g, *a;

    open_bed(b, 1);
    g = b->r.together, a = b->r.alone;
    job = &b->plan.job[0];
    job->start_ps = 4000000, job->group = 5, job->n_ops = 2;
    job->op[0] = (struct jobs_op){.kind = COLL_ALLREDUCE,
                                  .algo = ALGO_SHARP,
                                  .asked = ALGO_AUTO,
                                  .type = DT_BF16,
                                  .op = OP_MAX,
                                  .bytes = 4096,
                                  .count = 2048,
                                  .model_ps = 1500000,
                                  .bound = 0.25};
    job->op[1] = (struct jobs_op){.kind = COLL_BROADCAST,
                                  .algo = ALGO_TREE,
                                  .asked = ALGO_TREE,
                                  .type = DT_INT8,
                                  .root = 3,
                                  .bytes = 100,
                                  .count = 100};
    g->iterations = 6, g->iteration_ps = 3e6, g->wrong = 1, g->checked = 20;
    g->began_ps = 0, g->ended_ps = 9000000, g->released_ps = 9500000, g->groups = 2;
    g->ran_by[0] = ALGO_RING, g->ran_by[1] = ALGO_TREE;
    g->grant = (struct coll_grant){
        .trees = 2, .trees_asked = 3, .tree = {4, 1}, .window = 8, .asked = 64, .why = "few slots"};
    strcpy(g->fell_back, "no room");
    a->iterations = 1, a->iteration_ps = 2e6, a->wrong = 2, a->checked = 5;
    a->ran_by[0] = ALGO_SHARP, a->ran_by[1] = ALGO_CHAIN;
    strcpy(a->fell_back, "alone too");
    b->r.slowdown[0] = 1.5;
    b->r.compared = 1, b->r.fairness = 1;
    b->r.totals = (struct jobs_totals){.fabric_ps = 12000000,
                                       .events = 77,
                                       .frames = 66,
                                       .trace = 0xabc,
                                       .congestion = {.overflows = 9}};
    b->r.totals.links = json_array();
}

static void json_of_a_job_that_ran(void **state)
{
    struct bed b;
    json_t *j;

    (void)state;
    make_one_that_ran(&b);
    j = written(&b);
    same_json(
        j,
        "{\"fabric\": \"leaf-spine-8\", \"file\": \"mix.conf\", \"seed\": 7, \"payload\": "
        "\"data\", \"jobs\": [{\"name\": \"j0\", \"ranks\": 4, \"hosts\": [\"h0\", \"h2\", "
        "\"h4\", \"h6\"], \"operations\": [{\"collective\": \"all_reduce\", \"asked\": \"auto\", "
        "\"algo\": \"sharp\", \"ran_by\": \"ring\", \"alone_ran_by\": \"sharp\", \"size_bytes\": "
        "4096, \"count\": 2048, \"model_us\": 1.5, \"bound\": 0.25, \"type\": \"bfloat16\", "
        "\"redop\": \"max\"}, {\"collective\": \"broadcast\", \"asked\": \"tree\", \"algo\": "
        "\"tree\", \"ran_by\": \"tree\", \"alone_ran_by\": \"chain\", \"size_bytes\": 100, "
        "\"count\": 100, \"model_us\": 0.0, \"type\": \"int8\", \"root\": 3}], \"iterations\": 6, "
        "\"end\": \"done\", \"why\": null, \"fell_back\": \"no room\", \"start_us\": 4.0, "
        "\"began_us\": 0.0, \"ended_us\": 9.0, \"died_us\": null, \"released_us\": 9.5, "
        "\"time_us\": 3.0, \"alone_us\": 2.0, \"alone_fell_back\": \"alone too\", \"slowdown\": "
        "1.5, \"wrong\": 3, \"results_checked\": 25, \"group\": {\"id\": 5, "
        "\"groups_at_switches\": 2, \"trees\": [4, 1], \"trees_asked\": 3, \"window\": 8, "
        "\"window_asked\": 64, \"why\": \"few slots\"}}], \"fairness\": 1.0, \"fairness_jobs\": 1, "
        "\"time_us\": 12.0, \"events\": 77, \"frames\": 66, \"trace\": "
        "\"0000000000000abc\", \"links\": [], \"schema\": 1, " CONGESTION "}");
    json_decref(j);
    json_decref(b.r.totals.links);
    close_bed(&b);
}

/* Lengths, a barrier, and a death before the first operation: nothing where nothing is known. */
static void json_of_a_job_that_died(void **state)
{
    struct bed b;
    struct jobs_result *g;
    json_t *j;

    (void)state;
    open_bed(&b, 1);
    g = b.r.together;
    b.o.lengths = true;
    b.plan.job[0].nranks = 1;
    b.plan.job[0].op[0] = (struct jobs_op){.kind = COLL_BARRIER};
    g->end = JOBS_DIED;
    strcpy(g->why, "rank 0 died");
    g->began_ps = JOBS_NEVER;
    g->died_ps = 0;
    g->released_ps = 3; /* of no group */
    b.r.totals.congestion.overflows = 9;
    j = written(&b);
    same_json(
        j,
        "{\"fabric\": \"leaf-spine-8\", \"file\": \"mix.conf\", \"seed\": 7, \"payload\": "
        "\"none\", \"jobs\": [{\"name\": \"j0\", \"ranks\": 1, \"hosts\": [\"h0\"], "
        "\"operations\": [{\"collective\": \"barrier\", \"asked\": \"ring\", \"algo\": \"ring\", "
        "\"ran_by\": \"ring\", \"alone_ran_by\": null, \"size_bytes\": 0, \"count\": 0, "
        "\"model_us\": 0.0}], \"iterations\": 0, \"end\": \"died\", \"why\": \"rank 0 died\", "
        "\"fell_back\": null, \"start_us\": 0.0, \"began_us\": null, \"ended_us\": null, "
        "\"died_us\": 0.0, \"released_us\": null, \"time_us\": null, \"alone_us\": null, "
        "\"alone_fell_back\": null, \"slowdown\": null, \"wrong\": null, \"results_checked\": 0, "
        "\"group\": {\"id\": 0, \"groups_at_switches\": 0, \"trees\": [], \"trees_asked\": 0, "
        "\"window\": 0, \"window_asked\": 0, \"why\": null}}], \"fairness\": null, "
        "\"fairness_jobs\": 0, \"time_us\": 0.0, \"events\": 0, \"frames\": 0, \"trace\": "
        "\"0000000000000000\", \"schema\": 1, " CONGESTION "}");
    json_decref(j);
    b.o.json = "/nowhere/jobs.json";
    assert_int_equal(jobs_write(&b.r), -ENOENT);
    close_bed(&b);
}

static void ends_have_names(void **state)
{
    static const char *const names[JOBS_ENDS] = {"done", "died", "refused", "failed", "hangs"};

    (void)state;
    for (unsigned i = 0; i < JOBS_ENDS; i++)
        assert_string_equal(jobs_end_name((enum jobs_end)i), names[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(usual_table),
        cmocka_unit_test(wide_table_of_lengths),
        cmocka_unit_test(sizes_and_one_job),
        cmocka_unit_test(what_was_refused),
        cmocka_unit_test(refusals_have_one_head),
        cmocka_unit_test(deaths),
        cmocka_unit_test(json_of_a_job_that_ran),
        cmocka_unit_test(json_of_a_job_that_died),
        cmocka_unit_test(ends_have_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
