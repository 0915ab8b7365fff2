/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/launch/ranks_timeline.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Hosts write their HCAs' counters at least this often, and links are at rest by then. */
#define REST_NS (150 * 1000000L)

struct ranks_timeline {
    struct timeline *t;
    FILE **events; /* [nranks] events that the rank has sent; NULL: none */
    json_t *about; /* description of the last recorded row; NULL: none */
    unsigned rows; /* recorded so far */
};

static int64_t now_ps(void *ctx)
{
    return clock_fabric_ps(((const struct sweep *)ctx)->rd->sh);
}

int ranks_timeline_create(struct sweep *s)
{
    const struct timeline_cfg cfg = {.fab = s->fab,
                                     .nranks = s->nranks,
                                     .host_of_rank = s->host_of_rank,
                                     .now_ps = now_ps,
                                     .ctx = s};
    int rc;

    if (!s->o->timeline)
        return 0;
    s->timeline = calloc(1, sizeof(*s->timeline));
    if (!s->timeline)
        return -ENOMEM;
    s->timeline->events = calloc(s->nranks, sizeof(*s->timeline->events));
    rc = s->timeline->events ? timeline_create(&s->timeline->t, &cfg) : -ENOMEM;
    if (rc)
        ranks_timeline_destroy(s);
    return rc;
}

static void close_events(struct sweep *s)
{
    for (unsigned i = 0; i < s->nranks; i++) {
        if (s->timeline->events[i])
            fclose(s->timeline->events[i]);
        s->timeline->events[i] = NULL;
    }
}

void ranks_timeline_destroy(struct sweep *s)
{
    if (!s->timeline)
        return;
    if (s->timeline->events)
        close_events(s);
    json_decref(s->timeline->about);
    free(s->timeline->events);
    timeline_destroy(s->timeline->t);
    free(s->timeline);
    s->timeline = NULL;
}

void ranks_timeline_events(struct sweep *s, unsigned rank, const struct msg *m)
{
    FILE **f = s->timeline ? &s->timeline->events[rank] : NULL;

    if (f && !*f)
        *f = tmpfile();
    if (f && *f)
        fwrite(m->body, 1, m->len, *f);
}

void ranks_timeline_done(struct sweep *s, unsigned rank, const struct msg_done *d)
{
    if (s->timeline && d->schedules)
        timeline_set_span(s->timeline->t, rank,
                          &(struct timeline_span){.begin_ps = d->entered_ps,
                                                  .end_ps = d->left_ps,
                                                  .algo = (enum coll_algo)d->algo,
                                                  .schedules = d->schedules,
                                                  .slow_ps = d->slow_ps,
                                                  .slow_of_ps = d->slow_of_ps});
}

/* Appends the events of all ranks to one file, in order of ranks. */
static int ranks_timeline_collect(struct sweep *s)
{
    int rc = 0;

    for (unsigned i = 0; !rc && i < s->nranks; i++) {
        FILE *f = s->timeline->events[i];

        if (!f)
            continue;
        rc = trace_events_append(timeline_events(s->timeline->t), f);
    }
    close_events(s);
    return rc;
}

static void ranks_timeline_tell(struct sweep *s, const struct row *r, int place,
                                const struct ports_reading *before,
                                const struct ports_reading *after)
{
    struct ranks_timeline *l = s->timeline;
    struct timeline_counts c;
    json_t *j;

    for (unsigned i = 0; i < s->nranks; i++) {
        c = ports_rank(s, before, after, i);
        timeline_count(l->t, i, &c);
    }
    j = timeline_about(l->t, r, place);
    json_object_set_new(j, "row", json_integer(l->rows));
    json_object_set_new(j, "error", json_string(""));
    json_decref(l->about);
    l->about = json_pack("{s:o, s:o, s:o, s:b, s:f, s:[]}", "operation", j, "links",
                         ports_links(s, before, after, l->t), "paths", ports_paths(s), "every_path",
                         s->fab->ecmp == FAB_ECMP_BALANCED, "counted_us",
                         ports_span_us(before, after), "switches");
}

int ranks_timeline_record(struct sweep *s, struct row *r, int place, int64_t after_ps,
                          double seconds, struct answers *a)
{
    const struct timespec rest = {.tv_nsec = REST_NS};
    struct msg_run m = {.n = 1};
    struct ports_reading *before, *after;
    int rc;

    if (!s->timeline || place != (s->o->place == PLACE_IN ? IN_PLACE : OUT_OF_PLACE))
        return 0;
    s->timeline->rows++;
    if (s->o->timeline_row && s->timeline->rows != s->o->timeline_row)
        return 0;
    nanosleep(&rest, NULL);
    before = ports_read(s);
    m.start_ps = after_ps ? after_ps + clock_fabric_ps(s->rd->sh) : 0;
    timeline_begin_at(s->timeline->t, m.start_ps);
    a->iters = 1;
    rc = ranks_command(s, MSG_RECORD, &m, sizeof(m), seconds, a);
    nanosleep(&rest, NULL);
    after = rc ? NULL : ports_read(s);
    if (!rc)
        rc = before && after ? ranks_timeline_collect(s) : -ENOMEM;
    if (!rc)
        ranks_timeline_tell(s, r, place, before, after);
    close_events(s);
    timeline_end(s->timeline->t);
    ports_free(before);
    ports_free(after);
    return rc;
}

int ranks_timeline_write(struct sweep *s)
{
    json_t *about;

    if (!s->timeline)
        return 0;
    about = s->timeline->about;
    s->timeline->about = NULL;
    return timeline_write(s->timeline->t, s->o, "trib-perf", true, &s->granted, about);
}
