/* SPDX-License-Identifier: BSD-3-Clause */
/* Results of several jobs: a line for each, what switches refused, and all of it as JSON. */
#include "base/table.h"
#include "collective/sched.h"
#include "sim/jobs/jobs.h"
#include "system/atomic_output.h"
#include "system/provenance.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#define US(ps) ((double)(ps)*1e-6)

static const char *size_text(char *b, size_t n, uint64_t bytes)
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB"};
    double v = (double)bytes;
    unsigned u = 0;

    for (; u < 3 && v >= 1024; u++)
        v /= 1024;
    snprintf(b, n, u ? "%.4g %s" : "%.0f %s", v, unit[u]);
    return b;
}

/* The file's name without its folders: output is the same from wherever it is run. */
static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* Whether all operations of the job were done by the same algorithm. */
static const char *ran_by(const struct jobs_job *j, const struct jobs_result *r)
{
    for (unsigned k = 1; k < j->n_ops; k++)
        if (r->ran_by[k] != r->ran_by[0])
            return "several";
    return sched_algo_name(r->ran_by[0]);
}

/* ---- the tables ---- */

static void time_cell(struct table *t, int64_t ps)
{
    if (ps > 0)
        table_cell(t, "%.3f", US(ps));
    else
        table_cell(t, "%s", "");
}

/* Slots that it had, of those that it asked for if they are more. */
static void window_cell(struct table *t, const struct coll_grant *g)
{
    uint32_t window = g->trees_asked ? g->window : g->rail;

    if (!g->trees_asked && !g->rail_asked)
        table_cell(t, "%s", "");
    else if (window == g->asked)
        table_cell(t, "%u", window);
    else
        table_cell(t, "%u/%u", window, g->asked);
}

static void print_job(struct table *t, const struct jobs_report *r, unsigned i)
{
    const struct jobs_job *j = &r->o->plan->job[i];
    const struct jobs_result *g = &r->together[i], *a = &r->alone[i];
    char size[32];

    table_cell(t, "%s", j->name);
    table_cell(t, "%u", j->nranks);
    if (j->n_ops == 1) {
        table_cell(t, "%s", coll_name(j->op[0].kind));
        table_cell(t, "%s", size_text(size, sizeof(size), j->op[0].bytes));
    } else {
        table_cell(t, "%u operations", j->n_ops);
        table_cell(t, "%s", "");
    }
    table_cell(t, "%s", ran_by(j, g));
    if (r->o->wide) {
        window_cell(t, &g->grant);
        table_cell(t, "%.2f", g->began_ps >= 0 ? US(g->began_ps) : US(j->start_ps));
        table_cell(t, "%u", g->iterations);
    }
    time_cell(t, g->iteration_ps);
    if (r->o->wide)
        time_cell(t, a->iteration_ps);
    if (r->slowdown[i] > 0)
        table_cell(t, "%.3f", r->slowdown[i]);
    else
        table_cell(t, "%s", "");
    if (r->o->lengths)
        table_cell(t, "%s", "");
    else
        table_cell(t, "%llu", (unsigned long long)(g->wrong + a->wrong));
    table_cell(t, "%s", jobs_end_name(g->end));
}

/* Less than the job asked for, though not refused. */
static void print_grant(const char *name, bool wide, const struct coll_grant *g)
{
    if (g->trees_asked)
        table_line(stdout, wide, "#   %s: window %u of %u on %u of %u trees because %s", name,
                   g->window, g->asked, g->trees, g->trees_asked, g->why);
    else
        table_line(stdout, wide, "#   %s: window %u of %u on its rails because %s", name, g->rail,
                   g->asked, g->why);
}

/* What a job did not get, and why. */
static void print_refusals(const struct jobs_report *r)
{
    bool head = false, wide = r->o->wide;

    for (unsigned i = 0; i < r->o->plan->n; i++) {
        const struct jobs_job *job = &r->o->plan->job[i];
        const struct jobs_result *g = &r->together[i], *a = &r->alone[i];
        bool any = *g->fell_back || *g->grant.why || g->end > JOBS_DIED || *a->fell_back;

        if (any && !head)
            printf("#\n# Refusals and fallbacks\n");
        head |= any;
        if (g->end > JOBS_DIED)
            table_line(stdout, wide, "#   %s: %s: %s", job->name, jobs_end_name(g->end), g->why);
        if (*g->fell_back)
            table_line(stdout, wide, "#   %s: by %s: %s", job->name, ran_by(job, g), g->fell_back);
        else if (*g->grant.why)
            print_grant(job->name, wide, &g->grant);
        if (*a->fell_back)
            table_line(stdout, wide, "#   %s: alone by %s: %s", job->name, ran_by(job, a),
                       a->fell_back);
    }
}

