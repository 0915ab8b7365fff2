/* SPDX-License-Identifier: BSD-3-Clause */
/* A case from a seed or a file: run and judged. */
#include "base/events.h"
#include "sim/chaos/case.h"
#include "sim/world/fault_player.h"
#include "switch/queue/link_fault.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT_PS (150 * PS_PER_S) /* fabric time of each operation, connecting and closing */

/* ---- what may be expected ---- */

static bool between_switches(const struct fabric *f, unsigned link)
{
    return f->nodes[f->links[link].a].kind == FAB_SWITCH &&
           f->nodes[f->links[link].b].kind == FAB_SWITCH;
}

/* A link or switch that is down between switches and up again while hosts still retransmit: they do
 * so for half a second, longer than any drawn outage. Not of hosts' own links and switches, whose
 * hosts the switches above take for lost if it lasts (NODE_LINK_DOWN_GRACE_PS). */
static bool outage_passes(const struct chaos_case *k, unsigned i)
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

/* Whether the ranks must have the result: frames that are late, duplicated, corrupt or lost; slow
 * hosts; where an algorithm without switches is left, also aggregation nodes without buffers and
 * links and switches with an outage that passes. */
static bool recoverable(const struct chaos_case *k)
{
    for (unsigned i = 0; i < k->plan.n; i++) {
        const struct fault_event *e = &k->plan.e[i];

        if (e->die || (e->mbufs >= 0 && !k->goes_on) ||
            ((e->down || e->restart_ps >= 0) && !outage_passes(k, i)))
            return false;
    }
    return true;
}

/* RC gives up a packet after eight transmissions without an answer. With loss on all of many links
 * that happens within a few hundred packets and is no defect: more than this share of the frames
 * that crossed a link is expected to end so. */
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

