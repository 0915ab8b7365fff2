/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The JSON of a training step, every key and value, and steps that are refused: which words name what was
 * found and what is expected.
 */
#include "tests/sim/step/step_bed.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

static const volatile int stopped = 1;

/* The number of keys that are left to look at, one less with each that is as expected. */
static void number(json_t *j, const char *key, double expected)
{
    const json_t *v = json_object_get(j, key);

    if (!json_is_number(v) || fabs(json_number_value(v) - expected) > 1e-9 * fabs(expected) + 1e-12)
        fail_msg("%s: found %.15g, expected %.15g", key, json_number_value(v), expected);
    json_object_del(j, key);
}

static void text(json_t *j, const char *key, const char *expected)
{
    assert_string_equal(json_string_value(json_object_get(j, key)), expected);
    json_object_del(j, key);
}

static void flag(json_t *j, const char *key, bool expected)
{
    assert_true(json_is_boolean(json_object_get(j, key)));
    assert_int_equal(json_is_true(json_object_get(j, key)), expected);
    json_object_del(j, key);
}

static void all_seen(json_t *j)
{
    if (json_object_size(j))
        fail_msg("%s: not expected", json_object_iter_key(json_object_iter(j)));
}

static void same_timing(json_t *j, const struct step_timing *t)
{
    text(j, "algo", sched_algo_name(t->algo));
    number(j, "time_us", t->s * 1e6);
    number(j, "high_us", t->high_s * 1e6);
    number(j, "bound_us", t->bound_s * 1e6);
    flag(j, "shared", t->shared);
    number(j, "simulated_bytes", (double)t->bytes);
    flag(j, "extrapolated_bytes", t->extrapolated_bytes);
    flag(j, "extrapolated_ranks", t->extrapolated_ranks);
    number(j, "fell_back_groups", t->fell_back);
    all_seen(j);
}

static void same_collective(json_t *j, const struct step_collective *u)
{
    text(j, "parallel", roof_kind_name(u->kind));
    flag(j, "experts", u->experts);
    text(j, "collective", coll_name(u->coll));
    number(j, "group", u->degree);
    number(j, "simulated_ranks", u->ranks);
    number(j, "simulated_groups", u->groups);
    number(j, "stride", (double)u->stride);
    number(j, "size_bytes", (double)u->bytes);
    number(j, "times", u->times);
    for (unsigned m = 0; m < STEP_METHODS; m++) {
        same_timing(json_object_get(j, methods[m]), &u->timing[m]);
        json_object_del(j, methods[m]);
    }
    all_seen(j);
}

static void same_totals(const struct bed *b, json_t *j, unsigned m)
{
    json_t *kinds = json_object_get(j, "exposed_by_us");

    number(j, "comms_us", b->comms_s[m] * 1e6);
    number(j, "exposed_us", (b->step_s[m] - b->math_s - b->bubble_s) * 1e6);
    number(j, "step_us", b->step_s[m] * 1e6);
    text(j, "binds", binds(b, m));
    for (unsigned k = 0; k < ROOF_KINDS; k++)
        if (b->roof[k].used)
            number(kinds, roof_kind_name((enum roof_kind)k), b->gain_s[m][k] * 1e6);
    all_seen(kinds);
    json_object_del(j, "exposed_by_us");
    all_seen(j);
}

static json_t *written(struct bed *b)
{
    char path[] = "/tmp/trib-step.XXXXXX", err[COMM_TEXT] = "";
    static struct captured c;
    int fd = mkstemp(path), rc;
    json_t *j;

    assert_true(fd >= 0);
    close(fd);
    b->o.json = path;
    captured_begin(&c, stdout);
    rc = step_run(&b->o, err);
    captured_end(&c);
    if (rc)
        fail_msg("%s", err);
    j = json_load_file(path, 0, NULL);
    unlink(path);
    assert_non_null(j);
    return j;
}

static void same_json(struct bed *b)
{
    bool whole = workload_gpus(&b->w) <= b->f->n_hosts;
    json_t *j, *list, *theory;

    measure(b);
    j = written(b);
    list = json_object_get(j, "collectives");
    theory = json_object_get(j, "theory_us");
    text(j, "workload", "toy");
    text(j, "fabric", "small");
    number(j, "gpus", (double)workload_gpus(&b->w));
    number(j, "math_us", b->math_s * 1e6);
    number(j, "pipeline_us", b->bubble_s * 1e6);
    number(j, "schema", 1);
    assert_int_equal(json_array_size(list), b->n);
    for (unsigned i = 0; i < b->n; i++)
        same_collective(json_array_get(list, i), &b->u[i]);
    for (unsigned k = 0; k < ROOF_KINDS; k++)
        if (b->roof[k].used)
            number(theory, roof_kind_name((enum roof_kind)k), whole ? b->roof[k].sent_s * 1e6 : 0);
    all_seen(theory);
    for (unsigned m = 0; m < STEP_METHODS; m++) {
        same_totals(b, json_object_get(j, methods[m]), m);
        json_object_del(j, methods[m]);
    }
    json_object_del(j, "collectives");
    json_object_del(j, "theory_us");
    all_seen(j);
    json_decref(j);
}

