/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs and judges a case: its jobs connect, run operations at the same time, and close. */
#include "sim/chaos/chaos_priv.h"
#include "sim/world/fault_player.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LIMIT_PS (150 * PS_PER_S) /* fabric time of each operation, connecting and closing */

struct running {
    struct job *j; /* NULL: not connected, or closed */
    struct job_op op;
    struct job_result res;
    bool ran;     /* it ran the operation, which it supports */
    bool stopped; /* its launcher ended it */
    bool failed;  /* it had a permitted error, and runs nothing more */
    int rc;       /* result of starting its operation */
};

struct chaos_running {
    struct chaos_case *k;
    struct world *w;
    struct running of[CHAOS_JOBS];
};

/* ---- the verdict ---- */

static void check_port(const struct chaos_case *k, struct hca *hca, unsigned r)
{
    const struct roce_counters *c = rnic_counters(hca_rnic(hca));

    if (c->retransmits || c->rnr_naks_received || c->timeouts)
        chaos_wrong(k, "rank %u without loss: %lu retransmits, %lu RNR NAKs, %lu timeouts", r,
                    (unsigned long)c->retransmits, (unsigned long)c->rnr_naks_received,
                    (unsigned long)c->timeouts);
}

/* Checks that nothing was retransmitted, refused or dropped, in a case whose links lose nothing. */
static void check_no_loss(const struct chaos_case *k, struct world *w)
{
    for (unsigned r = 0; r < k->nprocs; r++)
        for (unsigned p = 0; p < world_ports(w, r); p++)
            check_port(k, world_hca(w, r, p), r);
    for (uint16_t i = 0; i < k->fab->n_nodes; i++) {
        struct node *nd = net_node(world_net(w), i);

        for (unsigned p = 0; p < nd->n_ports; p++)
            for (unsigned d = 0; d < DROP_REASONS; d++)
                if (nd->cnt[p].drops[d])
                    chaos_wrong(k, "%s port %u without loss: %lu drops (%s)", nd->name, p,
                                (unsigned long)nd->cnt[p].drops[d], drop_name(d));
    }
}

/* Whether switches may remember an aborted group of the job's id and key. */
static bool had_been_aborted(const struct chaos_running *r, unsigned i)
{
    const struct chaos_job *j = &r->k->job[i];

    for (unsigned n = 0; n < r->k->n_jobs; n++)
        if (n != i && (r->of[n].stopped || r->of[n].failed) && r->k->job[n].group == j->group &&
            r->k->job[n].key == j->key)
            return true;
    return false;
}

/* Whether the error is a permitted refusal by a switch: for lack of resources, or because of
 * another job's group with the same id. */
static bool chaos_running_refused(const struct chaos_running *r, unsigned i, const char *text)
{
    const struct chaos_job *j = &r->k->job[i];

    if (strstr(text, "wrong key for the group"))
        return !j->goes_on && chaos_collides(r->k, j);
    if (strstr(text, "aborted by") || strstr(text, "refused by"))
        if (had_been_aborted(r, i))
            return true;
    return !j->goes_on && chaos_contended(r->k, j) && strstr(text, "refused by");
}

/* Judges errors of a job: they are wrong if its faults are recoverable. */
static void judge_errors(struct chaos_running *r, unsigned i, const char *where, unsigned ranks,
                         const char *text)
{
    const struct chaos_case *k = r->k;
    const struct chaos_job *j = &k->job[i];
    struct chaos_report *rep = k->rep;

    r->of[i].failed = true;
    if (r->of[i].stopped)
        return;
    rep->failed = true;
    if (chaos_recoverable(k, j) && !chaos_running_refused(r, i, text) &&
        !(chaos_may_give_up(k, world_frames(r->w)) &&
          strstr(text, "transport retry counter exceeded")))
        chaos_wrong(k, "job %u, %s: an error though all faults are recoverable: %.300s", i, where,
                    text);
    else if (rep->ok && (!i || !*rep->verdict))
        snprintf(rep->verdict, sizeof(rep->verdict), "named errors on %u of %u ranks, %s: %.300s",
                 ranks, j->nranks, where, text);
}

/* Judges a failover or a small grant: it is wrong if the only faults are noise, as switches must
 * not refuse resources that they have, or be given up for occasional loss. */
