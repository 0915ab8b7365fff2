/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/observe.h"

#include "base/version.h"
#include "sim/report/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int64_t now_ps(void *ctx)
{
    return bench_now(((struct sim *)ctx)->b);
}

static int begin_timeline(struct sim *m)
{
    const struct timeline_cfg tc = {.fab = m->s->fab,
                                    .nranks = m->s->nranks,
                                    .host_of_rank = m->s->host_of_rank,
                                    .now_ps = now_ps,
                                    .ctx = m};
    struct net_timeline_cfg nc = {
        .fab = m->s->fab, .nranks = m->s->nranks, .host_of_rank = m->s->host_of_rank};
    int rc = timeline_create(&m->timeline, &tc);

    nc.t = m->timeline;
    if (!rc)
        rc = net_timeline_create(&m->line, &nc);
    if (rc)
        snprintf(m->s->cause, sizeof(m->s->cause), "--timeline: cannot keep events: %s",
                 strerror(-rc));
    return rc;
}

int observe_begin(struct sim *m)
{
    const struct fabric *f = m->s->fab;
    bool *chosen = calloc(f->n_links + 1u, sizeof(*chosen));
    int rc = chosen ? trace_choose(f, m->own.links, chosen, m->s->cause) : -ENOMEM;

    if (!rc && m->own.trace)
        rc =
            trace_create(&m->trace, f, chosen, m->own.trace, "trib-sim " TRIB_VERSION, m->s->cause);
    if (!rc && m->own.counters)
        rc = counters_create(&m->counters, f, m->own.links ? chosen : NULL);
    if (rc == -ENOMEM)
        snprintf(m->s->cause, sizeof(m->s->cause), "no memory for a trace or counters");
    if (!rc && m->o.timeline)
        rc = begin_timeline(m);
    free(chosen);
    return rc;
}

static void frame(void *ctx, unsigned dirlink, struct rte_mbuf *mb, int64_t at_ps)
{
    struct sim *m = ctx;

    if (m->trace)
        trace_frame(m->trace, dirlink, mb, at_ps);
    if (m->line)
        net_timeline_frame(m->line, dirlink, mb, at_ps);
}

net_tap_fn observe_tap(const struct sim *m)
{
    return m->trace || m->line ? frame : NULL;
}

int observe_write_timeline(struct sim *m)
{
    return m->line ? timeline_write(m->timeline, &m->o, "trib-sim", false, &m->s->granted,
                                    bench_timeline(m->b))
                   : 0;
}

int observe_end_trace(struct sim *m)
{
    uint64_t frames = 0;
    int rc = trace_close(m->trace, &frames);

    if (rc)
        fprintf(stderr, "trib-sim: cannot write %s: %s\n", m->own.trace, strerror(-rc));
    else if (m->trace)
        fprintf(stderr, "trib-sim: %llu frames in %s\n", (unsigned long long)frames, m->own.trace);
    m->trace = NULL;
    return rc;
}

void observe_end(struct sim *m)
{
    counters_destroy(m->counters);
    net_timeline_destroy(m->line);
    timeline_destroy(m->timeline);
}
