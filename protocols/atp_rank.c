/* SPDX-License-Identifier: BSD-3-Clause */
#include "protocols/atp.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RESENT, AGAIN, DUPLICATES, OVERLAPS, HALVED, IGNORED, BAD, OVERFLOWS };
static const char *const counters[] = {"resent",  "again", "duplicates", "overlaps", "halved",
                                       "ignored", "bad",   "overflows",  NULL};

/* A server's: collects a block and keeps the result of `window` blocks before, as in ps.c. */
struct slot {
    uint64_t seq;
    uint64_t seen[TRIB_RANKS / 64];  /* ranks that the sum has */
    uint64_t above[TRIB_RANKS / 64]; /* lowest ranks of the switches that are owed the result */
    uint64_t owed[TRIB_RANKS / 64];  /* ranks that have asked for it */
    struct head first, kept;         /* of this block; of the result (kind 0: none yet) */
    uint32_t n_seen;
    bool queued;
    int32_t *sum, *result;
    double *floats; /* sum of the parts that came as floats, in place of integers */
};

/* E17, of a server: its first block without a result, and how many later ones have come since. */
struct lane {
    uint64_t oldest;
    uint32_t later;
};
#define GAP 3 /* or one less than may be on their way to a server */

struct rank {
    struct atp_shape shape;
    struct window w; /* flight q mod window carries block q */
    bool active, failed;
    struct trib_op op;
    uint64_t base, blocks, next, answered; /* number of its first block; blocks; sent; answered */
    uint32_t allowed, quiet; /* E17: blocks in flight now; answers since that was changed */
    uint64_t recover;        /* a mark of a block before this one has had its effect */
    uint32_t gap;
    struct lane *lane;               /* of each server */
    uint32_t below;                  /* ranks below my first switch */
    uint64_t above[TRIB_RANKS / 64]; /* of a server: lowest ranks of switches with other ranks */
    int32_t *values;                 /* a packet, as integers */
    struct slot *slot;
    int32_t *memory;
    double *floats;
    uint32_t *queue; /* slots that owe results: a ring */
    uint32_t head, queued, slots;
};

/* ---- life ---- */

static void atp_close(struct trib_rank *r)
{
    struct rank *me = r->self;

    window_close(&me->w);
    free(me->values);
    free(me->lane);
    free(me->slot);
    free(me->memory);
    free(me->floats);
    free(me->queue);
    free(me);
}

static int server_open(struct trib_rank *r)
{
    struct rank *me = r->self;
    const uint32_t n = me->shape.elements;

    me->slots = me->shape.window / me->shape.servers;
    me->slot = calloc(me->slots, sizeof(*me->slot));
    me->queue = calloc(me->slots, sizeof(*me->queue));
    me->memory = calloc(me->slots, 2ul * n * sizeof(*me->memory));
    me->floats = calloc(me->slots, n * sizeof(*me->floats));
    if (!me->slot || !me->queue || !me->memory || !me->floats)
        return -ENOMEM;
    for (uint32_t i = 0; i < me->slots; i++) {
        me->slot[i].seq = i * (uint64_t)me->shape.servers + r->rank;
        me->slot[i].sum = me->memory + 2ul * i * n;
        me->slot[i].result = me->slot[i].sum + n;
        me->slot[i].floats = me->floats + (size_t)i * n;
    }
    for (unsigned i = 0; i < r->nranks; i++)
        if (i != r->rank)
            me->above[r->switch_of[i] / 64] |= 1ull << r->switch_of[i] % 64;
    return 0;
}

static int atp_open(struct trib_rank *r)
{
    struct rank *me = calloc(1, sizeof(*me));
    int64_t timeout = r->key[KEY_TIMEOUT] * 1000000;
    int rc;

    if (!me)
        return -ENOMEM;
    r->self = me;
    me->shape = atp_shape(r->key, r->nranks, r->payload, r->window, r->rate_bps, r->round_trip_ps);
    me->allowed = me->shape.window;
    me->gap = me->shape.window / me->shape.servers - 1;
    me->gap = me->gap > GAP ? GAP : me->gap;
    for (unsigned i = 0; i < r->nranks; i++)
        me->below += r->switch_of[i] == r->switch_of[r->rank];
    rc = window_open(&me->w, me->shape.window, timeout ? timeout : 4 * me->shape.round_ps,
                     r->key[KEY_PATIENCE] * 1000000000);
    me->values = calloc(me->shape.elements + 1, sizeof(*me->values));
    me->lane = calloc(me->shape.servers, sizeof(*me->lane));
    if (!me->values || !me->lane)
        rc = -ENOMEM;
    if (!rc)
        rc = key_servers(r, r->key[KEY_SERVERS]);
    if (!me->shape.elements)
        rc = key_refuse(r, "packet: no element fits into %u bytes of a packet", r->payload);
    if (!rc && r->rank < me->shape.servers)
        rc = server_open(r);
    if (rc)
        atp_close(r);
    for (uint32_t i = 0; !rc && i < me->w.n; i++)
        me->w.flight[i].seq = i - (uint64_t)me->w.n;
    for (uint32_t i = 0; !rc && i < me->shape.servers; i++)
        me->lane[i].oldest = i;
    return rc;
}

