/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/bench/schedule_option.h"

#include "collective/file/sched_file.h"

#include <stdlib.h>

static int read_file(struct perf_opts *o, char *err)
{
    struct fab_errors *errs = calloc(1, sizeof(*errs));

    if (!errs) {
        snprintf(err, OPT_ERR, "--schedule: out of memory");
        return OPT_BAD;
    }
    o->file = sched_file_load(o->schedule, errs);
    if (!o->file)
        fab_errors_print(errs, stderr);
    free(errs);
    return o->file ? OPT_OK : OPT_BAD;
}

int schedule_option_load(struct perf_opts *o, const struct option_program *p,
                         const struct option_result *r, char *err)
{
    const unsigned own = 1u << ALGO_SCHEDULE;
    const struct sched_file *f;

    *err = 0;
    if (!o->schedule)
        return OPT_OK;
    if (read_file(o, err))
        return OPT_BAD;
    f = o->file;
    o->algos |= own;
    if (r->n_words > 1 && o->coll != f->kind)
        snprintf(err, OPT_ERR, "--schedule: found %s, expected %s, of which %.120s is a schedule",
                 coll_name(o->coll), coll_name(f->kind), o->schedule);
    else if (o->ranks && o->ranks != f->nranks)
        snprintf(err, OPT_ERR, "-g: found %u, expected the %u ranks of %.120s", o->ranks, f->nranks,
                 o->schedule);
    else if (options_given(p, r, "root") && o->root != f->root)
        snprintf(err, OPT_ERR, "-r: found %u, expected the root %u of %.120s", o->root, f->root,
                 o->schedule);
    else if (o->place == PLACE_IN && !f->place[1])
        snprintf(err, OPT_ERR, "--place: found in, expected out: %.120s says place out",
                 o->schedule);
    else if (o->sparse)
        snprintf(err, OPT_ERR,
                 "-k: found it with --schedule, expected one of them: a schedule "
                 "moves every block");
    else if (o->n_policy && o->algos == own)
        snprintf(err, OPT_ERR,
                 "--policy: found it with --schedule alone, expected --algo too: a "
                 "schedule needs no switch that could fail");
    o->coll = f->kind;
    o->ranks = f->nranks;
    o->root = f->root;
    return *err ? OPT_BAD : OPT_OK;
}

void schedule_option_free(struct perf_opts *o)
{
    sched_file_free(o->file);
    o->file = NULL;
}
