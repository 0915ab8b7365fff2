/* Operations back to back, on data that is the caller's. */
#include "sim/job_priv.h"

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

static void rank_over(struct job *j, unsigned r, int rc, const char *why)
{
    struct member *m = &j->mem[r];
    struct job_loop *l = j->loop;

    m->ended = true;
    m->rc = rc;
    m->end_ps = world_now(j->cfg.w);
    job_await(j, r, false);
    j->left--;
    if (!rc)
        return;
    l->failed_ranks++;
    if (!l->text[0])
        snprintf(l->text, sizeof(l->text), "rank %u: %s", r, why);
}

static void start_next(struct job *j, unsigned r)
{
    struct member *m = &j->mem[r];
    struct coll_args a = {0};
    char err[COMM_TEXT] = "";
    int rc;

    j->loop->args(j->loop->ctx, r, &a);
    rc = coll_start(m->comm, &a, &m->req, err);
    if (rc) {
        m->req = NULL;
        rank_over(j, r, rc, *err ? err : strerror(-rc));
    }
}

/* An operation may end in the call that starts it (one rank, or nothing to move). */
void job_loop_look(struct job *j, unsigned r)
{
    struct member *m = &j->mem[r];

    while (m->started && !m->ended && !job_dead(j, r)) {
        int rc = coll_test(m->req);

        if (!rc)
            return;
        coll_free(m->req);
        m->req = NULL;
        if (rc < 0)
            rank_over(j, r, rc, comm_error(m->comm));
        else if (++m->ops == j->loop->n)
            rank_over(j, r, 0, NULL);
        else
            start_next(j, r);
        if (!m->ended)
            job_progress(j, r);
    }
}

static bool loop_over(void *ctx)
{
    struct job *j = ctx;

    return !j->left || j->loop->failed_ranks || (j->loop->stop && j->loop->stop(j->loop->ctx));
}

static int verdict(struct job *j)
{
    struct job_loop *l = j->loop;

    if (l->failed_ranks)
        return -EIO;
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

int job_loop_run(struct job *j, struct job_loop *l)
{
    int64_t now = world_now(j->cfg.w);
    int rc;

    l->time_ps = 0;
    l->failed_ranks = 0;
    l->text[0] = '\0';
    j->loop = l;
    j->left = j->cfg.nranks;
    for (unsigned r = 0; r < j->cfg.nranks; r++) {
        struct member *m = &j->mem[r];

        m->start_ps = now;
        m->started = true;
        m->ended = false;
        m->ops = 0;
        m->rc = 0;
        job_await(j, r, true);
    }
    for (unsigned r = 0; r < j->cfg.nranks; r++) {
        start_next(j, r);
        if (!j->mem[r].ended)
            job_progress(j, r);
        job_loop_look(j, r);
    }
    job_drive_slices(j, now + l->limit_ps, loop_over, j);
    rc = verdict(j);
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
