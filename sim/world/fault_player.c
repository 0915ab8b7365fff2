/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/world/fault_player.h"

#include "io/link_change.h"
#include "sim/world/world_priv.h"
#include "switch/reduce/an.h"

#include <errno.h>
#include <stdlib.h>

struct action {
    int64_t at_ps;
    /* RESTARTED: a switch comes up again; NOTIFY_DEATH: the other ranks hear of a death */
    enum { AS_PLANNED, RESTARTED, NOTIFY_DEATH } what;
    unsigned entry; /* of the plan */
    struct fault_event e;
};

struct faults {
    struct faults_cfg cfg;
    struct action *a;         /* in order of time */
    struct link_terms *terms; /* [n_links] that each link has now */
    unsigned n, max, next;
    int64_t start_ps;
    int rc; /* of the first action that failed; mistakes of the plan were refused with the plan */
};

static void keep_error(struct faults *f, int rc)
{
    if (!f->rc)
        f->rc = rc;
}

/* ---- links ---- */

/* The plan's reader has checked them. A link to the outside, whose terms are fixed, is one of "all"
 * only. */
static void change_terms(struct faults *f, unsigned link, const struct fault_event *e)
{
    struct link_terms *t = &f->terms[link], was = *t;

    if (link_terms_fixed(f->cfg.fab, link))
        return;
    if (e->clear)
        *t = link_terms_of_conf(f->cfg.fab, link);
    t->rate_bps = e->rate_bps ? e->rate_bps : t->rate_bps;
    t->latency_ps = e->latency_ps >= 0 ? e->latency_ps : t->latency_ps;
    if (t->rate_bps != was.rate_bps || t->latency_ps != was.latency_ps)
        net_set_link_terms(world_net(f->cfg.w), link, t, world_now(f->cfg.w));
}

static void change_link(struct faults *f, unsigned link, const struct fault_event *e)
{
    const struct fab_link *l = &f->cfg.fab->links[link];
    struct net *net = world_net(f->cfg.w);
    struct link_change c = {.loss = e->clear || e->loss >= 0,
                            .dup = e->clear || e->dup >= 0,
                            .reorder = e->clear || e->reorder >= 0,
                            .corrupt = e->clear || e->corrupt >= 0,
                            .jitter = e->clear || e->jitter_ps >= 0,
                            .seed = e->seed >= 0,
                            .to = {.loss = e->loss > 0 ? e->loss : 0,
                                   .dup = e->dup > 0 ? e->dup : 0,
                                   .reorder = e->reorder > 0 ? e->reorder : 0,
                                   .corrupt = e->corrupt > 0 ? e->corrupt : 0,
                                   .jitter_ps = e->jitter_ps > 0 ? e->jitter_ps : 0,
                                   .seed = (uint64_t)e->seed}};

    for (unsigned dir = 0; dir < 2; dir++) {
        struct egress *q = net_egress(net, dir ? l->b : l->a, dir ? l->b_port : l->a_port);

        if (q) {
            struct egress_faults now = link_change_apply(&c, egress_faults(q), 2 * link + dir);

            egress_set_faults(q, &now);
        }
    }
    change_terms(f, link, e);
}

static void set_link(struct faults *f, unsigned link, bool up, unsigned entry)
{
    world_record(f->cfg.w, up ? WORLD_LINK_UP : WORLD_LINK_DOWN, link, entry);
    keep_error(f, net_set_link(world_net(f->cfg.w), link, up, world_now(f->cfg.w)));
}

static void set_all_links(struct faults *f, bool up, unsigned entry)
{
    for (unsigned i = 0; i < f->cfg.fab->n_links; i++)
        world_record(f->cfg.w, up ? WORLD_LINK_UP : WORLD_LINK_DOWN, i, entry);
    keep_error(f, net_set_all_links(world_net(f->cfg.w), up, world_now(f->cfg.w)));
}

static void do_link(struct faults *f, const struct fault_event *e, unsigned entry)
{
    bool all = e->which == FAULT_ALL;
    unsigned first = all ? 0 : e->which, end = all ? f->cfg.fab->n_links : e->which + 1u;

    T_ASSERT(end <= f->cfg.fab->n_links, "a fault of a link that the fabric does not have");
    if (all || !(e->down || e->up))
        world_record(f->cfg.w, all ? WORLD_LINKS_FAULTS : WORLD_LINK_FAULTS,
                     all ? f->cfg.fab->n_links : e->which, entry);
    for (unsigned i = first; i < end; i++)
        change_link(f, i, e);
    if (all && (e->down || e->up))
        set_all_links(f, e->up, entry);
    else if (e->down || e->up)
        set_link(f, e->which, e->up, entry);
}

/* ---- nodes, hosts, ranks ---- */

static void set_node(struct faults *f, uint16_t node, bool up, unsigned entry)
{
    T_ASSERT(node < f->cfg.fab->n_nodes, "a fault of a node that the fabric does not have");
    world_record(f->cfg.w, up ? WORLD_NODE_UP : WORLD_NODE_DOWN, node, entry);
    keep_error(f, net_set_node(world_net(f->cfg.w), node, up, world_now(f->cfg.w)));
}

static void do_node(struct faults *f, const struct fault_event *e, unsigned entry)
{
    set_node(f, e->which, e->up, entry);
    if (e->restart_ps >= 0) {
        world_record(f->cfg.w, WORLD_NODE_RESTART, e->which, entry);
        keep_error(f, net_restart(world_net(f->cfg.w), e->which, world_now(f->cfg.w)));
    }
}

