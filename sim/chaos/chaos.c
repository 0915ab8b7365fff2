/* SPDX-License-Identifier: BSD-3-Clause */
/* Draws or loads a case, runs it, and reports. */
#include "base/events.h"
#include "collective/sched.h"
#include "sim/chaos/case.h"
#include "switch/queue/link_fault.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void chaos_wrong(const struct chaos_case *k, const char *fmt, ...)
{
    struct chaos_report *rep = k->rep;
    va_list ap;

    if (!rep->ok)
        return;
    rep->ok = false;
    va_start(ap, fmt);
    vsnprintf(rep->verdict, sizeof(rep->verdict), fmt, ap);
    va_end(ap);
    if (k->cfg->events)
        events_dump(k->cfg->events);
}

/* Called also before each operation, so that the file has an operation that hangs or crashes. */
void chaos_save(struct chaos_case *k, const char *verdict)
{
    int rc = k->cfg->save_file ? case_save(k, k->cfg->save_file, verdict) : 0;

    if (rc)
        chaos_wrong(k, "cannot write %.200s: %s", k->cfg->save_file, strerror(-rc));
}

const char *chaos_start_name(enum chaos_start s)
{
    static const char *const names[] = {"before", "during", "after"};

    _Static_assert(RTE_DIM(names) == CHAOS_STARTS, "a name for each");
    return names[s];
}

/* ---- what is run ---- */

static int plan_of(struct chaos_case *k, char *why)
{
    struct fab_errors *errs;
    int rc;

    if (!k->cfg->faults) {
        rc = chaos_draw_faults(k);
        snprintf(why, CHAOS_TEXT, "faults: %s", strerror(-rc));
        return rc;
    }
    errs = calloc(1, sizeof(*errs));
    rc = errs ? fault_plan_load(&k->plan, k->cfg->faults, k->fab, k->nprocs, errs) : -ENOMEM;
    if (rc)
        snprintf(why, CHAOS_TEXT, "%s:%d: %s", k->cfg->faults, errs ? errs->e[0].line : 0,
                 errs ? errs->e[0].text : "out of memory");
    free(errs);
    return rc;
}

/* Whether every host has exactly one port. */
static bool one_plane(const struct fabric *f)
{
    for (unsigned h = 0; h < f->n_hosts; h++)
        if (f->nodes[f->hosts[h]].n_ports != 1)
            return false;
    return true;
}

/* Draws the case from the seed. 0, or -errno with the reason in the verdict. */
static int chaos_draw(struct chaos_case *k)
{
    struct chaos_report *rep = k->rep;
    int rc = chaos_draw_fabric(k, rep->verdict);

    k->seed = k->cfg->seed;
    if (!rc) {
        rc = chaos_draw_ranks(k);
        snprintf(rep->verdict, sizeof(rep->verdict), "ranks: %s", strerror(-rc));
    }
    if (!rc)
        chaos_draw_jobs(k);
    if (!rc)
        rc = plan_of(k, rep->verdict);
    if (!rc)
        chaos_draw_bytes(k);
    if (!rc && !k->plan.n && one_plane(k->fab) && !below(k, DRAW_JOBS, 2))
        k->mcast = random_next(&k->rng[DRAW_JOBS]) | 1;
    if (!rc && !k->plan.n && k->n_jobs == 1 && !below(k, DRAW_JOBS, 2))
        k->slices = random_next(&k->rng[DRAW_JOBS]) | 1;
    return rc;
}

/* The algorithm of a job that can use only one; "": it has others. */
static const char *only(const struct chaos_job *j)
{
    return j->goes_on ? "" : j->n_policy ? sched_algo_name(j->policy[0]) : "sharp";
}

static int get_case(struct chaos_case *k)
{
    struct chaos_report *rep = k->rep;
    int rc = k->cfg->case_file ? case_load(k, k->cfg->case_file, rep->verdict) : chaos_draw(k);

    if (rc == -ENOTSUP && k->cfg->algo) {
        snprintf(rep->what, sizeof(rep->what), "%s", k->shape);
        snprintf(rep->verdict, sizeof(rep->verdict), "left out: %s cannot run on it",
                 sched_algo_name((enum coll_algo)k->cfg->algo));
        return rc;
    }
    if (rc) {
        rep->ok = false;
        return rc;
    }
    rep->verdict[0] = '\0';
    snprintf(rep->what, sizeof(rep->what), "%s, %u ranks%s%s", k->shape, k->job[0].nranks,
             k->job[0].goes_on ? "" : ", only ", only(&k->job[0]));
    for (unsigned i = 1; i < k->n_jobs; i++) {
        size_t at = strlen(rep->what);

        snprintf(rep->what + at, sizeof(rep->what) - at, ", %u %s%s%s", k->job[i].nranks,
                 chaos_start_name(k->job[i].start), k->job[i].goes_on ? "" : " only ",
                 only(&k->job[i]));
    }
    snprintf(rep->what + strlen(rep->what), sizeof(rep->what) - strlen(rep->what), ", %u faults",
             k->plan.n);
    return 0;
}

void chaos_run(const struct chaos_cfg *cfg, struct chaos_report *rep)
{
    struct chaos_case k = {.cfg = cfg, .rep = rep};
    unsigned before = rte_mempool_avail_count(cfg->pool), after;

    for (unsigned i = 0; i < DRAW_STREAMS; i++)
        k.rng[i] = fault_mix(cfg->seed, i);
    memset(rep, 0, sizeof(*rep));
    rep->ok = true;
    if (!get_case(&k)) {
        if (cfg->drawn)
            cfg->drawn(cfg->ctx, rep->what);
        if (cfg->planned)
            cfg->planned(cfg->ctx, &k.plan, k.fab);
        if (cfg->plan)
            fault_plan_print(&k.plan, k.fab, cfg->plan);
        chaos_run_world(&k);
        chaos_save(&k, rep->verdict);
    }
    fault_plan_free(&k.plan);
    fabric_free(k.own);
    free(k.conf_text);
    after = rte_mempool_avail_count(cfg->pool);
    if (after != before)
        chaos_wrong(&k, "%d frames are left", (int)before - (int)after);
}
