/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib sim CONF --workload FILE: the time of a training step's communication on a fabric, and how
 * much of it is exposed, once by the hosts' algorithms and once with in-network reduction.
 */
#include "sim/step/step.h"

#include "base/table.h"
#include "collective/sched.h"
#include "collective/topo.h"
#include "host/bench/perf_options.h"
#include "system/atomic_output.h"
#include "system/provenance.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const char *const method_names[STEP_METHODS] = {"hosts", "nvswitches", "switches"};

/* A step by one method. */
struct step_totals {
    double comms_s;                    /* of one GPU, whether hidden or not */
    double step_s, exposed_s;          /* exposed: time that the step would save if links took no
                                          time */
    double kind_exposed_s[ROOF_KINDS]; /* the same if only this kind took no time */
    int binds;                         /* roof_kind; BINDS_MATH, BINDS_BUBBLE */
};
enum { BINDS_MATH = ROOF_KINDS, BINDS_BUBBLE };

struct step_report {
    const struct step_opts *o;
    struct step_collective collective[STEP_COLLECTIVES];
    unsigned n;
    struct roof roof[ROOF_KINDS];
    double math_s, bubble_s; /* at the device's peak, the same for all GPUs; idle time of stages
                                without any communication */
    struct step_totals sum[STEP_METHODS];
};

static const char *binds_name(int b)
{
    return b == BINDS_MATH ? "computing" : b == BINDS_BUBBLE ? "pipeline" : roof_kind_name(b);
}

/* ---- sums ---- */

static int add_up_times(struct step_report *r, enum step_method method)
{
    struct step_cost c = step_cost(r->o->work, r->collective, r->n, method), without = c;
    struct step_totals *s = &r->sum[method];
    double most = r->math_s, without_s;

    for (unsigned i = 0; i < r->n; i++)
        s->comms_s += r->collective[i].timing[method].s * r->collective[i].times;
    memset(without.comms, 0, sizeof(without.comms));
    s->step_s = step_seconds(&c);
    r->bubble_s = step_seconds(&without) - r->math_s;
    if (s->step_s < 0 || r->bubble_s + r->math_s < 0)
        return -ENOMEM;
    s->exposed_s = s->step_s - r->math_s - r->bubble_s;
    s->binds = BINDS_MATH;
    if (r->bubble_s > most)
        most = r->bubble_s, s->binds = BINDS_BUBBLE;
    for (int k = 0; k < ROOF_KINDS; k++) {
        without = c;
        without.comms[k] = 0;
        without_s = step_seconds(&without);
        if (without_s < 0)
            return -ENOMEM;
        s->kind_exposed_s[k] = s->step_s - without_s;
        if (s->kind_exposed_s[k] > most)
            most = s->kind_exposed_s[k], s->binds = k;
    }
    return 0;
}

/* ---- print ---- */

static const char *size_text(char *b, size_t n, double bytes)
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB"};
    unsigned u = 0;

    for (; u < 3 && bytes >= 1024; u++)
        bytes /= 1024;
    snprintf(b, n, u ? "%.1f %s" : "%.0f %s", bytes, unit[u]);
    return b;
}

static const char *timing_text(char *b, size_t n, const struct step_timing *t)
{
    const char *how = t->shared ? "+" : t->extrapolated_bytes || t->extrapolated_ranks ? "*" : "";

    if (t->high_s > t->s * 1.001)
        snprintf(b, n, "%.3f..%.3f%s", t->s * 1e3, t->high_s * 1e3, how);
    else
        snprintf(b, n, "%.3f%s", t->s * 1e3, how);
    return b;
}

/* The cells that do not depend on the method. */
static void collective_cells(struct table *t, const struct step_collective *u, bool wide)
{
    char b[32];

    table_cell(t, "%s%s", roof_kind_name(u->kind), u->experts ? " (experts)" : "");
    table_cell(t, "%s", coll_name(u->coll));
    table_cell(t, "%u", u->degree);
    if (wide)
        table_cell(t, "%llu", (unsigned long long)u->stride);
    table_cell(t, "%s", size_text(b, sizeof(b), (double)u->bytes));
    table_cell(t, "%.0f", u->times);
}

