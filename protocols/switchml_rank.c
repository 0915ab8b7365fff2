/* SPDX-License-Identifier: BSD-3-Clause */
#include "protocols/switchml.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RESENT, IGNORED };
static const char *const rank_counters[] = {"resent", "ignored", NULL};

struct rank {
    struct window w; /* flight q mod S carries packet q */
    uint32_t elements;
    bool active, failed;
    struct trib_op op;
    uint64_t base;    /* number of the operation's first packet */
    uint64_t packets; /* of data; the operation has `lead` more before them */
    uint32_t lead;
    uint64_t answered;
    int32_t whole;     /* that stands for 1: n_ranks of it fit into 31 bits */
    int16_t *exponent; /* of data packet k at k mod lead: from its result to that of the data */
    int32_t *values;   /* a packet, quantised */
};

static void rank_close(struct trib_rank *r)
{
    struct rank *me = r->self;

    window_close(&me->w);
    free(me->exponent);
    free(me->values);
    free(me);
}

static int rank_open(struct trib_rank *r)
{
    struct rank *me = calloc(1, sizeof(*me));
    uint32_t n = switchml_slots(r->key, r->payload, r->rate_bps, r->round_trip_ps);
    int64_t timeout = r->key[KEY_TIMEOUT] * 1000000;
    int rc;

    if (!me)
        return -ENOMEM;
    r->self = me;
    me->elements = switchml_elements(r->key, r->payload);
    me->whole = INT32_MAX / (int32_t)r->nranks;
    if (!timeout) /* answers wait for packets before them, of this window at both ends */
        timeout = 4 * (r->round_trip_ps +
                       n * link_ps(me->elements * 4ull + sizeof(struct head), r->rate_bps));
    rc = window_open(&me->w, n, timeout, r->key[KEY_PATIENCE] * 1000000000);
    me->exponent = calloc(n, sizeof(*me->exponent));
    me->values = calloc(me->elements + 1, sizeof(*me->values));
    if (rc || !me->exponent || !me->values || !me->elements) {
        bool fits = me->elements;

        rank_close(r);
        return fits
                   ? -ENOMEM
                   : key_refuse(r, "packet: no element fits into %u bytes of a packet", r->payload);
    }
    for (uint32_t i = 0; i < n; i++)
        me->w.flight[i].seq = i - (uint64_t)n;
    return 0;
}

/* Elements of data packet k, and their first. */
static uint16_t part(const struct rank *me, uint64_t k, uint64_t *first)
{
    uint64_t left;

    *first = k * me->elements;
    left = me->op.count - *first;
    return (uint16_t)(left < me->elements ? left : me->elements);
}

/* e, so that all elements are less than 2^e. */
static int16_t exponent_of(const struct rank *me, uint64_t k)
{
    uint64_t first;
    uint32_t n = part(me, k, &first), most = 0;
    const char *from = (const char *)me->op.send + first * 4;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t x;

        memcpy(&x, from + i * 4ull, 4);
        x &= 0x7fffffff;
        most = x > most ? x : most;
    }
    return (int16_t)((int)(most >> 23) - 126);
}

static void quantise(struct rank *me, const void *from, uint32_t n, int exponent)
{
    const double one = ldexp(me->whole, -exponent);
    const double round = 0x1.8p52; /* has no room for fractions: rounds to nearest, ties to even */

    for (uint32_t i = 0; i < n; i++) {
        float x;

        memcpy(&x, (const char *)from + i * 4ull, 4);
        me->values[i] = (int32_t)((x * one + round) - round);
    }
}

static void restore(const struct rank *me, void *to, const void *sums, uint32_t n, int exponent)
{
    const double power = ldexp(1, exponent);

    for (uint32_t i = 0; i < n; i++) {
        int32_t q;
        float x;

        memcpy(&q, (const char *)sums + i * 4ull, 4);
        x = (float)(q * power / me->whole);
        memcpy((char *)to + i * 4ull, &x, 4);
    }
}

static bool rank_send(struct trib_rank *r, uint32_t i)
{
    struct rank *me = r->self;
    const struct flight *f = &me->w.flight[i];
    uint64_t k = f->seq - me->base, first = 0;
    struct head h = {.seq = f->seq,
                     .kind = UP,
                     .type = me->op.type,
                     .slots = (uint16_t)me->w.n,
                     .ahead = NO_EXPONENT};
    const void *data = NULL;

    if (me->lead && k < me->packets)
        h.ahead = exponent_of(me, k);
    if (k >= me->lead) {
        h.count = part(me, k - me->lead, &first);
        data = (const char *)me->op.send + first * 4;
        if (me->lead) {
            quantise(me, data, h.count, me->exponent[k % me->lead]);
            data = me->values;
        }
    }
    if (f->tries)
        r->api->count(r, RESENT, 1);
    return r->api->send(r, TRIB_SWITCH, &h, sizeof(h), data, h.count * 4u);
}

