/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a training step prints and writes as JSON: every line, of times that the test measures itself and
 * adds up by their definitions; who is refused, and with which words.
 */
#include "base/table.h"
#include "tests/sim/step/step_bed.h"

/* 0.123; a range where the time is extrapolated and may be longer; its mark. */
static const char *time_of(const struct step_timing *t)
{
    static char text[64];
    int n = snprintf(text, sizeof(text), "%.3f", t->s * 1e3);

    if (t->high_s / t->s > 1.001)
        n += snprintf(text + n, sizeof(text) - (size_t)n, "..%.3f", t->high_s * 1e3);
    if (t->shared)
        strcpy(text + n, "+");
    else if (t->extrapolated_bytes || t->extrapolated_ranks)
        strcpy(text + n, "*");
    return text;
}

static const char *size_of(uint64_t bytes)
{
    static char text[32];

    if (bytes < 1024)
        snprintf(text, sizeof(text), "%.0f B", (double)bytes);
    else if (bytes < 1u << 20)
        snprintf(text, sizeof(text), "%.1f KiB", (double)bytes / 1024);
    else if (bytes < 1u << 30)
        snprintf(text, sizeof(text), "%.1f MiB", (double)bytes / (1u << 20));
    else
        snprintf(text, sizeof(text), "%.1f GiB", (double)bytes / (1u << 30));
    return text;
}

static void expect_own(struct table *t, const struct step_collective *u, bool wide)
{
    table_cell(t, "%s%s", roof_kind_name(u->kind), u->experts ? " (experts)" : "");
    table_cell(t, "%s", coll_name(u->coll));
    table_cell(t, "%u", u->degree);
    if (wide)
        table_cell(t, "%u", (unsigned)u->stride);
    table_cell(t, "%s", size_of(u->bytes));
    table_cell(t, "%.0f", u->times);
}

static void expect_collectives(const struct bed *b, FILE *out)
{
    static const char *const few[] = {"parallel", "collective", "group", "size", "a step",
                                      "ms",       "by",         "with",  NULL};
    static const char *const all[] = {
        "parallel", "collective",     "group", "stride",       "size", "a step", "hosts: ms",
        "by",       "NVSwitches: ms", "by",    "switches: ms", "by",   NULL};
    static const char *const with[] = {"hosts", "NVSwitches", "switches"};
    struct table *t = table_new(b->o.wide ? all : few);

    for (unsigned i = 0; i < b->n; i++) {
        const struct step_timing *x = b->u[i].timing;

        expect_own(t, &b->u[i], b->o.wide);
        for (unsigned m = 0; m < STEP_METHODS; m++) {
            char before[64] = "";

            if (m)
                strcpy(before, time_of(&x[m - 1]));
            if (!b->o.wide && m && x[m].algo == x[m - 1].algo && !strcmp(before, time_of(&x[m])))
                continue;
            for (unsigned c = 0; !b->o.wide && m && c < 5; c++)
                table_cell(t, " ");
            table_cell(t, "%s", time_of(&x[m]));
            table_cell(t, "%s", sched_algo_name(x[m].algo));
            if (!b->o.wide)
                table_cell(t, "%s", with[m]);
        }
    }
    table_print(t, out);
}

static void expect_kinds(const struct bed *b, FILE *out)
{
    static const char *const heads[] = {"parallel",     "theory: ms",     "hosts: ms",
                                        "exposed",      "NVSwitches: ms", "exposed",
                                        "switches: ms", "exposed",        NULL};
    bool whole = workload_gpus(&b->w) <= b->f->n_hosts;
    struct table *t = table_new(heads);
    char beyond[64] = "";

    for (unsigned k = 0; k < ROOF_KINDS; k++) {
        bool more = false;

        if (!b->roof[k].used)
            continue;
        table_cell(t, "%s", roof_kind_name((enum roof_kind)k));
        if (whole)
            table_cell(t, "%.2f", b->roof[k].sent_s * 1e3);
        else
            table_cell(t, "%s", "-");
        for (unsigned m = 0; m < STEP_METHODS; m++) {
            table_cell(t, "%.2f", b->kind_s[m][k] * 1e3);
            table_cell(t, "%.2f", b->gain_s[m][k] * 1e3);
            more |= b->gain_s[m][k] > 1.0005 * b->kind_s[m][k];
        }
        if (more)
            sprintf(beyond + strlen(beyond), "%s%s", *beyond ? ", " : "",
                    roof_kind_name((enum roof_kind)k));
    }
    table_print(t, out);
    if (*beyond)
        table_line(out, b->o.wide,
                   "# Exposed beyond a GPU's own communication (%s): while the pipeline fills and "
                   "drains, a stage waits for that of the others too",
                   beyond);
}

