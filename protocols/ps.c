/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A parameter server on the ranks: docs/aggregation-protocols.md.
 *
 * Blocks of a packet each are numbered through all operations. Block q belongs to server q mod V,
 * which holds what the ranks send until all of it is there, reduces it in order of rank and sends
 * the result to every rank. A rank has V x w blocks in flight at most (`n`): it sends q + n once it
 * has the result of q. So a server's slot, which collects q and has kept the result of q - n, may
 * forget that one when q is complete: all ranks that sent q had it.
 *
 * The server's own blocks, and its results for itself, take the same way by function calls.
 */
#include "protocols/builtin.h"
#include "protocols/window.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_SERVERS, KEY_WINDOW, KEY_PACKET, KEY_TIMEOUT, KEY_PATIENCE };

static const struct trib_key keys[] = {
    {"servers", "ranks that are servers: the first so many; 0: all", 0, 0, TRIB_RANKS},
    {"window", "packets in flight to each server; 0: by round trip and receive buffers", 0, 0,
     1024},
    {"packet", "bytes of data in a packet; 0: as many as fit", 0, 0, 65536},
    {"timeout_us", "first retransmission; 0: four times what a full window takes", 0, 0, 10000000},
    {"patience_ms", "a rank that is not answered for so long fails", 10000, 1, 3600000},
    {0},
};

enum { PART = 1, RESULT };
struct head {
    uint64_t seq;
    uint8_t kind, type, op, zero;
    uint16_t window; /* of the sender: ends that disagree have nothing to say to each other */
    uint16_t count;  /* elements */
};
_Static_assert(sizeof(struct head) == 16, "head on the wire");

/* What both ends, and the formula, derive from keys and fabric. */
struct shape {
    uint32_t servers, window, bytes; /* of data in a packet, a multiple of 8 */
    int64_t round_ps;                /* a full window there and back */
};

static struct shape shape_of(const int64_t *key, uint32_t nranks, uint32_t payload,
                             uint32_t buffers, uint64_t rate_bps, int64_t round_trip)
{
    uint32_t most = payload > sizeof(struct head) ? payload - (uint32_t)sizeof(struct head) : 0;
    uint32_t others = nranks > 1 ? nranks - 1 : 1;
    struct shape s = {.servers = (uint32_t)key[KEY_SERVERS], .window = (uint32_t)key[KEY_WINDOW]};
    uint64_t packet, want, fit;

    if (!s.servers || s.servers > nranks)
        s.servers = nranks;
    s.bytes = key[KEY_PACKET] && key[KEY_PACKET] < most ? (uint32_t)key[KEY_PACKET] : most;
    s.bytes &= ~7u;
    packet = (uint64_t)link_ps(s.bytes + sizeof(struct head), rate_bps) + 1;
    /* A block keeps a server's link busy for a packet of each rank. Twice the round trip to the
     * root, as ranks are as far from each other as from the root and back; and twice of that, as
     * parts and results wait for each other at the servers. */
    want = ceil_div(4 * (uint64_t)(round_trip > 0 ? round_trip : 1), others * packet) + 2;
    /* Parts of all other ranks and results of all servers, each with a duplicate. */
    fit = buffers / (2 * (others + s.servers));
    if (!s.window)
        s.window = (uint32_t)(want < fit ? want : fit);
    if (!s.window)
        s.window = 1;
    if (s.window > 1024)
        s.window = 1024;
    s.round_ps = 2 * round_trip + (int64_t)(2ull * s.window * (others + s.servers) * packet);
    return s;
}

static bool supports(enum trib_type type, enum trib_sum op)
{
    return (unsigned)type < TRIB_TYPES && (unsigned)op < TRIB_REDUCTIONS;
}

enum { RESENT, RESULTS_AGAIN, DUPLICATES, IGNORED, BAD };
static const char *const counters[] = {"resent", "again", "duplicates", "ignored", "bad", NULL};

struct slot {
    uint64_t seq;                   /* collects this block */
    uint64_t seen[TRIB_RANKS / 64]; /* ranks whose part has come */
    uint64_t owed[TRIB_RANKS / 64]; /* ranks to whom the kept result is still to be sent */
    struct head first;              /* of this block */
    struct head kept;               /* of the result; kind 0: none yet */
    uint32_t n_seen;
    bool queued;
    char *part; /* nranks x bytes */
    char *result;
};

