/* SPDX-License-Identifier: BSD-3-Clause */
#include "protocols/host/rank_host.h"

#include "aggregation/arith.h"
#include "protocols/host/call.h"
#include "protocols/host/spin.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct proto_rank {
    struct trib_rank pub;
    struct proto_rank_cfg cfg;
    uint64_t ops; /* begun */
    bool running, waits;
    int64_t now, timer;
    struct proto_spin spin;
    uint64_t counter[TRIB_COUNTERS];
    char error[PROTO_TEXT];
};

#define CALL(r, function, call)                                                                    \
    PROTO_CALL((r)->cfg.protocol->name, function " of its rank half", call)

static struct proto_rank *proto_rank_of(struct trib_rank *r)
{
    return (struct proto_rank *)r;
}

__attribute__((format(printf, 2, 3))) static void fail(struct proto_rank *r, const char *fmt, ...)
{
    va_list ap;

    if (r->error[0])
        return;
    va_start(ap, fmt);
    vsnprintf(r->error, sizeof(r->error), fmt, ap);
    va_end(ap);
}

static bool valid(struct proto_rank *r, int to, int target, uint32_t head_bytes,
                  uint32_t data_bytes)
{
    const int n = (int)r->pub.nranks, me = (int)r->pub.rank;
    bool there = to == TRIB_SWITCH || (TRIB_IS(to, TRIB_SWITCH_OF(0)) && TRIB_INDEX(to) < n) ||
                 (TRIB_IS(to, TRIB_RANK(0)) && to >= 0 && to < n && to != me);

    if (!r->cfg.protocol->sw && (to == TRIB_SWITCH || TRIB_IS(to, TRIB_SWITCH_OF(0))))
        there = false;
    if (!there || target >= n)
        fail(r, "protocol %s: sends to %#x, which this rank does not reach", r->cfg.protocol->name,
             (unsigned)(there ? target : to));
    else if (head_bytes > TRIB_HEAD || data_bytes > r->pub.payload - head_bytes)
        fail(r, "protocol %s: sends a packet of %u and %u bytes, at most %u and %u fit",
             r->cfg.protocol->name, head_bytes, data_bytes, TRIB_HEAD,
             r->pub.payload - (head_bytes <= TRIB_HEAD ? head_bytes : 0));
    else
        return true;
    return false;
}

/* Sends a packet. An invalid one counts as sent, and fails the protocol. */
static bool send_to(struct proto_rank *r, int to, int target, const void *head, uint32_t head_bytes,
                    const void *data, uint32_t data_bytes)
{
    if (r->error[0] || !valid(r, to, target, head_bytes, data_bytes))
        return true;
    if (r->cfg.send(r->cfg.ctx, to, target, head, head_bytes, data, data_bytes))
        return true;
    r->waits = true;
    return false;
}

static bool api_send(struct trib_rank *pub, int to, const void *head, uint32_t head_bytes,
                     const void *data, uint32_t data_bytes)
{
    return send_to(proto_rank_of(pub), to, -1, head, head_bytes, data, data_bytes);
}

static bool api_send_through(struct trib_rank *pub, unsigned target, const void *head,
                             uint32_t head_bytes, const void *data, uint32_t data_bytes)
{
    return send_to(proto_rank_of(pub), TRIB_SWITCH, (int)target, head, head_bytes, data,
                   data_bytes);
}

static void api_done(struct trib_rank *pub)
{
    struct proto_rank *r = proto_rank_of(pub);

    if (!r->running)
        fail(r, "protocol %s: ends an operation that has not begun", r->cfg.protocol->name);
    r->running = false;
}

static void api_fail(struct trib_rank *pub, const char *why)
{
    fail(proto_rank_of(pub), "%s", why);
}

static void api_reduce(struct trib_rank *pub, void *dst, const void *src, uint64_t n,
                       enum trib_type type, enum trib_sum op)
{
    arith_fn kernel = (unsigned)type < TRIB_TYPES && (unsigned)op < TRIB_REDUCTIONS
                          ? arith_kernel((enum redop)op, (enum dtype)type)
                          : NULL;
    const void *in[2] = {dst, src};

    if (kernel)
        kernel(dst, in, 2, n);
    else
        fail(proto_rank_of(pub), "protocol %s: reduction %d of type %d",
             proto_rank_of(pub)->cfg.protocol->name, (int)op, (int)type);
}

static void api_timer(struct trib_rank *pub, int64_t at_ps)
{
    proto_rank_of(pub)->timer = at_ps;
}

