/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs of a case: their trees, their operations one after the other, their end. */
#include "protocols/check/check_fabric_priv.h"
#include "protocols/check/values.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define GUARD   64u /* bytes before and behind a vector */
#define PATTERN 0x5a

/* ---- the tree ---- */

static unsigned add_child(struct at *a, bool is_rank, unsigned node)
{
    a->child[a->n_children] = (struct check_child){is_rank, node};
    return a->n_children++;
}

/* Makes the job's tree. Children are in order of ranks; a switch is placed by its lowest rank. */
static void make_tree(struct check_fabric *f, unsigned job)
{
    struct fabric_job *j = &f->job[job];
    const unsigned n = f->c->job[job].nranks;
    unsigned leafs = 0, lowest[SWITCHES];

    for (unsigned s = 0; s < SWITCHES; s++) {
        j->at[s] = (struct at){.job = job, .sw = s, .parent = -1, .child_of_parent = -1};
        memset(j->at[s].of_rank, -1, sizeof(j->at[s].of_rank));
        lowest[s] = UINT32_MAX;
    }
    for (unsigned r = 0; r < n; r++) {
        struct at *a = &j->at[fabric_leaf(f, job, r)];

        if (lowest[a->sw] == UINT32_MAX) {
            lowest[a->sw] = r;
            leafs++;
        }
        a->of_rank[r] = (int)add_child(a, true, r);
        a->n_below++;
        j->switch_of[r] = (uint16_t)lowest[a->sw];
    }
    for (unsigned r = 0; r < n && leafs > 1; r++) {
        struct at *a = &j->at[fabric_leaf(f, job, r)];

        if (lowest[a->sw] == r) {
            a->parent = ROOT;
            a->child_of_parent = (int)add_child(&j->at[ROOT], false, a->sw);
        }
    }
    if (leafs > 1)
        j->at[ROOT].n_below = n;
}

/* ---- begin ---- */

static int open_switch(struct check_fabric *f, unsigned sw, char *err)
{
    struct node_switch *n = &f->sw[sw];
    struct proto_switch_cfg cfg = {
        .protocol = f->p,
        .key = f->c->key,
        .payload = f->c->payload,
        .memory = f->c->memory,
        .emit = links_emit,
        .ctx = n,
    };

    n->tick_ps = INT64_MAX;
    return n->s ? 0 : proto_switch_create(&n->s, &cfg, err);
}

static int open_at(struct check_fabric *f, struct at *a, char *err)
{
    struct proto_job_cfg cfg = {
        .nranks = f->c->job[a->job].nranks,
        .n_children = a->n_children,
        .n_below = a->n_below,
        .root = a->parent < 0,
        .rate_bps = f->c->rate_bps,
        .round_trip_ps = case_round_trip(f->c),
        .ctx = a,
    };
    int rc = open_switch(f, a->sw, err);

    if (!rc)
        rc = proto_job_open(f->sw[a->sw].s, &cfg, f->now, &a->pj, err);
    if (!rc)
        f->sw[a->sw].jobs++;
    return rc;
}

static void memory_seen(struct check_fabric *f, const struct proto_switch *s)
{
    const struct proto_switch_counters *c = proto_switch_counters(s);

    if (c->memory_peak > f->r->memory_peak)
        f->r->memory_peak = c->memory_peak;
    if (c->memory_peak > f->c->memory)
        fabric_fail(f, "%" PRIu64 " bytes of arrays at a switch, the limit is %zu", c->memory_peak,
                    f->c->memory);
}

static void close_at(struct check_fabric *f, struct at *a)
{
    struct node_switch *n = &f->sw[a->sw];
    char leak[PROTO_TEXT];

    if (a->pj) {
        proto_job_close(n->s, a->pj, f->now, leak);
        a->pj = NULL;
        n->jobs--;
        if (*leak) {
            f->r->leaked++;
            if (f->c->property == P_LEAKS)
                fabric_fail(f, "%s (job %u)", leak, a->job);
        }
    }
    if (n->s && !n->jobs) {
        memory_seen(f, n->s);
        proto_switch_destroy(n->s);
        n->s = NULL;
    }
}

