/* SPDX-License-Identifier: BSD-3-Clause */
/* Workloads: presets have the published sizes, parallelism and batches, and every mistake is named
 * with its line. */
#include "fabric/conf/workload.h"
#include "tests/fabric/load.h"

#include <math.h>

static struct workload load(const char *name)
{
    static struct fab_errors errs;
    struct workload w;
    char path[96];

    snprintf(path, sizeof(path), "conf/workloads/%s.conf", name);
    if (workload_load(&w, path, &errs)) {
        fab_errors_print(&errs, stderr);
        fail_msg("%s was refused", path);
    }
    assert_string_equal(w.name, name);
    return w;
}

static void near(const char *what, double is, double want, double tolerance)
{
    if (!(fabs(is - want) <= tolerance * want))
        fail_msg("%s: %g, expected %g", what, is, want);
}

static void presets_have_as_many_parameters_as_published(void **state)
{
    static const struct {
        const char *name;
        double params, active, tolerance;
    } rows[] = {
        {"llama3-70b", 70.6e9, 70.6e9, 0.002}, {"llama3-405b", 405.9e9, 405.9e9, 0.002},
        {"deepseek-v3", 671e9, 37e9, 0.02},    {"megatron-16b", 16e9, 16e9, 0.02},
        {"megatron-70b", 70e9, 70e9, 0.01},    {"megatron-314b", 314e9, 314e9, 0.01},
    };

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        struct workload w = load(rows[i].name);

        near(rows[i].name, workload_params(&w), rows[i].params, rows[i].tolerance);
        near(rows[i].name, workload_active_params(&w), rows[i].active, rows[i].tolerance);
    }
}

/* F56, F57, F59: GPUs, axes and tokens. */
static void presets_are_spread_as_published(void **state)
{
    static const struct {
        const char *name;
        unsigned gpus, tp, pp, dp, ep, zero;
        uint64_t batch, per_gpu;
    } rows[] = {
        {"deepseek-v3", 2048, 1, 16, 128, 64, 1, 4096 * 15360, 30720}, /* F56 */
        {"llama3-405b", 16384, 8, 16, 128, 1, 1, 16 << 20, 1024},      /* F57 */
        {"llama3-70b", 4096, 8, 8, 64, 1, 1, 4000000, 976},            /* F58 */
        {"megatron-16b", 192, 8, 1, 24, 1, 1, 192 * 4096, 4096},       /* F59 */
        {"megatron-70b", 768, 8, 4, 24, 1, 1, 384 * 4096, 2048},
        {"megatron-314b", 3072, 8, 16, 24, 1, 1, 1536 * 4096, 2048},
    };

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        struct workload w = load(rows[i].name);

        assert_int_equal(workload_gpus(&w), rows[i].gpus);
        assert_int_equal(w.tp, rows[i].tp);
        assert_int_equal(w.pp, rows[i].pp);
        assert_int_equal(w.dp, rows[i].dp);
        assert_int_equal(w.ep, rows[i].ep);
        assert_int_equal(w.zero, rows[i].zero);
        assert_int_equal(w.batch_tokens, rows[i].batch);
        assert_int_equal(w.batch_tokens / rows[i].gpus, rows[i].per_gpu);
        assert_int_equal(workload_microbatch_tokens(&w) * w.dp * w.microbatches, rows[i].batch);
    }
}

/* F56: experts over 64 GPUs are over 8 nodes of 8, and 128 GPUs of a stage hold them twice. */
static void experts_of_deepseek_v3_span_eight_nodes(void **state)
{
    struct workload w = load("deepseek-v3");

    (void)state;
    assert_int_equal(w.ep * workload_stride(&w, WORK_DP) / w.device->gpus, 8);
    assert_int_equal(w.dp * w.tp / w.ep, 2);
    assert_int_equal(workload_stride(&w, WORK_PP), 128);
    assert_int_equal(workload_stage_layers(&w), 4);
    assert_int_equal(w.dense_layers, 3);
}

/* F58: FLOPs, days, bytes of state. */
static void training_llama3_70b_takes_forty_days_on_4096_gpus(void **state)
{
    struct workload w = load("llama3-70b");

    (void)state;
    near("FLOPs", workload_total_flops(&w), 6.3e24, 0.01);
    near("days", workload_total_seconds(&w) / 86400, 40, 0.01);
    near("state", workload_state_bytes(&w), 700e9, 0.01);
    assert_int_equal(ceil(workload_state_bytes(&w) / w.device->hbm_bytes), 9);
}

