/* SPDX-License-Identifier: BSD-3-Clause */
/* A bench from its creation to its end; rows: bench_row.c. */
#include "sim/report/bench_priv.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define DRAIN_TURNS 64 /* round trips at most: keep-alives go on for ever */

#define CONNECT_PS (60 * PS_PER_S)   /* fabric time */
#define SETTLE_PS  (100 * PS_PER_US) /* for frames in flight when the last rank has left */

unsigned bench_frames(unsigned nranks)
{
    return 16384 + 384 * nranks;
}

static int connect_all(struct bench *b, char *err)
{
    struct job_cfg jc = {.w = b->w,
                         .fab = b->cfg.fab,
                         .nranks = b->cfg.nranks,
                         .host_of_rank = b->cfg.host_of_rank,
                         .group = 1,
                         .key = b->cfg.seed,
                         .n_trees = b->cfg.n_trees,
                         .trees = b->cfg.tree,
                         .window = b->cfg.o->window,
                         .algos = b->cfg.algos,
                         .n_policy = b->cfg.o->n_policy,
                         .policy = b->cfg.o->policy,
                         .lengths = b->cfg.lengths,
                         .limit_ps = CONNECT_PS,
                         .timeline = b->cfg.line ? net_timeline_ranks(b->cfg.line) : NULL};
    int rc = job_create(&b->j, &jc, err);

    if (bench_too_few_frames(b))
        return bench_explain_too_few(b, err);
    if (rc) {
        if (!*err)
            snprintf(err, COMM_TEXT, "cannot connect %u ranks: %s", b->cfg.nranks, strerror(-rc));
        return rc;
    }
    bench_granted(b, &b->grant);
    rc = job_buffers(b->j, options_buffer(b->cfg.o, b->cfg.nranks));
    if (!rc)
        rc = pattern_init(&b->val);
    if (rc)
        snprintf(err, COMM_TEXT, "no memory for the buffers of %u ranks", b->cfg.nranks);
    return rc;
}

static void notify_death(void *ctx, unsigned rank)
{
    struct bench *b = ctx;

    if (b->j)
        job_notify_death(b->j, rank);
}

static int begin_faults(struct bench *b)
{
    struct faults_cfg fc = {.w = b->w,
                            .fab = b->cfg.fab,
                            .nranks = b->cfg.nranks,
                            .host_of_rank = b->cfg.host_of_rank,
                            .notify_death = notify_death,
                            .ctx = b};

    return b->cfg.plan ? faults_create(&b->faults, b->cfg.plan, &fc) : 0;
}

/* The ranks, then the two of the background flow. */
static int create_world(struct bench *b)
{
    const struct bench_cfg *cfg = &b->cfg;
    uint16_t *host = calloc(cfg->nranks + 2u, sizeof(*host));
    struct world_cfg wc = {.fab = cfg->fab,
                           .nranks = cfg->nranks,
                           .host_of_rank = host,
                           .pool = cfg->pool,
                           .seed = cfg->seed,
                           .an_mbufs = cfg->frames,
                           .threads = cfg->threads,
                           .tap = cfg->tap,
                           .tap_ctx = cfg->tap_ctx,
                           .trace_lengths = true};
    int rc;

    if (!host)
        return -ENOMEM;
    memcpy(host, cfg->host_of_rank, cfg->nranks * sizeof(*host));
    if (cfg->background) {
        host[wc.nranks++] = cfg->background->from;
        host[wc.nranks++] = cfg->background->to;
    }
    rc = world_create(&b->w, &wc);
    free(host);
    return rc;
}

static bool bench_never(void *ctx)
{
    (void)ctx;
    return false;
}

/* Runs the world until no link carries traffic from connecting: a short first operation without
 * warm-up would queue behind that traffic. */
static void bench_drain(struct bench *b)
{
    int64_t round_trip = b->cfg.fab->transport.round_trip_ps;
    uint64_t before;

    for (unsigned i = 0; i < DRAIN_TURNS; i++) {
        before = world_frames(b->w);
        job_drive(b->j, world_now(b->w) + round_trip, bench_never, NULL);
        if (world_frames(b->w) == before)
            return;
    }
}

int bench_create(struct bench **out, const struct bench_cfg *cfg, char *err)
{
    struct bench *b = calloc(1, sizeof(*b));
    int rc = b ? 0 : -ENOMEM;

    *err = '\0';
    if (!rc) {
        b->cfg = *cfg;
        b->born_s = wall_s();
        b->sent = calloc(4u * cfg->fab->n_links + 1, sizeof(*b->sent));
        b->sent_before = b->sent + 2u * cfg->fab->n_links;
        rc = b->sent ? create_world(b) : -ENOMEM;
    }
    if (!rc)
        rc = begin_faults(b);
    if (rc)
        snprintf(err, COMM_TEXT, "cannot make the fabric with %u ranks: %s", cfg->nranks,
                 strerror(-rc));
    else
        rc = connect_all(b, err);
    if (!rc)
        bench_drain(b);
    if (!rc && cfg->background)
        rc = background_flow_create(&b->background, cfg->fab, b->w, cfg->background, cfg->nranks,
                                    err);
    if (b && b->background && bench_too_few_frames(b))
        rc = bench_explain_too_few(b, err);
    if (rc && b)
        bench_destroy(b);
    if (!rc)
        *err = '\0';
    if (!rc && b->faults)
        faults_start(b->faults);
    *out = rc ? NULL : b;
    return rc;
}

void bench_granted(const struct bench *b, struct coll_grant *g)
{
    comm_granted(job_comm(b->j, 0), g);
}

struct net *bench_net(const struct bench *b)
{
    return world_net(b->w);
}

int64_t bench_now(const struct bench *b)
{
    return b ? world_now(b->w) : 0;
}

const struct background_flow *bench_background_flow(const struct bench *b)
{
    return b->background;
}

void bench_congestion(const struct bench *b, struct congestion *c)
{
    congestion_read(c, b->w, b->cfg.fab);
}

void bench_state(const struct bench *b, struct bench_state *s)
{
    *s = (struct bench_state){.fabric_ps = world_now(b->w),
                              .events = world_events(b->w),
                              .frames = world_frames(b->w),
                              .trace = world_trace_hash(b->w),
                              .pool_peak = b->peak,
                              .timed = b->timed,
                              .threads = world_threads(b->w)};
}

struct json_t *bench_timeline(struct bench *b)
{
    json_t *j = b->about_line;

    b->about_line = NULL;
    return j;
}

int bench_leave(struct bench *b)
{
    int rc = b->j ? job_destroy(b->j) : 0;
    int64_t limit = b->w ? world_now(b->w) + SETTLE_PS : 0;

    if (b->j)
        while (world_step(b->w, limit))
            ;
    b->j = NULL;
    return rc;
}

void bench_destroy(struct bench *b)
{
    bench_leave(b);
    faults_destroy(b->faults);
    background_flow_destroy(b->background);
    pattern_free(&b->val);
    sampled_free(&b->sampled);
    world_destroy(b->w);
    free(b->sent);
    json_decref(b->about_line);
    free(b);
}
