/* SPDX-License-Identifier: BSD-3-Clause */
/* A case from a seed: drawn, run, judged. */
#include "sim/chaos/chaos_priv.h"

#include "sim/world/fault_player.h"
#include "switch/queue/link_fault.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT_PS (150 * PS_PER_S) /* of fabric time, for each thing that must end */

/* ---- what may be expected ---- */

static bool between_switches(const struct fabric *f, unsigned link)
{
    return f->nodes[f->links[link].a].kind == FAB_SWITCH &&
           f->nodes[f->links[link].b].kind == FAB_SWITCH;
}

/* Down, but between switches, and up again while hosts still repeat what they sent: they try longer
 * (half a second) than any down lasts that is drawn. Of hosts' own links and switches the switches
 * above take the hosts for lost if it lasts (NODE_LINK_DOWN_GRACE_PS). */
static bool passes(const struct chaos_case *k, unsigned i)
{
    const struct fault_event *e = &k->plan.e[i];
    bool far = e->of == FAULT_LINK
                   ? e->which != FAULT_ALL && between_switches(k->fab, e->which)
                   : e->of == FAULT_NODE && k->fab->nodes[e->which].kind == FAB_SWITCH &&
                         !k->fab->nodes[e->which].n_hosts;

    if (!far || !k->goes_on)
        return false;
    for (unsigned j = i + 1; j < k->plan.n && e->down; j++)
        if (k->plan.e[j].of == e->of && k->plan.e[j].which == e->which && k->plan.e[j].up)
            return true;
    return e->restart_ps >= 0;
}

/* Faults that are mended: frames that come late, twice, wrong or not at all; slow hosts;
 * aggregation nodes without buffers and links and switches that are away for a while, where there
 * is a way without aggregation. */
static bool mended(const struct chaos_case *k)
{
    for (unsigned i = 0; i < k->plan.n; i++) {
        const struct fault_event *e = &k->plan.e[i];

        if (e->die || (e->mbufs >= 0 && !k->goes_on) ||
            ((e->down || e->restart_ps >= 0) && !passes(k, i)))
            return false;
    }
    return true;
}

/* RC gives up a packet after eight times without an answer. With loss on every one of many links
 * that can happen within a few hundred packets, and is no fault of ours: so many of the frames that
 * crossed a link are to be expected to end so. */
#define GIVEN_UP 1e-3
static bool may_give_up(const struct chaos_case *k, uint64_t frames)
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

/* ---- the verdict ---- */