static void fail(struct trib_rank *r, const char *why)
{
    ((struct rank *)r->self)->failed = true;
    r->api->fail(r, why);
}

/* ---- as a worker ---- */

/* Elements of block k, and its first byte. */
static uint16_t block(const struct rank *me, uint64_t k, uint64_t *first)
{
    uint64_t left = me->op.count - k * me->shape.elements;

    *first = k * me->shape.elements * 4;
    return (uint16_t)(left < me->shape.elements ? left : me->shape.elements);
}

/* False: an element is beyond what n ranks may add up, or no number. */
static bool to_fixed(struct trib_rank *r, const char *from, uint32_t n)
{
    struct rank *me = r->self;
    const double scale = (double)r->key[KEY_SCALE], limit = atp_limit(r->nranks);
    const double round = 0x1.8p52; /* has no room for fractions: rounds to nearest, ties to even */
    bool fits = true;

    for (uint32_t i = 0; i < n; i++) {
        double q;
        float x;

        memcpy(&x, from + i * 4ull, 4);
        q = x * scale;
        fits &= fabs(q) <= limit;
        me->values[i] = fabs(q) <= limit ? (int32_t)(q + round - round) : 0;
    }
    return fits;
}

static void part_input(struct trib_rank *r, const struct head *h, const void *data, bool marked);

static bool atp_send(struct trib_rank *r, uint32_t i)
{
    struct rank *me = r->self;
    const struct flight *f = &me->w.flight[i];
    unsigned server = (unsigned)(f->seq % me->shape.servers);
    struct head h = {.seq = f->seq,
                     .window = (uint16_t)me->shape.window,
                     .kind = PART,
                     .flags = f->tries ? RESEND : 0,
                     .type = me->op.type};
    uint64_t first;
    const void *data;

    if (me->failed)
        return true;
    h.count = block(me, f->seq - me->base, &first);
    h.ranks[r->rank / 64] = 1ull << r->rank % 64;
    h.fan_in = (uint8_t)(me->below - (r->switch_of[server] == r->switch_of[r->rank]));
    data = (const char *)me->op.send + first;
    if (me->op.type == TRIB_FLOAT32) {
        if (to_fixed(r, data, h.count)) {
            data = me->values;
        } else { /* E18: as floats, to the server */
            h.flags |= FLOATS;
            r->api->count(r, OVERFLOWS, !f->tries);
        }
    }
    if (server == r->rank) {
        if (f->tries) /* it is there already */
            return true;
        part_input(r, &h, data, false);
        return true;
    }
    if (f->tries)
        r->api->count(r, RESENT, 1);
    return r->api->send_through(r, server, &h, sizeof(h), data, h.count * 4u);
}

/* Blocks go out in order at every rank, so that none waits for one that another does not send. */
static void go_on(struct trib_rank *r)
{
    struct rank *me = r->self;

    while (me->next < me->blocks && me->w.busy < me->allowed) {
        uint32_t i = (uint32_t)((me->base + me->next) % me->w.n);

        if (me->w.flight[i].state != FLIGHT_IDLE)
            break;
        window_queue(&me->w, r, i, me->base + me->next);
        me->next++;
    }
    window_pump(&me->w, r, atp_send);
}

/* E17: half as many in flight after a mark, once for what was in flight then; one more after as many
 * answers as there are in flight. */
static void adapt(struct trib_rank *r, uint64_t seq, bool marked)
{
    struct rank *me = r->self;

    me->quiet++;
    if (marked && seq >= me->recover) {
        me->recover = me->base + me->next;
        me->allowed = me->allowed > 1 ? me->allowed / 2 : 1;
        me->quiet = 0;
        r->api->count(r, HALVED, 1);
    } else if (me->quiet >= me->allowed && me->allowed < me->shape.window) {
        me->allowed++;
        me->quiet = 0;
    }
}

