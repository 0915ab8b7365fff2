/* SPDX-License-Identifier: BSD-3-Clause */
#include "protocols/switchml.h"

#include <tributary/fixed.h>

enum { RESENT, IGNORED };
static const char *const rank_counters[] = {"resent", "ignored", NULL};

struct switchml_rank_state {
    struct trib_window
        w; /* flight q mod S carries packet q; the first `lead` have exponents only */
    uint32_t elements;
    int32_t whole;     /* the integer that stands for 1: n_ranks times it fits into 31 bits */
    int16_t *exponent; /* [lead] of data packet k at k mod lead, until its data has a result */
    int32_t *values;   /* a packet, quantised */
};

static void rank_close(struct trib_rank *r)
{
    struct switchml_rank_state *me = r->self;

    free(me->exponent);
    free(me->values);
    trib_window_close(r);
}

static bool rank_send(struct trib_rank *r, const struct trib_flight *f);

static int rank_open(struct trib_rank *r)
{
    uint32_t n = switchml_slots(r->key, r->payload, r->rate_bps, r->round_trip_ps);
    uint32_t elements = switchml_elements(r->key, r->payload);
    int64_t timeout = r->key[KEY_TIMEOUT] * 1000000;
    struct switchml_rank_state *me;
    int rc;

    if (!elements)
        return trib_refuse(r, "packet: no element fits into %u bytes of a packet", r->payload);
    if (!timeout) /* an answer may wait behind a full window at both ends */
        timeout = 4 * (r->round_trip_ps + r->notice_ps +
                       n * trib_link_ps(elements * 4ull + sizeof(struct switchml_head),
                                        trib_slowest_bps(r, false)));
    rc = trib_window_open(r, sizeof(*me), n, timeout, r->key[KEY_PATIENCE] * 1000000000, rank_send);
    if (rc)
        return rc;
    me = r->self;
    me->elements = elements;
    me->whole = INT32_MAX / (int32_t)r->nranks;
    me->exponent = calloc(n, sizeof(*me->exponent));
    me->values = calloc(elements, sizeof(*me->values));
    if (me->exponent && me->values)
        return 0;
    rank_close(r);
    return -ENOMEM;
}

/* The exponent e with which all elements are less than 2^e. */
static int16_t exponent_of(const struct switchml_rank_state *me, uint64_t seq)
{
    uint32_t n = trib_window_count(&me->w, seq), most = 0;
    const char *from = trib_window_from(&me->w, seq);

    for (uint32_t i = 0; i < n; i++) {
        uint32_t x;

        memcpy(&x, from + i * 4ull, 4);
        x &= 0x7fffffff;
        most = x > most ? x : most;
    }
    return (int16_t)((int)(most >> 23) - 126);
}

/* The exponent of data packet seq. */
static int16_t *exponent(const struct switchml_rank_state *me, uint64_t seq)
{
    return &me->exponent[(seq - me->w.base) % me->w.lead];
}

/* The factor from elements to integers in data packet seq. */
static double packet_one(const struct switchml_rank_state *me, uint64_t seq)
{
    return ldexp(me->whole, -*exponent(me, seq));
}

/* Whether packet seq carries the exponent of data. */
static bool announces(const struct switchml_rank_state *me, uint64_t seq)
{
    return me->w.lead && seq - me->w.base + me->w.lead < me->w.packets;
}

static bool rank_send(struct trib_rank *r, const struct trib_flight *f)
{
    struct switchml_rank_state *me = r->self;
    struct switchml_head h = {.seq = f->seq,
                              .kind = UP,
                              .type = me->w.op.type,
                              .slots = (uint16_t)me->w.n,
                              .count = (uint16_t)trib_window_count(&me->w, f->seq),
                              .ahead = NO_EXPONENT};
    const void *data = h.count ? trib_window_from(&me->w, f->seq) : NULL;

    if (announces(me, f->seq))
        h.ahead = exponent_of(me, f->seq + me->w.lead);
    if (h.count && me->w.lead) {
        trib_to_fixed(me->values, data, h.count, packet_one(me, f->seq), 0);
        data = me->values;
    }
    if (f->tries)
        r->api->count(r, RESENT, 1);
    return r->api->send(r, TRIB_SWITCH, &h, sizeof(h), data, h.count * 4u);
}

/* Offers packet k of the operation once the slot's previous result and its own exponent have come.
 */
static void switchml_rank_offer(struct trib_rank *r, uint64_t k)
{
    struct switchml_rank_state *me = r->self;
    uint64_t seq = me->w.base + k, before = seq - me->w.lead;
    const struct trib_flight *f = trib_window_flight(&me->w, seq);

    if ((int64_t)(f->seq - seq) >= 0 || (k >= me->w.n && f->seq != seq - me->w.n))
        return;
    if (me->w.lead && k >= me->w.lead) {
        f = trib_window_flight(&me->w, before);
        if ((int64_t)(f->seq - before) < 0 || (f->seq == before && f->state != TRIB_IDLE))
            return;
    }
    trib_window_offer(r, seq);
}

static int rank_start(struct trib_rank *r, const struct trib_op *op)
{
    struct switchml_rank_state *me = r->self;
    uint64_t packets = trib_ceil_div(op->count, me->elements);
    uint32_t n = packets < me->w.n ? (uint32_t)packets : me->w.n;

    if (!switchml_supports(op->type, op->op))
        return -ENOTSUP;
    trib_window_begin(r, op, me->elements, op->type == TRIB_FLOAT32 ? n : 0);
    for (uint32_t k = 0; k < n; k++)
        switchml_rank_offer(r, k);
    trib_window_pump(r);
    return 0;
}

static void switchml_rank_answer(struct trib_rank *r, const struct trib_packet *pkt)
{
    struct switchml_rank_state *me = r->self;
    const struct switchml_head *h = pkt->head;
    uint64_t k = h->seq - me->w.base;

    if (h->count && me->w.lead)
        trib_from_fixed(trib_window_to(&me->w, h->seq), pkt->data, h->count,
                        packet_one(me, h->seq));
    else if (h->count)
        memcpy(trib_window_to(&me->w, h->seq), pkt->data, h->count * 4ull);
    if (announces(me, h->seq)) {
        if (h->ahead >= NOT_FINITE) {
            trib_window_fail(r, "an element is infinite or no number, which has no fixed point");
            return;
        }
        *exponent(me, h->seq) = h->ahead;
    }
    if (!trib_window_answer(r, h->seq))
        return;
    switchml_rank_offer(r, k + me->w.n);
    if (me->w.lead && me->w.lead < me->w.n)
        switchml_rank_offer(r, k + me->w.lead);
    trib_window_pump(r);
}

static void rank_packet(struct trib_rank *r, const struct trib_packet *pkt)
{
    struct switchml_rank_state *me = r->self;
    const struct switchml_head *h = pkt->head;

    /* Refuse exponents that no float has, before they are used in a shift. */
    if (pkt->from != TRIB_SWITCH || !switchml_valid(pkt, DOWN, me->w.n, me->elements) ||
        !trib_window_awaits(&me->w, h->seq) || h->type != me->w.op.type ||
        h->count != trib_window_count(&me->w, h->seq) ||
        (announces(me, h->seq) && (h->ahead < -126 || h->ahead > NOT_FINITE)))
        r->api->count(r, IGNORED, 1);
    else
        switchml_rank_answer(r, pkt);
}

const struct trib_rank_half switchml_rank = {
    .counters = rank_counters,
    .open = rank_open,
    .close = rank_close,
    .start = rank_start,
    .packet = rank_packet,
    .room = trib_window_pump,
    .timer = trib_window_timer,
};