static void expect_steps(const struct bed *b, FILE *out)
{
    static const char *const heads[] = {"collectives by", "T_math",  "pipeline",
                                        "T_comms",        "exposed", "T_step",
                                        "of peak",        "binds",   NULL};
    struct table *t = table_new(heads);

    for (unsigned m = 0; m < STEP_METHODS; m++) {
        double shown[] = {b->math_s, b->bubble_s, b->comms_s[m],
                          b->step_s[m] - b->math_s - b->bubble_s, b->step_s[m]};

        table_cell(t, "%s", methods[m]);
        for (unsigned i = 0; i < LEN(shown); i++)
            table_cell(t, "%.2f", shown[i] * 1e3);
        table_cell(t, "%.1f %%", 100 * b->math_s / b->step_s[m]);
        table_cell(t, "%s", binds(b, m));
    }
    table_print(t, out);
    fprintf(out,
            "#\n# NVSwitches instead of hosts: the step is %.3f times as fast, communication %.3f "
            "times\n",
            b->step_s[0] / b->step_s[1], b->n ? b->comms_s[0] / b->comms_s[1] : 1);
    fprintf(out,
            "# Leaves, spines and cores too: the step is %.3f times as fast, communication %.3f "
            "times\n",
            b->step_s[1] / b->step_s[2], b->n ? b->comms_s[1] / b->comms_s[2] : 1);
}

static void expect_account(const struct bed *b, FILE *out)
{
    double published_s = b->math_s / 0.4;

    table_line(out, b->o.wide,
               "# The workload's own figure: 40.0 %% of peak, a step of %.2f ms: computing %.2f, "
               "pipeline %.2f, exposed %.2f (by NVSwitches), not accounted for %.2f",
               published_s * 1e3, b->math_s * 1e3, b->bubble_s * 1e3,
               (b->step_s[1] - b->math_s - b->bubble_s) * 1e3, (published_s - b->step_s[1]) * 1e3);
    table_line(out, b->o.wide,
               "# Not modelled: attention's products over the sequence, %.1f %% of the FLOPs "
               "counted (causal); kernels below the peak; recomputation; the optimiser; the first "
               "and last stage's embeddings",
               100.0 * 4 * 64 * 4 * 64 / workload_active_params(&b->w));
}

/* Groups that a method's own algorithm did not run. */
static void expect_refusals(const struct bed *b, FILE *out)
{
    for (unsigned i = 0; i < b->n; i++)
        for (unsigned m = 0; m < STEP_METHODS; m++) {
            const struct step_timing *t = &b->u[i].timing[m];

            if (t->fell_back && (m == 0 || t[0].algo != t[-1].algo))
                table_line(out, b->o.wide,
                           "# %s %s by %s: switches refused %u of the %u groups that run "
                           "together, which fell back: %s",
                           roof_kind_name(b->u[i].kind), coll_name(b->u[i].coll),
                           sched_algo_name(t->algo), t->fell_back, b->u[i].groups, t->why);
        }
}

static const char *expected(const struct bed *b, const char *gpus)
{
    FILE *out = captured_file();

    fprintf(out, "# trib-sim: a training step of toy on small, virtual time\n%s", gpus);
    fprintf(out, "#\n");
    table_line(out, b->o.wide,
               "# Collectives of a GPU, each simulated once; * extrapolated beyond 64 MiB (256 if "
               "links are not saturated before) or 64 ranks (low..high; sums take low); + at the "
               "bound, or with other groups of its kind%s",
               b->o.wide ? "" : "; with NVSwitches, and with switches too, where that changes it");
    if (workload_gpus(&b->w) > b->f->n_hosts)
        fprintf(out, "# The fabric has 8 of these GPUs: groups that reach further are taken as far "
                     "as it goes\n");
    expect_collectives(b, out);
    expect_refusals(b, out);
    fprintf(out, "#\n# In a step (ms): by the bandwidths of levels, simulated, and what the step "
                 "would gain without it\n");
    expect_kinds(b, out);
    fprintf(out, "#\n# The step (ms); computing at the device's peak\n");
    expect_steps(b, out);
    expect_account(b, out);
    return captured_text(out);
}

/* ---- texts ---- */

static void same_text(struct bed *b, const char *gpus)
{
    static struct captured c;
    char err[COMM_TEXT] = "";
    const char *text;
    int rc;

    measure(b);
    captured_begin(&c, stdout);
    rc = step_run(&b->o, err);
    captured_end(&c);
    if (rc)
        fail_msg("%d: %s", rc, err);
    text = expected(b, gpus);
    if (strcmp(c.text, text))
        fail_msg("found:\n%s\nexpected:\n%s", c.text, text);
}

#define GPUS(n, dp, pp, ep, micro, tokens)                                                         \
    "# " n " GPUs: tp 2, dp " dp ", pp " pp ", ep " ep ", zero 1; " micro                          \
    " microbatches of " tokens " tokens; h100 at 990 TFLOP/s\n"

static void all_kinds_are_printed(void **state)
{
    struct bed b;

    (void)state;
    open_bed(&b, "reduce = { };");
    with_experts(&b);
    same_text(&b, GPUS("8", "2", "2", "2", "2", "256"));
    assert_int_equal(b.n, 7);
    b.o.wide = true;
    same_text(&b, GPUS("8", "2", "2", "2", "2", "256"));
    close_bed(&b);
}