static int64_t api_now(const struct trib_rank *pub)
{
    return ((const struct proto_rank *)pub)->now;
}

static void api_count(struct trib_rank *pub, unsigned counter, uint64_t n)
{
    struct proto_rank *r = proto_rank_of(pub);
    const unsigned has = proto_counters(r->cfg.protocol->rank->counters);

    if (counter < has)
        r->counter[counter] += n;
    else
        fail(r, "protocol %s: counts counter %u, its rank half has %u", r->cfg.protocol->name,
             counter, has);
}

static const struct trib_rank_api api = {
    .send = api_send,
    .send_through = api_send_through,
    .done = api_done,
    .fail = api_fail,
    .reduce = api_reduce,
    .timer = api_timer,
    .now = api_now,
    .count = api_count,
};

int proto_rank_create(struct proto_rank **out, const struct proto_rank_cfg *cfg, int64_t now_ps,
                      char *err)
{
    struct proto_rank *r = calloc(1, sizeof(*r));
    int rc = 0;

    *out = NULL;
    if (!r) {
        snprintf(err, PROTO_TEXT, "out of memory");
        return -ENOMEM;
    }
    r->cfg = *cfg;
    r->now = now_ps;
    r->timer = TRIB_NEVER;
    r->pub = (struct trib_rank){.api = &api,
                                .key = cfg->key,
                                .rank = cfg->rank,
                                .nranks = cfg->nranks,
                                .switch_of = cfg->switch_of,
                                .job = cfg->job,
                                .payload = cfg->payload,
                                .window = cfg->window,
                                .rate_bps = cfg->rate_bps,
                                .round_trip_ps = cfg->round_trip_ps,
                                .notice_ps = cfg->notice_ps,
                                .tree_bps = cfg->tree_bps,
                                .share_bps = cfg->share_bps};
    if (cfg->protocol->rank->open)
        CALL(r, "open()", rc = cfg->protocol->rank->open(&r->pub));
    if (rc) {
        snprintf(err, PROTO_TEXT, "protocol %s does not start: %.200s", cfg->protocol->name,
                 r->error[0] ? r->error : strerror(-rc));
        free(r);
        return rc;
    }
    *out = r;
    return 0;
}

void proto_rank_destroy(struct proto_rank *r)
{
    if (!r)
        return;
    if (r->cfg.protocol->rank->close)
        CALL(r, "close()", r->cfg.protocol->rank->close(&r->pub));
    free(r);
}

int proto_rank_start(struct proto_rank *r, const struct trib_op *op, int64_t now_ps)
{
    struct trib_op numbered = *op;
    int rc;

    if (r->running)
        return -EBUSY;
    r->now = now_ps;
    numbered.number = r->ops;
    r->running = true;
    CALL(r, "start()", rc = r->cfg.protocol->rank->start(&r->pub, &numbered));
    if (rc)
        r->running = false;
    else
        r->ops++;
    return rc;
}

void proto_rank_packet(struct proto_rank *r, const struct trib_packet *p, int64_t now_ps)
{
    r->now = now_ps;
    CALL(r, "packet()", r->cfg.protocol->rank->packet(&r->pub, p));
}

void proto_rank_room(struct proto_rank *r, int64_t now_ps)
{
    r->now = now_ps;
    r->waits = false;
    CALL(r, "room()", r->cfg.protocol->rank->room(&r->pub));
}

void proto_rank_tick(struct proto_rank *r, int64_t now_ps)
{
    if (r->timer > now_ps)
        return;
    r->now = now_ps;
    r->timer = TRIB_NEVER;
    if (proto_spins(&r->spin, now_ps))
        fail(r,
             "protocol %s: timer() of its rank half has run %u times in a microsecond: it sets its "
             "timer again for now",
             r->cfg.protocol->name, PROTO_SPINS);
    else if (r->cfg.protocol->rank->timer)
        CALL(r, "timer()", r->cfg.protocol->rank->timer(&r->pub));
}

int64_t proto_rank_next(const struct proto_rank *r)
{
    return r->timer;
}

bool proto_rank_done(const struct proto_rank *r)
{
    return !r->running;
}

const char *proto_rank_error(const struct proto_rank *r)
{
    return r->error[0] ? r->error : NULL;
}

bool proto_rank_waits(const struct proto_rank *r)
{
    return r->waits;
}

const uint64_t *proto_rank_counters(const struct proto_rank *r)
{
    return r->counter;
}
