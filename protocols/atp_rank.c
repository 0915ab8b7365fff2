/* SPDX-License-Identifier: BSD-3-Clause */
#include "protocols/atp.h"

#include <tributary/fixed.h>
#include <tributary/server.h>

enum { RESENT, AGAIN, DUPLICATES, OVERLAPS, HALVED, IGNORED, BAD, OVERFLOWS };
static const char *const counters[] = {"resent",  "again", "duplicates", "overlaps", "halved",
                                       "ignored", "bad",   "overflows",  NULL};

#define GAP 3u /* at most one less than the blocks in flight to a server */

/* The server's sum of a block. */
struct atp_sums {
    struct atp_head first;
    int32_t *sum, *result;
    double floats[]; /* sum of the parts that came as floats instead of integers */
};

struct atp_rank_state {
    struct trib_server v; /* a server's blocks are a lane */
    struct atp_shape shape;
    uint32_t below, place;   /* ranks below this one's first switch; this one's index among them */
    struct trib_ranks above; /* for a server: the lowest rank of each switch with other ranks */
    int32_t *values;         /* a packet, as integers */
    /* For a server: ranks sorted by first switch; and, indexed by a switch's lowest rank, where its
     * ranks begin in `order` and how many there are. */
    uint16_t *order, *begin, *count;
};

/* ---- life ---- */

static void atp_close(struct trib_rank *r)
{
    struct atp_rank_state *me = r->self;

    free(me->values);
    free(me->order);
    trib_server_close(r);
}

static bool atp_send(struct trib_rank *r, const struct trib_flight *f);

/* Time of a full window, to the server and back. */
static int64_t round_ps(const struct trib_rank *r, const struct atp_shape *s)
{
    uint64_t bytes = 2ull * s->window * (s->elements * 4ull + sizeof(struct atp_head));

    return 2 * (r->round_trip_ps + r->notice_ps) + trib_link_ps(bytes, trib_slowest_bps(r, true));
}

/* Sorts ranks by their first switches. */
static int find_places(struct trib_rank *r)
{
    struct atp_rank_state *me = r->self;
    const uint16_t *sw = r->switch_of;
    uint16_t at = 0;

    for (unsigned i = 0; i < r->nranks; i++) {
        me->below += sw[i] == sw[r->rank];
        me->place += i < r->rank && sw[i] == sw[r->rank];
        if (i != r->rank)
            trib_ranks_add(&me->above, sw[i]);
    }
    if (me->below > TRIB_MAX_CHILDREN)
        return trib_refuse(r, "found %u ranks below a switch, expected at most %d", me->below,
                           TRIB_MAX_CHILDREN);
    if (!me->v.block)
        return 0;
    me->order = calloc(3ul * r->nranks, sizeof(*me->order));
    if (!me->order)
        return -ENOMEM;
    me->begin = me->order + r->nranks;
    me->count = me->begin + r->nranks;
    for (unsigned i = 0; i < r->nranks; i++)
        me->count[sw[i]]++;
    for (unsigned i = 0; i < r->nranks; i++) {
        me->begin[i] = at;
        at += me->count[i];
        me->count[i] = 0;
    }
    for (unsigned i = 0; i < r->nranks; i++)
        me->order[me->begin[sw[i]] + me->count[sw[i]]++] = (uint16_t)i;
    return 0;
}

static int atp_open(struct trib_rank *r)
{
    struct atp_shape s =
        atp_shape(r->key, r->nranks, r->payload, r->window, r->rate_bps, r->round_trip_ps);
    uint32_t slots = s.window / s.servers;
    int64_t timeout = r->key[KEY_TIMEOUT] * 1000000;
    struct atp_rank_state *me;
    int rc;

    if (!s.elements)
        return trib_refuse(r, "packet: no element fits into %u bytes of a packet", r->payload);
    rc = trib_server_open(r, sizeof(*me), s.servers, slots,
                          sizeof(struct atp_sums) +
                              s.elements * (sizeof(double) + 2 * sizeof(int32_t)),
                          sizeof(struct atp_head), timeout ? timeout : 4 * round_ps(r, &s),
                          r->key[KEY_PATIENCE] * 1000000000, atp_send);
    if (rc)
        return rc;
    me = r->self;
    me->shape = s;
    for (uint32_t i = 0; me->v.block && i < slots; i++) {
        struct atp_sums *b = me->v.block[i].own;

        b->sum = (void *)(b->floats + s.elements);
        b->result = b->sum + s.elements;
    }
    me->values = calloc(s.elements, sizeof(*me->values));
    rc = me->values ? trib_window_lanes(r, s.servers, slots > GAP ? GAP : slots - 1) : -ENOMEM;
    if (!rc)
        rc = find_places(r);
    if (rc)
        atp_close(r);
    return rc;
}

