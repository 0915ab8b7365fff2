/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/bench/report.h"

#include "system/atomic_output.h"
#include "system/provenance.h"
#include "base/version.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

static json_t *report_number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *fidelity_json(const struct fidelity *f)
{
    return json_pack("{s:b, s:f, s:I}", "ok", f->ok, "p99_lag_us", f->p99_lag_us, "dilation_needed",
                     (json_int_t)f->needed);
}

/* Keys that only some rows have. */
static void add_extras(json_t *j, const struct row *r, int place)
{
    json_object_set_new(j, "asked", json_string(row_asked_name(r)));
    if (r->chosen)
        json_object_set_new(j, "why", json_string(r->why));
    if (*r->run[place].fell_back) {
        json_object_set_new(j, "fell_back", json_string(r->run[place].fell_back));
        json_object_set_new(j, "aggregated_iters",
                            json_integer((json_int_t)r->run[place].aggregated));
        if (r->run[place].end.goes_on)
            json_object_set_new(j, "goes_on", json_true());
    }
    if (r->run[place].counted.n)
        json_object_set_new(j, "protocol", row_counters_json(&r->run[place].counted));
    if (r->bound > 0)
        json_object_set_new(j, "bound", json_real(r->bound));
    if (*r->run[place].cut)
        json_object_set_new(j, "cut", json_string(r->run[place].cut));
    if (r->run[place].links)
        json_object_set(j, "links", r->run[place].links);
    if (r->staged)
        json_object_set_new(j, "staging_us", json_real(r->run[place].staging_us));
    if (r->mm_self)
        json_object_set_new(j, "mm_self", json_true());
    if (r->sparse)
        json_object_set_new(j, "sparse", json_integer((json_int_t)r->sparse));
    if (r->ulp.n && place == OUT_OF_PLACE) /* JSON has no infinity: such a result is null */
        json_object_set_new(j, "ulp",
                            json_pack("{s:o, s:o}", "max", report_number(r->ulp.max), "mean",
                                      report_number(row_ulp_mean(r))));
}

/* The busiest link: measured, and by the model; null where there is none or it is not known. */
static void add_link(json_t *j, const struct row *r, const struct run_result *run)
{
    const struct link_use *u = &run->link;
    double bytes = link_use_bytes(u, run->iters);
    bool known = r->emulated && u->known;

    json_object_set_new(j, "link_bytes",
                        known ? json_integer((json_int_t)(bytes + 0.5)) : json_null());
    json_object_set_new(j, "link_utilisation",
                        known ? json_real(link_use_share(u, run->iters, run->time_us))
                              : json_null());
    json_object_set_new(j, "model_link_bytes",
                        r->emulated ? json_integer((json_int_t)r->pred.busiest_link_bytes)
                                    : json_null());
    json_object_set_new(j, "model_link_utilisation",
                        r->emulated ? json_real(row_predicted_utilisation(r)) : json_null());
    if (r->emulated && *u->why)
        json_object_set_new(j, "link_not_measured", json_string(u->why));
}

static json_t *run_json(const struct row *r, int place)
{
    const struct run_result *run = &r->run[place];

    json_t *j = json_pack(
        "{s:s, s:s, s:I, s:I, s:s, s:s, s:i, s:b, s:f, s:f, s:f, s:o, s:o, s:I, s:I, s:o}",
        "collective", coll_name(r->coll), "algo", row_algo_name(r), "size_bytes",
        (json_int_t)r->bytes, "count", (json_int_t)r->count, "type", row_type(r), "op", row_op(r),
        "root", row_root(r), "in_place", place == IN_PLACE, "time_us", run->time_us, "algbw_GBps",
        row_algbw(r, run->time_us), "busbw_GBps", row_busbw(r, run->time_us), "wrong",
        run->checked ? json_integer((json_int_t)run->wrong) : json_null(), "predicted_us",
        r->pred.time_ps && !r->pred.guessed ? json_real(row_predicted_us(r)) : json_null(),
        "dilation", (json_int_t)run->dilation, "iters", (json_int_t)run->iters, "fidelity",
        fidelity_json(&run->fid));
    if (!j)
        return NULL;
    if (r->pred.from_ranks)
        json_object_set_new(j, "model_ranks", json_integer(r->pred.from_ranks));
    if (row_is_rough(r))
        json_object_set_new(j, "predicted_within_percent", json_integer(r->pred.within_percent));
    if (r->pred.hashed && row_predicted_us(r) > 0)
        json_object_set_new(j, "predicted_paths", json_string("balanced"));
    if (row_is_beyond(r))
        json_object_set_new(j, "extrapolated_from_bytes", json_integer((json_int_t)r->until));
    op_times_json(&run->times, j);
    add_link(j, r, run);
    add_extras(j, r, place);
    return j;
}

