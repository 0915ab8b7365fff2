/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A parameter server on the ranks: docs/aggregation-protocols.md.
 *
 * A block is one packet. Blocks are numbered through all operations. Block q belongs to server q
 * mod V, which keeps the ranks' parts until it has all, reduces them in order of rank and sends the
 * result to every rank. A rank has at most n = V x w blocks in flight: it sends q + n once it has
 * the result of q. A server's slot collects q while it keeps the result of q - n. Once q is
 * complete it may forget that result, because all ranks that sent q have it.
 *
 * The server's own blocks, and its results for itself, go the same way by function calls.
 */
#include "protocols/builtin.h"

#include <tributary/server.h>

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
struct ps_head {
    uint64_t seq;
    uint8_t kind, type, op, zero;
    uint16_t window; /* the sender's; packets with another window are ignored */
    uint16_t count;  /* elements */
};
_Static_assert(sizeof(struct ps_head) == 16, "head on the wire");

/* Values that both ends and the formula derive from keys and fabric. */
struct ps_shape {
    uint32_t servers, window, bytes; /* of data in a packet, a multiple of 8 */
};

static struct ps_shape shape_of(const int64_t *key, uint32_t nranks, uint32_t payload,
                                uint32_t buffers, uint64_t rate_bps, int64_t round_trip)
{
    uint32_t most =
        payload > sizeof(struct ps_head) ? payload - (uint32_t)sizeof(struct ps_head) : 0;
    uint32_t others = nranks > 1 ? nranks - 1 : 1;
    struct ps_shape s = {.servers = (uint32_t)key[KEY_SERVERS],
                         .window = (uint32_t)key[KEY_WINDOW]};
    uint64_t packet, want, fit;

    if (!s.servers)
        s.servers = nranks;
    s.bytes = key[KEY_PACKET] && key[KEY_PACKET] < most ? (uint32_t)key[KEY_PACKET] : most;
    s.bytes &= ~7u;
    packet = (uint64_t)trib_link_ps(s.bytes + sizeof(struct ps_head), rate_bps) + 1;
    /* A block occupies a server's link for one packet of each rank. Twice the round trip to the
     * root, because the path between ranks is as long as to the root and back; and twice that,
     * because parts and results wait for each other at the servers. */
    want = trib_ceil_div(4 * (uint64_t)(round_trip > 0 ? round_trip : 1), others * packet) + 2;
    /* Parts of all other ranks and results of all servers, each with a duplicate. */
    fit = buffers / (2 * (others + s.servers));
    if (!s.window)
        s.window = (uint32_t)(want < fit ? want : fit);
    if (!s.window)
        s.window = 1;
    if (s.window > 1024)
        s.window = 1024;
    return s;
}

/* Time of a full window, to the servers and back. */
static int64_t round_ps(const struct trib_rank *r, const struct ps_shape *s)
{
    uint64_t bytes =
        2ull * s->window * (r->nranks - 1 + s->servers) * (s->bytes + sizeof(struct ps_head));

    return 2 * (r->round_trip_ps + r->notice_ps) + trib_link_ps(bytes, trib_slowest_bps(r, true));
}

static bool supports(enum trib_type type, enum trib_sum op)
{
    return (unsigned)type < TRIB_TYPES && (unsigned)op < TRIB_REDUCTIONS;
}

enum { RESENT, RESULTS_AGAIN, DUPLICATES, IGNORED, BAD };
static const char *const counters[] = {"resent", "again", "duplicates", "ignored", "bad", NULL};

/* A server's block: the first head, then the parts by rank, `bytes` apart, then the result. */
struct block {
    struct ps_head first;
    char data[];
};

struct ps_rank {
    struct trib_server v;
    struct ps_shape shape;
    struct trib_ranks others; /* all but this one */
};

static bool ps_send(struct trib_rank *r, const struct trib_flight *f);

static int ps_open(struct trib_rank *r)
{
    struct ps_shape s =
        shape_of(r->key, r->nranks, r->payload, r->window, r->rate_bps, r->round_trip_ps);
    int64_t timeout = r->key[KEY_TIMEOUT] * 1000000;
    struct ps_rank *me;
    int rc;

    if (!s.bytes)
        return trib_refuse(r, "packet: found %lld, expected 0 or at least 8",
                           (long long)r->key[KEY_PACKET]);
    rc = trib_server_open(r, sizeof(*me), s.servers, s.window,
                          sizeof(struct block) + (r->nranks + 1ul) * s.bytes,
                          sizeof(struct ps_head), timeout ? timeout : 4 * round_ps(r, &s),
                          r->key[KEY_PATIENCE] * 1000000000, ps_send);
    if (rc)
        return rc;
    me = r->self;
    me->shape = s;
    me->v.first = (r->rank + 1) % r->nranks;
    for (unsigned i = 0; i < r->nranks; i++)
        if (i != r->rank)
            trib_ranks_add(&me->others, i);
    return 0;
}

/* ---- as a worker ---- */

static void part_input(struct trib_rank *r, unsigned from, const struct ps_head *h,
                       const void *data);

