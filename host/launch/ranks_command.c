/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends a command to the ranks of a sweep and collects their answers, within the row's time. */
#include "host/launch/msg_read.h"
#include "host/launch/ranks_priv.h"
#include "host/launch/ranks_timeline.h"

#include <errno.h>
#include <rte_common.h>
#include <stdlib.h>
#include <string.h>

#define SLACK_S 60.0 /* a command is stuck this long after its expected end */

static double over_s(const struct sweep *s)
{
    return RANKS_OVER_S + RANKS_OVER * s->o->max_wall;
}

/* Sends LIMIT once every rank has reported the operation that it has begun: the run ends one
 * operation after the latest of them. */
static void send_limit(struct answers *a)
{
    struct msg_progress p = {RTE_MIN(a->foremost + 1, a->iters), 0};

    if (a->stopping && a->n_begun == a->s->nranks)
        for (unsigned r = 0; r < a->s->nranks; r++)
            job_send(a->s->job, r, MSG_LIMIT, &p, sizeof(p));
}

static void note_begun(struct answers *a, unsigned rank, uint32_t begun)
{
    if (a->has_begun[rank])
        return;
    T_ASSERT(a->n_begun < a->s->nranks, "more ranks have begun an operation than there are");
    a->has_begun[rank] = 1;
    a->n_begun++;
    a->foremost = RTE_MAX(a->foremost, begun);
    send_limit(a);
}

static void stop_run(void *ctx)
{
    struct answers *a = ctx;

    a->stopping = true;
    for (unsigned r = 0; r < a->s->nranks; r++)
        if (!a->has_begun[r])
            job_send(a->s->job, r, MSG_STOP, NULL, 0);
}

static void take_ends(struct answers *a, const uint8_t *ends, unsigned n)
{
    int64_t last = 0;

    for (unsigned i = 0; i < n; i++) {
        int64_t end;

        memcpy(&end, ends + i * sizeof(end), sizeof(end)); /* not aligned in the message */
        last = RTE_MAX(last, end);
        a->ends[i] = RTE_MAX(a->ends[i], last);
    }
}

int ranks_take_done(void *ctx, unsigned rank, const struct msg *m)
{
    struct answers *a = ctx;
    struct msg_done d;

    if (msg_read_done(m, a->s->fab, a->iters, &d))
        return -EPROTO;
    if (d.ops) {
        note_begun(a, rank, d.ops);
        a->ops = d.ops;
    }
    take_ends(a, m->body + sizeof(d), d.ops);
    a->wrong += d.wrong;
    a->entered_ps = d.entered_ps > a->entered_ps ? d.entered_ps : a->entered_ps;
    a->left_ps = d.left_ps < a->left_ps ? d.left_ps : a->left_ps;
    a->ulp.max = d.ulp.max > a->ulp.max ? d.ulp.max : a->ulp.max;
    a->ulp.sum += d.ulp.sum;
    a->ulp.n += d.ulp.n;
    a->staging_ns = d.staging_ns > a->staging_ns ? d.staging_ns : a->staging_ns;
    a->late_ns = d.late_ns > a->late_ns ? d.late_ns : a->late_ns;
    if (!rank && *d.memory)
        memcpy(a->s->memory, d.memory, sizeof(d.memory));
    if (!rank) {
        a->s->last_trees = d.last_trees;
        memcpy(a->s->last_tree, d.last_tree, sizeof(d.last_tree));
    }
    if (!rank && d.granted.asked)
        sweep_granted(a->s, &d.granted);
    a->aggregated = d.aggregated < a->aggregated ? d.aggregated : a->aggregated;
    for (unsigned i = 0; i < TRIB_COUNTERS; i++)
        a->counted[i] += d.counted[i];
    a->algo = d.algo;
    a->end = (struct run_end){d.goes_on, d.lacks_trees};
    ranks_timeline_done(a->s, rank, &d);
    if (*d.fell_back)
        memcpy(a->s->fell_back, d.fell_back, sizeof(d.fell_back));
    return 0;
}

static int take_progress(void *ctx, unsigned rank, const struct msg *m)
{
    struct answers *a = ctx;
    struct msg_progress p;
    char line[160];

    if (m->type == MSG_EVENTS) {
        ranks_timeline_events(a->s, rank, m);
        return 0;
    }
    if (msg_read(m, &p, sizeof(p)))
        return -EPROTO;
    if (p.begun)
        note_begun(a, rank, p.begun);
    snprintf(line, sizeof(line), "%s, %u of %u", a->label, p.done, a->iters);
    sweep_show(a->s, line);
    return 0;
}

int ranks_command(struct sweep *s, uint32_t type, const void *body, size_t len, double seconds,
                  struct answers *a)
{
    double hard = ranks_left_s(s->row_until) + over_s(s);
    char bound[MSG_TEXT / 2];
    struct job_limits l = {.seconds = seconds + SLACK_S};
    int rc;

    if (hard < l.seconds) {
        snprintf(bound, sizeof(bound), "%s not measured: --max-wall %g s is over", a->label,
                 s->o->max_wall);
        l.bound = bound;
        l.seconds = RTE_MAX(hard, RANKS_OVER_S / 2);
    }
    if (type == MSG_RUN) {
        l.soft = stop_run;
        l.soft_s = RTE_MAX(0.0, ranks_left_s(s->until));
        a->stopping = false;
        a->foremost = a->n_begun = a->ops = 0;
        memset(a->has_begun, 0, sizeof(a->has_begun));
    }
    rc = job_bcast(s->job, type, body, len);

    memset(a->counted, 0, sizeof(a->counted));
    a->wrong = 0;
    a->entered_ps = INT64_MIN;
    a->left_ps = INT64_MAX;
    a->ulp = (struct ulp){0};
    a->staging_ns = a->late_ns = 0;
    a->aggregated = UINT32_MAX;
    if (!rc)
        rc = job_gather_within(s->job, MSG_DONE, &l, ranks_take_done, take_progress, a);
    if (rc == -ETIMEDOUT && l.bound)
        s->unmeasured++;
    return rc;
}
