/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `algorithm` of a workload: the algorithms by which its groups run their collectives, instead of
 * the fastest by the model.
 */
#include "sim/step/step.h"

#include "collective/sched.h"
#include "collective/topo.h"

#include <errno.h>
#include <string.h>

static enum work_group group_of(const struct step_collective *u)
{
    static const enum work_group group[ROOF_KINDS] = {[ROOF_DP] = WORK_GROUP_DP,
                                                      [ROOF_TP] = WORK_GROUP_TP,
                                                      [ROOF_EP] = WORK_GROUP_EP,
                                                      [ROOF_PP] = WORK_GROUP_PP};

    return group[u->kind];
}

/* Protocols sum in their own way, and take data: lengths have none. */
static bool may_run(enum coll_kind kind, enum coll_algo a)
{
    return !coll_is_protocol(a) && sched_has(kind, a);
}

static int step_algorithm_refuse(const struct workload *w, const struct step_collective *u,
                                 const char *found, char *err)
{
    int n = snprintf(err, COMM_TEXT,
                     "%.80s:%d: algorithm of %s: found \"%s\", expected one of %s:", w->path,
                     w->algorithm_line, work_group_name(group_of(u)), found, coll_name(u->coll));

    for (enum coll_algo a = 0; a < ALGO_SCHEDULE; a++)
        if (may_run(u->coll, a) && n > 0 && n < COMM_TEXT)
            n += snprintf(err + n, (size_t)(COMM_TEXT - n), " %s", sched_algo_name(a));
    return -EINVAL;
}

int step_name_algorithms(const struct workload *w, struct step_collective *u, unsigned n, char *err)
{
    for (unsigned i = 0; i < n; i++) {
        const char *found = w->algorithm[group_of(&u[i])];
        enum coll_algo a = 0;

        u[i].named = ALGO_AUTO;
        if (!*found)
            continue;
        while (a < ALGO_SCHEDULE && (!may_run(u[i].coll, a) || strcmp(found, sched_algo_name(a))))
            a++;
        if (a == ALGO_SCHEDULE)
            return step_algorithm_refuse(w, &u[i], found, err);
        u[i].named = a;
    }
    return 0;
}