struct rank {
    struct shape shape;
    struct window w; /* flight q mod n carries block q */
    bool active, failed;
    struct trib_op op;
    uint64_t base, blocks, answered; /* number of its first block; blocks; those with a result */
    uint32_t elements;               /* of a block */
    struct slot *slot;               /* of a server: `window` of them */
    char *memory;
    uint32_t *queue; /* slots that owe results: a ring */
    uint32_t head, queued;
};

/* ---- life ---- */

static void ps_close(struct trib_rank *r)
{
    struct rank *me = r->self;

    window_close(&me->w);
    free(me->slot);
    free(me->memory);
    free(me->queue);
    free(me);
}

static int ps_open(struct trib_rank *r)
{
    struct rank *me = calloc(1, sizeof(*me));
    struct shape s =
        shape_of(r->key, r->nranks, r->payload, r->window, r->rate_bps, r->round_trip_ps);
    int64_t timeout = r->key[KEY_TIMEOUT] * 1000000;
    size_t bytes = (r->nranks + 1ul) * s.bytes;
    int rc;

    if (!me)
        return -ENOMEM;
    r->self = me;
    me->shape = s;
    rc = key_servers(r, r->key[KEY_SERVERS]);
    if (!rc && !s.bytes)
        rc = key_refuse(r, "packet: found %lld, expected 0 or at least 8",
                        (long long)r->key[KEY_PACKET]);
    if (rc)
        goto none;
    rc = -ENOMEM;
    if (window_open(&me->w, s.servers * s.window, timeout ? timeout : 4 * s.round_ps,
                    r->key[KEY_PATIENCE] * 1000000000))
        goto none;
    for (uint32_t i = 0; i < me->w.n; i++)
        me->w.flight[i].seq = i - (uint64_t)me->w.n;
    if (r->rank >= s.servers)
        return 0;
    me->slot = calloc(s.window, sizeof(*me->slot));
    me->queue = calloc(s.window, sizeof(*me->queue));
    me->memory = calloc(s.window, bytes);
    if (!me->slot || !me->queue || !me->memory)
        goto none;
    for (uint32_t i = 0; i < s.window; i++) {
        me->slot[i].seq = i * (uint64_t)s.servers + r->rank;
        me->slot[i].part = me->memory + i * bytes;
        me->slot[i].result = me->slot[i].part + r->nranks * (size_t)s.bytes;
    }
    return 0;
none:
    ps_close(r);
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
    uint64_t left = me->op.count - k * me->elements;

    *first = k * me->elements * trib_size(me->op.type);
    return (uint16_t)(left < me->elements ? left : me->elements);
}

static void part_input(struct trib_rank *r, unsigned from, const struct head *h, const void *data);

static bool ps_send(struct trib_rank *r, uint32_t i)
{
    struct rank *me = r->self;
    const struct flight *f = &me->w.flight[i];
    unsigned server = (unsigned)(f->seq % me->shape.servers);
    struct head h = {.seq = f->seq,
                     .kind = PART,
                     .type = me->op.type,
                     .op = me->op.op,
                     .window = (uint16_t)me->shape.window};
    uint64_t first;
    const char *data;

    h.count = block(me, f->seq - me->base, &first);
    data = (const char *)me->op.send + first;
    if (server == r->rank) {
        if (f->tries) /* it is there already */
            return true;
        part_input(r, server, &h, data);
        return true;
    }
    if (f->tries)
        r->api->count(r, RESENT, 1);
    return r->api->send(r, TRIB_RANK((int)server), &h, sizeof(h), data,
                        h.count * trib_size(me->op.type));
}

/* Queues block k of the operation, if it exists and its flight's result before has come. */
static void offer(struct trib_rank *r, uint64_t k)
{
    struct rank *me = r->self;

    if (k < me->blocks)
        window_queue(&me->w, r, (uint32_t)((me->base + k) % me->w.n), me->base + k);
}

static void result_input(struct trib_rank *r, unsigned from, const struct head *h, const void *data)
{
    struct rank *me = r->self;
    uint32_t i = (uint32_t)(h->seq % me->w.n);
    const struct flight *f = &me->w.flight[i];
    uint64_t k = h->seq - me->base, first;

    if (!me->active || from != h->seq % me->shape.servers || f->seq != h->seq ||
        f->state == FLIGHT_IDLE || (f->state == FLIGHT_QUEUED && !f->tries) ||
        h->type != me->op.type || h->op != me->op.op || h->count != block(me, k, &first)) {
        r->api->count(r, IGNORED, 1);
        return;
    }
    memcpy((char *)me->op.recv + first, data, h->count * trib_size(h->type));
    window_answer(&me->w, r, i);
    if (++me->answered == me->blocks) {
        me->active = false;
        me->base += me->blocks;
        r->api->done(r);
        return;
    }
    offer(r, k + me->w.n);
    window_pump(&me->w, r, ps_send);
}