static void wrong(struct chaos_report *rep, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The first thing that is wrong counts. */
static void wrong(struct chaos_report *rep, const char *fmt, ...)
{
    va_list ap;

    if (!rep->ok)
        return;
    rep->ok = false;
    va_start(ap, fmt);
    vsnprintf(rep->verdict, sizeof(rep->verdict), fmt, ap);
    va_end(ap);
}

static void clean_port(struct hca *hca, unsigned r, struct chaos_report *rep)
{
    const struct roce_counters *c = rnic_counters(hca_rnic(hca));

    if (c->retransmits || c->rnr_naks_received || c->timeouts)
        wrong(rep, "rank %u without faults: %lu retransmits, %lu RNR NAKs, %lu timeouts", r,
              (unsigned long)c->retransmits, (unsigned long)c->rnr_naks_received,
              (unsigned long)c->timeouts);
}

/* In a run without faults nothing is sent twice, refused or dropped. */
static void clean(const struct chaos_case *k, struct world *w, struct chaos_report *rep)
{
    for (unsigned r = 0; r < k->nranks; r++)
        for (unsigned p = 0; p < world_ports(w, r); p++)
            clean_port(world_hca(w, r, p), r, rep);
    for (uint16_t i = 0; i < k->fab->n_nodes; i++) {
        struct node *nd = net_node(world_net(w), i);

        for (unsigned p = 0; p < nd->n_ports; p++)
            for (unsigned d = 0; d < DROP_REASONS; d++)
                if (nd->cnt[p].drops[d])
                    wrong(rep, "%s port %u without faults: %lu drops (%s)", nd->name, p,
                          (unsigned long)nd->cnt[p].drops[d], drop_name(d));
    }
}

/* An error is none of ours to have when everything could be mended. */
static void note_errors(const struct chaos_case *k, const struct world *w, struct chaos_report *rep,
                        const char *where, unsigned ranks, const char *text)
{
    rep->failed = true;
    if (mended(k) &&
        !(may_give_up(k, world_frames(w)) && strstr(text, "transport retry counter exceeded")))
        wrong(rep, "%s: an error where the faults can be mended: %.300s", where, text);
    else if (rep->ok)
        snprintf(rep->verdict, sizeof(rep->verdict), "named errors on %u of %u ranks, %s: %.300s",
                 ranks, k->nranks, where, text);
}

/* ---- the run ---- */

struct run {
    struct chaos_case *k;
    struct world *w;
    struct job *j;
    struct chaos_report *rep;
};

static void notify_death(void *ctx, unsigned rank)
{
    struct run *r = ctx;

    if (r->j)
        job_notify_death(r->j, rank);
}

static void run_op(struct run *r)
{
    struct chaos_report *rep = r->rep;
    struct job_op op = {0};
    struct job_result res;
    size_t at = strlen(rep->what);
    char text[128];
    int rc;

    chaos_draw_op(r->k, job_comm(r->j, 0), &op);
    chaos_op_text(&op, text, sizeof(text));
    snprintf(rep->what + at, sizeof(rep->what) - at, "; %s", text);
    rc = job_run(r->j, &op, &res);
    if (rc)
        wrong(rep, "%s: %s: %.300s", text, rc == -ETIME ? "no end" : strerror(-rc), res.text);
    else if (res.wrong)
        wrong(rep, "%s: %lu elements are wrong", text, (unsigned long)res.wrong);
    else if (res.unnamed)
        wrong(rep, "%s: %d ranks failed without a reason", text, res.unnamed);
    else if (res.failed_ranks)
        note_errors(r->k, r->w, rep, text, (unsigned)res.failed_ranks, res.text);
}

static void run_ops(struct run *r)
{
    unsigned done = 0;
    const char *why = NULL;

    while (done < r->k->ops && r->rep->ok && !r->rep->failed) {
        run_op(r);
        done++;
    }
    for (unsigned i = 0; i < r->k->nranks && !why; i++)
        why = comm_fell_back(job_comm(r->j, i));
    if (!r->rep->ok || r->rep->failed)
        return;
    r->rep->fell_back = why != NULL;
    snprintf(r->rep->verdict, sizeof(r->rep->verdict), "exact%s%.300s", why ? ", fell back: " : "",
             why ? why : "");
}

static void connect(struct run *r, struct world *w)
{
    struct chaos_case *k = r->k;
    struct job_cfg jc = {.w = w,
                         .fab = k->fab,
                         .nranks = k->nranks,
                         .host_of_rank = k->host_of_rank,
                         .group = 1 + (uint32_t)below(k, DRAW_RANKS, 1000),
                         .key = random_next(&k->rng[DRAW_RANKS]),
                         .tree = k->tree,
                         .n_trees = k->n_trees,
                         .window = k->window,
                         .algos = k->algos,
                         .policy = k->policy,
                         .n_policy = k->n_policy,
                         /* Who falls back adds in another order. */
                         .any_order = k->goes_on,
                         .buffer_bytes = CHAOS_BUFFER + 64,
                         .limit_ps = LIMIT_PS};
    char err[COMM_TEXT] = "";
    int rc = job_create(&r->j, &jc, err);

    if (rc == -ETIME)
        wrong(r->rep, "set-up: no end: %s", err);
    else if (rc && !*err)
        wrong(r->rep, "set-up: an error without a reason: %s", strerror(-rc));
    else if (rc)
        note_errors(k, w, r->rep, "set-up", k->nranks, err);
}

static void close(struct run *r, struct world *w)
{
    int rc = r->j ? job_destroy(r->j) : 0;

    r->j = NULL;
    if (rc)
        wrong(r->rep, "close: %s", strerror(-rc));
    if (world_busy_ans(w))
        wrong(r->rep, "%u aggregation nodes still hold something", world_busy_ans(w));
    if (world_objects(w))
        wrong(r->rep, "%u verbs objects are left", world_objects(w));
}

static void run_world(struct chaos_case *k, struct chaos_report *rep)
{
    struct world_cfg wc = {.fab = k->fab,
                           .nranks = k->nranks,
                           .host_of_rank = k->host_of_rank,
                           .pool = k->cfg->pool,
                           .an_mbufs = k->cfg->pool->size,
                           .seed = k->cfg->seed};
    struct run r = {.k = k, .rep = rep};
    struct faults_cfg fc = {.fab = k->fab,
                            .nranks = k->nranks,
                            .host_of_rank = k->host_of_rank,
                            .notify_death = notify_death,
                            .ctx = &r};
    struct faults *f = NULL;
    struct world *w;
    int rc = world_create(&w, &wc);

    if (!rc) {
        fc.w = w;
        rc = faults_create(&f, &k->plan, &fc);
        if (rc)
            world_destroy(w);
    }
    if (rc) {
        wrong(rep, "cannot make this world: %s", strerror(-rc));
        return;
    }
    r.w = w;
    connect(&r, w);
    if (r.j) {
        faults_start(f);
        run_ops(&r);
    }
    close(&r, w);
    if (faults_state(f))
        wrong(rep, "cannot carry the faults out: %s", strerror(-faults_state(f)));
    if (rep->ok && !k->plan.n)
        clean(k, w, rep);
    rep->trace_hash = world_trace_hash(w);
    rep->frames = world_frames(w);
    rep->fabric_ps = world_now(w);
    faults_destroy(f);
    world_destroy(w);
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
    rc = errs ? fault_plan_load(&k->plan, k->cfg->faults, k->fab, k->nranks, errs) : -ENOMEM;
    if (rc)
        snprintf(why, CHAOS_TEXT, "%s:%d: %s", k->cfg->faults, errs ? errs->e[0].line : 0,
                 errs ? errs->e[0].text : "out of memory");
    free(errs);
    return rc;
}

static int draw_case(struct chaos_case *k, struct chaos_report *rep)
{
    int rc = chaos_draw_fabric(k, rep->verdict);

    if (!rc) {
        rc = chaos_draw_ranks(k);
        snprintf(rep->verdict, sizeof(rep->verdict), "ranks: %s", strerror(-rc));
    }
    if (!rc)
        rc = plan_of(k, rep->verdict);
    if (rc) {
        rep->ok = false;
        return rc;
    }
    k->ops = 1 + (unsigned)below(k, DRAW_OPS, 3);
    snprintf(rep->what, sizeof(rep->what), "%s, %u ranks%s, %u faults", k->shape, k->nranks,
             k->goes_on ? "" : ", only SHARP", k->plan.n);
    return 0;
}

void chaos_run(const struct chaos_cfg *cfg, struct chaos_report *rep)
{
    struct chaos_case k = {.cfg = cfg};
    unsigned before = rte_mempool_avail_count(cfg->pool), after;

    for (unsigned i = 0; i < DRAW_STREAMS; i++)
        k.rng[i] = fault_mix(cfg->seed, i);
    memset(rep, 0, sizeof(*rep));
    rep->ok = true;
    if (!draw_case(&k, rep)) {
        if (cfg->drawn)
            cfg->drawn(cfg->ctx, rep->what);
        if (cfg->planned)
            cfg->planned(cfg->ctx, &k.plan, k.fab);
        if (cfg->plan)
            fault_plan_print(&k.plan, k.fab, cfg->plan);
        run_world(&k, rep);
    }
    fault_plan_free(&k.plan);
    fabric_free(k.own);
    after = rte_mempool_avail_count(cfg->pool);
    if (after != before)
        wrong(rep, "%d frames are left", (int)before - (int)after);
}