/* A job was refused. That is right if there was too little memory or if keys did not fit. */
static void jobs_refused(struct check_fabric *f, unsigned job, const char *err)
{
    f->r->refused++;
    if (f->c->property != P_MEMORY && !f->c->any_key)
        fabric_fail(f, "job %u: %s", job, err);
    check_job_end(f, job);
}

static int open_rank(struct check_fabric *f, unsigned job, unsigned rank, char *err)
{
    struct fabric_job *j = &f->job[job];
    struct proto_rank_cfg cfg = {
        .protocol = f->p,
        .key = f->c->key,
        .rank = rank,
        .nranks = f->c->job[job].nranks,
        .switch_of = j->switch_of,
        .job = job + 1,
        .payload = f->c->payload,
        .window = f->c->window,
        .rate_bps = f->c->rate_bps,
        .round_trip_ps = case_round_trip(f->c),
        .send = links_send,
        .ctx = &j->sender[rank],
    };

    j->sender[rank] = (struct sender){f, job, rank};
    j->rank[rank].tick_ps = INT64_MAX;
    return proto_rank_create(&j->rank[rank].r, &cfg, f->now, err);
}

void check_job_begin(struct check_fabric *f, unsigned job)
{
    struct fabric_job *j = &f->job[job];
    char err[PROTO_TEXT] = "";
    int rc = 0;

    make_tree(f, job);
    f->r->jobs++;
    j->open = true;
    /* Open at the leafs first, as their JOINs come first. */
    for (unsigned s = SWITCHES; s-- && !rc;)
        if (f->p->sw && j->at[s].n_children)
            rc = open_at(f, &j->at[s], err);
    for (unsigned r = 0; r < f->c->job[job].nranks && !rc; r++) {
        rc = open_rank(f, job, r, err);
        /* Start ranks one after the other, so that packets can arrive before an operation begins.
         */
        if (!rc)
            rc = queue_push(&f->q, f->now + (int64_t)r * f->c->latency_ps / 2, E_START, job, r,
                            NULL);
    }
    if (rc)
        jobs_refused(f, job, *err ? err : strerror(-rc));
}

/* ---- operations ---- */

static uint8_t *vector(uint64_t bytes)
{
    uint8_t *v = malloc(bytes + 2 * GUARD);

    if (!v)
        return NULL;
    memset(v, PATTERN, bytes + 2 * GUARD);
    return v + GUARD;
}

static bool vector_holds(const uint8_t *v, uint64_t bytes)
{
    for (unsigned i = 0; i < GUARD; i++)
        if (v[bytes + i] != PATTERN || v[(int)i - (int)GUARD] != PATTERN)
            return false;
    return true;
}

static void vectors_free(struct node_rank *r)
{
    if (r->recv && r->recv != r->send)
        free(r->recv - GUARD);
    if (r->send)
        free(r->send - GUARD);
    r->send = r->recv = NULL;
}

void check_job_start_op(struct check_fabric *f, unsigned job, unsigned rank)
{
    struct node_rank *r = &f->job[job].rank[rank];
    const struct case_op *o = &f->c->job[job].op[r->op];
    const uint64_t bytes = o->count * trib_size(o->type);
    struct trib_op op = {.count = o->count, .type = o->type, .op = o->op};
    int rc;

    if (f->job[job].ended || r->dead)
        return;
    r->send = vector(bytes);
    r->recv = o->in_place ? r->send : vector(bytes);
    if (!r->send || !r->recv) {
        fabric_fail(f, "out of memory");
        return;
    }
    values_fill(f->c, job, r->op, rank, r->send);
    op.send = r->send;
    op.recv = r->recv;
    r->busy = true;
    rc = proto_rank_start(r->r, &op, f->now);
    if (rc) {
        r->busy = false;
        if (f->c->any_key)
            jobs_refused(f, job, strerror(-rc));
        else
            fabric_fail(f, "job %u, rank %u: start() of operation %u returns %d (%s)", job, rank,
                        r->op, rc, strerror(rc < 0 ? -rc : rc));
        return;
    }
    check_job_after_rank(f, job, rank);
}