static int ps_start(struct trib_rank *r, const struct trib_op *op)
{
    struct rank *me = r->self;
    uint32_t servers = me->shape.servers;
    uint64_t n;

    if (!supports(op->type, op->op))
        return -ENOTSUP;
    me->op = *op;
    me->elements = me->shape.bytes / trib_size(op->type);
    me->blocks = ceil_div(op->count, me->elements);
    me->answered = 0;
    me->active = true;
    n = me->blocks < me->w.n ? me->blocks : me->w.n;
    /* Each rank begins with another server, so that they do not all send to one at once. */
    for (uint64_t k = 0; k < ceil_div(n, servers) * servers; k++) {
        uint64_t turned = k - k % servers + (k + r->rank) % servers;

        if (turned < n)
            offer(r, turned);
    }
    window_pump(&me->w, r, ps_send);
    return 0;
}

/* ---- as a server ---- */

static void owe(struct rank *me, struct slot *s, unsigned rank)
{
    s->owed[rank / 64] |= 1ull << rank % 64;
    if (s->queued)
        return;
    s->queued = true;
    me->queue[(me->head + me->queued++) % me->shape.window] = (uint32_t)(s - me->slot);
}

/* Sends the kept result to whom it is owed. False: no buffer is free. */
static bool pay(struct trib_rank *r, struct slot *s)
{
    for (unsigned i = 1; i < r->nranks; i++) {
        unsigned to = (r->rank + i) % r->nranks;
        uint64_t bit = 1ull << to % 64;

        if (!(s->owed[to / 64] & bit))
            continue;
        if (!r->api->send(r, TRIB_RANK((int)to), &s->kept, sizeof(s->kept), s->result,
                          s->kept.count * trib_size(s->kept.type)))
            return false;
        s->owed[to / 64] &= ~bit;
    }
    return true;
}

static void pay_all(struct trib_rank *r)
{
    struct rank *me = r->self;

    while (me->queued) {
        struct slot *s = &me->slot[me->queue[me->head]];

        if (!pay(r, s))
            return;
        s->queued = false;
        me->head = (me->head + 1) % me->shape.window;
        me->queued--;
    }
}

/* All parts are there: reduces them from left to right. */
static void send_result(struct trib_rank *r, struct slot *s)
{
    struct rank *me = r->self;
    uint32_t bytes = s->first.count * trib_size(s->first.type);

    memcpy(s->result, s->part, bytes);
    for (unsigned i = 1; i < r->nranks; i++)
        r->api->reduce(r, s->result, s->part + i * (size_t)me->shape.bytes, s->first.count,
                       s->first.type, s->first.op);
    s->kept = s->first;
    s->kept.kind = RESULT;
    s->seq += me->w.n;
    s->n_seen = 0;
    memset(s->seen, 0, sizeof(s->seen));
    for (unsigned i = 0; i < r->nranks; i++)
        if (i != r->rank)
            owe(me, s, i);
    pay_all(r);
    result_input(r, r->rank, &s->kept, s->result);
}

static void part_input(struct trib_rank *r, unsigned from, const struct head *h, const void *data)
{
    struct rank *me = r->self;
    struct slot *s = &me->slot[h->seq % me->w.n / me->shape.servers];
    uint64_t bit = 1ull << from % 64;

    if (s->kept.kind && h->seq == s->kept.seq) { /* its result was lost */
        if (from != r->rank) {
            r->api->count(r, RESULTS_AGAIN, 1);
            owe(me, s, from);
            pay_all(r);
        }
    } else if (h->seq != s->seq || s->seen[from / 64] & bit) {
        r->api->count(r, DUPLICATES, 1);
    } else if (s->n_seen &&
               (h->type != s->first.type || h->op != s->first.op || h->count != s->first.count)) {
        r->api->count(r, BAD, 1);
    } else {
        s->first = *h;
        s->seen[from / 64] |= bit;
        memcpy(s->part + from * (size_t)me->shape.bytes, data, h->count * trib_size(h->type));
        if (++s->n_seen == r->nranks)
            send_result(r, s);
    }
}

