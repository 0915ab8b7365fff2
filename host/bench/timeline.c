/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/bench/timeline.h"

#include "base/units.h"
#include "host/coll/comm.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define UNKNOWN INT64_MIN
#define NAMED   64

/* Times of a step: fabric time, or UNKNOWN if it has not come that far. */
struct step_times {
    int64_t posted_ps, done_ps;
};

struct rank_line {
    struct timeline *t;
    struct comm_watch watch;
    unsigned rank, passed; /* passed: operations since timeline_begin() */
    uint32_t seq;          /* number of the recorded operation */
    int64_t begin_ps, end_ps;
    enum coll_algo algo;
    uint32_t *first; /* [s.n_lanes] index of the lane's first step in at[] */
    struct step_times *at;
    uint32_t n, begun; /* steps in at[]; times that the operation began */
    struct timeline_counts counted;
    int64_t slow_ps, slow_of_ps;
};

struct timeline {
    struct timeline_cfg cfg;
    struct trace_events *events;
    int64_t origin_ps;
    unsigned skip, steps, ranks_left_out;
    bool on;
    struct rank_line *rank; /* [nranks] */
};

static int64_t now(const struct timeline *t)
{
    return t->cfg.now_ps(t->cfg.ctx);
}

uint32_t timeline_rank_pid(unsigned rank)
{
    return 1 + rank;
}

uint32_t timeline_node_pid(const struct timeline *t, unsigned node)
{
    return 1 + t->cfg.nranks + node;
}

/* ---- recording ---- */

static void rank_line_forget(struct rank_line *l)
{
    free(l->first);
    free(l->at);
    l->first = NULL;
    l->at = NULL;
    l->t->steps -= l->n;
    l->n = 0;
}

static void on_begin(void *ctx, const struct coll_req *r)
{
    struct rank_line *l = ctx;
    struct timeline *t = l->t;
    bool again = l->begun && l->seq == r->id.seq;

    if (!t->on || (!again && l->passed++ != t->skip))
        return;
    if (t->origin_ps == PS_NEVER)
        t->origin_ps = now(t);
    rank_line_forget(l);
    l->begun++;
    l->seq = r->id.seq;
    l->begin_ps = again ? l->begin_ps : now(t);
    l->algo = r->s.in.algo;
    if (t->steps + r->s.n_steps <= TIMELINE_STEPS) {
        l->first = calloc(r->s.n_lanes + 1u, sizeof(*l->first));
        l->at = malloc((r->s.n_steps + 1u) * sizeof(*l->at));
    }
    if (!l->first || !l->at) {
        rank_line_forget(l);
        t->ranks_left_out += !again;
        return;
    }
    for (unsigned i = 0; i < r->s.n_lanes; i++) {
        l->first[i] = l->n;
        l->n += r->s.lane[i].n;
    }
    t->steps += l->n;
    for (unsigned i = 0; i < l->n; i++)
        l->at[i] = (struct step_times){UNKNOWN, UNKNOWN};
}

static bool records(const struct rank_line *l, const struct coll_req *r)
{
    return l->at && l->seq == r->id.seq && l->end_ps == UNKNOWN;
}

static void on_posted(void *ctx, const struct coll_req *r, unsigned lane, uint64_t n)
{
    struct rank_line *l = ctx;

    if (records(l, r))
        l->at[l->first[lane] + n].posted_ps = now(l->t);
}

static void on_done(void *ctx, const struct coll_req *r, unsigned lane, uint64_t n)
{
    struct rank_line *l = ctx;
    int64_t ps;

    if (!records(l, r))
        return;
    ps = now(l->t);
    for (; n && l->at[l->first[lane] + n - 1].done_ps == UNKNOWN; n--)
        l->at[l->first[lane] + n - 1].done_ps = ps;
}

/* ---- the events of a rank ---- */

static void lane_name(const struct lane *l, char *text)
{
    switch (l->kind) {
    case LANE_SEND:
        snprintf(text, NAMED, "send to rank %u, channel %u", l->peer, l->chan);
        break;
    case LANE_RECV:
        snprintf(text, NAMED, "from rank %u, channel %u", l->peer, l->chan);
        break;
    case LANE_AGG:
        snprintf(text, NAMED, "%stree %u", l->peer ? "rail " : "", l->chan);
        break;
    case LANE_MM:
        snprintf(text, NAMED, "multimem plane %u", l->chan);
        break;
    default:
        if (l->kind == LANE_PROTOCOL)
            snprintf(text, NAMED, "protocol %u, tree %u", l->chan, l->peer);
        else
            snprintf(text, NAMED, "compute %u", l->chan);
    }
}