static void judge_fall(struct chaos_running *r, unsigned i)
{
    const struct chaos_case *k = r->k;
    struct chaos_report *rep = k->rep;
    const char *why = NULL;
    struct coll_grant grant;

    for (unsigned n = 0; n < k->job[i].nranks && !why; n++)
        why = comm_fell_back(job_comm(r->of[i].j, n));
    comm_granted(job_comm(r->of[i].j, 0), &grant);
    if ((why || (*grant.why && !strstr(grant.why, "slots for a group"))) && chaos_only_noise(k) &&
        !chaos_may_give_up(k, world_frames(r->w)) && !chaos_contended(k, &k->job[i]) &&
        !had_been_aborted(r, i))
        chaos_wrong(k, "job %u whose switches work %s: %.300s", i,
                    why ? "fell back" : "got less than it asked for", why ? why : grant.why);
    rep->fell_back |= why != NULL;
    if (rep->ok && (!i || why) && !rep->failed)
        snprintf(rep->verdict, sizeof(rep->verdict), "exact%s%.300s", why ? ", fell back: " : "",
                 why ? why : "");
}

/* ---- operations ---- */

/* The n-th operation of job i, drawn or from the file. False: the job no longer supports it. */
static bool next_op(struct chaos_running *r, unsigned i, unsigned n, struct job_op *op)
{
    struct chaos_case *k = r->k;
    struct chaos_job *j = &k->job[i];

    T_ASSERT(n < CHAOS_OPS, "a job has more operations than its array");
    if (k->cfg->case_file) {
        *op = j->op[n];
        return chaos_op_runs(j, job_comm(r->of[i].j, 0), op);
    }
    *op = (struct job_op){0};
    chaos_draw_op(k, j, job_comm(r->of[i].j, 0), op);
    T_ASSERT(n == j->n_ops, "an operation is drawn that is not the next of its job");
    j->op[j->n_ops++] = *op;
    chaos_save(k, NULL);
    return true;
}

static bool chaos_run_never(void *ctx)
{
    (void)ctx;
    return false;
}

/* Ends a job as its launcher does, which reports rank 0 as dead to the others. */
static void chaos_running_stop(struct chaos_running *r, unsigned i)
{
    struct running *u = &r->of[i];

    job_drive(u->j, world_now(r->w) + r->k->job[i].stops_ps, chaos_run_never, NULL);
    job_notify_death(u->j, 0);
    u->stopped = true;
}

static void start_op(struct chaos_running *r, unsigned i, unsigned n)
{
    struct chaos_report *rep = r->k->rep;
    struct running *u = &r->of[i];
    size_t at = strlen(rep->what);
    char text[128], who[24] = "";
    bool runs;

    runs = next_op(r, i, n, &u->op);
    chaos_op_text(&u->op, text, sizeof(text));
    if (i)
        snprintf(who, sizeof(who), "job %u: ", i);
    snprintf(rep->what + at, sizeof(rep->what) - at, "; %s%s%s", who, text,
             runs ? "" : " (left out: not supported)");
    u->ran = runs;
    if (!runs)
        return;
    u->rc = job_start(u->j, &u->op, &u->res);
    if (!u->rc && r->k->job[i].stops_ps && n + 1 == r->k->job[i].ops)
        chaos_running_stop(r, i);
}

static void finish_op(struct chaos_running *r, unsigned i)
{
    struct chaos_case *k = r->k;
    struct running *u = &r->of[i];
    struct job_result *res = &u->res;
    char text[128];
    int rc;

    if (!u->ran)
        return;
    rc = u->rc ? u->rc : job_finish(u->j, res);
    chaos_op_text(&u->op, text, sizeof(text));
    if (rc)
        chaos_wrong(k, "%s: %s: %.300s", text, rc == -ETIME ? "no end" : strerror(-rc), res->text);
    else if (res->wrong)
        chaos_wrong(k, "%s: %lu elements are wrong", text, (unsigned long)res->wrong);
    else if (res->unnamed)
        chaos_wrong(k, "%s: %d ranks failed without a reason", text, res->unnamed);
    else if (res->failed_ranks)
        judge_errors(r, i, text, (unsigned)res->failed_ranks, res->text);
}

/* ---- jobs ---- */

static void notify_death(void *ctx, unsigned process)
{
    struct chaos_running *r = ctx;

    for (unsigned i = 0; i < r->k->n_jobs; i++)
        for (unsigned n = 0; r->of[i].j && n < r->k->job[i].nranks; n++)
            if (r->k->job[i].process[n] == process)
                job_notify_death(r->of[i].j, n);
}

/* Whether all processes of the job live: a job is not started on dead ones. */
static bool all_live(const struct chaos_running *r, const struct chaos_job *j)
{
    for (unsigned n = 0; n < j->nranks; n++)
        if (world_dead(r->w, j->process[n]))
            return false;
    return true;
}