static bool ps_send(struct trib_rank *r, const struct trib_flight *f)
{
    struct ps_rank *me = r->self;
    unsigned server = (unsigned)(f->seq % me->shape.servers);
    struct ps_head h = {.seq = f->seq,
                        .kind = PART,
                        .type = me->v.w.op.type,
                        .op = me->v.w.op.op,
                        .window = (uint16_t)me->shape.window,
                        .count = (uint16_t)trib_window_count(&me->v.w, f->seq)};
    const void *data = trib_window_from(&me->v.w, f->seq);

    if (server == r->rank) {
        if (!f->tries) /* a resend finds it already stored */
            part_input(r, server, &h, data);
        return true;
    }
    if (f->tries)
        r->api->count(r, RESENT, 1);
    return r->api->send(r, TRIB_RANK((int)server), &h, sizeof(h), data,
                        h.count * trib_size(h.type));
}

static void result_input(struct trib_rank *r, unsigned from, const struct ps_head *h,
                         const void *data)
{
    struct ps_rank *me = r->self;

    if (from != h->seq % me->shape.servers || !trib_window_awaits(&me->v.w, h->seq) ||
        h->type != me->v.w.op.type || h->op != me->v.w.op.op ||
        h->count != trib_window_count(&me->v.w, h->seq)) {
        r->api->count(r, IGNORED, 1);
        return;
    }
    memcpy(trib_window_to(&me->v.w, h->seq), data, h->count * trib_size(h->type));
    trib_window_advance(r, h->seq);
}

static int ps_start(struct trib_rank *r, const struct trib_op *op)
{
    struct ps_rank *me = r->self;
    uint32_t servers = me->shape.servers;

    if (!supports(op->type, op->op))
        return -ENOTSUP;
    trib_window_begin(r, op, me->shape.bytes / trib_size(op->type), 0);
    /* Each rank begins with another server, so that they do not all send to the same one. */
    for (uint64_t k = 0; k < me->v.w.n; k++)
        trib_window_offer(r, me->v.w.base + k - k % servers + (k + r->rank) % servers);
    trib_window_pump(r);
    return 0;
}

/* ---- as a server ---- */

/* Reduces the parts of a complete block from left to right, and sends the result. */
static void send_result(struct trib_rank *r, struct trib_block *b)
{
    struct ps_rank *me = r->self;
    const struct block *own = b->own;
    struct ps_head h = own->first;
    char *result = ((struct block *)b->own)->data + r->nranks * (size_t)me->shape.bytes;

    memcpy(result, own->data, h.count * trib_size(h.type));
    for (unsigned i = 1; i < r->nranks; i++)
        r->api->reduce(r, result, own->data + i * (size_t)me->shape.bytes, h.count, h.type, h.op);
    h.kind = RESULT;
    trib_server_complete(&me->v, b, &h, result, h.count * trib_size(h.type));
    trib_server_owe(r, b, NULL, &me->others);
    result_input(r, r->rank, &h, result);
}

static void part_input(struct trib_rank *r, unsigned from, const struct ps_head *h,
                       const void *data)
{
    struct ps_rank *me = r->self;
    struct trib_block *b = trib_server_block(&me->v, h->seq);
    struct block *own = b->own;
    const uint16_t rank = (uint16_t)from;
    enum trib_part part = trib_server_part(&me->v, b, h->seq, &rank, 1);

    if (part == TRIB_PART_KEPT) { /* its result was lost */
        if (from != r->rank) {
            r->api->count(r, RESULTS_AGAIN, 1);
            trib_server_owe_rank(r, b, from);
        }
    } else if (part != TRIB_PART_NEW) {
        r->api->count(r, DUPLICATES, 1);
    } else if (b->n_seen && (h->type != own->first.type || h->op != own->first.op ||
                             h->count != own->first.count)) {
        r->api->count(r, BAD, 1);
    } else {
        own->first = *h;
        memcpy(own->data + from * (size_t)me->shape.bytes, data, h->count * trib_size(h->type));
        if (trib_server_seen(&me->v, b, &rank, 1))
            send_result(r, b);
    }
}