static const char *step_name(const struct step *st)
{
    static const char *const names[] = {"send",   "receive", "reduce", "copy",
                                        "switch", "load",    "store",  "protocol"};

    return names[st->op];
}

static const char *step_category(const struct lane *l)
{
    static const char *const names[LANE_KINDS] = {"compute", "send",     "receive",
                                                  "switch",  "multimem", "protocol"};

    return names[l->kind];
}

/* The steps that the step had to wait for: [thread, step] each. */
static json_t *after_json(const struct step *st)
{
    json_t *a = json_array();

    for (unsigned i = 0; i < st->n_deps; i++)
        json_array_append_new(a, json_pack("[I, I]", (json_int_t)st->dep[i].lane + 1,
                                           (json_int_t)st->dep[i].count - 1));
    return a;
}

/* An arrow from a message's start to its arrival. */
static void arrow(struct rank_line *l, const struct lane *lane, unsigned tid, uint64_t n,
                  int64_t ps)
{
    bool out = lane->kind == LANE_SEND;
    char id[NAMED];

    if (lane->kind != LANE_SEND && lane->kind != LANE_RECV)
        return;
    snprintf(id, sizeof(id), "%u>%u.%u.%llu", out ? l->rank : lane->peer,
             out ? lane->peer : l->rank, lane->chan, (unsigned long long)n);
    timeline_add(l->t,
                 (struct trace_event){.ph = out ? 's' : 'f',
                                      .pid = timeline_rank_pid(l->rank),
                                      .tid = tid,
                                      .ps = ps,
                                      .name = "message",
                                      .cat = "message",
                                      .id = id},
                 NULL);
}

/* Adds a step. It occupies its lane from its start, or the end of the previous step, to its end,
 * which for a send is the ACK. */
static void add_step(struct rank_line *l, const struct lane *lane, unsigned tid, uint64_t n,
                     int64_t *free_ps)
{
    const struct step *st = lane_step(lane, n);
    const struct step_times *at = &l->at[l->first[tid - 1] + n];
    int64_t posted = at->posted_ps, start;
    json_t *args;

    if (at->done_ps == UNKNOWN)
        return;
    if (posted == UNKNOWN)
        posted = lane->kind == LANE_RECV ? *free_ps : at->done_ps;
    start = posted > *free_ps ? posted : *free_ps;
    args = json_pack("{s:I, s:I, s:f}", "step", (json_int_t)n, "bytes", (json_int_t)st->len,
                     "posted_us", (double)(posted - l->t->origin_ps) / PS_PER_US);
    if (st->n_deps)
        json_object_set_new(args, "after", after_json(st));
    if (lane->kind == LANE_SEND || lane->kind == LANE_RECV)
        json_object_set_new(args, "peer", json_integer(lane->peer));
    if (lane->kind != LANE_CPU)
        json_object_set_new(args, "channel", json_integer(lane->chan));
    if (lane->kind == LANE_AGG)
        json_object_set_new(args, "sent_bytes",
                            json_integer(st->a.buf == BUF_NONE ? 0 : (json_int_t)st->len));
    if (lane->kind == LANE_AGG)
        json_object_set_new(args, "rail", json_boolean(lane->peer));
    timeline_add(l->t,
                 (struct trace_event){.ph = 'X',
                                      .pid = timeline_rank_pid(l->rank),
                                      .tid = tid,
                                      .ps = start,
                                      .dur_ps = at->done_ps - start,
                                      .name = step_name(st),
                                      .cat = step_category(lane)},
                 args);
    arrow(l, lane, tid, n, lane->kind == LANE_SEND ? posted : at->done_ps);
    *free_ps = at->done_ps;
}