#define MODEL    "model = { layers = 4; d_model = 64; d_ff = 256; heads = 8; vocabulary = 1000; };\n"
#define TRAINING "training = { sequence = 16; batch_tokens = 1024; utilisation = 0.5; };\n"
#define PARALLEL "parallel = { tp = 2; dp = 4; order = [ \"pp\", \"tp\", \"dp\" ]; };\n"

static void what_a_file_leaves_out_has_a_stated_default(void **state)
{
    static struct fab_errors errs;
    struct workload w;

    (void)state;
    assert_int_equal(workload_load_string(&w, "device = \"h100\";\n" MODEL TRAINING PARALLEL,
                                          "a/small.conf", &errs),
                     0);
    assert_string_equal(w.name, "small");
    assert_int_equal(w.type, DEV_BF16);
    assert_int_equal(w.wire, DEV_BF16);
    assert_int_equal(w.kv_heads, 8);
    assert_int_equal(w.head_dim, 8);
    assert_int_equal(w.dense_layers, 4);
    assert_int_equal(workload_stride(&w, WORK_DP), 2);
    assert_int_equal(workload_params(&w), 4 * (4 * 64 * 64 + 2 * 64 * 256) + 2 * 64 * 1000);
    assert_true(workload_total_seconds(&w) == 0);
}

static const struct {
    const char *text, *want;
    int line;
} mistakes[] = {
    {MODEL TRAINING PARALLEL, "found no device, expected device = \"h100\"", 0},
    {"device = \"h101\";\n" MODEL TRAINING PARALLEL,
     "device: found \"h101\", expected \"a100\", \"h100\"", 1},
    {"device = \"h100\";\n" TRAINING PARALLEL, "found no model, expected a group", 0},
    {"device = \"h100\";\nmodel = 3;\n" TRAINING PARALLEL, "model: found 3, expected a group", 2},
    {"device = \"h100\";\nmodel = { layers = 0; };\n" TRAINING PARALLEL,
     "layers: found 0, expected an integer from 1", 2},
    {"device = \"h100\";\nmodel = { layer = 1; };\n" TRAINING PARALLEL,
     "found unknown key \"layer\", expected \"layers\"?", 2},
    {"device = \"h100\";\nmodel = { layers = 4; d_model = 64; d_ff = 256; heads = 8; "
     "};\n" TRAINING PARALLEL,
     "found no vocabulary, expected it in model", 2},
    {"device = \"h100\";\nmodel = { layers = 4; d_model = 65; d_ff = 256; heads = 8; "
     "vocabulary = 9; };\n" TRAINING PARALLEL,
     "heads: found 8, expected one that divides the 65 of d_model", 2},
    {"device = \"h100\";\nmodel = { layers = 4; d_model = 64; d_ff = 256; heads = 8; "
     "vocabulary = 9; experts = 4; };\n" TRAINING PARALLEL,
     "found no experts_per_token, expected it in model", 2},
    {"device = \"h100\";\nmodel = { layers = 4; d_model = 64; d_ff = 256; heads = 8; "
     "vocabulary = 9; experts_per_token = 4; };\n" TRAINING PARALLEL,
     "found keys of experts, expected experts", 2},
    {"device = \"h100\";\nmodel = { layers = 4; d_model = 64; d_ff = 256; heads = 8; "
     "vocabulary = 9; experts = 4; experts_per_token = 5; };\n" TRAINING PARALLEL,
     "experts_per_token: found 5, expected at most the 4 experts", 2},
    {"device = \"a100\";\n" MODEL "training = { type = \"fp8\"; sequence = 16; batch_tokens = "
     "1024; utilisation = 0.5; };\n" PARALLEL,
     "found type fp8, expected one that the matrix units of a100 have", 1},
    {"device = \"h100\";\n" MODEL
     "training = { sequence = 16; batch_tokens = -3; utilisation = 0.5; };\n" PARALLEL,
     "batch_tokens: found -3, expected a count of 1 or more", 3},
    {"device = \"h100\";\n" MODEL
     "training = { sequence = 16; batch_tokens = 1024; utilisation = 0; };\n" PARALLEL,
     "utilisation: found 0, expected a share above it", 3},
    {"device = \"h100\";\n" MODEL TRAINING "parallel = { tp = 3; };\n",
     "tp: found 3, expected one that divides the 8 heads", 4},
    {"device = \"h100\";\n" MODEL TRAINING "parallel = { pp = 5; };\n",
     "pp: found 5, expected at most the 4 layers", 4},
    {"device = \"h100\";\n" MODEL TRAINING "parallel = { ep = 2; dp = 2; };\n",
     "ep: found 2, expected 1 for a model without experts", 4},
    {"device = \"h100\";\nmodel = { layers = 4; d_model = 64; d_ff = 256; heads = 8; "
     "vocabulary = 9; experts = 4; experts_per_token = 2; };\n" TRAINING
     "parallel = { tp = 2; ep = 2; dp = 2; pp = 2; order = [ \"tp\", \"pp\", \"dp\" ]; };\n",
     "order: found dp not right after tp, expected that with ep", 4},
    {"device = \"h100\";\n" MODEL TRAINING "parallel = { dp = 3; microbatches = 2; };\n",
     "dp * microbatches: found 6, expected one that divides the 1024 tokens of a batch", 4},
    {"device = \"h100\";\n" MODEL TRAINING "parallel = { order = [ \"tp\", \"tp\", \"pp\" ]; };\n",
     "order: found an array [ ], expected [ \"tp\", \"dp\", \"pp\" ] in any order", 4},
    {"device = \"h100\";\n" MODEL TRAINING
     "parallel = { tp = 1048576; dp = 1048576; pp = 1048576; };\n",
     "found tp * dp * pp above 1048576", 4},
    {"device = \"h100\";\n@include \"x\"\n", "found @include", 2},
};