/* A run for which --max-wall left no time. */
static void add_missing(json_t **list, const struct row *r, int place)
{
    if (!*list)
        *list = json_array();
    json_array_append_new(*list,
                          json_pack("{s:s, s:s, s:I, s:s, s:s, s:b, s:s}", "collective",
                                    coll_name(r->coll), "algo", row_algo_name(r), "size_bytes",
                                    (json_int_t)r->bytes, "type", row_type(r), "op", row_op(r),
                                    "in_place", place == IN_PLACE, "reason", r->run[place].cut));
}

json_t *report_granted(const struct coll_grant *g)
{
    json_t *j = json_pack("{s:I}", "window_asked", (json_int_t)g->asked);

    if (!j)
        return NULL;
    if (g->trees_asked) {
        json_object_set_new(j, "trees_asked", json_integer((json_int_t)g->trees_asked));
        json_object_set_new(j, "trees", json_integer((json_int_t)g->trees));
        json_object_set_new(j, "window", json_integer((json_int_t)g->window));
    }
    if (g->rail_asked)
        json_object_set_new(j, "rail_window", json_integer((json_int_t)g->rail));
    if (*g->why)
        json_object_set_new(j, "why", json_string(g->why));
    return j;
}

json_t *report_rows(const struct row *rows, unsigned n)
{
    json_t *results = json_array();

    for (unsigned i = 0; i < n; i++)
        for (int p = 0; p < PLACES; p++)
            if (rows[i].run[p].valid)
                json_array_append_new(results, run_json(&rows[i], p));
    return results;
}

bool report_can_write(const char *program, struct perf_opts *o)
{
    const struct {
        const char *option, **path;
    } files[] = {{"-J", &o->json}, {"--csv", &o->csv}, {"--timeline", &o->timeline}};

    for (unsigned i = 0; i < 3; i++)
        for (unsigned k = 0; *files[i].path && k < i; k++)
            if (*files[k].path && !strcmp(*files[i].path, *files[k].path) &&
                (atomic_output_is_file(*files[i].path) || !strcmp(*files[i].path, "-"))) {
                fprintf(stderr, "%s: %s: found %s, which is %s's file, expected another one\n",
                        program, files[i].option, *files[i].path, files[k].option);
                return false;
            }
    for (unsigned i = 0; i < 3; i++) {
        const char *path = *files[i].path ? atomic_output_path(*files[i].path) : NULL;
        int rc = path ? atomic_output_can_write(path) : *files[i].path ? -errno : 0;

        if (rc) {
            fprintf(stderr, "%s: %s: cannot write %s: %s\n", program, files[i].option,
                    *files[i].path, strerror(-rc));
            return false;
        }
        *files[i].path = path;
    }
    return true;
}

int report_write_more(const char *path, const struct perf_opts *o, unsigned nranks,
                      const struct row *rows, unsigned n, const char *error,
                      const struct coll_grant *g, const char *key, struct json_t *more)
{
    json_t *results = report_rows(rows, n), *missing = NULL;
    bool ok = true;

    for (unsigned i = 0; i < n; i++)
        for (int p = 0; p < PLACES; p++)
            if (rows[i].run[p].valid)
                ok = ok && rows[i].run[p].fid.ok;
            else if (*rows[i].run[p].cut)
                add_missing(&missing, &rows[i], p);
    json_t *top =
        json_pack("{s:s, s:s, s:I, s:{s:b}, s:o}", "version", TRIB_VERSION, "conf", o->conf,
                  "ranks", (json_int_t)nranks, "fidelity", "ok", ok, "results", results);
    if (!top) {
        json_decref(more);
        json_decref(missing);
        return -EINVAL;
    }
    if (missing)
        json_object_set_new(top, "not_measured", missing);
    if (more)
        json_object_set_new(top, key, more);
    if (g && (g->trees_asked || g->rail_asked))
        json_object_set_new(top, "aggregation", report_granted(g));
    if (*error)
        json_object_set_new(top, "error", json_string(error));
    provenance_add(o->from, top, !(key && !strcmp(key, "virtual")));
    int rc = atomic_output_json(path, top, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    json_decref(top);
    return rc;
}
