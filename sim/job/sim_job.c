/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/job/sim_job_priv.h"

#include "base/random.h"
#include "host/coll/comm_sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Retries of control messages run on this clock, in fabric time. */
#define TICK_PS (10 * PS_PER_MS)

struct comm *job_comm(struct job *j, unsigned rank)
{
    return j->mem[rank].comm;
}

static unsigned world_rank(const struct job *j, unsigned r)
{
    return j->cfg.world_rank ? j->cfg.world_rank[r] : r;
}

void job_await(struct job *j, unsigned r, bool on)
{
    world_await(j->cfg.w, world_rank(j, r), on);
}

bool job_dead(const struct job *j, unsigned r)
{
    return world_dead(j->cfg.w, world_rank(j, r));
}

void job_progress(struct job *j, unsigned r)
{
    while (comm_progress(j->mem[r].comm) >= COMM_PROGRESS_MAX)
        ;
}

static void progress_member(struct job *j, unsigned r, int64_t now)
{
    if (!j->mem[r].comm || job_dead(j, r))
        return;
    job_progress(j, r);
    if (j->loop)
        job_loop_look(j, r, now);
    else
        j->failed |= comm_state(j->mem[r].comm) == COMM_FAILED;
}

/* Of a job alone in its world. */
static void turn(void *ctx, unsigned world_r, int64_t now)
{
    struct job *j = ctx;

    if (!j->cfg.world_rank && world_r < j->cfg.nranks)
        progress_member(j, world_r, now);
    for (unsigned r = 0; j->cfg.world_rank && r < j->cfg.nranks; r++)
        if (world_rank(j, r) == world_r)
            progress_member(j, r, now);
}

static void soon(void *ctx, unsigned world_r, unsigned step)
{
    struct job *j = ctx;

    if (j->cfg.world_rank || world_r >= j->cfg.nranks)
        return;
    if (step == 0)
        cacheline_prefetch(&j->mem[world_r], offsetof(struct member, why));
    else if (j->mem[world_r].comm)
        comm_prefetch(j->mem[world_r].comm, step - 1);
}
_Static_assert(WORLD_SOON == 1 + COMM_PREFETCH_STEPS, "steps");

static void progress(struct job *first)
{
    struct world *w = first->cfg.w;

    for (unsigned r = world_awake(w, 0); r < world_ranks(w); r = world_awake(w, r + 1)) {
        struct job *j = first;

        do {
            turn(j, r, world_now(w));
            j = j->next;
        } while (j != first);
    }
}

static void tick(struct job *first)
{
    int64_t now = world_now(first->cfg.w);
    struct job *j = first;

    do {
        j->next_tick = now + TICK_PS;
        for (unsigned r = 0; r < j->cfg.nranks; r++)
            if (j->mem[r].comm && !job_dead(j, r)) {
                comm_tick(j->mem[r].comm, now / PS_PER_NS);
                progress_member(j, r, now);
            }
        j = j->next;
    } while (j != first);
}

static int64_t limit(const struct job *j, int64_t until_ps)
{
    return j->next_tick < until_ps ? j->next_tick : until_ps;
}

static void step(struct job *j, int64_t until_ps)
{
    struct world *w = j->cfg.w;

    world_step(w, limit(j, until_ps));
    if (world_now(w) >= j->next_tick)
        tick(j);
    progress(j);
}

void job_drive(struct job *j, int64_t until_ps, bool (*until)(void *), void *ctx)
{
    struct world *w = j->cfg.w;

    while (!until(ctx) && world_now(w) < until_ps)
        step(j, until_ps);
}

static bool never(void *ctx)
{
    (void)ctx;
    return false;
}

/*
 * Where whoever goes by slices and whoever goes by steps have both done the same. One who fails
 * does not end the other ranks' slice, which may be one lookahead longer than the one of his end.
 */
static int64_t rest_ps(const struct job *j)
{
    const struct world *w = j->cfg.w;
    int64_t failed = PS_NEVER, end = world_slice_end(w, world_now(w));

    for (unsigned r = 0; r < j->cfg.nranks && j->failures; r++)
        if (j->mem[r].ended && j->mem[r].rc)
            failed = RTE_MIN(failed, j->mem[r].end_ps);
    if (failed != PS_NEVER)
        end = RTE_MAX(end, world_slice_end(w, world_slice_end(w, failed)));
    return end - 1;
}

