/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank's part of a time line: runs one more operation, records it, and sends the events to the
 * launcher. */
#include "host/launch/msg_read.h"
#include "host/launch/rank_priv.h"

#include <rte_common.h>
#include <stdlib.h>
#include <string.h>

#define PIECE (64u << 10) /* bytes of a MSG_EVENTS */

static int64_t now_ps(void *ctx)
{
    return clock_fabric_ps(((const struct launch_rank *)ctx)->sh);
}

int rank_timeline_open(struct launch_rank *k)
{
    const struct timeline_cfg cfg = {.fab = k->fab,
                                     .nranks = k->init.nranks,
                                     .host_of_rank = k->host,
                                     .now_ps = now_ps,
                                     .ctx = k};
    int rc = k->init.timeline ? timeline_create(&k->timeline, &cfg) : 0;

    return rc ? rank_fail(k, "cannot keep the events of a time line", strerror(-rc)) : 0;
}

static int send_events(struct launch_rank *k)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    int rc = f ? trace_events_copy_to(timeline_events(k->timeline), f) : -ENOMEM;

    if (f && fclose(f))
        rc = -ENOMEM;
    for (size_t at = 0; !rc && at < size; at += RTE_MIN(size - at, (size_t)PIECE))
        rc = msg_send(k->fd, MSG_EVENTS, text + at, RTE_MIN(size - at, (size_t)PIECE));
    free(text);
    return rc ? rank_fail(k, "cannot send the events of a time line", strerror(-rc)) : 0;
}

int rank_record(struct launch_rank *k, const struct msg *m)
{
    struct timeline_span span;
    struct msg_run run;
    int64_t late, start, ended, slow, slow_of;
    int rc;

    if (msg_read(m, &run, sizeof(run)) || !k->timeline)
        return rank_fail(k, "malformed RECORD", NULL);
    start = rank_wait_for_start(k, run.start_ps, &late);
    timeline_begin_at(k->timeline, start);
    k->limit = k->op = 1;
    rc = rank_operate(k, NULL);
    k->op = k->stop_after = 0;
    timeline_end(k->timeline);
    slow = lateness_of_host(k->sh, k->fab, &k->fab->nodes[k->fab->hosts[k->host[k->init.rank]]],
                            start, &slow_of);
    if (rc || send_events(k))
        return -ECANCELED;
    ended = clock_fabric_ps(k->sh) - start;
    span = timeline_span(k->timeline, k->init.rank);
    return rank_answer(k,
                       &(struct msg_done){.ops = 1,
                                          .late_ns = late,
                                          .entered_ps = span.begin_ps,
                                          .left_ps = span.end_ps,
                                          .schedules = span.schedules,
                                          .slow_ps = slow,
                                          .slow_of_ps = slow_of,
                                          .algo = span.algo},
                       &ended);
}
