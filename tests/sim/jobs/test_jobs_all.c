/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All of a run of jobs: together, then alone; what their JSON says of each other, and how a run ends that
 * lacks frames, is interrupted, cannot write or has a job that fails.
 */
#include "sim/jobs/jobs.h"
#include "tests/fabric/load.h"
#include "tests/support/captured.h"
#include "tests/support/eal.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>

#define FRAMES 32768u

static struct rte_mempool *pool;
static const volatile int go_on, stopped = 1;

struct bed {
    struct fabric *f;
    struct jobs_plan plan;
    struct fault_plan faults;
    struct jobs_opts o;
    char err[COMM_TEXT];
};

static void open_bed(struct bed *b, const char *text)
{
    static struct fab_errors errs;

    memset(b, 0, sizeof(*b));
    b->f = load_file("conf/leaf-spine-8.conf");
    if (jobs_load_string(&b->plan, text, "x.conf", b->f, &errs))
        fail_msg("%s", errs.e[0].text);
    b->o = (struct jobs_opts){.fab = b->f,
                              .plan = &b->plan,
                              .file = "x.conf",
                              .seed = 3,
                              .pool = pool,
                              .frames = FRAMES,
                              .stop = &go_on};
}

static void close_bed(struct bed *b)
{
    fault_plan_free(&b->faults);
    jobs_free(&b->plan);
    fabric_free(b->f);
    assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

static struct captured out;

static int run(struct bed *b)
{
    int rc;

    b->err[0] = '\0';
    captured_begin(&out, stdout);
    rc = jobs_run(&b->o, b->err);
    captured_end(&out);
    return rc;
}

static json_t *run_to_json(struct bed *b, int expected)
{
    char path[] = "/tmp/trib-jobs.XXXXXX";
    int fd = mkstemp(path);
    json_t *j;

    assert_true(fd >= 0);
    close(fd);
    b->o.json = path;
    assert_int_equal(run(b), expected);
    j = json_load_file(path, 0, NULL);
    unlink(path);
    assert_non_null(j);
    return j;
}

static double number(const json_t *j, unsigned job, const char *key)
{
    const json_t *v = json_object_get(j, "jobs");

    v = json_object_get(json_array_get(v, job), key);
    if (!json_is_number(v))
        fail_msg("job %u has no %s", job, key);
    return json_number_value(v);
}

/* Two rings over the same links, one of which repeats until the other has ended. */
static void jobs_are_compared_with_themselves(void **state)
{
    struct bed b;
    double x[2], jain;
    json_t *j;

    (void)state;
    open_bed(&b,
             "jobs = ( { hosts = \"h0:h3\"; algorithm = \"ring\"; size = \"256KiB\"; repeat = 4; "
             "}, { hosts = \"h0:h3\"; algorithm = \"ring\"; size = \"256KiB\"; repeat = "
             "\"others\"; } );");
    j = run_to_json(&b, 0);
    for (unsigned i = 0; i < 2; i++) {
        double slow = number(j, i, "slowdown");

        assert_true(fabs(slow - number(j, i, "time_us") / number(j, i, "alone_us")) < 1e-6);
        assert_true(slow > 1.5 && slow < 2.5);
        assert_true(number(j, i, "wrong") == 0);
        /* Each rank's result of each iteration, together and alone. */
        assert_true(number(j, i, "results_checked") == 8 * number(j, i, "iterations"));
        x[i] = 1 / slow;
    }
    assert_true(number(j, 0, "iterations") == 4 && number(j, 1, "iterations") >= 4);
    jain = (x[0] + x[1]) * (x[0] + x[1]) / (2 * (x[0] * x[0] + x[1] * x[1]));
    assert_true(fabs(json_number_value(json_object_get(j, "fairness")) - jain) < 1e-6);
    assert_int_equal(json_integer_value(json_object_get(j, "fairness_jobs")), 2);
    assert_true(fabs(jobs_jain(x, 2) - jain) < 1e-12);
    assert_true(jobs_jain(x, 0) == 0 && fabs(jobs_jain(x, 1) - 1) < 1e-12);
    assert_non_null(strstr(out.text, "# trib-sim: 2 jobs of x.conf on leaf-spine-8"));
    json_decref(j);
    close_bed(&b);
}

/* The same again gives the same report; other seeds do not. */
static void runs_repeat(void **state)
{
    static char first[sizeof(out.text)];
    struct bed b;

    (void)state;
    open_bed(&b, "jobs = ( { hosts = \"all\"; algorithm = \"sharp\"; size = \"64KiB\"; } );");
    assert_int_equal(run(&b), 0);
    strcpy(first, out.text);
    assert_int_equal(run(&b), 0);
    assert_string_equal(out.text, first);
    b.o.lengths = true; /* nothing is checked, and takes as long */
    assert_int_equal(run(&b), 0);
    assert_non_null(strstr(out.text, "lengths without data"));
    assert_memory_equal(strstr(out.text, "  j"), strstr(first, "  j"), 40);
    close_bed(&b);
}

static void a_job_that_dies_is_not_run_alone(void **state)
{
    struct bed b;
    json_t *j, *dead;

    (void)state;
    open_bed(&b, "jobs = ( { hosts = \"h0:h3\"; size = \"64KiB\"; start = \"5us\"; die_at = "
                 "\"5.1us\"; }, { hosts = \"h4:h7\"; size = \"64KiB\"; } );");
    j = run_to_json(&b, 0); /* it was planned */
    dead = json_array_get(json_object_get(j, "jobs"), 0);
    assert_string_equal(json_string_value(json_object_get(dead, "end")), "died");
    assert_true(fabs(number(j, 0, "died_us") - 5.1) < 1e-9);
    assert_true(json_is_null(json_object_get(dead, "alone_us")) &&
                json_is_null(json_object_get(dead, "slowdown")) &&
                json_is_null(json_object_get(dead, "time_us")));
    assert_int_equal(json_integer_value(json_object_get(j, "fairness_jobs")), 1);
    assert_true(fabs(number(j, 1, "slowdown") - 1) < 1e-2);
    json_decref(j);
    close_bed(&b);
}

static void runs_that_end_early(void **state)
{
    struct bed b;

    (void)state;
    open_bed(&b, "jobs = ( { hosts = \"all\"; algorithm = \"direct\"; size = \"1MiB\"; } );");
    b.o.frames = 100;
    assert_int_equal(run(&b), -ENOBUFS);
    assert_string_equal(b.err, "100 frames were not enough, expected more, such as --frames 400");
    assert_string_equal(out.text, "");
    b.o.frames = FRAMES;
    b.o.stop = &stopped;
    assert_int_equal(run(&b), -ECANCELED);
    assert_string_equal(b.err, "interrupted");
    b.o.stop = &go_on;
    b.o.json = "/nowhere/jobs.json";
    assert_int_equal(run(&b), -ENOENT);
    assert_string_equal(b.err, "cannot write /nowhere/jobs.json");
    assert_non_null(strstr(out.text, "# trib-sim: 1 job of x.conf"));
    close_bed(&b);
}

/* A leaf's uplinks are down for good: the job ends with an error, which nobody planned. */
static void a_job_that_fails_is_bad(void **state)
{
    struct fault_event e = fault_event(FAULT_LINK, 0, 20 * PS_PER_US);
    struct bed b;

    (void)state;
    open_bed(&b,
             "jobs = ( { name = \"cut\"; hosts = [ \"h0\", \"h1\" ]; algorithm = \"ring\"; size = "
             "\"1MiB\"; } );");
    e.down = true;
    assert_int_equal(fault_plan_add(&b.faults, &e), 0);
    b.o.faults = &b.faults;
    assert_int_equal(run(&b), -EBADMSG);
    assert_string_equal(b.err, "");
    assert_non_null(strstr(out.text, "#\n# Refusals and fallbacks\n#   cut: failed: rank "));
    close_bed(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_are_compared_with_themselves), cmocka_unit_test(runs_repeat),
        cmocka_unit_test(a_job_that_dies_is_not_run_alone),  cmocka_unit_test(runs_that_end_early),
        cmocka_unit_test(a_job_that_fails_is_bad),
    };

    test_eal_init();
    pool = test_pool(FRAMES);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