static void ps_packet(struct trib_rank *r, const struct trib_packet *pkt)
{
    struct rank *me = r->self;
    const struct head *h = pkt->head;

    if (me->failed)
        return;
    if (pkt->from < 0 || pkt->from >= (int)r->nranks || pkt->from == (int)r->rank ||
        pkt->head_bytes != sizeof(*h) || h->window != me->shape.window ||
        !supports(h->type, h->op) || pkt->data_bytes != h->count * trib_size(h->type) ||
        pkt->data_bytes > me->shape.bytes || !h->count) {
        r->api->count(r, BAD, 1);
        return;
    }
    if (h->kind == RESULT)
        result_input(r, (unsigned)pkt->from, h, pkt->data);
    else if (h->kind == PART && h->seq % me->shape.servers == r->rank)
        part_input(r, (unsigned)pkt->from, h, pkt->data);
    else
        r->api->count(r, BAD, 1);
}

static void ps_room(struct trib_rank *r)
{
    struct rank *me = r->self;

    if (me->failed)
        return;
    pay_all(r);
    window_pump(&me->w, r, ps_send);
}

static void ps_timer(struct trib_rank *r)
{
    struct rank *me = r->self;

    if (me->failed)
        return;
    if (window_overdue(&me->w, r) < 0)
        fail(r, "ps: no answer within patience_ms: a rank is gone, or ranks have started different "
                "operations");
    else
        ps_room(r);
}

static const struct trib_rank_half rank_half = {
    .counters = counters,
    .open = ps_open,
    .close = ps_close,
    .start = ps_start,
    .packet = ps_packet,
    .room = ps_room,
    .timer = ps_timer,
};

/* Time on a link of what server 0 gets from a rank: all its blocks, the last of which may be short. */
static int64_t own_ps(const struct trib_model *m, uint64_t per, uint64_t blocks, uint32_t servers)
{
    uint64_t own = ceil_div(blocks, servers), size = trib_size(m->type);
    uint64_t last = (blocks - 1) % servers ? per : m->count - (blocks - 1) * per;

    return link_ps(((own - 1) * per + last) * size + own * (sizeof(struct head) + m->overhead),
                   m->rate_bps);
}

/*
 * The busiest link is a server's, or one between switches. It takes the parts of all ranks, and the
 * results of other servers' blocks from the moment when the first are there. After the last part
 * comes its block's result, to one rank after the other. Or, in a small window, a slot has a block
 * each round trip; ranks stay one packet apart.
 */
static int64_t model(const struct trib_model *m)
{
    struct shape s = shape_of(m->key, m->nranks, m->payload, m->window, m->rate_bps,
                              m->up_ps(m, m->payload) + m->down_ps(m, m->payload));
    uint64_t per = s.bytes / trib_size(m->type), others = m->nranks - 1, blocks, own;
    double both, parts, server, one, turn;
    uint32_t bytes, used;
    int64_t across, full, in, out, slow;

    if (!per || !others)
        return 0;
    blocks = ceil_div(m->count, per);
    own = ceil_div(blocks, s.servers);
    used = blocks < s.servers ? (uint32_t)blocks : s.servers;
    bytes = (uint32_t)sizeof(struct head) +
            (uint32_t)((blocks > 1 ? per : m->count) * trib_size(m->type));
    across = m->across_ps(m, bytes);
    full = link_ps(bytes + m->overhead, m->rate_bps);
    server = (double)own_ps(m, per, blocks, s.servers);
    one = server / (double)own;
    both = m->busiest(m, used, true) * server;
    parts = m->busiest(m, used, false);
    in = across + (int64_t)(both - one);
    /* Results begin when the first block is there, and follow each other. */
    out = 2 * across + (int64_t)(parts * server - one + (parts - 1) * (double)full);
    turn = (double)(others - 1) * m->ranks_a_link * one;
    slow = (int64_t)((double)ceil_div(own, s.window) * (2 * (double)across + turn) + turn);
    in = in > out ? in : out;
    return in > slow ? in : slow;
}

const struct trib_protocol trib_ps = {
    .version = TRIB_PROTOCOL_VERSION,
    .name = "ps",
    .about = "parameter server: blocks are reduced by ranks, in order of rank",
    .keys = keys,
    .supports = supports,
    .rank = &rank_half,
    .model = model,
};