static void connect(struct chaos_running *r, unsigned i)
{
    struct chaos_case *k = r->k;
    const struct chaos_job *c = &k->job[i];
    struct job_cfg jc = {.w = r->w,
                         .fab = k->fab,
                         .nranks = c->nranks,
                         .host_of_rank = c->host_of_rank,
                         .world_rank = i ? c->process : NULL,
                         .group = c->group,
                         .key = c->key,
                         .tree = c->tree,
                         .n_trees = c->n_trees,
                         .window = c->window,
                         .algos = c->algos,
                         .policy = c->policy,
                         .n_policy = c->n_policy,
                         /* An algorithm after failover reduces in another order. */
                         .any_order = c->goes_on || c->algos & COLL_PROTOCOLS,
                         .buffer_bytes = c->bytes + 64,
                         .limit_ps = LIMIT_PS};
    char err[COMM_TEXT] = "";
    int rc;

    for (unsigned n = 0; n < k->n_jobs && !jc.sibling; n++)
        jc.sibling = r->of[n].j;
    rc = job_create(&r->of[i].j, &jc, err);
    if (rc == -ETIME)
        chaos_wrong(k, "set-up: no end: %s", err);
    else if (rc && !*err)
        chaos_wrong(k, "set-up: an error without a reason: %s", strerror(-rc));
    else if (rc)
        judge_errors(r, i, "set-up", c->nranks, err);
}

static void connect_others(struct chaos_running *r, enum chaos_start start)
{
    for (unsigned i = 1; i < r->k->n_jobs && r->k->rep->ok; i++)
        if (r->k->job[i].start == start && all_live(r, &r->k->job[i]))
            connect(r, i);
}

static void close_job(struct chaos_running *r, unsigned i)
{
    struct running *u = &r->of[i];
    int rc;

    if (!u->j)
        return;
    if (r->k->rep->ok && !u->failed)
        judge_fall(r, i);
    rc = job_destroy(u->j);
    u->j = NULL;
    if (rc)
        chaos_wrong(r->k, "close: %s", strerror(-rc));
}

/* Runs the operations of all connected jobs, the n-th of each at the same time. */
static void run_ops(struct chaos_running *r)
{
    struct chaos_case *k = r->k;

    for (unsigned n = 0; n < CHAOS_OPS && k->rep->ok; n++) {
        unsigned busy = 0;
        bool runs[CHAOS_JOBS];

        for (unsigned i = 0; i < k->n_jobs; i++) {
            runs[i] = r->of[i].j && n < k->job[i].ops && !r->of[i].failed;
            busy += runs[i];
            if (runs[i])
                start_op(r, i, n);
            if (!i && !n && runs[i])
                connect_others(r, START_DURING);
        }
        for (unsigned i = 0; i < k->n_jobs; i++)
            if (runs[i])
                finish_op(r, i);
        if (!busy)
            return;
    }
}

static void run_jobs(struct chaos_running *r, struct faults *f)
{
    struct chaos_case *k = r->k;

    connect_others(r, START_BEFORE);
    if (k->rep->ok)
        connect(r, 0);
    if (r->of[0].j)
        faults_start(f);
    run_ops(r);
    if (k->rep->ok && k->slices && k->n_jobs == 1 && r->of[0].j && !r->of[0].failed)
        chaos_run_slices(k, r->of[0].j);
    for (unsigned i = 0; i < k->n_jobs; i++)
        close_job(r, k->seed & 1 ? i : k->n_jobs - 1 - i);
    connect_others(r, START_AFTER);
    run_ops(r);
    for (unsigned i = 0; i < k->n_jobs; i++)
        close_job(r, i);
    if (world_busy_ans(r->w))
        chaos_wrong(k, "%u aggregation nodes still hold a group, slot or frame",
                    world_busy_ans(r->w));
    if (k->rep->ok && k->mcast) {
        if (!k->plan.n)
            check_no_loss(k, r->w);
        chaos_run_mcast(k, r->w);
    }
    if (world_objects(r->w))
        chaos_wrong(k, "%u verbs objects are left", world_objects(r->w));
}

void chaos_run_world(struct chaos_case *k)
{
    struct chaos_report *rep = k->rep;
    struct world_cfg wc = {.fab = k->fab,
                           .nranks = k->nprocs,
                           .host_of_rank = k->host_of_proc,
                           .pool = k->cfg->pool,
                           .an_mbufs = k->cfg->pool->size,
                           .seed = k->seed};
    struct chaos_running r = {.k = k};
    struct faults_cfg fc = {.fab = k->fab,
                            .nranks = k->nprocs,
                            .host_of_rank = k->host_of_proc,
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
        chaos_wrong(k, "cannot make this world: %s", strerror(-rc));
        return;
    }
    r.w = w;
    run_jobs(&r, f);
    if (faults_state(f))
        chaos_wrong(k, "cannot apply the faults: %s", strerror(-faults_state(f)));
    if (rep->ok && chaos_only_late(k) && !k->mcast)
        check_no_loss(k, w);
    rep->trace_hash = world_trace_hash(w);
    rep->frames = world_frames(w);
    rep->fabric_ps = world_now(w);
    faults_destroy(f);
    world_destroy(w);
}