/* A line for each collective. */
static void print_wide(const struct step_report *r)
{
    static const char *const heads[] = {
        "parallel", "collective",     "group", "stride",       "size", "a step", "hosts: ms",
        "by",       "NVSwitches: ms", "by",    "switches: ms", "by",   NULL};
    struct table *t = table_new(heads);
    char b[32];

    for (unsigned i = 0; i < r->n; i++) {
        const struct step_collective *u = &r->collective[i];

        collective_cells(t, u, true);
        for (int w = 0; w < STEP_METHODS; w++) {
            table_cell(t, "%s", timing_text(b, sizeof(b), &u->timing[w]));
            table_cell(t, "%s", sched_algo_name(u->timing[w].algo));
        }
    }
    table_print(t, stdout);
}

/* A line for each method that does a collective otherwise than the one before. */
static void print_collectives(const struct step_report *r)
{
    static const char *const heads[] = {"parallel", "collective", "group", "size", "a step",
                                        "ms",       "by",         "with",  NULL};
    static const char *const with[STEP_METHODS] = {"hosts", "NVSwitches", "switches"};
    const unsigned own = 5; /* columns that do not depend on the method */
    struct table *t = table_new(heads);
    char b[32], before[32] = "";

    for (unsigned i = 0; i < r->n; i++)
        for (int w = 0; w < STEP_METHODS; w++) {
            const struct step_collective *u = &r->collective[i];

            timing_text(b, sizeof(b), &u->timing[w]);
            if (w && !strcmp(b, before) && u->timing[w].algo == u->timing[w - 1].algo)
                continue;
            memcpy(before, b, sizeof(before));
            if (!w)
                collective_cells(t, u, false);
            for (unsigned c = 0; w && c < own; c++)
                table_cell(t, " ");
            table_cell(t, "%s", b);
            table_cell(t, "%s", sched_algo_name(u->timing[w].algo));
            table_cell(t, "%s", with[w]);
        }
    table_print(t, stdout);
}

/* Groups that did not run by what their line says. */
static void print_refusals(const struct step_report *r)
{
    for (unsigned i = 0; i < r->n; i++)
        for (int w = 0; w < STEP_METHODS; w++) {
            const struct step_timing *t = &r->collective[i].timing[w];

            if (t->fell_back && (!w || t->algo != r->collective[i].timing[w - 1].algo))
                table_line(stdout, r->o->wide,
                           "# %s %s by %s: switches refused %u of the %u groups that run "
                           "together, which fell back: %s",
                           roof_kind_name(r->collective[i].kind), coll_name(r->collective[i].coll),
                           sched_algo_name(t->algo), t->fell_back, r->collective[i].groups, t->why);
        }
}

static double kind_comms_s(const struct step_report *r, enum roof_kind k, int method)
{
    double s = 0;

    for (unsigned i = 0; i < r->n; i++)
        s += r->collective[i].kind == k ? r->collective[i].timing[method].s * r->collective[i].times
                                        : 0;
    return s;
}

/* Communication of one stage delays the others while a pipeline fills and drains. */
static void print_delays(const struct step_report *r)
{
    char kinds[64] = "";

    for (int k = 0; k < ROOF_KINDS; k++)
        for (int w = 0; w < STEP_METHODS; w++)
            if (r->roof[k].used &&
                r->sum[w].kind_exposed_s[k] > 1.0005 * kind_comms_s(r, (enum roof_kind)k, w)) {
                size_t n = strlen(kinds);

                snprintf(kinds + n, sizeof(kinds) - n, "%s%s", n ? ", " : "", roof_kind_name(k));
                break;
            }
    if (*kinds)
        table_line(stdout, r->o->wide,
                   "# Exposed beyond a GPU's own communication (%s): while the pipeline fills and "
                   "drains, a stage waits for that of the others too",
                   kinds);
}

