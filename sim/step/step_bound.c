/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the links of a fabric allow at best, in payload, whatever the algorithm: the bytes that must
 * enter or leave a child of each level, over the bandwidth by which it is attached.
 */
#include "sim/step/step.h"

static double step_bound_later(double a, double b)
{
    return a > b ? a : b;
}

/* GPUs of a child that send to the next one, all at the same time, where that follows from their
 * number: the last `inner` ones, or all. Else 0: step_load.h counts them. */
static double level_crossing(const struct cost_level *v, struct cost_axis a)
{
    if (a.inner >= v->below)
        return a.inner % v->below ? 0 : v->below;
    return v->below % a.inner ? 0 : (double)a.inner;
}

/* A message to the next member, over the levels on its way: of one pair by its own ports, of all
 * pairs by what attaches a child. Within a GPU node by its planes. */
static double sendrecv(const struct cost_levels *l, struct cost_axis a, double bytes, bool alone)
{
    double s = 0;
    bool network = false;

    for (unsigned i = 0; i < l->n && !(alone && network); i++) {
        network |= l->lv[i].role != FAB_ROLE_NVSWITCH;
        if (l->lv[i].role == FAB_ROLE_NVSWITCH || cost_children(l, i, a) <= 1)
            continue;
        s = step_bound_later(s, alone ? bytes / cost_gpu_Bps(l, i, a)
                                      : bytes * level_crossing(&l->lv[i], a) / l->lv[i].child_Bps);
    }
    for (unsigned i = 0; i < l->n && s <= 0; i++)
        if (cost_children(l, i, a) > 1)
            s = bytes / cost_gpu_Bps(l, i, a);
    return s;
}

double step_bound(const struct cost_levels *l, const struct step_collective *u, unsigned ranks,
                  uint64_t bytes, enum step_method method, bool alone)
{
    struct cost_axis a = {u->stride, ranks};
    enum cost_way way[FAB_MAX_LEVELS];
    bool network = false; /* a level of it has been seen */
    struct cost c;
    double s = 0;

    if (u->coll == COLL_SENDRECV)
        return sendrecv(l, (struct cost_axis){u->stride, 2}, (double)bytes, alone);
    for (unsigned i = 0; i < l->n; i++)
        way[i] = u->coll != COLL_ALLREDUCE ? COST_GATHER
                 : method == STEP_HOSTS    ? COST_ALL_REDUCE
                                           : COST_REDUCED;
    /* Both take the whole array, of all groups. */
    if (u->coll == COLL_ALLTOALL)
        c = cost_alltoall(l, a, (double)bytes * ranks * (double)a.inner, COST_DENSE, 0);
    else
        c = cost_through(l, a, (double)bytes * (double)a.inner, way);
    for (unsigned i = 0; i < l->n; i++) {
        /* A group has its members' ports to itself, and all cables above if it is alone. */
        if (alone && network)
            break;
        network |= l->lv[i].role != FAB_ROLE_NVSWITCH;
        s = step_bound_later(s, c.level_s[i]);
    }
    return s;
}