/* Queues packet k of the operation, if it exists and what it waits for has come: the slot's result
 * before it, and its own exponent. */
static void offer(struct trib_rank *r, uint64_t k)
{
    struct rank *me = r->self;
    uint32_t n = me->w.n, i = (me->base + k) & (n - 1);
    const struct flight *f = &me->w.flight[i], *x;
    uint64_t before;

    if (k >= me->lead + me->packets || f->state != FLIGHT_IDLE)
        return;
    if ((int64_t)(f->seq - (me->base + k)) >= 0 || (k >= n && f->seq != me->base + k - n))
        return;
    if (me->lead && k >= me->lead) {
        before = me->base + k - me->lead;
        x = &me->w.flight[before & (n - 1)];
        if ((int64_t)(x->seq - before) < 0 || (x->seq == before && x->state != FLIGHT_IDLE))
            return;
    }
    window_queue(&me->w, r, i, me->base + k);
}

static int rank_start(struct trib_rank *r, const struct trib_op *op)
{
    struct rank *me = r->self;
    uint64_t n;

    if (!switchml_supports(op->type, op->op))
        return -ENOTSUP;
    me->op = *op;
    me->packets = ceil_div(op->count, me->elements);
    n = me->packets < me->w.n ? me->packets : me->w.n;
    me->lead = op->type == TRIB_FLOAT32 ? (uint32_t)n : 0;
    me->answered = 0;
    me->active = true;
    for (uint64_t k = 0; k < n; k++)
        offer(r, k);
    window_pump(&me->w, r, rank_send);
    return 0;
}

static void fail(struct trib_rank *r, const char *why)
{
    struct rank *me = r->self;

    me->failed = true;
    r->api->fail(r, why);
}

/* The result of packet k of the operation. */
static void answer(struct trib_rank *r, const struct trib_packet *pkt, uint64_t k)
{
    struct rank *me = r->self;
    const struct head *h = pkt->head;
    uint64_t first;

    if (h->count) {
        uint32_t n = part(me, k - me->lead, &first);
        char *to = (char *)me->op.recv + first * 4;

        if (me->lead)
            restore(me, to, pkt->data, n, me->exponent[k % me->lead]);
        else
            memcpy(to, pkt->data, n * 4ull);
    }
    if (me->lead && k < me->packets) {
        if (h->ahead >= NOT_FINITE) {
            fail(r, "switchml: an element is infinite or no number, which has no fixed point");
            return;
        }
        me->exponent[k % me->lead] = h->ahead;
    }
    window_answer(&me->w, r, (uint32_t)(h->seq & (me->w.n - 1)));
    if (++me->answered == me->lead + me->packets) {
        me->active = false;
        me->base += me->answered;
        r->api->done(r);
        return;
    }
    offer(r, k + me->w.n);
    if (me->lead && me->lead < me->w.n)
        offer(r, k + me->lead);
    window_pump(&me->w, r, rank_send);
}

static void rank_packet(struct trib_rank *r, const struct trib_packet *pkt)
{
    struct rank *me = r->self;
    const struct head *h = pkt->head;
    const struct flight *f;
    uint64_t k, first;
    uint16_t expected = 0;

    if (me->failed || !me->active || pkt->from != TRIB_SWITCH ||
        !switchml_valid(pkt, DOWN, me->w.n, me->elements) || h->type != me->op.type)
        goto ignore;
    f = &me->w.flight[h->seq & (me->w.n - 1)];
    if (f->seq != h->seq || f->state == FLIGHT_IDLE || (f->state == FLIGHT_QUEUED && !f->tries))
        goto ignore;
    k = h->seq - me->base;
    if (k >= me->lead)
        expected = part(me, k - me->lead, &first);
    if (h->count != expected)
        goto ignore;
    /* What is no exponent of a float is not shifted by. */
    if (me->lead && k < me->packets && (h->ahead < -126 || h->ahead > NOT_FINITE))
        goto ignore;
    answer(r, pkt, k);
    return;
ignore:
    r->api->count(r, IGNORED, 1);
}

static void rank_room(struct trib_rank *r)
{
    struct rank *me = r->self;

    if (!me->failed)
        window_pump(&me->w, r, rank_send);
}

static void rank_timer(struct trib_rank *r)
{
    struct rank *me = r->self;

    if (me->failed)
        return;
    if (window_overdue(&me->w, r) < 0)
        fail(r, "switchml: no answer within patience_ms: a rank or a switch is gone, or ranks have "
                "started different operations");
    else
        window_pump(&me->w, r, rank_send);
}

const struct trib_rank_half switchml_rank = {
    .counters = rank_counters,
    .open = rank_open,
    .close = rank_close,
    .start = rank_start,
    .packet = rank_packet,
    .room = rank_room,
    .timer = rank_timer,
};