static void print_kinds(const struct step_report *r)
{
    static const char *const heads[] = {"parallel",     "theory: ms",     "hosts: ms",
                                        "exposed",      "NVSwitches: ms", "exposed",
                                        "switches: ms", "exposed",        NULL};
    struct table *t = table_new(heads);

    for (int k = 0; k < ROOF_KINDS; k++) {
        if (!r->roof[k].used)
            continue;
        table_cell(t, "%s", roof_kind_name(k));
        if (r->roof[k].sent_s > 0)
            table_cell(t, "%.2f", r->roof[k].sent_s * 1e3);
        else
            table_cell(t, "%s", "");
        for (int w = 0; w < STEP_METHODS; w++) {
            table_cell(t, "%.2f", kind_comms_s(r, (enum roof_kind)k, w) * 1e3);
            table_cell(t, "%.2f", r->sum[w].kind_exposed_s[k] * 1e3);
        }
    }
    table_print(t, stdout);
}

static void print_steps(const struct step_report *r)
{
    static const char *const heads[] = {"collectives by", "T_math",  "pipeline",
                                        "T_comms",        "exposed", "T_step",
                                        "of peak",        "binds",   NULL};
    struct table *t = table_new(heads);

    for (int w = 0; w < STEP_METHODS; w++) {
        const struct step_totals *s = &r->sum[w];

        table_cell(t, "%s", method_names[w]);
        table_cell(t, "%.2f", r->math_s * 1e3);
        table_cell(t, "%.2f", r->bubble_s * 1e3);
        table_cell(t, "%.2f", s->comms_s * 1e3);
        table_cell(t, "%.2f", s->exposed_s * 1e3);
        table_cell(t, "%.2f", s->step_s * 1e3);
        table_cell(t, "%.1f %%", 100 * r->math_s / s->step_s);
        table_cell(t, "%s", binds_name(s->binds));
    }
    table_print(t, stdout);
}

/* What each kind of switch adds to those before it. */
static void print_gains(const struct step_report *r)
{
    static const char *const what[STEP_METHODS] = {
        [STEP_NVSWITCHES] = "NVSwitches instead of hosts",
        [STEP_SWITCHES] = "Leaves, spines and cores too"};

    printf("#\n");
    for (int w = 1; w < STEP_METHODS; w++) {
        const struct step_totals *with = &r->sum[w], *without = &r->sum[w - 1];

        printf("# %s: the step is %.3f times as fast, communication %.3f times\n", what[w],
               without->step_s / with->step_s,
               with->comms_s > 0 ? without->comms_s / with->comms_s : 1);
    }
}

/* From the device's peak to the published share of it. */
static void print_account(const struct step_report *r)
{
    const struct workload *w = r->o->work;
    const struct step_totals *s = &r->sum[STEP_NVSWITCHES];
    double published_s = r->math_s / w->utilisation;

    table_line(stdout, r->o->wide,
               "# The workload's own figure: %.1f %% of peak, a step of %.2f ms: computing %.2f, "
               "pipeline %.2f, exposed %.2f (by NVSwitches), not accounted for %.2f",
               100 * w->utilisation, published_s * 1e3, r->math_s * 1e3, r->bubble_s * 1e3,
               s->exposed_s * 1e3, (published_s - s->step_s) * 1e3);
    table_line(
        stdout, r->o->wide,
        "# Not modelled: attention's products over the sequence, %.1f %% of the FLOPs counted "
        "(causal); kernels below the peak; recomputation; the optimiser; the first and last "
        "stage's embeddings",
        /* 6 layers sequence width FLOPs a token: half of 12, since causal */
        100.0 * w->layers * w->sequence * w->heads * w->head_dim / workload_active_params(w));
}