/* ---- as a worker ---- */

static void part_input(struct trib_rank *r, unsigned from, const struct atp_head *h,
                       const void *data, bool marked);

static bool atp_send(struct trib_rank *r, const struct trib_flight *f)
{
    struct atp_rank_state *me = r->self;
    unsigned server = (unsigned)(f->seq % me->v.servers);
    struct atp_head h = {.seq = f->seq,
                         .window = (uint16_t)me->shape.window,
                         .count = (uint16_t)trib_window_count(&me->v.w, f->seq),
                         .kind = PART,
                         .flags = f->tries ? RESEND : 0,
                         .type = me->v.w.op.type};
    const void *data = trib_window_from(&me->v.w, f->seq);

    trib_set_add(&h.ranks, me->place);
    h.fan_in = (uint8_t)(me->below - (r->switch_of[server] == r->switch_of[r->rank]));
    if (h.type == TRIB_FLOAT32) {
        if (trib_to_fixed(me->values, data, h.count, (double)r->key[KEY_SCALE],
                          atp_limit(r->nranks))) {
            data = me->values;
        } else { /* E18: send it as floats, to the server */
            h.flags |= FLOATS;
            r->api->count(r, OVERFLOWS, !f->tries);
        }
    }
    if (server == r->rank) {
        if (!f->tries) /* a resend finds it already stored */
            part_input(r, r->rank, &h, data, false);
        return true;
    }
    if (f->tries)
        r->api->count(r, RESENT, 1);
    return r->api->send_through(r, server, &h, sizeof(h), data, h.count * 4u);
}

/* Handles a result. All ranks send blocks in the same order, so that none waits for a block that
 * another rank does not send. E17: a block is sent again after three later results of its server.
 * This also empties an aggregator that missed a part, because another block had it when the part
 * passed. */
static void result_input(struct trib_rank *r, const struct atp_head *h, const void *data,
                         bool marked)
{
    struct atp_rank_state *me = r->self;

    if (!trib_window_awaits(&me->v.w, h->seq) || h->type != me->v.w.op.type ||
        h->count != trib_window_count(&me->v.w, h->seq)) {
        r->api->count(r, IGNORED, 1);
        return;
    }
    if (h->type == TRIB_FLOAT32 && !(h->flags & FLOATS))
        trib_from_fixed(trib_window_to(&me->v.w, h->seq), data, h->count,
                        (double)r->key[KEY_SCALE]);
    else
        memcpy(trib_window_to(&me->v.w, h->seq), data, h->count * 4u);
    trib_window_gap(r, h->seq);
    r->api->count(r, HALVED, trib_window_marked(r, h->seq, marked || h->flags & MARKED));
    if (trib_window_answer(r, h->seq))
        trib_window_in_order(r);
}

static int atp_start(struct trib_rank *r, const struct trib_op *op)
{
    struct atp_rank_state *me = r->self;

    if (!atp_supports(op->type, op->op))
        return -ENOTSUP;
    trib_window_begin(r, op, me->shape.elements, 0);
    trib_window_in_order(r);
    return 0;
}

/* ---- as a server ---- */

static void complete(struct trib_rank *r, struct trib_block *b)
{
    struct atp_rank_state *me = r->self;
    struct atp_sums *s = b->own;
    struct atp_head h = s->first;
    int32_t *was = s->result;

    if (h.flags & FLOATS)
        trib_join_floats(s->sum, s->floats, h.count, (double)r->key[KEY_SCALE]);
    s->result = s->sum;
    s->sum = was;
    h.kind = RESULT;
    h.fan_in = 0;
    h.ranks = (struct trib_set){0};
    trib_server_complete(&me->v, b, &h, s->result, h.count * 4u);
    trib_server_owe(r, b, &me->above, NULL);
    result_input(r, &h, s->result, false);
}