static void add_rank(struct rank_line *l, const struct coll_req *r)
{
    const struct fabric *f = l->t->cfg.fab;
    char name[FAB_NAME + 32];

    snprintf(name, sizeof(name), "rank %u (%s)", l->rank,
             f->nodes[f->hosts[l->t->cfg.host_of_rank[l->rank]]].name);
    trace_events_process(l->t->events, timeline_rank_pid(l->rank), name);
    trace_events_thread(l->t->events, timeline_rank_pid(l->rank), 0, "operation");
    snprintf(name, sizeof(name), "%s by %s", coll_name(r->id.kind), sched_algo_name(l->algo));
    timeline_add(
        l->t,
        (struct trace_event){.ph = 'X',
                             .pid = timeline_rank_pid(l->rank),
                             .tid = 0,
                             .ps = l->begin_ps,
                             .dur_ps = l->end_ps - l->begin_ps,
                             .name = name,
                             .cat = "operation"},
        json_pack("{s:I, s:i}", "operation", (json_int_t)r->id.seq, "schedules", (int)l->begun));
}

static void on_end(void *ctx, const struct coll_req *r)
{
    struct rank_line *l = ctx;
    char name[NAMED];

    if (!l->t->on || !l->begun || l->seq != r->id.seq || l->end_ps != UNKNOWN)
        return;
    l->end_ps = now(l->t);
    add_rank(l, r);
    for (unsigned i = 0; l->at && i < r->s.n_lanes; i++) {
        const struct lane *lane = &r->s.lane[i];
        int64_t free_ps = l->begin_ps;

        lane_name(lane, name);
        trace_events_thread(l->t->events, timeline_rank_pid(l->rank), i + 1, name);
        for (uint64_t n = 0; n < lane->n; n++)
            add_step(l, lane, i + 1, n, &free_ps);
    }
    rank_line_forget(l);
}

/* ---- for those who run operations ---- */

const struct comm_watch *timeline_watch(struct timeline *t, unsigned rank)
{
    return &t->rank[rank].watch;
}

static void timeline_begin_skipping(struct timeline *t, unsigned skip, int64_t origin_ps)
{
    trace_events_restart(t->events);
    t->skip = skip;
    t->ranks_left_out = 0;
    t->on = true;
    t->origin_ps = origin_ps;
    for (unsigned i = 0; i < t->cfg.nranks; i++) {
        struct rank_line *l = &t->rank[i];

        rank_line_forget(l);
        l->passed = l->begun = 0;
        l->begin_ps = l->end_ps = UNKNOWN;
        l->counted = (struct timeline_counts){0};
        l->slow_ps = l->slow_of_ps = 0;
    }
}

void timeline_begin(struct timeline *t, unsigned skip)
{
    timeline_begin_skipping(t, skip, skip ? PS_NEVER : now(t));
}

void timeline_begin_at(struct timeline *t, int64_t origin_ps)
{
    timeline_begin_skipping(t, 0, origin_ps);
}

void timeline_set_span(struct timeline *t, unsigned rank, const struct timeline_span *s)
{
    t->rank[rank].begin_ps = s->begin_ps;
    t->rank[rank].end_ps = s->end_ps;
    t->rank[rank].algo = s->algo;
    t->rank[rank].begun = s->schedules;
    t->rank[rank].slow_ps = s->slow_ps;
    t->rank[rank].slow_of_ps = s->slow_of_ps;
}

struct timeline_span timeline_span(const struct timeline *t, unsigned rank)
{
    const struct rank_line *l = &t->rank[rank];

    return (struct timeline_span){l->begin_ps, l->end_ps,  l->algo,
                                  l->begun,    l->slow_ps, l->slow_of_ps};
}

void timeline_end(struct timeline *t)
{
    t->on = false;
}

int64_t timeline_origin(const struct timeline *t)
{
    return t->on ? t->origin_ps : PS_NEVER;
}

struct trace_events *timeline_events(struct timeline *t)
{
    return t->events;
}

void timeline_add(struct timeline *t, struct trace_event e, json_t *args)
{
    T_ASSERT(t->origin_ps != PS_NEVER, "an event comes before the operation has begun");
    e.ps -= t->origin_ps;
    trace_events_add(t->events, &e, args);
}

void timeline_count(struct timeline *t, unsigned rank, const struct timeline_counts *c)
{
    t->rank[rank].counted = *c;
}

/* ---- what it was ---- */

static json_t *time_json(const struct timeline *t, int64_t ps)
{
    return ps == UNKNOWN ? json_null() : json_real((double)(ps - t->origin_ps) / PS_PER_US);
}