static void step_report_print(const struct step_report *r)
{
    const struct workload *w = r->o->work;
    bool wide = r->o->wide;

    table_line(stdout, wide, "# trib-sim: a training step of %s on %s, virtual time", w->name,
               r->o->fab->name);
    table_line(stdout, wide,
               "# %llu GPUs: tp %u, dp %u, pp %u, ep %u, zero %u; %u microbatches of %llu tokens; "
               "%s at %.0f TFLOP/s",
               (unsigned long long)workload_gpus(w), w->tp, w->dp, w->pp, w->ep, w->zero,
               w->microbatches, (unsigned long long)workload_microbatch_tokens(w), w->device->name,
               device_flops(w->device, w->type) * 1e-12);
    printf("#\n");
    table_line(stdout, wide,
               "# Collectives of a GPU, each simulated once; * extrapolated beyond %u MiB (%u if "
               "links are not saturated before) or %u ranks (low..high; sums take low); + at the "
               "bound, or with other groups of its kind%s",
               STEP_MAX_MIB, STEP_MAX_MIB * STEP_SATURATED, STEP_MAX_RANKS,
               wide ? "" : "; with NVSwitches, and with switches too, where that changes it");
    if (workload_gpus(w) > r->o->fab->n_hosts)
        table_line(stdout, wide,
                   "# The fabric has %u of these GPUs: groups that reach further are taken as far "
                   "as it goes",
                   r->o->fab->n_hosts);
    if (wide)
        print_wide(r);
    else
        print_collectives(r);
    print_refusals(r);
    printf("#\n# In a step (ms): by the bandwidths of levels, simulated, and what the step would "
           "gain without it\n");
    print_kinds(r);
    print_delays(r);
    printf("#\n# The step (ms); computing at the device's peak\n");
    print_steps(r);
    print_gains(r);
    print_account(r);
}

/* ---- JSON ---- */

static json_t *timing_json(const struct step_timing *t)
{
    return json_pack("{s:s, s:f, s:f, s:f, s:b, s:I, s:b, s:b, s:I}", "algo",
                     sched_algo_name(t->algo), "time_us", t->s * 1e6, "high_us", t->high_s * 1e6,
                     "bound_us", t->bound_s * 1e6, "shared", t->shared, "simulated_bytes",
                     (json_int_t)t->bytes, "extrapolated_bytes", t->extrapolated_bytes,
                     "extrapolated_ranks", t->extrapolated_ranks, "fell_back_groups",
                     (json_int_t)t->fell_back);
}

static json_t *collective_json(const struct step_collective *u)
{
    return json_pack("{s:s, s:b, s:s, s:I, s:I, s:I, s:I, s:I, s:f, s:o, s:o, s:o}", "parallel",
                     roof_kind_name(u->kind), "experts", u->experts, "collective",
                     coll_name(u->coll), "group", (json_int_t)u->degree, "simulated_ranks",
                     (json_int_t)u->ranks, "simulated_groups", (json_int_t)u->groups, "stride",
                     (json_int_t)u->stride, "size_bytes", (json_int_t)u->bytes, "times", u->times,
                     "hosts", timing_json(&u->timing[STEP_HOSTS]), "nvswitches",
                     timing_json(&u->timing[STEP_NVSWITCHES]), "switches",
                     timing_json(&u->timing[STEP_SWITCHES]));
}

static json_t *totals_json(const struct step_report *r, int w)
{
    const struct step_totals *s = &r->sum[w];
    json_t *j =
        json_pack("{s:f, s:f, s:f, s:s}", "comms_us", s->comms_s * 1e6, "exposed_us",
                  s->exposed_s * 1e6, "step_us", s->step_s * 1e6, "binds", binds_name(s->binds));
    json_t *kinds = json_object();

    for (int k = 0; k < ROOF_KINDS; k++)
        if (r->roof[k].used)
            json_object_set_new(kinds, roof_kind_name(k), json_real(s->kind_exposed_s[k] * 1e6));
    json_object_set_new(j, "exposed_by_us", kinds);
    return j;
}