void job_drive_slices(struct job *j, int64_t until_ps, bool (*until)(void *), void *ctx)
{
    const struct world_turn t = {turn, soon, j};
    struct world *w = j->cfg.w;

    while (!until(ctx) && world_now(w) < until_ps)
        if (j->loop->by_steps || j->next != j || !world_slice(w, limit(j, until_ps), &t))
            step(j, until_ps);
    world_join(w);
    job_drive(j, rest_ps(j), never, NULL);
}

static bool all_connected(void *ctx)
{
    struct job *j = ctx;

    /* Asked after each event: who is not ready is asked first the next time. */
    while (j->at < j->cfg.nranks &&
           (job_dead(j, j->at) || comm_state(j->mem[j->at].comm) == COMM_READY))
        j->at++;
    return j->at == j->cfg.nranks || j->failed;
}

static int connect_all(struct job *j, char *err)
{
    unsigned n = j->cfg.nranks;
    char *blobs = calloc(n, COMM_BLOB);
    int rc = blobs ? 0 : -ENOMEM;

    for (unsigned r = 0; !rc && r < n; r++) {
        const struct comm_sim hooks = {.unback = j->cfg.lengths ? hca_mr_unback : NULL,
                                       .waiting = world_waiting(j->cfg.w, world_rank(j, r))};
        struct comm_cfg cc = {.fab = j->cfg.fab,
                              .rank = r,
                              .nranks = n,
                              .host_of_rank = j->cfg.host_of_rank,
                              .group = j->cfg.group,
                              .key = j->cfg.key,
                              .n_trees = j->cfg.n_trees,
                              .window = j->cfg.window,
                              .algos = j->cfg.algos,
                              .n_policy = j->cfg.n_policy,
                              .sim = &hooks};

        for (unsigned i = 0; i < cc.n_policy && i < ALGO_COUNT; i++)
            cc.policy[i] = j->cfg.policy[i];
        cc.ctx = world_contexts(j->cfg.w, world_rank(j, r), &cc.n_ctx);
        for (unsigned t = 0; t < COLL_TREES; t++)
            cc.tree[t] = j->cfg.trees ? t < j->cfg.n_trees ? j->cfg.trees[t] : 0
                                      : (uint16_t)(j->cfg.tree + t);
        rc = comm_create(&j->mem[r].comm, &cc, blobs + r * COMM_BLOB, err);
    }
    for (unsigned r = 0; !rc && r < n; r++)
        rc = comm_connect(j->mem[r].comm, blobs, err);
    free(blobs);
    return rc;
}

/* A rank that failed tells more than those that wait for it. */
static int connected(struct job *j, char *err)
{
    unsigned waits = j->cfg.nranks;

    for (unsigned r = 0; r < j->cfg.nranks; r++) {
        enum comm_state s = comm_state(j->mem[r].comm);

        if (job_dead(j, r))
            continue;
        if (s == COMM_FAILED) {
            snprintf(err, COMM_TEXT, "rank %u: %.200s", r, comm_error(j->mem[r].comm));
            return -ECONNREFUSED;
        }
        if (s != COMM_READY && waits == j->cfg.nranks)
            waits = r;
    }
    if (waits == j->cfg.nranks)
        return 0;
    snprintf(err, COMM_TEXT, "rank %u: still connecting", waits);
    return -ETIME;
}

int job_create(struct job **out, const struct job_cfg *cfg, char *err)
{
    struct job *j = calloc(1, sizeof(*j));
    int rc = -ENOMEM;

    err[0] = '\0';
    if (j)
        j->mem = calloc(cfg->nranks, sizeof(*j->mem));
    if (!j || !j->mem) {
        free(j);
        return rc;
    }
    j->cfg = *cfg;
    j->next_tick = world_now(cfg->w) + TICK_PS;
    j->next = j;
    if (cfg->beside) {
        j->next = cfg->beside->next;
        cfg->beside->next = j;
    }
    rc = connect_all(j, err);
    if (!rc) {
        job_drive(j, world_now(cfg->w) + cfg->limit_ps, all_connected, j);
        rc = connected(j, err);
    }
    *out = j;
    if (rc) {
        job_destroy(j);
        *out = NULL;
    }
    return rc;
}

/* ---- one operation ---- */

/* From there on what is used in part takes little more in pages of 2 MiB. */
#define LARGE_BYTES (32u << 20)

