/* SPDX-License-Identifier: BSD-3-Clause */
#include "protocols/host/switch_host_priv.h"

#include "aggregation/arith.h"
#include "protocols/host/call.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)TRIB_INT8 == DT_INT8 && (int)TRIB_UINT64 == DT_UINT64 &&
                   (int)TRIB_FLOAT16 == DT_FP16 && (int)TRIB_FLOAT64 == DT_FP64 &&
                   (int)TRIB_BFLOAT16 == DT_BF16 && (int)TRIB_SUM == OP_SUM &&
                   (int)TRIB_MAX == OP_MAX,
               "the interface's types and reductions are those of aggregation/");

void proto_doom(struct proto_switch *s, struct proto_job *job, const char *fmt, ...)
{
    va_list ap;

    if (!job || job->why[0])
        return;
    va_start(ap, fmt);
    vsnprintf(job->why, sizeof(job->why), fmt, ap);
    va_end(ap);
    s->any_doomed = true;
}

#define CALL(s, function, call)                                                                    \
    PROTO_CALL((s)->cfg.protocol->name, function " of its switch half", call)

/* ---- packets, work, time ---- */

/* Whether such a packet may be sent. */
static bool lengths_valid(struct proto_switch *s, struct trib_job *job, uint32_t head_bytes,
                          uint32_t data_bytes)
{
    if (head_bytes <= TRIB_HEAD && data_bytes <= s->pub.payload - head_bytes)
        return true;
    proto_doom(s, job_of(job),
               "protocol %s: sends a packet of %u and %u bytes, at most %u and %u fit",
               s->cfg.protocol->name, head_bytes, data_bytes, TRIB_HEAD,
               s->pub.payload - (head_bytes <= TRIB_HEAD ? head_bytes : 0));
    return false;
}

static bool switch_host_reaches(const struct trib_job *job, int to)
{
    if (to == TRIB_PARENT)
        return !job->root;
    if (TRIB_IS(to, TRIB_CHILD(0)))
        return (uint32_t)TRIB_INDEX(to) < job->n_children;
    return to == TRIB_CHILDREN || (TRIB_IS(to, TRIB_RANK(0)) && (uint32_t)to < job->nranks);
}

static void api_send(struct trib_switch *pub, struct trib_job *job, int to, const void *head,
                     uint32_t head_bytes, const void *data, uint32_t data_bytes)
{
    struct proto_switch *s = of(pub);

    if (!lengths_valid(s, job, head_bytes, data_bytes))
        return;
    if (!switch_host_reaches(job, to)) {
        proto_doom(s, job_of(job), "protocol %s: sends to %#x, which this switch does not have",
                   s->cfg.protocol->name, (unsigned)to);
        return;
    }
    s->cnt.sent++;
    s->cfg.emit(s->cfg.ctx, job_of(job)->ctx, to, head, head_bytes, data, data_bytes);
}

static void api_forward(struct trib_switch *pub, struct trib_job *job, const void *head,
                        uint32_t head_bytes, const void *data, uint32_t data_bytes)
{
    struct proto_switch *s = of(pub);

    if (!s->packet || s->current != job_of(job)) {
        proto_doom(s, job_of(job), "protocol %s: forwards a packet when it handles none",
                   s->cfg.protocol->name);
        return;
    }
    if (!head)
        head = s->packet->head, head_bytes = s->packet->head_bytes;
    if (!data)
        data = s->packet->data, data_bytes = s->packet->data_bytes;
    if (!lengths_valid(s, job, head_bytes, data_bytes))
        return;
    s->cnt.forwarded++;
    s->cfg.emit(s->cfg.ctx, job_of(job)->ctx, PROTO_FORWARD, head, head_bytes, data, data_bytes);
}

static void api_work(struct trib_switch *pub, uint32_t bytes, uint32_t ops)
{
    struct proto_switch *s = of(pub);
    const struct trib_switch_half *half = s->cfg.protocol->sw;

    s->cnt.work_bytes += bytes;
    s->cnt.work_ops += ops;
    s->work_bytes += bytes;
    s->work_ops += ops;
    if (s->packet && (s->work_bytes > half->max_bytes || s->work_ops > half->max_ops))
        proto_doom(
            s, s->current,
            "protocol %s: work of %u bytes and %u operations on a packet, declared are %u and %u",
            s->cfg.protocol->name, s->work_bytes, s->work_ops, half->max_bytes, half->max_ops);
}