static int write_json(const struct step_report *r)
{
    json_t *collectives = json_array(), *theory = json_object(), *j;
    int rc;

    for (unsigned i = 0; i < r->n; i++)
        json_array_append_new(collectives, collective_json(&r->collective[i]));
    for (int k = 0; k < ROOF_KINDS; k++)
        if (r->roof[k].used)
            json_object_set_new(theory, roof_kind_name(k), json_real(r->roof[k].sent_s * 1e6));
    j = json_pack("{s:s, s:s, s:I, s:f, s:f, s:o, s:o, s:o, s:o, s:o}", "workload",
                  r->o->work->name, "fabric", r->o->fab->name, "gpus",
                  (json_int_t)workload_gpus(r->o->work), "math_us", r->math_s * 1e6, "pipeline_us",
                  r->bubble_s * 1e6, "collectives", collectives, "theory_us", theory, "hosts",
                  totals_json(r, STEP_HOSTS), "nvswitches", totals_json(r, STEP_NVSWITCHES),
                  "switches", totals_json(r, STEP_SWITCHES));
    if (j)
        provenance_add(r->o->from, j, false);
    rc = j ? atomic_output_json(r->o->json, j, JSON_INDENT(1) | JSON_REAL_PRECISION(12)) : -ENOMEM;
    json_decref(j);
    return rc;
}

/* ---- all of it ---- */

/* Two GPUs of each group suffice to simulate it, and the stages and shards between them. */
static int step_fits(const struct step_opts *o, const struct step_collective *u, unsigned n,
                     char *err)
{
    uint64_t passes = (uint64_t)o->work->pp * o->work->microbatches;

    if (passes > STEP_PASSES) {
        snprintf(err, COMM_TEXT,
                 "%.80s: found %u stages of %u microbatches, expected at most %u of all stages "
                 "together",
                 o->work->name, o->work->pp, o->work->microbatches, STEP_PASSES);
        return -EINVAL;
    }
    for (unsigned i = 0; i < n; i++)
        if (u[i].stride >= o->fab->n_hosts) {
            snprintf(err, COMM_TEXT,
                     "%.80s: found %s parallel groups whose GPUs are %llu apart, expected a fabric "
                     "of more than so many, %s has %u",
                     o->work->name, roof_kind_name(u[i].kind), (unsigned long long)u[i].stride,
                     o->fab->name, o->fab->n_hosts);
            return -EINVAL;
        }
    return 0;
}

int step_run(const struct step_opts *o, char *err)
{
    struct step_report r = {.o = o};
    struct cost_levels levels;
    int rc;

    r.n = step_collectives(o->work, r.collective);
    rc = step_fits(o, r.collective, r.n, err);
    rc = rc ? rc : step_name_algorithms(o->work, r.collective, r.n, err);
    if (rc)
        return rc;
    cost_levels(o->fab, &levels);
    roofline_workload(o->work, &levels, r.roof);
    if (workload_gpus(o->work) > o->fab->n_hosts) /* the fabric lacks some of its levels */
        for (int k = 0; k < ROOF_KINDS; k++)
            r.roof[k].sent_s = 0;
    r.math_s = workload_step_flops(o->work) /
               (device_flops(o->work->device, o->work->type) * (double)workload_gpus(o->work));
    rc = step_measure(o->fab, r.collective, r.n, o->pool, o->seed, o->stop, err);
    for (int w = 0; !rc && w < STEP_METHODS; w++)
        rc = add_up_times(&r, w);
    if (rc) {
        if (!*err)
            snprintf(err, COMM_TEXT, "%s", strerror(-rc));
        return rc;
    }
    step_report_print(&r);
    rc = o->json ? write_json(&r) : 0;
    if (rc)
        snprintf(err, COMM_TEXT, "cannot write %s: %s", o->json, strerror(-rc));
    return rc;
}