/* Where one of the two axes has one rank, its place in the order means nothing. */
static void experts_are_spread_over_the_axis_that_has_ranks(void **state)
{
    static const struct {
        const char *parallel;
        uint64_t stride;
    } rows[] = {
        {"dp = 4; ep = 4; order = [ \"dp\", \"tp\", \"pp\" ];", 1},
        {"dp = 4; pp = 2; ep = 4; order = [ \"pp\", \"dp\", \"tp\" ];", 2},
        {"dp = 4; pp = 2; ep = 2; order = [ \"tp\", \"pp\", \"dp\" ];", 2},
        {"tp = 4; pp = 2; ep = 4; order = [ \"dp\", \"pp\", \"tp\" ];", 2},
        {"tp = 2; dp = 2; ep = 4; order = [ \"tp\", \"pp\", \"dp\" ];", 1},
        {"tp = 2; dp = 2; pp = 2; ep = 4; order = [ \"pp\", \"tp\", \"dp\" ];", 2},
    };
    static struct fab_errors errs;

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct workload w;
        char text[1024];

        snprintf(text, sizeof(text),
                 "device = \"h100\";\nmodel = { layers = 4; d_model = 64; d_ff = 256; heads = 8; "
                 "vocabulary = 9; experts = 4; experts_per_token = 2; };\n" TRAINING
                 "parallel = { %s };\n",
                 rows[i].parallel);
        if (workload_load_string(&w, text, "x.conf", &errs))
            fail_msg("%s: %s", rows[i].parallel, errs.e[0].text);
        assert_int_equal(workload_expert_stride(&w), rows[i].stride);
    }
}

static void every_mistake_is_named_with_its_line(void **state)
{
    static struct fab_errors errs;
    struct workload w;

    (void)state;
    for (unsigned i = 0; i < LEN(mistakes); i++) {
        assert_int_not_equal(workload_load_string(&w, mistakes[i].text, "w.conf", &errs), 0);
        if (errs.e[0].line != mistakes[i].line || !strstr(errs.e[0].text, mistakes[i].want))
            fail_msg("row %u: found \"%d: %s\", expected \"%d: %s\"", i, errs.e[0].line,
                     errs.e[0].text, mistakes[i].line, mistakes[i].want);
    }
}

static void a_file_that_is_not_there_is_named(void **state)
{
    static struct fab_errors errs;
    struct workload w;

    (void)state;
    assert_int_not_equal(workload_load(&w, "conf/workloads/none.conf", &errs), 0);
    assert_non_null(strstr(errs.e[0].text, "found no readable file"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(presets_have_as_many_parameters_as_published),
        cmocka_unit_test(presets_are_spread_as_published),
        cmocka_unit_test(experts_of_deepseek_v3_span_eight_nodes),
        cmocka_unit_test(training_llama3_70b_takes_forty_days_on_4096_gpus),
        cmocka_unit_test(what_a_file_leaves_out_has_a_stated_default),
        cmocka_unit_test(experts_are_spread_over_the_axis_that_has_ranks),
        cmocka_unit_test(every_mistake_is_named_with_its_line),
        cmocka_unit_test(a_file_that_is_not_there_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