static void api_reduce(struct trib_switch *pub, void *dst, const void *src, uint32_t n,
                       enum trib_type type, enum trib_sum op)
{
    struct proto_switch *s = of(pub);
    arith_fn kernel = (unsigned)type < TRIB_TYPES && (unsigned)op < TRIB_REDUCTIONS
                          ? arith_kernel((enum redop)op, (enum dtype)type)
                          : NULL;
    const void *in[2] = {dst, src};

    if (!kernel) {
        proto_doom(s, s->current, "protocol %s: reduction %d of type %d", s->cfg.protocol->name,
                   (int)op, (int)type);
        return;
    }
    kernel(dst, in, 2, n);
    api_work(pub, n * trib_size(type), n);
}

static void api_timer(struct trib_switch *pub, int64_t at_ps)
{
    of(pub)->timer = at_ps;
}

static int64_t api_now(const struct trib_switch *pub)
{
    return ((const struct proto_switch *)pub)->now;
}

static void api_count(struct trib_switch *pub, unsigned counter, uint64_t n)
{
    struct proto_switch *s = of(pub);
    const unsigned has = proto_counters(s->cfg.protocol->sw->counters);

    if (counter < has)
        s->cnt.of_protocol[counter] += n;
    else
        proto_doom(s, s->current, "protocol %s: counts counter %u, its switch half has %u",
                   s->cfg.protocol->name, counter, has);
}

static void api_abort(struct trib_switch *pub, struct trib_job *job, const char *why)
{
    proto_doom(of(pub), job_of(job), "%s", why);
}

static const struct trib_switch_api api = {
    .array = proto_api_array,
    .at = proto_api_at,
    .take = proto_api_take,
    .give = proto_api_give,
    .send = api_send,
    .forward = api_forward,
    .reduce = api_reduce,
    .work = api_work,
    .timer = api_timer,
    .now = api_now,
    .count = api_count,
    .abort = api_abort,
};

/* ---- life ---- */

int proto_switch_create(struct proto_switch **out, const struct proto_switch_cfg *cfg, char *err)
{
    struct proto_switch *s = calloc(1, sizeof(*s));
    int rc = 0;

    *out = NULL;
    if (!s) {
        snprintf(err, PROTO_TEXT, "out of memory");
        return -ENOMEM;
    }
    s->cfg = *cfg;
    s->timer = TRIB_NEVER;
    s->pub = (struct trib_switch){.api = &api, .key = cfg->key, .payload = cfg->payload};
    s->arrays_open = true;
    if (cfg->protocol->sw->open)
        CALL(s, "open()", rc = cfg->protocol->sw->open(&s->pub));
    s->arrays_open = false;
    if (rc) {
        snprintf(err, PROTO_TEXT, "%s", s->short_of[0] ? s->short_of : strerror(-rc));
        for (unsigned i = 0; i < PROTO_ARRAYS; i++)
            if (s->array[i])
                proto_array_free(s, i);
        free(s);
        return rc;
    }
    *out = s;
    return 0;
}

void proto_switch_destroy(struct proto_switch *s)
{
    if (!s)
        return;
    if (s->cfg.protocol->sw->close)
        CALL(s, "close()", s->cfg.protocol->sw->close(&s->pub));
    for (unsigned i = 0; i < PROTO_ARRAYS; i++)
        if (s->array[i])
            proto_array_free(s, i);
    for (unsigned i = 0; i < PROTO_JOBS; i++)
        free(s->job[i]);
    free(s);
}

const struct proto_switch_counters *proto_switch_counters(const struct proto_switch *s)
{
    return &s->cnt;
}

bool proto_switch_busy(const struct proto_switch *s)
{
    return s->n_jobs > 0;
}

/* Frees what a job holds. leak: names the first slots that the protocol did not give back. */
static void job_free(struct proto_switch *s, struct proto_job *job, char *leak)
{
    uint32_t left = job->slots;

    *leak = '\0';
    for (unsigned i = 0; i < PROTO_ARRAYS; i++) {
        struct trib_array *a = s->array[i];

        for (uint32_t k = 0; a && job->slots && k < a->n; k++)
            if (a->owner[k] == job->pub.index + 1) {
                if (!*leak)
                    snprintf(leak, PROTO_TEXT,
                             "protocol %s: a job has ended and still has %u slots, the first is "
                             "slot %u of array \"%s\"",
                             s->cfg.protocol->name, left, k, a->name);
                proto_array_release(s, job, a, k);
            }
        if (a && a->job == job)
            proto_array_free(s, i);
    }
    s->cnt.leaked += left;
    s->job[job->pub.index] = NULL;
    s->n_jobs--;
    free(job);
}