static void ps_packet(struct trib_rank *r, const struct trib_packet *pkt)
{
    struct ps_rank *me = r->self;
    const struct ps_head *h = pkt->head;

    if (me->v.w.failed)
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

static const struct trib_rank_half rank_half = {
    .counters = counters,
    .open = ps_open,
    .close = trib_server_close,
    .start = ps_start,
    .packet = ps_packet,
    .room = trib_server_room,
    .timer = trib_server_timer,
};

/* Time on a link of all blocks that a rank sends to server 0; the last may be short. */
static int64_t own_ps(const struct trib_model *m, uint64_t per, uint64_t blocks, uint32_t servers)
{
    uint64_t own = trib_ceil_div(blocks, servers), size = trib_size(m->type);
    uint64_t last = (blocks - 1) % servers ? per : m->count - (blocks - 1) * per;

    return trib_link_ps(((own - 1) * per + last) * size +
                            own * (sizeof(struct ps_head) + m->overhead),
                        m->rate_bps);
}

/* Time of the busiest link while each rank sends to the servers and, if `back`, gets results:
 * rounds with a block of each server, then one with blocks of the first servers. If the last block
 * is alone in its round, its own length counts. */
static double busiest_ps(const struct trib_model *m, uint32_t servers, bool back, uint64_t per,
                         uint64_t blocks)
{
    uint32_t rest = (uint32_t)((blocks - 1) % servers) + 1, size = (uint32_t)trib_size(m->type),
             head = (uint32_t)sizeof(struct ps_head) + m->overhead;
    uint64_t left = rest > 1 ? per : m->count - (blocks - 1) * per;
    double rounds = (double)((blocks - 1) / servers),
           full = (double)trib_link_ps(per * size + head, m->rate_bps),
           last = (double)trib_link_ps(left * size + head, m->rate_bps);

    if (rounds > 0)
        rounds *= m->busiest(m, servers, back, NULL);
    return rounds * full + m->busiest(m, rest, back, NULL) * last;
}

/* Time by walking every packet. 0: not possible. */
static int64_t walked_ps(const struct trib_model *m, const struct ps_shape *s)
{
    uint64_t per = s->bytes / trib_size(m->type), blocks = per ? trib_ceil_div(m->count, per) : 0;
    uint32_t head = (uint32_t)sizeof(struct ps_head), size = (uint32_t)trib_size(m->type);

    if (!m->exchange || !blocks)
        return 0;
    return m->exchange(m,
                       &(struct trib_exchange){
                           .blocks = blocks,
                           .servers = s->servers,
                           .window = s->servers * s->window,
                           .bytes = head + (uint32_t)per * size,
                           .last_bytes = head + (uint32_t)(m->count - (blocks - 1) * per) * size});
}

/*
 * The busiest link is a server's, or one between switches. It carries the parts of all ranks, and,
 * from their first arrival on, results of other servers' blocks. After the last part the result of
 * its block goes to one rank after the other. With a small window the bound is one block per slot
 * and round trip, with ranks one packet apart.
 */
static int64_t ps_model(const struct trib_model *m)
{
    struct ps_shape s = shape_of(m->key, m->nranks, m->payload, m->window, m->rate_bps,
                                 m->up_ps(m, m->payload) + m->down_ps(m, m->payload));
    uint64_t per = s.bytes / trib_size(m->type), others = m->nranks - 1, blocks, own;
    double both, parts, server, one, turn, unit;
    uint32_t bytes, used;
    int64_t across, full, in, out, slow, walked;

    if (!per || !others)
        return 0;
    walked = walked_ps(m, &s);
    if (walked)
        return walked;
    blocks = trib_ceil_div(m->count, per);
    own = trib_ceil_div(blocks, s.servers);
    used = blocks < s.servers ? (uint32_t)blocks : s.servers;
    bytes = (uint32_t)sizeof(struct ps_head) +
            (uint32_t)((blocks > 1 ? per : m->count) * trib_size(m->type));
    across = m->across_ps(m, bytes);
    full = trib_link_ps(bytes + m->overhead, m->rate_bps);
    server = (double)own_ps(m, per, blocks, s.servers);
    one = server / (double)own;
    both = busiest_ps(m, s.servers, true, per, blocks);
    m->busiest(m, s.servers, true, &unit);
    in = across + (int64_t)(both - unit * one);
    parts = m->busiest(m, used, false, &unit);
    /* Results begin when the first block is complete, and follow each other. */
    out = 2 * across + (int64_t)(busiest_ps(m, s.servers, false, per, blocks) - unit * one +
                                 (parts - unit) * (double)full);
    turn = (double)(others - 1) * m->ranks_a_link * one;
    slow = (int64_t)((double)trib_ceil_div(own, s.window) * (2 * (double)across + turn) + turn);
    slow += 2 * (int64_t)((own - 1) / s.window) * m->notice_ps;
    in = in > out ? in : out;
    in = in > slow ? in : slow;
    /* a server's HCA: parts of others' blocks, and results of its own */
    out = across + (int64_t)(blocks - own + own * others) * m->message_ps;
    return in > out ? in : out;
}

/* In the first window all ranks send at once, and whether results wait behind parts depends on the
 * order on links between switches. The formula describes the steady state that follows. */
static unsigned ps_within(const struct trib_model *m)
{
    struct ps_shape s = shape_of(m->key, m->nranks, m->payload, m->window, m->rate_bps,
                                 m->up_ps(m, m->payload) + m->down_ps(m, m->payload));
    uint64_t per = s.bytes / trib_size(m->type);

    bool many = m->nranks > 16; /* the formula was checked with random fabrics up to 16 ranks */

    if (walked_ps(m, &s))
        return 5;
    if (per && trib_ceil_div(m->count, per) < 2ull * s.window * s.servers)
        return many ? 100 : 45;
    return many ? 45 : 5;
}

const struct trib_protocol trib_ps = {
    .version = TRIB_PROTOCOL_VERSION,
    .name = "ps",
    .about = "parameter server: blocks are reduced by ranks, in order of rank",
    .keys = keys,
    .supports = supports,
    .rank = &rank_half,
    .model = ps_model,
    .within = ps_within,
};
