/* SPDX-License-Identifier: BSD-3-Clause */
/* All jobs together, then each alone; slowdowns and fairness. */
#include "sim/jobs/jobs.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

const char *jobs_end_name(enum jobs_end e)
{
    static const char *const names[JOBS_ENDS] = {"done", "died", "refused", "failed", "hangs"};

    return names[e];
}

double jobs_jain(const double *x, unsigned n)
{
    double sum = 0, squares = 0;

    for (unsigned i = 0; i < n; i++) {
        sum += x[i];
        squares += x[i] * x[i];
    }
    return squares > 0 ? sum * sum / (n * squares) : 0;
}

static void jobs_report_compare(struct jobs_report *r)
{
    double x[JOBS_MAX];

    for (unsigned i = 0; i < r->o->plan->n; i++) {
        const struct jobs_result *t = &r->together[i], *a = &r->alone[i];

        if (!(t->iteration_ps > 0 && a->iteration_ps > 0))
            continue;
        r->slowdown[i] = t->iteration_ps / a->iteration_ps;
        x[r->compared++] = 1 / r->slowdown[i];
    }
    r->fairness = jobs_jain(x, r->compared);
}

/* Each of the jobs that have run something: as many iterations as together, if they depended on the
 * others. */
static int run_alone(struct jobs_report *r, struct jobs_world_cfg cfg, char *err)
{
    struct jobs_totals unused = {0};
    int rc = 0;

    cfg.faults = NULL;
    cfg.tap = NULL;
    cfg.counters = NULL;
    for (unsigned i = 0; !rc && i < cfg.plan->n; i++) {
        if (!r->together[i].iterations)
            continue;
        cfg.only = (int)i;
        cfg.iterations = cfg.plan->job[i].repeat ? 0 : r->together[i].iterations;
        rc = jobs_run_world(&cfg, r->alone, &unused, err);
    }
    return rc;
}

/* Whether something is wrong that was not planned. */
static bool jobs_report_bad(const struct jobs_report *r)
{
    for (unsigned i = 0; i < r->o->plan->n; i++) {
        const struct jobs_result *t = &r->together[i], *a = &r->alone[i];

        if (t->wrong || a->wrong || t->end > JOBS_DIED || a->end > JOBS_DIED)
            return true;
    }
    return false;
}

int jobs_run(const struct jobs_opts *o, char *err)
{
    struct jobs_report *r = calloc(1, sizeof(*r));
    struct jobs_world_cfg cfg = {.fab = o->fab,
                                 .plan = o->plan,
                                 .faults = o->faults,
                                 .only = JOBS_NEVER,
                                 .seed = o->seed,
                                 .lengths = o->lengths,
                                 .pool = o->pool,
                                 .frames = o->frames,
                                 .tap = o->tap,
                                 .tap_ctx = o->tap_ctx,
                                 .counters = o->counters,
                                 .stop = o->stop};
    int rc;

    if (!r) {
        snprintf(err, COMM_TEXT, "no memory for the jobs' results");
        return -ENOMEM;
    }
    r->o = o;
    rc = jobs_run_world(&cfg, r->together, &r->totals, err);
    if (!rc)
        rc = run_alone(r, cfg, err);
    if (rc && !*err)
        snprintf(err, COMM_TEXT, "%s", strerror(-rc));
    if (!rc) {
        jobs_report_compare(r);
        jobs_print(r);
        rc = o->json ? jobs_write(r) : 0;
        if (rc)
            snprintf(err, COMM_TEXT, "cannot write %.200s", o->json);
    }
    if (!rc && jobs_report_bad(r))
        rc = -EBADMSG;
    json_decref(r->totals.links);
    free(r);
    return rc;
}