/* E17: a block is sent again once three later ones of its server have come. An aggregator that has
 * missed a part, because it was another block's when that passed, is emptied so. */
static void gap(struct trib_rank *r, uint64_t seq)
{
    struct rank *me = r->self;
    struct lane *l = &me->lane[seq % me->shape.servers];
    const struct flight *f = &me->w.flight[l->oldest % me->w.n];

    if (seq == l->oldest) {
        l->later = 0;
        do {
            l->oldest += me->shape.servers;
            f = &me->w.flight[l->oldest % me->w.n];
        } while ((int64_t)(f->seq - l->oldest) > 0 ||
                 (f->seq == l->oldest && f->state == FLIGHT_IDLE));
    } else if (++l->later >= me->gap && f->seq == l->oldest && f->state == FLIGHT_SENT &&
               !f->tries) {
        window_resend(&me->w, (uint32_t)(l->oldest % me->w.n));
    }
}

static void result_input(struct trib_rank *r, const struct head *h, const void *data, bool marked)
{
    struct rank *me = r->self;
    uint32_t i = (uint32_t)(h->seq % me->w.n);
    const struct flight *f = &me->w.flight[i];
    uint64_t first;

    if (!me->active || f->seq != h->seq || f->state == FLIGHT_IDLE ||
        (f->state == FLIGHT_QUEUED && !f->tries) || h->type != me->op.type ||
        h->count != block(me, h->seq - me->base, &first)) {
        r->api->count(r, IGNORED, 1);
        return;
    }
    if (h->type == TRIB_FLOAT32 && !(h->flags & FLOATS))
        for (uint32_t k = 0; k < h->count; k++) {
            int32_t q;
            float x;

            memcpy(&q, (const char *)data + k * 4ull, 4);
            x = (float)(q / (double)r->key[KEY_SCALE]);
            memcpy((char *)me->op.recv + first + k * 4ull, &x, 4);
        }
    else
        memcpy((char *)me->op.recv + first, data, h->count * 4u);
    window_answer(&me->w, r, i);
    gap(r, h->seq);
    adapt(r, h->seq, marked || h->flags & MARKED);
    if (++me->answered == me->blocks) {
        me->active = false;
        me->base += me->blocks;
        r->api->done(r);
        return;
    }
    go_on(r);
}

static int atp_start(struct trib_rank *r, const struct trib_op *op)
{
    struct rank *me = r->self;

    if (!atp_supports(op->type, op->op))
        return -ENOTSUP;
    me->op = *op;
    me->blocks = ceil_div(op->count, me->shape.elements);
    me->next = me->answered = 0;
    me->active = true;
    go_on(r);
    return 0;
}

/* ---- as a server ---- */

static void owe(struct rank *me, struct slot *s)
{
    if (s->queued)
        return;
    s->queued = true;
    me->queue[(me->head + me->queued++) % me->slots] = (uint32_t)(s - me->slot);
}

/* Sends a result to all in the bitmap: ranks, or switches above ranks. False: no buffer is free. */
static bool pay(struct trib_rank *r, const struct slot *s, uint64_t *owed, bool above)
{
    for (int i = 0; i < (int)r->nranks; i++) {
        uint64_t bit = 1ull << i % 64;

        if (!(owed[i / 64] & bit))
            continue;
        if (!r->api->send(r, above ? TRIB_SWITCH_OF(i) : TRIB_RANK(i), &s->kept, sizeof(s->kept),
                          s->result, s->kept.count * 4u))
            return false;
        owed[i / 64] &= ~bit;
    }
    return true;
}

static void pay_all(struct trib_rank *r)
{
    struct rank *me = r->self;

    while (me->queued) {
        struct slot *s = &me->slot[me->queue[me->head]];

        if (!pay(r, s, s->above, true) || !pay(r, s, s->owed, false))
            return;
        s->queued = false;
        me->head = (me->head + 1) % me->slots;
        me->queued--;
    }
}

/* Integers and floats together, as floats. */
static void join_floats(const struct trib_rank *r, struct slot *s)
{
    for (uint32_t i = 0; i < s->first.count; i++) {
        float x = (float)(s->floats[i] + s->sum[i] / (double)r->key[KEY_SCALE]);

        memcpy(&s->sum[i], &x, 4);
    }
}

