/* SPDX-License-Identifier: BSD-3-Clause */
/* One operation on all ranks of a job: started at random times, judged by the oracle. */
#include "sim/job/sim_job_priv.h"

#include "base/random.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
                job_record(j, rc < 0 ? JOB_RANK_FAILED : JOB_RANK_ENDED, r,
                           rc < 0 ? (uint32_t)-rc : j->ops);
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

    T_ASSERT(!m->started && !m->req, "a rank starts an operation within another");
    a.send = m->send;
    a.recv = m->recv;
    m->started = true;
    if (job_dead(j, r))
        return;
    job_record(j, JOB_RANK_STARTED, r, j->ops);
    m->rc = coll_start(m->comm, &a, &m->req, err);
    if (m->rc) {
        job_record(j, JOB_RANK_FAILED, r, (uint32_t)-m->rc);
        m->ended = true;
        m->end_ps = world_now(j->cfg.w);
        snprintf(m->why, sizeof(m->why), "%s", err);
        return;
    }
    job_progress(j, r);
}

/* Ranks may finish before others start: records when, and goes on. */
static bool record_ends(void *ctx)
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

/* Starts ranks in order of their random times; the world runs in between. */
static void start_all(struct job *j, const struct job_op *op)
{
    uint64_t s = op->seed ^ 0xa5a5a5a5u;
    int64_t t0 = world_now(j->cfg.w);
    unsigned n = j->cfg.nranks;

    for (unsigned r = 0; r < n; r++) {
        struct member *m = &j->mem[r];

        T_ASSERT(!m->req, "an operation begins before the last one has been freed");
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
        job_drive(j, j->mem[first].start_ps, record_ends, j);
        start_rank(j, op, first);
    }
}

/* Ranks that left a barrier before the last one entered it. */
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

static int sim_job_op_check(struct job *j, struct job_result *res)
{
    int64_t first = INT64_MAX, last = 0;

    for (unsigned r = 0; r < j->cfg.nranks; r++) {
        struct member *m = &j->mem[r];

        if (job_dead(j, r)) {
            res->dead_ranks++;
            continue;
        }
        T_ASSERT(!m->ended || m->end_ps >= m->start_ps, "a rank ended before it started");
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
    T_ASSERT(!j->loop, "an operation begins within a loop");
    T_ASSERT(!j->cfg.lengths, "data of which only lengths are carried cannot be checked");
    memset(res, 0, sizeof(*res));
    j->op = *op;
    job_record(j, JOB_OP_BEGUN, ++j->ops, j->cfg.nranks);
    job_record(j, JOB_OP_KIND, op->kind, op->algo);
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
    rc = sim_job_op_check(j, res);
    job_record_failovers(j);
    job_record(j, JOB_OP_ENDED, j->ops, (uint32_t)res->failed_ranks);
    for (unsigned r = 0; r < j->cfg.nranks; r++) {
        struct member *m = &j->mem[r];

        if (m->req) /* one that hangs, or a dead rank's, ends with its communicator */
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