static void json_has_every_value(void **state)
{
    struct bed b;

    (void)state;
    open_bed(&b, "reduce = { };");
    with_experts(&b);
    same_json(&b);
    b.w.dp = 8; /* more than the fabric has */
    b.w.pp = 1;
    b.w.zero = 0;
    same_json(&b);
    close_bed(&b);
}

/* ---- refusals ---- */

static void refused(struct bed *b, int expected, const char *text)
{
    static struct captured c;
    char err[COMM_TEXT] = "";
    int rc;

    captured_begin(&c, stdout);
    rc = step_run(&b->o, err);
    captured_end(&c);
    assert_int_equal(rc, expected);
    assert_string_equal(err, text);
}

static void steps_that_do_not_fit(void **state)
{
    struct bed b;

    (void)state;
    open_bed(&b, "reduce = { };");
    b.w.microbatches = 1u << 23; /* and two stages */
    b.w.batch_tokens = 1ull << 24;
    b.w.dp = 1;
    b.w.pp = 4;
    refused(&b, -EINVAL,
            "toy: found 4 stages of 8388608 microbatches, expected at most 16777216 of all stages "
            "together");
    b.w.microbatches = 2;
    b.w.tp = 8; /* stages are as many apart as the fabric has GPUs */
    refused(&b, -EINVAL,
            "toy: found pipeline parallel groups whose GPUs are 8 apart, expected a fabric of more "
            "than so many, small has 8");
    b.w.tp = 1;
    b.w.dp = 7;
    b.w.batch_tokens = 7 * 1024;
    strcpy(b.w.algorithm[WORK_GROUP_DP], "nvls_sharpe");
    refused(&b, -EINVAL,
            "w.conf:9: algorithm of dp: found \"nvls_sharpe\", expected one of reduce_scatter: "
            "ring sharp halving pairwise direct nvls hier hier_sharp rings");
    close_bed(&b);
}

static void steps_that_end_early(void **state)
{
    struct bed b;

    (void)state;
    open_bed(&b, "reduce = { };");
    b.w.dp = b.w.pp = 1;
    b.o.stop = &stopped;
    refused(&b, -ECANCELED, "interrupted");
    b.o.stop = &go_on;
    b.o.json = "/nowhere/step.json";
    refused(&b, -ENOENT, "cannot write /nowhere/step.json: No such file or directory");
    close_bed(&b);
}

/* The name of an algorithm holds for its group alone, and only where the collective has it. */
static void algorithms_are_named(void **state)
{
    struct bed b;
    char err[COMM_TEXT] = "";

    (void)state;
    open_bed(&b, "reduce = { };");
    with_experts(&b);
    strcpy(b.w.algorithm[WORK_GROUP_TP], "ring");
    strcpy(b.w.algorithm[WORK_GROUP_DP], "direct");
    strcpy(b.w.algorithm[WORK_GROUP_EP], "pxn");
    b.n = step_collectives(&b.w, b.u);
    for (unsigned i = 0; i < b.n; i++)
        b.u[i].named = ALGO_SHARP;
    assert_int_equal(step_name_algorithms(&b.w, b.u, b.n, err), 0);
    for (unsigned i = 0; i < b.n; i++)
        assert_int_equal(b.u[i].named, b.u[i].kind == ROOF_TP   ? ALGO_RING
                                       : b.u[i].kind == ROOF_DP ? ALGO_DIRECT
                                       : b.u[i].kind == ROOF_EP ? ALGO_PXN
                                                                : ALGO_AUTO);
    strcpy(b.w.algorithm[WORK_GROUP_TP], "tally"); /* a protocol sums in its own way */
    assert_int_equal(step_name_algorithms(&b.w, b.u, b.n, err), -EINVAL);
    assert_string_equal(err, "w.conf:9: algorithm of tp: found \"tally\", expected one of "
                             "all_reduce: ring sharp tree halving direct nvls hier hier_sharp "
                             "nvls_sharp rings");
    close_bed(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_has_every_value),
        cmocka_unit_test(steps_that_do_not_fit),
        cmocka_unit_test(steps_that_end_early),
        cmocka_unit_test(algorithms_are_named),
    };

    test_eal_init();
    pool = test_pool(step_frames());
    return cmocka_run_group_tests(tests, NULL, NULL);
}