static void print_deaths(const struct jobs_report *r)
{
    for (unsigned i = 0; i < r->o->plan->n; i++) {
        const struct jobs_result *g = &r->together[i];
        const char *name = r->o->plan->job[i].name;
        char gone[80];

        if (g->end != JOBS_DIED)
            continue;
        printf("#\n");
        if (!g->groups)
            snprintf(gone, sizeof(gone), "it held no groups at switches");
        else if (g->released_ps < 0)
            snprintf(gone, sizeof(gone), "its %u groups at switches were not gone 2 s later",
                     g->groups);
        else
            snprintf(gone, sizeof(gone), "its %u groups were gone from the switches %.3f us later",
                     g->groups, US(g->released_ps - g->died_ps));
        table_line(stdout, r->o->wide, "# %s died at %.3f us%s%s%s; %s", name, US(g->died_ps),
                   g->why[0] ? " (" : "", g->why, g->why[0] ? ")" : "", gone);
    }
}

void jobs_print(const struct jobs_report *r)
{
    static const char *const usual[] = {"job", "ranks",    "collective", "size", "by",
                                        "us",  "slowdown", "wrong",      "end",  NULL};
    static const char *const all[] = {"job",      "ranks", "collective", "size", "by",
                                      "window",   "start", "times",      "us",   "alone",
                                      "slowdown", "wrong", "end",        NULL};
    const struct jobs_opts *o = r->o;
    struct table *t = table_new(o->wide ? all : usual);

    table_line(stdout, o->wide, "# trib-sim: %u job%s of %s on %s, virtual time, seed %llu, %s",
               o->plan->n, o->plan->n == 1 ? "" : "s", file_name(o->file), o->fab->name,
               (unsigned long long)o->seed, o->lengths ? "lengths without data" : "data");
    if (o->wide)
        printf("# us: of one iteration with the others; alone: on a fabric without them; start: of "
               "the first operation, in us; window: slots of a group, of those asked for\n");
    else
        printf(
            "# us: of one iteration with the others; slowdown: times of that on a fabric without "
            "them\n");
    for (unsigned i = 0; i < o->plan->n; i++)
        print_job(t, r, i);
    table_print(t, stdout);
    print_refusals(r);
    print_deaths(r);
    if (r->compared)
        printf("#\n# Jain's fairness index of %u jobs' throughputs relative to running alone: "
               "%.4f\n",
               r->compared, r->fairness);
    congestion_print(&r->totals.congestion, o->wide, stdout);
    if (o->counters)
        counters_print(o->counters, stdout);
}

/* ---- JSON ---- */

/* Microseconds; null: never. */
static json_t *time_json(int64_t ps)
{
    return ps < 0 ? json_null() : json_real(US(ps));
}

static json_t *text_json(const char *text)
{
    return *text ? json_string(text) : json_null();
}

static json_t *op_json(const struct jobs_report *r, unsigned i, unsigned k)
{
    const struct jobs_op *op = &r->o->plan->job[i].op[k];
    const struct jobs_result *g = &r->together[i], *a = &r->alone[i];
    json_t *j = json_pack(
        "{s:s, s:s, s:s, s:s, s:o, s:I, s:I, s:f}", "collective", coll_name(op->kind), "asked",
        sched_algo_name(op->asked), "algo", sched_algo_name(op->algo), "ran_by",
        sched_algo_name(g->ran_by[k]), "alone_ran_by",
        a->iterations ? json_string(sched_algo_name(a->ran_by[k])) : json_null(), "size_bytes",
        (json_int_t)op->bytes, "count", (json_int_t)op->count, "model_us", US(op->model_ps));

    if (op->bound > 0)
        json_object_set_new(j, "bound", json_real(op->bound));
    if (op->kind != COLL_BARRIER)
        json_object_set_new(j, "type", json_string(dtype_name(op->type)));
    if (coll_reduces(op->kind))
        json_object_set_new(j, "redop", json_string(redop_name(op->op)));
    if (coll_rooted(op->kind))
        json_object_set_new(j, "root", json_integer(op->root));
    return j;
}