static void wrong(const struct chaos_case *k, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Keeps the first thing that is wrong, with the event rings of that moment. */
static void wrong(const struct chaos_case *k, const char *fmt, ...)
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

static void check_port(const struct chaos_case *k, struct hca *hca, unsigned r)
{
    const struct roce_counters *c = rnic_counters(hca_rnic(hca));

    if (c->retransmits || c->rnr_naks_received || c->timeouts)
        wrong(k, "rank %u without faults: %lu retransmits, %lu RNR NAKs, %lu timeouts", r,
              (unsigned long)c->retransmits, (unsigned long)c->rnr_naks_received,
              (unsigned long)c->timeouts);
}

/* In a run without faults nothing is retransmitted, refused or dropped. */
static void check_no_loss(const struct chaos_case *k, struct world *w)
{
    for (unsigned r = 0; r < k->nranks; r++)
        for (unsigned p = 0; p < world_ports(w, r); p++)
            check_port(k, world_hca(w, r, p), r);
    for (uint16_t i = 0; i < k->fab->n_nodes; i++) {
        struct node *nd = net_node(world_net(w), i);

        for (unsigned p = 0; p < nd->n_ports; p++)
            for (unsigned d = 0; d < DROP_REASONS; d++)
                if (nd->cnt[p].drops[d])
                    wrong(k, "%s port %u without faults: %lu drops (%s)", nd->name, p,
                          (unsigned long)nd->cnt[p].drops[d], drop_name(d));
    }
}

/* Errors are wrong where the faults are recoverable. */
static void judge_errors(const struct chaos_case *k, const struct world *w, const char *where,
                         unsigned ranks, const char *text)
{
    struct chaos_report *rep = k->rep;

    rep->failed = true;
    if (recoverable(k) &&
        !(may_give_up(k, world_frames(w)) && strstr(text, "transport retry counter exceeded")))
        wrong(k, "%s: an error though all faults are recoverable: %.300s", where, text);
    else if (rep->ok)
        snprintf(rep->verdict, sizeof(rep->verdict), "named errors on %u of %u ranks, %s: %.300s",
                 ranks, k->nranks, where, text);
}

/* ---- the run ---- */

struct run {
    struct chaos_case *k;
    struct world *w;
    struct job *j;
};

static void notify_death(void *ctx, unsigned rank)
{
    struct run *r = ctx;

    if (r->j)
        job_notify_death(r->j, rank);
}

/* Before the operation runs, so that one that hangs or crashes is in the file. */
static void save_case(struct chaos_case *k, const char *verdict)
{
    int rc = k->cfg->save_file ? case_save(k, k->cfg->save_file, verdict) : 0;

    if (rc)
        wrong(k, "cannot write %.200s: %s", k->cfg->save_file, strerror(-rc));
}

/* The i-th operation. False: it is the file's, and not supported any more. */
static bool next_op(struct run *r, unsigned i, struct job_op *op)
{
    struct chaos_case *k = r->k;

    T_ASSERT(i < CHAOS_OPS, "a case has more operations than its array");
    if (k->cfg->case_file) {
        *op = k->op[i];
        return chaos_op_runs(k, job_comm(r->j, 0), op);
    }
    *op = (struct job_op){0};
    chaos_draw_op(k, job_comm(r->j, 0), op);
    T_ASSERT(i == k->n_ops, "an operation is drawn that is not the next of its case");
    k->op[k->n_ops++] = *op;
    save_case(k, NULL);
    return true;
}

static void run_op(struct run *r, unsigned i)
{
    struct chaos_report *rep = r->k->rep;
    struct chaos_case *k = r->k;
    struct job_op op;
    struct job_result res;
    size_t at = strlen(rep->what);
    char text[128];
    bool runs;
    int rc;

    runs = next_op(r, i, &op);
    chaos_op_text(&op, text, sizeof(text));
    snprintf(rep->what + at, sizeof(rep->what) - at, "; %s%s", text,
             runs ? "" : " (left out: not supported)");
    if (!runs)
        return;
    rc = job_run(r->j, &op, &res);
    if (rc)
        wrong(k, "%s: %s: %.300s", text, rc == -ETIME ? "no end" : strerror(-rc), res.text);
    else if (res.wrong)
        wrong(k, "%s: %lu elements are wrong", text, (unsigned long)res.wrong);
    else if (res.unnamed)
        wrong(k, "%s: %d ranks failed without a reason", text, res.unnamed);
    else if (res.failed_ranks)
        judge_errors(k, r->w, text, (unsigned)res.failed_ranks, res.text);
}

static void run_ops(struct run *r)
{
    struct chaos_report *rep = r->k->rep;
    const char *why = NULL;

    for (unsigned i = 0; i < r->k->ops && rep->ok && !rep->failed; i++)
        run_op(r, i);
    for (unsigned i = 0; i < r->k->nranks && !why; i++)
        why = comm_fell_back(job_comm(r->j, i));
    if (!rep->ok || rep->failed)
        return;
    rep->fell_back = why != NULL;
    snprintf(rep->verdict, sizeof(rep->verdict), "exact%s%.300s", why ? ", fell back: " : "",
             why ? why : "");
}

static void connect(struct run *r, struct world *w)
{
    struct chaos_case *k = r->k;
    struct job_cfg jc = {.w = w,
                         .fab = k->fab,
                         .nranks = k->nranks,
                         .host_of_rank = k->host_of_rank,
                         .group = k->group,
                         .key = k->key,
                         .tree = k->tree,
                         .n_trees = k->n_trees,
                         .window = k->window,
                         .algos = k->algos,
                         .policy = k->policy,
                         .n_policy = k->n_policy,
                         /* An algorithm after failover reduces in another order. */
                         .any_order = k->goes_on,
                         .buffer_bytes = CHAOS_BUFFER + 64,
                         .limit_ps = LIMIT_PS};
    char err[COMM_TEXT] = "";
    int rc = job_create(&r->j, &jc, err);

    if (rc == -ETIME)
        wrong(k, "set-up: no end: %s", err);
    else if (rc && !*err)
        wrong(k, "set-up: an error without a reason: %s", strerror(-rc));
    else if (rc)
        judge_errors(k, w, "set-up", k->nranks, err);
}

static void close(struct run *r, struct world *w)
{
    int rc = r->j ? job_destroy(r->j) : 0;

    r->j = NULL;
    if (rc)
        wrong(r->k, "close: %s", strerror(-rc));
    if (world_busy_ans(w))
        wrong(r->k, "%u aggregation nodes still hold a group, slot or frame", world_busy_ans(w));
    if (world_objects(w))
        wrong(r->k, "%u verbs objects are left", world_objects(w));
}

static void run_world(struct chaos_case *k)
{
    struct chaos_report *rep = k->rep;
    struct world_cfg wc = {.fab = k->fab,
                           .nranks = k->nranks,
                           .host_of_rank = k->host_of_rank,
                           .pool = k->cfg->pool,
                           .an_mbufs = k->cfg->pool->size,
                           .seed = k->seed};
    struct run r = {.k = k};
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
        wrong(k, "cannot make this world: %s", strerror(-rc));
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
        wrong(k, "cannot apply the faults: %s", strerror(-faults_state(f)));
    if (rep->ok && !k->plan.n)
        check_no_loss(k, w);
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

/* From the seed. 0, or -errno and the verdict says why. */
static int draw(struct chaos_case *k)
{
    struct chaos_report *rep = k->rep;
    int rc = chaos_draw_fabric(k, rep->verdict);

    k->seed = k->cfg->seed;
    if (!rc) {
        rc = chaos_draw_ranks(k);
        snprintf(rep->verdict, sizeof(rep->verdict), "ranks: %s", strerror(-rc));
    }
    if (!rc)
        rc = plan_of(k, rep->verdict);
    k->ops = 1 + (unsigned)below(k, DRAW_OPS, 3);
    return rc;
}

static int get_case(struct chaos_case *k)
{
    struct chaos_report *rep = k->rep;
    int rc = k->cfg->case_file ? case_load(k, k->cfg->case_file, rep->verdict) : draw(k);

    if (rc) {
        rep->ok = false;
        return rc;
    }
    if (k->cfg->case_file)
        k->ops = k->n_ops;
    snprintf(rep->what, sizeof(rep->what), "%s, %u ranks%s, %u faults", k->shape, k->nranks,
             k->goes_on ? "" : ", only SHARP", k->plan.n);
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
        run_world(&k);
        save_case(&k, rep->verdict);
    }
    fault_plan_free(&k.plan);
    fabric_free(k.own);
    free(k.conf_text);
    after = rte_mempool_avail_count(cfg->pool);
    if (after != before)
        wrong(&k, "%d frames are left", (int)before - (int)after);
}