/* Where nobody looks at data, addresses will do. */
static char *take_memory(const struct job *j, size_t bytes)
{
    char *p = world_map(j->cfg.w, bytes, j->cfg.lengths ? PROT_NONE : PROT_READ | PROT_WRITE);

    if (p && !j->cfg.lengths && bytes >= LARGE_BYTES)
        madvise(p, bytes, MADV_HUGEPAGE);
    return p;
}

static void drop_memory(const struct job *j, char *mem)
{
    if (mem)
        munmap(mem, 2 * j->bytes);
}

/* Made at the first operation, registered once: later operations must fit into them. */
int job_make_buffers(struct job *j, size_t bytes)
{
    if (j->bytes)
        return j->bytes >= bytes ? 0 : -EFBIG;
    if (bytes < j->cfg.buffer_bytes)
        bytes = j->cfg.buffer_bytes;
    j->bytes = bytes;
    for (unsigned r = 0; r < j->cfg.nranks; r++) {
        struct member *m = &j->mem[r];
        char *mem = take_memory(j, 2 * bytes);

        if (!mem)
            return -ENOMEM;
        m->mem = mem;
        m->in = mem;
        m->out = mem + bytes;
        if (comm_register(m->comm, mem, 2 * bytes))
            return -ENOMEM;
    }
    return 0;
}

static bool op_over(void *ctx)
{
    struct job *j = ctx;
    bool over = true;

    for (unsigned r = 0; r < j->cfg.nranks; r++) {
        struct member *m = &j->mem[r];

        if (job_dead(j, r))
            continue;
        if (m->started && !m->ended && m->req) {
            int rc = coll_test(m->req);

            if (rc) {
                m->ended = true;
                m->rc = rc < 0 ? rc : 0;
                snprintf(m->why, sizeof(m->why), "%s", rc < 0 ? comm_error(m->comm) : "");
                m->end_ps = world_now(j->cfg.w);
            }
        }
        over = over && m->ended;
    }
    return over;
}

static void start_rank(struct job *j, const struct job_op *op, unsigned r)
{
    struct member *m = &j->mem[r];
    struct coll_args a = job_args(op);
    char err[COMM_TEXT] = "";

    a.send = m->send;
    a.recv = m->recv;
    m->started = true;
    if (job_dead(j, r))
        return;
    m->rc = coll_start(m->comm, &a, &m->req, err);
    if (m->rc) {
        m->ended = true;
        m->end_ps = world_now(j->cfg.w);
        snprintf(m->why, sizeof(m->why), "%s", err);
        return;
    }
    job_progress(j, r);
}

/* Ranks may end while others have not begun: the time is noted. */
static bool look_on(void *ctx)
{
    op_over(ctx);
    return false;
}

static int64_t skew(const struct job_op *op, unsigned rank, uint64_t *random)
{
    if (op->late)
        return rank + 1 == op->late ? op->skew_ps : 0;
    return op->skew_ps ? (int64_t)(random_next(random) % (uint64_t)op->skew_ps) : 0;
}

/* Ranks start in order of their random times, the world running in between. */
static void start_all(struct job *j, const struct job_op *op)
{
    uint64_t s = op->seed ^ 0xa5a5a5a5u;
    int64_t t0 = world_now(j->cfg.w);
    unsigned n = j->cfg.nranks;

    for (unsigned r = 0; r < n; r++) {
        struct member *m = &j->mem[r];

        m->start_ps = t0 + skew(op, r, &s);
        m->started = m->ended = false;
        m->why[0] = '\0';
        m->req = NULL;
        m->rc = 0;
    }
    for (unsigned k = 0; k < n; k++) {
        unsigned first = n;

        for (unsigned r = 0; r < n; r++)
            if (!j->mem[r].started && (first == n || j->mem[r].start_ps < j->mem[first].start_ps))
                first = r;
        job_drive(j, j->mem[first].start_ps, look_on, j);
        start_rank(j, op, first);
    }
}

/* Nobody leaves a barrier before the last one has entered it. */
static uint64_t left_too_early(const struct job *j)
{
    int64_t last = 0;
    uint64_t n = 0;

    for (unsigned r = 0; r < j->cfg.nranks; r++)
        last = j->mem[r].start_ps > last ? j->mem[r].start_ps : last;
    for (unsigned r = 0; r < j->cfg.nranks; r++)
        n += j->mem[r].ended && !j->mem[r].rc && j->mem[r].end_ps < last;
    return n;
}