static void complete(struct trib_rank *r, struct slot *s)
{
    struct rank *me = r->self;
    int32_t *was = s->result;

    if (s->first.flags & FLOATS)
        join_floats(r, s);
    s->result = s->sum;
    s->sum = was;
    s->kept = s->first;
    s->kept.kind = RESULT;
    s->kept.fan_in = 0;
    memset(s->kept.ranks, 0, sizeof(s->kept.ranks));
    s->seq += me->w.n;
    s->n_seen = 0;
    memset(s->seen, 0, sizeof(s->seen));
    memset(s->owed, 0, sizeof(s->owed));
    memcpy(s->above, me->above, sizeof(s->above));
    owe(me, s);
    pay_all(r);
    result_input(r, &s->kept, s->result, false);
}

static void add_floats(struct slot *s, const void *data)
{
    if (!(s->first.flags & FLOATS))
        memset(s->floats, 0, s->first.count * sizeof(*s->floats));
    s->first.flags |= FLOATS;
    for (uint32_t i = 0; i < s->first.count; i++) {
        float x;

        memcpy(&x, (const char *)data + i * 4ull, 4);
        s->floats[i] += x;
    }
}

/* The first sum, or one that has no rank of those before it. */
static void add(struct trib_rank *r, struct slot *s, const struct head *h, const void *data,
                bool marked)
{
    if (!s->n_seen) {
        s->first = *h;
        s->first.flags = 0;
        memset(s->sum, 0, h->count * 4u);
    }
    if (h->type != s->first.type || h->count != s->first.count) {
        r->api->count(r, BAD, 1);
        return;
    }
    if (h->flags & FLOATS)
        add_floats(s, data);
    else
        r->api->reduce(r, s->sum, data, h->count, TRIB_INT32, TRIB_SUM);
    if (marked || h->flags & MARKED)
        s->first.flags |= MARKED;
    for (unsigned i = 0; i < TRIB_RANKS / 64; i++) {
        s->seen[i] |= h->ranks[i];
        s->n_seen += (uint32_t)__builtin_popcountll(h->ranks[i]);
    }
    if (s->n_seen == r->nranks)
        complete(r, s);
}

static void part_input(struct trib_rank *r, const struct head *h, const void *data, bool marked)
{
    struct rank *me = r->self;
    struct slot *s = &me->slot[h->seq % me->w.n / me->shape.servers];

    if (s->kept.kind && h->seq == s->kept.seq) {
        if (!(h->flags & RESEND)) {
            r->api->count(r, DUPLICATES, 1);
            return;
        }
        r->api->count(r, AGAIN, 1);
        for (unsigned i = 0; i < TRIB_RANKS / 64; i++)
            s->owed[i] |= h->ranks[i];
        s->owed[r->rank / 64] &= ~(1ull << r->rank % 64);
        owe(me, s);
        pay_all(r);
    } else if (h->seq != s->seq) {
        r->api->count(r, DUPLICATES, 1);
    } else if (!((h->ranks[0] & s->seen[0]) | (h->ranks[1] & s->seen[1]))) {
        add(r, s, h, data, marked);
    } else { /* of ranks that are in already; others of the sum come again by themselves */
        r->api->count(r, OVERLAPS, 1);
    }
}

static void atp_packet(struct trib_rank *r, const struct trib_packet *pkt)
{
    struct rank *me = r->self;
    const struct head *h = pkt->head;

    if (me->failed)
        return;
    if (!atp_valid(pkt, me->shape.elements, r->nranks) || h->window != me->shape.window)
        r->api->count(r, BAD, 1);
    else if (h->kind == RESULT)
        result_input(r, h, pkt->data, pkt->marked);
    else if (h->seq % me->shape.servers == r->rank)
        part_input(r, h, pkt->data, pkt->marked);
    else
        r->api->count(r, BAD, 1);
}

static void atp_room(struct trib_rank *r)
{
    struct rank *me = r->self;

    if (me->failed)
        return;
    pay_all(r);
    window_pump(&me->w, r, atp_send);
}

static void atp_timer(struct trib_rank *r)
{
    struct rank *me = r->self;

    if (me->failed)
        return;
    if (window_overdue(&me->w, r) < 0)
        fail(r,
             "atp: no answer within patience_ms: a rank or a switch is gone, or ranks have started "
             "different operations");
    else
        atp_room(r);
}

const struct trib_rank_half atp_rank = {
    .counters = counters,
    .open = atp_open,
    .close = atp_close,
    .start = atp_start,
    .packet = atp_packet,
    .room = atp_room,
    .timer = atp_timer,
};