static void op_done(struct check_fabric *f, unsigned job, unsigned rank)
{
    struct fabric_job *j = &f->job[job];
    struct node_rank *r = &j->rank[rank];
    const struct case_op *o = &f->c->job[job].op[r->op];
    const uint64_t bytes = o->count * trib_size(o->type);
    char why[256];

    if (!vector_holds(r->send, bytes) || !vector_holds(r->recv, bytes))
        fabric_fail(f, "job %u, rank %u: a write outside of the vectors of operation %u", job, rank,
                    r->op);
    if (!f->c->hostile && !values_check(f->c, job, r->op, r->recv, why, sizeof(why)))
        fabric_fail(f, "job %u of %u ranks, rank %u, operation %u: %s", job, f->c->job[job].nranks,
                    rank, r->op, why);
    r->busy = false;
    vectors_free(r);
    r->op++;
    if (r->op < f->c->job[job].n_ops) {
        if (queue_push(&f->q, f->now + (r->op % 2 ? 0 : f->c->latency_ps), E_START, job, rank,
                       NULL))
            fabric_fail(f, "out of memory");
        return;
    }
    r->finished = true;
    if (++j->n_finished == f->c->job[job].nranks)
        check_job_end(f, job);
}

/* ---- end ---- */

void check_job_end(struct check_fabric *f, unsigned job)
{
    struct fabric_job *j = &f->job[job];

    if (j->ended || !j->open)
        return;
    j->ended = true;
    f->n_ended++;
    for (unsigned r = 0; r < f->c->job[job].nranks; r++) {
        proto_rank_destroy(j->rank[r].r);
        j->rank[r].r = NULL;
        vectors_free(&j->rank[r]);
    }
    for (unsigned s = SWITCHES; s--;)
        if (j->at[s].n_children)
            close_at(f, &j->at[s]);
}

/* ---- after every call ---- */

static void tick_at(struct check_fabric *f, int64_t next, int64_t *queued, enum event kind,
                    unsigned a, unsigned b)
{
    if (next >= *queued)
        return;
    *queued = next > f->now ? next : f->now;
    if (queue_push(&f->q, *queued, kind, a, b, NULL))
        fabric_fail(f, "out of memory");
}

void check_job_after_rank(struct check_fabric *f, unsigned job, unsigned rank)
{
    struct node_rank *r = &f->job[job].rank[rank];
    const char *error;

    if (!r->r)
        return;
    error = proto_rank_error(r->r);
    if (error) {
        if (!fabric_tolerates(f, error))
            fabric_fail(f, "job %u, rank %u: %s", job, rank, error);
        check_job_end(f, job);
        return;
    }
    tick_at(f, proto_rank_next(r->r), &r->tick_ps, E_RANK_TICK, job, rank);
    if (r->busy && proto_rank_done(r->r))
        op_done(f, job, rank);
}

void check_job_after_switch(struct check_fabric *f, unsigned sw)
{
    struct node_switch *n = &f->sw[sw];
    struct proto_job *doomed;

    while (n->s && (doomed = proto_switch_doomed(n->s))) {
        const struct at *a = proto_job_ctx(doomed);

        if (!fabric_tolerates(f, proto_job_why(doomed)))
            fabric_fail(f, "job %u at %s %u: %s", a->job, sw == ROOT ? "switch" : "leaf", sw,
                        proto_job_why(doomed));
        check_job_end(f, a->job);
    }
    if (n->s)
        tick_at(f, proto_switch_next(n->s), &n->tick_ps, E_SWITCH_TICK, sw, 0);
}
