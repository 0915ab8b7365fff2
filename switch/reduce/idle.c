/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keep-alives on silent edges. A NIC announces the end of a process, but its message may be lost, its slot
 * may have a new process already, and hosts outside announce nothing. So a connection on which nothing
 * came since the last check gets a keep-alive, which the peer's HCA answers whatever the program does; a
 * peer that does not answer AN_KEEPALIVES in a row is gone. A check compares one number for each edge every
 * AN_LOOK_PS of fabric time; a live idle edge costs two packets at every other check.
 */
#include "switch/reduce/an_priv.h"

bool idle_look(struct an *a, struct an_watch *w, struct qp *qp)
{
    uint64_t activity = qp_activity(qp);

    if (activity != w->activity) {
        w->activity = activity;
        w->unanswered = 0;
        return true;
    }
    if (w->unanswered == AN_KEEPALIVES)
        return false;
    if (qp_keepalive(qp)) {
        w->unanswered++;
        a->cnt.keepalives++;
    }
    return true;
}

static void look_at(struct an_edge *e)
{
    struct an_group *g = e->g;

    if (!e->qp || g->doomed || idle_look(g->a, &e->watch, e->qp))
        return;
    g->a->cnt.edges_silent++;
    group_lost(g, e);
}

void idle_check(struct an_group *g)
{
    for (unsigned i = 0; i < g->n; i++)
        look_at(&g->child[i]);
    if (!g->top && g->state == GROUP_OPEN)
        look_at(&g->up);
    if (g->resizes && !g->doomed)
        window_tell_all(g); /* the last WINDOW may have been lost */
    g->look_ps = g->a->now + AN_LOOK_PS;
}