static int check(struct job *j, struct job_result *res)
{
    int64_t first = INT64_MAX, last = 0;

    for (unsigned r = 0; r < j->cfg.nranks; r++) {
        struct member *m = &j->mem[r];

        if (job_dead(j, r)) {
            res->dead_ranks++;
            continue;
        }
        first = m->start_ps < first ? m->start_ps : first;
        last = m->end_ps > last ? m->end_ps : last;
        if (!m->ended) {
            snprintf(res->text, sizeof(res->text), "rank %u has not finished", r);
            return -ETIME;
        }
        if (m->rc) {
            res->failed_ranks++;
            res->unnamed += !m->why[0];
            if (!res->text[0])
                snprintf(res->text, sizeof(res->text), "rank %u: %s", r, m->why);
        }
    }
    res->time_ps = last - first;
    if (j->op.kind == COLL_BARRIER)
        res->wrong += left_too_early(j);
    return job_check(j, res);
}

int job_start(struct job *j, const struct job_op *op, struct job_result *res)
{
    size_t most = op->count * dtype_size(op->type);
    int rc;

    if (op->kind != COLL_ALLREDUCE && op->kind != COLL_REDUCE && op->kind != COLL_BROADCAST)
        most *= j->cfg.nranks;
    memset(res, 0, sizeof(*res));
    j->op = *op;
    rc = job_make_buffers(j, most + 64);
    for (unsigned r = 0; !rc && r < j->cfg.nranks; r++)
        rc = job_fill(j, op, r);
    if (!rc)
        start_all(j, op);
    return rc;
}

int job_finish(struct job *j, struct job_result *res)
{
    int rc;

    job_drive(j, world_now(j->cfg.w) + j->cfg.limit_ps, op_over, j);
    rc = check(j, res);
    for (unsigned r = 0; r < j->cfg.nranks; r++) {
        struct member *m = &j->mem[r];

        if (m->req) /* one that hangs, or is a dead rank's, ends with its communicator */
            coll_free(m->req);
        m->req = NULL;
        free(m->copy);
        m->copy = NULL;
    }
    return rc;
}

int job_run(struct job *j, const struct job_op *op, struct job_result *res)
{
    int rc = job_start(j, op, res);

    return rc ? rc : job_finish(j, res);
}

void job_notify_death(struct job *j, unsigned dead)
{
    char why[COMM_TEXT];

    snprintf(why, sizeof(why), "rank %u (%s) has died", dead,
             j->cfg.fab->nodes[j->cfg.fab->hosts[j->cfg.host_of_rank[dead]]].name);
    for (unsigned r = 0; r < j->cfg.nranks; r++)
        if (j->mem[r].comm && !job_dead(j, r)) {
            comm_abort(j->mem[r].comm, why);
            progress_member(j, r, world_now(j->cfg.w));
        }
}

/* ---- the end ---- */

static bool all_closed(void *ctx)
{
    struct job *j = ctx;

    while (j->at < j->cfg.nranks &&
           (!j->mem[j->at].comm || job_dead(j, j->at) || comm_closed(j->mem[j->at].comm)))
        j->at++;
    return j->at == j->cfg.nranks;
}

static bool ans_idle(void *ctx)
{
    struct job *j = ctx;

    return world_ans_idle(j->cfg.w);
}

int job_destroy(struct job *j)
{
    int rc = 0;

    for (unsigned r = 0; r < j->cfg.nranks; r++)
        if (j->mem[r].comm && !job_dead(j, r))
            comm_close(j->mem[r].comm);
    j->at = 0;
    job_drive(j, world_now(j->cfg.w) + j->cfg.limit_ps, all_closed, j);
    if (!all_closed(j))
        rc = -ETIME;
    for (unsigned r = 0; r < j->cfg.nranks; r++) {
        if (j->mem[r].comm)
            comm_destroy(j->mem[r].comm);
        j->mem[r].comm = NULL;
        drop_memory(j, j->mem[r].mem);
    }
    /* Aggregation nodes still part from each other; lost LEAVEs are repeated. */
    if (j->next == j)
        job_drive(j, world_now(j->cfg.w) + j->cfg.limit_ps, ans_idle, j);
    for (struct job *p = j->next; p != j; p = p->next)
        if (p->next == j) {
            p->next = j->next;
            break;
        }
    free(j->mem);
    free(j);
    return rc;
}