static json_t *rank_json(const struct timeline *t, const struct rank_line *l)
{
    const struct fabric *f = t->cfg.fab;
    const struct timeline_counts *c = &l->counted;
    json_t *j;

    j = json_pack("{s:i, s:i, s:s, s:o, s:o, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "rank",
                  (int)l->rank, "pid", (int)timeline_rank_pid(l->rank), "host",
                  f->nodes[f->hosts[t->cfg.host_of_rank[l->rank]]].name, "entered_us",
                  time_json(t, l->begin_ps), "ended_us", time_json(t, l->end_ps), "schedules",
                  (int)l->begun, "retransmits", (json_int_t)c->retransmits, "timeouts",
                  (json_int_t)c->timeouts, "rnr_naks", (json_int_t)c->rnr_naks, "seq_naks",
                  (json_int_t)c->seq_naks, "duplicates", (json_int_t)c->duplicates, "icrc_errors",
                  (json_int_t)c->icrc_errors, "rate_cuts", (json_int_t)c->rate_cuts);
    if (l->slow_of_ps) {
        json_object_set_new(j, "slow_us", json_real((double)l->slow_ps / PS_PER_US));
        json_object_set_new(j, "slow_of_us", json_real((double)l->slow_of_ps / PS_PER_US));
    }
    return j;
}

static json_t *transport_json(const struct fabric *f)
{
    return json_pack("{s:I, s:I, s:f}", "mtu", (json_int_t)f->mtu, "window_packets",
                     (json_int_t)f->transport.window, "round_trip_us",
                     (double)f->transport.round_trip_ps / PS_PER_US);
}

static const char *fidelity_name(const struct run_result *run)
{
    return !run->dilation || run->fid.ok ? "ok" : "lag";
}

json_t *timeline_about(const struct timeline *t, const struct row *r, int place)
{
    const struct run_result *run = &r->run[place];
    json_t *ranks = json_array(), *j;

    for (unsigned i = 0; i < t->cfg.nranks; i++)
        json_array_append_new(ranks, rank_json(t, &t->rank[i]));
    j = json_pack(
        "{s:s, s:s, s:s, s:s, s:I, s:s, s:s, s:b, s:f, s:i, s:s, s:o, s:f, s:s, s:o, s:{s:I, s:i}, "
        "s:o}",
        "fabric", t->cfg.fab->name, "collective", coll_name(r->coll), "algorithm", row_algo_name(r),
        "ran_by", sched_algo_name(t->rank[0].algo), "size_bytes", (json_int_t)r->bytes, "type",
        row_type(r), "op", row_op(r), "in_place", place == IN_PLACE, "time_us", run->time_us,
        "dilation", (int)(run->dilation ? run->dilation : 1), "fidelity", fidelity_name(run),
        "predicted_us",
        r->pred.time_ps && !r->pred.guessed ? json_real(row_predicted_us(r)) : json_null(),
        "predicted_utilisation", row_predicted_utilisation(r), "fell_back", run->fell_back,
        "transport", transport_json(t->cfg.fab), "left_out", "events",
        (json_int_t)trace_events_left_out(t->events), "ranks", (int)t->ranks_left_out, "ranks",
        ranks);
    return j;
}

/* ---- life ---- */

int timeline_create(struct timeline **out, const struct timeline_cfg *cfg)
{
    struct timeline *t = calloc(1, sizeof(*t));
    int rc = -ENOMEM;

    *out = NULL;
    if (t)
        t->rank = calloc(cfg->nranks, sizeof(*t->rank));
    if (t && t->rank)
        rc = trace_events_create(&t->events, TIMELINE_EVENTS);
    if (rc) {
        timeline_destroy(t);
        return rc;
    }
    t->cfg = *cfg;
    t->origin_ps = PS_NEVER;
    for (unsigned i = 0; i < cfg->nranks; i++) {
        struct rank_line *l = &t->rank[i];

        *l = (struct rank_line){.t = t, .rank = i, .begin_ps = UNKNOWN, .end_ps = UNKNOWN};
        l->watch = (struct comm_watch){on_begin, on_posted, on_done, on_end, l};
    }
    *out = t;
    return 0;
}

void timeline_destroy(struct timeline *t)
{
    if (!t)
        return;
    for (unsigned i = 0; t->rank && i < t->cfg.nranks; i++)
        if (t->rank[i].t)
            rank_line_forget(&t->rank[i]);
    trace_events_destroy(t->events);
    free(t->rank);
    free(t);
}
