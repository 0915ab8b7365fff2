/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations back to back, on the caller's data. */
#include "sim/job/sim_job_priv.h"

#include <errno.h>
#include <string.h>

int job_buffers(struct job *j, size_t bytes)
{
    return job_make_buffers(j, bytes);
}

void *job_buffer(struct job *j, unsigned rank, unsigned which)
{
    return which ? j->mem[rank].out : j->mem[rank].in;
}

/* May be called for ranks of several hosts at the same time. */
static void rank_ended(struct job *j, unsigned r, int64_t now, int rc, const char *why)
{
    struct member *m = &j->mem[r];

    T_ASSERT_HOT(!m->ended, "a rank ends its loop twice");
    T_ASSERT_HOT(j->left, "more ranks end than the loop has");
    T_ASSERT_HOT(now >= m->start_ps, "a rank ended before it started");
    m->ended = true;
    m->rc = rc;
    m->end_ps = now;
    snprintf(m->why, sizeof(m->why), "%s", why);
    job_await(j, r, false);
    j->failures += rc != 0;
    j->left--;
}

/* Ranks of several hosts end an operation at the same time, and in any order. */
static void note_end(struct job *j, const struct member *m, int64_t now)
{
    int64_t end = now - m->start_ps, last;

    if (!j->loop->ends_ps)
        return;
    last = atomic_load_explicit(&j->loop->ends_ps[m->ops], memory_order_relaxed);
    while (last < end &&
           !atomic_compare_exchange_weak_explicit(&j->loop->ends_ps[m->ops], &last, end,
                                                  memory_order_relaxed, memory_order_relaxed))
        ;
}

static void start_next(struct job *j, unsigned r, int64_t now)
{
    struct member *m = &j->mem[r];
    struct coll_args a = {0};
    char err[COMM_TEXT] = "";
    int rc;

    T_ASSERT_HOT(!m->req, "a rank starts an operation within another");
    j->loop->args(j->loop->ctx, r, &a);
    rc = coll_start(m->comm, &a, &m->req, err);
    if (rc) {
        m->req = NULL;
        rank_ended(j, r, now, rc, *err ? err : strerror(-rc));
    }
}

/* An operation may end in the call that starts it (one rank, or nothing to move). */
void job_loop_test(struct job *j, unsigned r, int64_t now)
{
    struct member *m = &j->mem[r];

    while (m->started && !m->ended && !job_dead(j, r)) {
        int rc = coll_test(m->req);

        if (!rc)
            return;
        coll_free(m->req);
        m->req = NULL;
        if (rc > 0)
            note_end(j, m, now);
        if (rc < 0)
            rank_ended(j, r, now, rc, comm_error(m->comm));
        else if (++m->ops == j->loop->n)
            rank_ended(j, r, now, 0, "");
        else
            start_next(j, r, now);
        if (!m->ended)
            job_progress(j, r);
    }
}

static bool loop_over(void *ctx)
{
    struct job *j = ctx;

    return !j->left || j->failures || (j->loop->stop && j->loop->stop(j->loop->ctx));
}

/* Names the rank that failed first; if several failed at that time, the lowest. */
static int failure(struct job *j)
{
    struct job_loop *l = j->loop;
    unsigned first = j->cfg.nranks;

    for (unsigned r = 0; r < j->cfg.nranks; r++)
        if (j->mem[r].ended && j->mem[r].rc &&
            (first == j->cfg.nranks || j->mem[r].end_ps < j->mem[first].end_ps))
            first = r;
    l->failed_ranks = (int)j->failures;
    snprintf(l->text, sizeof(l->text), "rank %u: %s", first, j->mem[first].why);
    return -EIO;
}

static int sim_job_loop_verdict(struct job *j)
{
    struct job_loop *l = j->loop;

    if (j->failures)
        return failure(j);
    for (unsigned r = 0; r < j->cfg.nranks; r++) {
        struct member *m = &j->mem[r];

        if (m->end_ps - m->start_ps > l->time_ps)
            l->time_ps = m->end_ps - m->start_ps;
        if (!m->ended && l->stop && l->stop(l->ctx))
            return -ECANCELED;
        if (job_dead(j, r)) {
            snprintf(l->text, sizeof(l->text), "rank %u has died", r);
            return -EIO;
        }
        if (!m->ended) {
            snprintf(l->text, sizeof(l->text), "rank %u has not ended within %.3f s of fabric time",
                     r, (double)l->limit_ps / PS_PER_S);
            return -ETIME;
        }
    }
    return 0;
}

void job_loop_start(struct job *j, struct job_loop *l)
{
    int64_t now = world_now(j->cfg.w);
    bool over = false;

    l->time_ps = 0;
    l->failed_ranks = 0;
    l->text[0] = '\0';
    T_ASSERT(!j->loop, "a loop begins within another");
    j->loop = l;
    job_record(j, JOB_LOOP_BEGUN, ++j->ops, l->n);
    j->left = j->cfg.nranks;
    j->failures = 0;
    for (unsigned r = 0; r < j->cfg.nranks; r++) {
        struct member *m = &j->mem[r];

        m->start_ps = now;
        m->started = true;
        m->ended = false;
        m->ops = 0;
        m->rc = 0;
        job_await(j, r, true);
    }
    for (unsigned r = 0; r < j->cfg.nranks && !over; r++) {
        start_next(j, r, now);
        if (!j->mem[r].ended)
            job_progress(j, r);
        job_loop_test(j, r, now);
        over = l->stop && l->stop(l->ctx); /* planning thousands of ranks takes a while */
    }
}

bool job_loop_over(const struct job *j)
{
    for (unsigned r = 0; r < j->cfg.nranks; r++)
        if (!j->mem[r].ended && !job_dead(j, r))
            return false;
    return true;
}

int job_loop_finish(struct job *j)
{
    int rc = sim_job_loop_verdict(j);

    job_record_failovers(j);
    job_record(j, JOB_LOOP_ENDED, j->left, j->failures);
    for (unsigned r = 0; r < j->cfg.nranks; r++) {
        if (j->mem[r].req)
            coll_free(j->mem[r].req);
        j->mem[r].req = NULL;
        j->mem[r].started = false;
        job_await(j, r, false);
    }
    j->loop = NULL;
    return rc;
}

void job_loop_cut(struct job *j, unsigned of)
{
    unsigned n = 0;

    T_ASSERT(j->loop && of, "a loop is cut that does not run");
    for (unsigned r = 0; r < j->cfg.nranks; r++)
        n = j->mem[r].ops + 1 > n ? j->mem[r].ops + 1 : n;
    n = (n + of - 1) / of * of;
    j->loop->n = n < j->loop->n ? n : j->loop->n;
}

bool job_loop_done(const struct job *j, unsigned rank)
{
    return j->mem[rank].ended && !j->mem[rank].rc;
}

int64_t job_loop_end_ps(const struct job *j, unsigned rank)
{
    return j->mem[rank].end_ps;
}

int job_loop_run(struct job *j, struct job_loop *l)
{
    int64_t begun = world_now(j->cfg.w);

    job_loop_start(j, l);
    if (!(l->stop && l->stop(l->ctx)))
        job_drive_slices(j, begun + l->limit_ps, loop_over, j);
    return job_loop_finish(j);
}