static json_t *grant_json(const struct jobs_job *job, const struct jobs_result *g)
{
    json_t *trees = json_array();

    for (unsigned i = 0; i < g->grant.trees; i++)
        json_array_append_new(trees, json_integer(g->grant.tree[i]));
    return json_pack("{s:I, s:I, s:o, s:I, s:I, s:I, s:o}", "id", (json_int_t)job->group,
                     "groups_at_switches", (json_int_t)g->groups, "trees", trees, "trees_asked",
                     (json_int_t)g->grant.trees_asked, "window", (json_int_t)g->grant.window,
                     "window_asked", (json_int_t)g->grant.asked, "why", text_json(g->grant.why));
}

static json_t *job_json(const struct jobs_report *r, unsigned i)
{
    const struct jobs_job *job = &r->o->plan->job[i];
    const struct jobs_result *g = &r->together[i], *a = &r->alone[i];
    json_t *hosts = json_array(), *ops = json_array(), *j;

    for (unsigned n = 0; n < job->nranks; n++)
        json_array_append_new(
            hosts, json_string(r->o->fab->nodes[r->o->fab->hosts[job->host_of_rank[n]]].name));
    for (unsigned k = 0; k < job->n_ops; k++)
        json_array_append_new(ops, op_json(r, i, k));
    j = json_pack("{s:s, s:I, s:o, s:o, s:I, s:s, s:o, s:o}", "name", job->name, "ranks",
                  (json_int_t)job->nranks, "hosts", hosts, "operations", ops, "iterations",
                  (json_int_t)g->iterations, "end", jobs_end_name(g->end), "why", text_json(g->why),
                  "fell_back", text_json(g->fell_back));
    json_object_set_new(j, "start_us", json_real(US(job->start_ps)));
    json_object_set_new(j, "began_us", time_json(g->began_ps));
    json_object_set_new(j, "ended_us", time_json(g->ended_ps));
    json_object_set_new(j, "died_us", time_json(g->died_ps));
    json_object_set_new(j, "released_us", time_json(g->groups ? g->released_ps : JOBS_NEVER));
    json_object_set_new(j, "time_us",
                        g->iteration_ps > 0 ? json_real(g->iteration_ps * 1e-6) : json_null());
    json_object_set_new(j, "alone_us",
                        a->iteration_ps > 0 ? json_real(a->iteration_ps * 1e-6) : json_null());
    json_object_set_new(j, "alone_fell_back", text_json(a->fell_back));
    json_object_set_new(j, "slowdown",
                        r->slowdown[i] > 0 ? json_real(r->slowdown[i]) : json_null());
    json_object_set_new(
        j, "wrong", r->o->lengths ? json_null() : json_integer((json_int_t)(g->wrong + a->wrong)));
    json_object_set_new(j, "results_checked", json_integer((json_int_t)(g->checked + a->checked)));
    json_object_set_new(j, "group", grant_json(job, g));
    return j;
}

int jobs_write(const struct jobs_report *r)
{
    const struct jobs_opts *o = r->o;
    const struct jobs_totals *t = &r->totals;
    json_t *jobs = json_array(), *j;
    char trace[24];
    int rc;

    snprintf(trace, sizeof(trace), "%016llx", (unsigned long long)t->trace);
    for (unsigned i = 0; i < o->plan->n; i++)
        json_array_append_new(jobs, job_json(r, i));
    j = json_pack("{s:s, s:s, s:I, s:s, s:o, s:o, s:I, s:f, s:I, s:I, s:s, s:o}", "fabric",
                  o->fab->name, "file", file_name(o->file), "seed", (json_int_t)o->seed, "payload",
                  o->lengths ? "none" : "data", "jobs", jobs, "fairness",
                  r->compared ? json_real(r->fairness) : json_null(), "fairness_jobs",
                  (json_int_t)r->compared, "time_us", US(t->fabric_ps), "events",
                  (json_int_t)t->events, "frames", (json_int_t)t->frames, "trace", trace,
                  "congestion", congestion_json(&t->congestion));
    if (j && t->links)
        json_object_set(j, "links", t->links);
    if (j)
        provenance_add(o->from, j, false);
    rc = j ? atomic_output_json(o->json, j, JSON_INDENT(1) | JSON_REAL_PRECISION(12)) : -ENOMEM;
    json_decref(j);
    return rc;
}
