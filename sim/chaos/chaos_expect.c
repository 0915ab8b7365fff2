/* SPDX-License-Identifier: BSD-3-Clause */
/* What a case may and may not end with. */
#include "sim/chaos/chaos_priv.h"

static bool between_switches(const struct fabric *f, unsigned link)
{
    return f->nodes[f->links[link].a].kind == FAB_SWITCH &&
           f->nodes[f->links[link].b].kind == FAB_SWITCH;
}

/* Whether entry i is an outage of a link between switches, or of a switch without hosts, that ends
 * while hosts still retransmit: they do for half a second, longer than any drawn outage. Outages of
 * hosts' own links and switches do not count, because the switches above give up such hosts after
 * NODE_LINK_DOWN_GRACE_PS. */
static bool outage_passes(const struct chaos_case *k, const struct chaos_job *j, unsigned i)
{
    const struct fault_event *e = &k->plan.e[i];
    bool far = e->of == FAULT_LINK
                   ? e->which != FAULT_ALL && between_switches(k->fab, e->which)
                   : e->of == FAULT_NODE && k->fab->nodes[e->which].kind == FAB_SWITCH &&
                         !k->fab->nodes[e->which].n_hosts;

    if (!far || !j->goes_on)
        return false;
    for (unsigned n = i + 1; n < k->plan.n && e->down; n++)
        if (k->plan.e[n].of == e->of && k->plan.e[n].which == e->which && k->plan.e[n].up)
            return true;
    return e->restart_ps >= 0;
}

/* Whether the ranks must have the result in spite of the faults: late, duplicated, corrupt or lost
 * frames, and slow hosts. If an algorithm without switches is left (goes_on), also aggregation
 * nodes without buffers, and outages that pass. */
bool chaos_recoverable(const struct chaos_case *k, const struct chaos_job *j)
{
    for (unsigned i = 0; i < k->plan.n; i++) {
        const struct fault_event *e = &k->plan.e[i];

        if (e->die || (e->mbufs >= 0 && !j->goes_on) ||
            ((e->down || e->restart_ps >= 0) && !outage_passes(k, j, i)))
            return false;
    }
    return true;
}

/* RC gives up a packet after eight transmissions without an answer. With loss on all of many links
 * that happens within a few hundred packets and is no defect. It is accepted if the expected number
 * of such packets exceeds GIVEN_UP. */
#define GIVEN_UP 1e-3
bool chaos_may_give_up(const struct chaos_case *k, uint64_t frames)
{
    unsigned tiers = 1;
    double whole = 1, lost = 1;

    for (uint16_t i = 0; i < k->fab->n_nodes; i++)
        tiers = RTE_MAX(tiers, k->fab->nodes[i].tier);
    for (unsigned i = 0; i < k->plan.n; i++) {
        const struct fault_event *e = &k->plan.e[i];

        for (unsigned hop = 0; e->of == FAULT_LINK && e->which == FAULT_ALL && hop < 4 * tiers;
             hop++)
            whole *= (e->loss > 0 ? 1 - e->loss : 1) * (e->corrupt > 0 ? 1 - e->corrupt : 1);
    }
    for (unsigned i = 0; i < 8; i++)
        lost *= 1 - whole;
    return lost * (double)frames > GIVEN_UP;
}

bool chaos_only_noise(const struct chaos_case *k)
{
    for (unsigned i = 0; i < k->plan.n; i++)
        if (k->plan.e[i].of != FAULT_LINK || k->plan.e[i].down || k->plan.e[i].up ||
            k->plan.e[i].reorder > 0)
            return false;
    return true;
}

bool chaos_only_late(const struct chaos_case *k)
{
    for (unsigned i = 0; i < k->plan.n; i++) {
        const struct fault_event *e = &k->plan.e[i];

        if (e->loss > 0 || e->dup > 0 || e->reorder > 0 || e->corrupt > 0)
            return false;
    }
    return chaos_only_noise(k);
}

/* Whether two jobs of a case are connected at the same time. */
static bool chaos_expect_meet(const struct chaos_case *k, const struct chaos_job *a,
                              const struct chaos_job *b)
{
    bool after_a = a != k->job && a->start == START_AFTER;
    bool after_b = b != k->job && b->start == START_AFTER;

    return a != b && after_a == after_b;
}

bool chaos_collides(const struct chaos_case *k, const struct chaos_job *j)
{
    for (unsigned i = 0; i < k->n_jobs; i++)
        if (chaos_expect_meet(k, j, &k->job[i]) && k->job[i].group == j->group)
            return true;
    return false;
}

bool chaos_contended(const struct chaos_case *k, const struct chaos_job *j)
{
    for (unsigned i = 0; i < k->n_jobs; i++)
        if (chaos_expect_meet(k, j, &k->job[i]))
            return true;
    for (uint16_t i = 0; i < k->fab->n_nodes; i++) {
        const struct fab_reduce *q = &k->fab->nodes[i].reduce;

        if (q->on && (q->max_groups < 4 || q->max_slots < 4 * q->window))
            return true;
    }
    return false;
}