static bool is_on(const struct faults *f, unsigned rank, const struct fault_event *e)
{
    return e->of == FAULT_RANK ? rank == e->which
                               : f->cfg.fab->hosts[f->cfg.host_of_rank[rank]] == e->which;
}

/* A dead host takes its links down; the death of a process is seen and reported by its host's
 * NIC. */
static void do_death(struct faults *f, const struct fault_event *e, unsigned entry)
{
    if (e->of == FAULT_HOST)
        set_node(f, e->which, false, entry);
    for (unsigned r = 0; r < f->cfg.nranks; r++)
        if (is_on(f, r, e) && !world_dead(f->cfg.w, r))
            world_kill(f->cfg.w, r);
}

static void do_slow(struct faults *f, const struct fault_event *e)
{
    for (unsigned r = 0; r < f->cfg.nranks; r++)
        if (is_on(f, r, e))
            world_slow(f->cfg.w, r, e->slow);
}

static void notify_death(struct faults *f, const struct fault_event *e, unsigned entry)
{
    for (unsigned r = 0; f->cfg.notify_death && r < f->cfg.nranks; r++)
        if (is_on(f, r, e)) {
            T_ASSERT(world_dead(f->cfg.w, r), "the death of a rank that lives is notified");
            world_record(f->cfg.w, WORLD_DEATH_NOTIFIED, r, entry);
            f->cfg.notify_death(f->cfg.ctx, r);
        }
}

static void do_an(struct faults *f, const struct fault_event *e)
{
    struct an *an = net_an(world_net(f->cfg.w), e->which);

    if (an) {
        world_record(f->cfg.w, WORLD_AN_BUDGET, e->which, (uint32_t)e->mbufs);
        an_set_budget(an, (uint32_t)e->mbufs);
    }
}

static void act(struct faults *f, const struct action *a)
{
    const struct fault_event *e = &a->e;

    if (a->what == RESTARTED)
        set_node(f, e->which, true, a->entry);
    else if (a->what == NOTIFY_DEATH)
        notify_death(f, e, a->entry);
    else if (e->of == FAULT_LINK)
        do_link(f, e, a->entry);
    else if (e->of == FAULT_NODE)
        do_node(f, e, a->entry);
    else if (e->of == FAULT_AN)
        do_an(f, e);
    else if (e->die)
        do_death(f, e, a->entry);
    if (a->what == AS_PLANNED && e->late_ps >= 0)
        world_late(f->cfg.w, e->which, e->late_ps);
    if (a->what == AS_PLANNED && e->slow)
        do_slow(f, e);
}

/* ---- time ---- */

static void due(void *ctx)
{
    struct faults *f = ctx;

    while (f->next < f->n && f->start_ps + f->a[f->next].at_ps <= world_now(f->cfg.w)) {
        T_ASSERT(!f->next || f->a[f->next - 1].at_ps <= f->a[f->next].at_ps,
                 "actions of a fault plan are not in order of time");
        act(f, &f->a[f->next++]);
    }
    if (f->next < f->n)
        world_alarm(f->cfg.w, f->start_ps + f->a[f->next].at_ps, due, f);
}

void faults_start(struct faults *f)
{
    f->start_ps = world_now(f->cfg.w);
    if (f->next < f->n)
        world_alarm(f->cfg.w, f->start_ps + f->a[f->next].at_ps, due, f);
}

int faults_state(const struct faults *f)
{
    return f->rc;
}

/* Inserts by time, behind actions of the same time. */
static void faults_add(struct faults *f, const struct action *a)
{
    unsigned i = f->n++;

    T_ASSERT(f->n <= f->max, "a fault plan has more actions than two an entry");
    for (; i && f->a[i - 1].at_ps > a->at_ps; i--)
        f->a[i] = f->a[i - 1];
    f->a[i] = *a;
}

int faults_create(struct faults **out, const struct fault_plan *plan, const struct faults_cfg *cfg)
{
    struct faults *f = calloc(1, sizeof(*f));
    int rc;

    if (f) {
        f->a = calloc(2 * plan->n + 1, sizeof(*f->a));
        f->terms = calloc(cfg->fab->n_links + 1u, sizeof(*f->terms));
    }
    if (!f || !f->a || !f->terms) {
        if (f)
            free(f->a), free(f->terms);
        free(f);
        return -ENOMEM;
    }
    for (unsigned i = 0; i < cfg->fab->n_links; i++)
        f->terms[i] = link_terms_of_conf(cfg->fab, i);
    f->max = 2 * plan->n;
    f->cfg = *cfg;
    for (unsigned i = 0; i < plan->n; i++) {
        const struct fault_event *e = &plan->e[i];
        int64_t at = e->at_ps < 0 ? 0 : e->at_ps;

        if (e->at_ps < 0)
            act(f, &(struct action){.what = AS_PLANNED, .entry = i, .e = *e});
        else
            faults_add(f, &(struct action){at, AS_PLANNED, i, *e});
        if (e->restart_ps >= 0)
            faults_add(f, &(struct action){at + e->restart_ps, RESTARTED, i, *e});
        if (e->told_ps >= 0)
            faults_add(f, &(struct action){at + e->told_ps, NOTIFY_DEATH, i, *e});
    }
    rc = f->rc;
    if (rc)
        faults_destroy(f);
    else
        *out = f;
    return rc;
}

void faults_destroy(struct faults *f)
{
    if (!f)
        return;
    world_alarm(f->cfg.w, PS_NEVER, NULL, NULL);
    free(f->a);
    free(f->terms);
    free(f);
}
