/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/jobs/jobs_ops.h"

#include "base/assert.h"
#include "host/bench/verify/layout.h"

#include <errno.h>
#include <stdlib.h>

#define ALIGN 4096u

static struct layout layout_of(const struct jobs_job *job, unsigned k, unsigned rank)
{
    const struct jobs_op *op = &job->op[k];

    return (struct layout){.kind = op->kind,
                           .rank = rank,
                           .nranks = job->nranks,
                           .root = op->root,
                           .count = op->count};
}

/* Of the larger of both buffers of any rank. */
static size_t op_bytes(const struct jobs_job *job, unsigned k)
{
    uint64_t most = 0;

    for (unsigned r = 0; r < job->nranks; r++) {
        struct layout l = layout_of(job, k, r);

        most = layout_send(&l) > most ? layout_send(&l) : most;
        most = layout_recv(&l) > most ? layout_recv(&l) : most;
    }
    return (most * dtype_size(job->op[k].type) + ALIGN) / ALIGN * ALIGN;
}

uint64_t jobs_data_bytes(const struct jobs_job *j)
{
    uint64_t bytes = 0;

    for (unsigned k = 0; k < j->n_ops; k++)
        bytes += op_bytes(j, k);
    return 2 * j->nranks * bytes;
}

int jobs_ops_init(struct jobs_ops *o, const struct jobs_job *job, struct world *w, bool lengths)
{
    int rc;

    *o = (struct jobs_ops){.job = job, .w = w, .lengths = lengths};
    o->rank = calloc(job->nranks, sizeof(*o->rank));
    rc = o->rank ? 0 : -ENOMEM;
    for (unsigned k = 0; k < job->n_ops; k++) {
        o->at[k] = o->bytes;
        o->bytes += op_bytes(job, k);
        if (!rc && !lengths)
            rc = pattern_init(&o->val[k]);
    }
    return rc;
}

void jobs_ops_free(struct jobs_ops *o)
{
    for (unsigned k = 0; o->job && !o->lengths && k < o->job->n_ops; k++)
        pattern_free(&o->val[k]);
    free(o->rank);
    o->rank = NULL;
}

static char *buffer_of(const struct jobs_ops *o, unsigned rank, unsigned k, unsigned which)
{
    return (char *)job_buffer(o->j, rank, which) + o->at[k];
}

/* Sets what the rank's buffers of operation k are filled with and compared with. */
static struct test_pattern *pattern_of(struct jobs_ops *o, const struct layout *l, unsigned k)
{
    const struct jobs_op *op = &o->job->op[k];

    pattern_set(&o->val[k], l, op->type, op->op);
    pattern_within(&o->val[k], op->bound);
    return &o->val[k];
}

static void jobs_ops_prepare(struct jobs_ops *o, unsigned rank, unsigned k)
{
    struct layout l = layout_of(o->job, k, rank);

    if (o->lengths)
        return;
    pattern_prepare(pattern_of(o, &l, k), &l, buffer_of(o, rank, k, 0), buffer_of(o, rank, k, 1));
}

static void jobs_ops_check(struct jobs_ops *o, unsigned rank, unsigned k)
{
    struct layout l = layout_of(o->job, k, rank);

    if (o->lengths || o->job->op[k].kind == COLL_BARRIER)
        return;
    o->wrong +=
        pattern_check(pattern_of(o, &l, k), &l, buffer_of(o, rank, k, 0), buffer_of(o, rank, k, 1));
    o->checked++;
}

int jobs_ops_fill(struct jobs_ops *o)
{
    int rc = job_buffers(o->j, o->bytes);

    for (unsigned r = 0; !rc && r < o->job->nranks; r++)
        for (unsigned k = 0; k < o->job->n_ops; k++)
            jobs_ops_prepare(o, r, k);
    return rc;
}

static struct coll_args args_of(const struct jobs_ops *o, unsigned rank, unsigned k)
{
    const struct jobs_op *op = &o->job->op[k];

    return (struct coll_args){.kind = op->kind,
                              .algo = op->algo,
                              .send = buffer_of(o, rank, k, 0),
                              .recv = buffer_of(o, rank, k, 1),
                              .count = op->count,
                              .type = op->type,
                              .op = op->op,
                              .root = op->root};
}

/* The rank has finished the operation that it began last. */
static void finished(struct jobs_ops *o, unsigned rank, int64_t now)
{
    struct jobs_rank *r = &o->rank[rank];
    unsigned k = (r->begun - 1) % o->job->n_ops;

    jobs_ops_check(o, rank, k);
    if (k + 1 < o->job->n_ops)
        return;
    r->iterations++;
    r->iteration_ps = now;
}

void jobs_ops_next(void *ctx, unsigned rank, struct coll_args *a)
{
    struct jobs_ops *o = ctx;
    struct jobs_rank *r = &o->rank[rank];
    unsigned k = r->begun % o->job->n_ops;

    if (r->begun) {
        finished(o, rank, world_now(o->w));
        jobs_ops_prepare(o, rank, (r->begun - 1) % o->job->n_ops);
    }
    r->begun++;
    *a = args_of(o, rank, k);
}

void jobs_ops_connect(void *ctx, unsigned rank, struct coll_args *a)
{
    const struct jobs_ops *o = ctx;

    *a = args_of(o, rank, o->connects);
}

void jobs_ops_end(struct jobs_ops *o, unsigned rank)
{
    T_ASSERT(o->rank[rank].begun, "a rank ends a loop that it has not begun");
    finished(o, rank, job_loop_end_ps(o->j, rank));
}