int proto_job_open(struct proto_switch *s, const struct proto_job_cfg *cfg, int64_t now_ps,
                   struct proto_job **out, char *err)
{
    char leak[PROTO_TEXT];
    struct proto_job *job;
    unsigned i = 0;
    int rc;

    *out = NULL;
    s->now = now_ps;
    while (i < PROTO_JOBS && s->job[i])
        i++;
    job = i < PROTO_JOBS ? calloc(1, sizeof(*job)) : NULL;
    if (!job) {
        s->cnt.refused++;
        snprintf(err, PROTO_TEXT, "protocol %s has %u jobs here already", s->cfg.protocol->name, i);
        return -ENOSPC;
    }
    job->pub = (struct trib_job){.nranks = cfg->nranks,
                                 .n_children = cfg->n_children,
                                 .n_below = cfg->n_below,
                                 .root = cfg->root,
                                 .rate_bps = cfg->rate_bps,
                                 .round_trip_ps = cfg->round_trip_ps,
                                 .notice_ps = cfg->notice_ps,
                                 .index = i};
    job->ctx = cfg->ctx;
    s->job[i] = job;
    s->n_jobs++;
    s->arrays_open = true;
    s->short_of[0] = '\0';
    s->current = job;
    CALL(s, "job_open()", rc = s->cfg.protocol->sw->job_open(&s->pub, &job->pub));
    s->current = NULL;
    s->arrays_open = false;
    if (rc) {
        s->cnt.refused++;
        if (s->short_of[0])
            snprintf(err, PROTO_TEXT, "%s", s->short_of);
        else
            snprintf(err, PROTO_TEXT, "job_open(): %s", strerror(-rc));
        job_free(s, job, leak);
        return rc;
    }
    s->cnt.jobs++;
    *out = job;
    return 0;
}

void proto_job_close(struct proto_switch *s, struct proto_job *job, int64_t now_ps, char *leak)
{
    s->now = now_ps;
    s->current = job;
    CALL(s, "job_close()", s->cfg.protocol->sw->job_close(&s->pub, &job->pub));
    s->current = NULL;
    job_free(s, job, leak);
}

const char *proto_job_why(const struct proto_job *job)
{
    return job->why[0] ? job->why : NULL;
}

void *proto_job_ctx(const struct proto_job *job)
{
    return job->ctx;
}

void proto_switch_packet(struct proto_switch *s, struct proto_job *job, const struct trib_packet *p,
                         int64_t now_ps)
{
    s->now = now_ps;
    s->cnt.packets++;
    s->work_bytes = s->work_ops = 0;
    s->current = job;
    s->packet = p;
    CALL(s, "packet()", s->cfg.protocol->sw->packet(&s->pub, &job->pub, p));
    s->packet = NULL;
    s->current = NULL;
}

static void doom_all(struct proto_switch *s)
{
    for (unsigned i = 0; i < PROTO_JOBS; i++)
        proto_doom(s, s->job[i],
                   "protocol %s: timer() of its switch half has run %u times in a microsecond: it "
                   "sets its timer again for now",
                   s->cfg.protocol->name, PROTO_SPINS);
}

void proto_switch_tick(struct proto_switch *s, int64_t now_ps)
{
    if (s->timer > now_ps)
        return;
    s->now = now_ps;
    s->timer = TRIB_NEVER;
    if (proto_spins(&s->spin, now_ps))
        doom_all(s);
    else if (s->cfg.protocol->sw->timer)
        CALL(s, "timer()", s->cfg.protocol->sw->timer(&s->pub));
}

int64_t proto_switch_next(const struct proto_switch *s)
{
    return s->timer;
}

struct proto_job *proto_switch_doomed(const struct proto_switch *s)
{
    for (unsigned i = 0; s->any_doomed && i < PROTO_JOBS; i++)
        if (s->job[i] && s->job[i]->why[0])
            return s->job[i];
    return NULL;
}