/* Adds a sum that has no rank of earlier ones. */
static void atp_rank_add(struct trib_rank *r, struct trib_block *b, const struct atp_head *h,
                         const void *data, bool marked, const uint16_t *ranks, unsigned n)
{
    struct atp_rank_state *me = r->self;
    struct atp_sums *s = b->own;

    if (!b->n_seen) {
        s->first = *h;
        s->first.flags = 0;
        memset(s->sum, 0, h->count * 4u);
    }
    if (h->type != s->first.type || h->count != s->first.count) {
        r->api->count(r, BAD, 1);
        return;
    }
    if (h->flags & ~s->first.flags & FLOATS)
        memset(s->floats, 0, h->count * sizeof(*s->floats));
    if (h->flags & FLOATS)
        trib_add_floats(s->floats, data, h->count);
    else
        r->api->reduce(r, s->sum, data, h->count, TRIB_INT32, TRIB_SUM);
    s->first.flags |= (h->flags & (FLOATS | MARKED)) | (marked ? MARKED : 0);
    if (trib_server_seen(&me->v, b, ranks, n))
        complete(r, b);
}

/* The ranks of a sum whose last part came from `from`; at most TRIB_MAX_CHILDREN. */
static unsigned ranks_of(const struct trib_rank *r, unsigned from, const struct atp_head *h,
                         uint16_t *rank)
{
    const struct atp_rank_state *me = r->self;
    const uint16_t *of = me->order + me->begin[r->switch_of[from]];
    unsigned n = 0;

    for (unsigned i = 0; i < me->count[r->switch_of[from]]; i++)
        if (trib_set_has(&h->ranks, i))
            rank[n++] = of[i];
    return n;
}

static void part_input(struct trib_rank *r, unsigned from, const struct atp_head *h,
                       const void *data, bool marked)
{
    struct atp_rank_state *me = r->self;
    struct trib_block *b = trib_server_block(&me->v, h->seq);
    uint16_t rank[TRIB_MAX_CHILDREN];
    unsigned n = ranks_of(r, from, h, rank);
    enum trib_part part = trib_server_part(&me->v, b, h->seq, rank, n);

    if (part == TRIB_PART_NEW) {
        atp_rank_add(r, b, h, data, marked, rank, n);
    } else if (part == TRIB_PART_TWICE) { /* the other ranks of the sum send their parts again */
        r->api->count(r, OVERLAPS, 1);
    } else if (part == TRIB_PART_KEPT && h->flags & RESEND) {
        r->api->count(r, AGAIN, 1);
        for (unsigned i = 0; i < n; i++)
            if (rank[i] != r->rank)
                trib_server_owe_rank(r, b, rank[i]);
    } else {
        r->api->count(r, DUPLICATES, 1);
    }
}

/* Whether a part names its sender, and only ranks of the sender's first switch. */
static bool comes_from_below(const struct trib_rank *r, const struct trib_packet *pkt)
{
    const struct atp_rank_state *me = r->self;

    return pkt->from >= 0 && pkt->from < (int)r->nranks &&
           trib_set_below(&((const struct atp_head *)pkt->head)->ranks,
                          me->count[r->switch_of[pkt->from]]);
}

static void atp_packet(struct trib_rank *r, const struct trib_packet *pkt)
{
    struct atp_rank_state *me = r->self;
    const struct atp_head *h = pkt->head;

    if (me->v.w.failed)
        return;
    if (!atp_valid(pkt, me->shape.elements, TRIB_MAX_CHILDREN) || h->window != me->shape.window)
        r->api->count(r, BAD, 1);
    else if (h->kind == RESULT)
        result_input(r, h, pkt->data, pkt->marked);
    else if (h->seq % me->v.servers == r->rank && comes_from_below(r, pkt))
        part_input(r, (unsigned)pkt->from, h, pkt->data, pkt->marked);
    else
        r->api->count(r, BAD, 1);
}

const struct trib_rank_half atp_rank = {
    .counters = counters,
    .open = atp_open,
    .close = atp_close,
    .start = atp_start,
    .packet = atp_packet,
    .room = trib_server_room,
    .timer = trib_server_timer,
};