/* Two GPUs whose gradients are longer than what is simulated: from the time that the links allow to one in
 * proportion. */
static void long_times_are_a_range(void **state)
{
    struct bed b;

    (void)state;
    open_bed(&b, "reduce = { };");
    b.w.tp = b.w.pp = 1;
    b.w.attention = 20e6;
    b.w.zero = 3;
    same_text(&b, "# 2 GPUs: tp 1, dp 2, pp 1, ep 1, zero 3; 2 microbatches of 256 tokens; h100 at "
                  "990 TFLOP/s\n");
    assert_true(b.u[0].timing[0].extrapolated_bytes && !b.u[0].timing[0].extrapolated_ranks);
    close_bed(&b);
}

/* A fabric without all of the GPUs. */
static void a_part_of_the_gpus(void **state)
{
    struct bed b;

    (void)state;
    open_bed(&b, "reduce = { };");
    b.w.dp = 8;
    b.w.pp = 1;
    b.w.zero = 0;
    b.w.microbatches = 1;
    same_text(&b,
              "# 16 GPUs: tp 2, dp 8, pp 1, ep 1, zero 0; 1 microbatches of 128 tokens; h100 at "
              "990 TFLOP/s\n");
    assert_true(b.u[1].timing[0].extrapolated_ranks);
    close_bed(&b);
}

/* One group of NVSwitches for two that run at the same time, along the rails of two nodes. */
static void refusals_are_named(void **state)
{
    struct bed b;

    (void)state;
    open_bed(&b, "reduce = { groups = 1; };");
    fabric_free(b.f);
    b.f =
        load_text("name = \"small\"; mtu = 4096; ecmp = \"balanced\"; reduce = { groups = 1; }; "
                  "leaf_spine = { leaves = 2; spines = 1; hosts_per_leaf = 4; host_link = { rate = "
                  "\"400Gb/s\"; latency = \"300ns\"; }; spine_link = { rate = \"100Gb/s\"; "
                  "latency = \"300ns\"; }; };");
    b.o.fab = b.f;
    b.w.tp = 4;
    b.w.pp = 1;
    b.w.zero = 0;
    strcpy(b.w.algorithm[WORK_GROUP_DP], "sharp");
    same_text(&b, "# 8 GPUs: tp 4, dp 2, pp 1, ep 1, zero 0; 2 microbatches of 256 tokens; h100 at "
                  "990 TFLOP/s\n");
    assert_int_equal(b.u[1].groups, 4);
    assert_int_equal(b.u[1].timing[STEP_SWITCHES].fell_back, 3);
    b.o.wide = true;
    same_text(&b, "# 8 GPUs: tp 4, dp 2, pp 1, ep 1, zero 0; 2 microbatches of 256 tokens; h100 at "
                  "990 TFLOP/s\n");
    close_bed(&b);
}

/* What takes longest: computing, the pipeline, or a kind of communication. */
static void what_binds(void **state)
{
    struct bed b;

    (void)state;
    open_bed(&b, "reduce = { };");
    same_text(&b, GPUS("8", "2", "2", "1", "2", "256"));
    assert_int_equal(longest(&b, STEP_HOSTS), ROOF_TP);
    close_bed(&b);

    open_bed(&b, "reduce = { };"); /* a pipeline alone, of wide layers */
    b.w.tp = b.w.dp = 1;
    b.w.pp = 8;
    b.w.layers = b.w.dense_layers = 8;
    b.w.attention = 4e8;
    same_text(&b, "# 8 GPUs: tp 1, dp 1, pp 8, ep 1, zero 1; 2 microbatches of 512 tokens; h100 at "
                  "990 TFLOP/s\n");
    assert_int_equal(longest(&b, STEP_HOSTS), BUBBLE);
    b.w.microbatches = 32;
    same_text(&b, "# 8 GPUs: tp 1, dp 1, pp 8, ep 1, zero 1; 32 microbatches of 32 tokens; h100 at "
                  "990 TFLOP/s\n");
    assert_int_equal(longest(&b, STEP_HOSTS), MATH);
    close_bed(&b);
}

/* One GPU: no communication, which is as fast with every method. */
static void one_gpu(void **state)
{
    struct bed b;

    (void)state;
    open_bed(&b, "reduce = { };");
    b.w.tp = b.w.dp = b.w.pp = 1;
    same_text(&b, "# 1 GPUs: tp 1, dp 1, pp 1, ep 1, zero 1; 2 microbatches of 512 tokens; h100 at "
                  "990 TFLOP/s\n");
    close_bed(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_kinds_are_printed),
        cmocka_unit_test(long_times_are_a_range),
        cmocka_unit_test(a_part_of_the_gpus),
        cmocka_unit_test(refusals_are_named),
        cmocka_unit_test(what_binds),
        cmocka_unit_test(one_gpu),
    };

    test_eal_init();
    pool = test_pool(step_frames());
    return cmocka_run_group_tests(tests, NULL, NULL);
}
