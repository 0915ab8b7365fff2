/* SPDX-License-Identifier: BSD-3-Clause */
#include "protocols/atp.h"

#include <tributary/fixed.h>
#include <tributary/window.h>

static const struct trib_key keys[] = {
    {"servers", "ranks that are parameter servers: the first so many; 0: all", 0, 0, TRIB_RANKS},
    {"aggregators", "of a switch, of all jobs in common", 4096, 1, 65536},
    {"window", "packets in flight; 0: by round trip and receive buffers", 0, 0, 16384},
    {"packet", "elements of a packet", 256, 1, 16384},
    {"scale", "float32 x as the integer nearest to x times this", 1000000, 1, 1000000000},
    {"timeout_us", "first retransmission; 0: four times what a full window takes", 0, 0, 10000000},
    {"patience_ms", "a rank that is not answered for so long fails", 10000, 1, 3600000},
    {0},
};

uint32_t atp_elements(const int64_t *key, uint32_t payload)
{
    return trib_elements(key[KEY_PACKET], payload, sizeof(struct atp_head), 4);
}

struct atp_shape atp_shape(const int64_t *key, uint32_t nranks, uint32_t payload, uint32_t buffers,
                           uint64_t rate_bps, int64_t round_trip)
{
    struct atp_shape s = {.servers = (uint32_t)key[KEY_SERVERS],
                          .elements = atp_elements(key, payload)};
    uint64_t packet =
        (uint64_t)trib_link_ps(s.elements * 4ull + sizeof(struct atp_head), rate_bps) + 1;
    uint64_t want = (uint64_t)key[KEY_WINDOW], fit;

    if (!s.servers)
        s.servers = nranks;
    /* Twice the round trip to the root, because the server is behind it; and twice that, because
     * sums and results wait for each other there. */
    if (!want)
        want = trib_ceil_div(4 * (uint64_t)(round_trip > 0 ? round_trip : 1), packet);
    /* A server may get a block as one part per rank, and each block has a result: all of them may
     * come twice. */
    fit = buffers / (2 * (nranks + s.servers));
    want = trib_ceil_div(want, s.servers);
    if (!key[KEY_WINDOW] && want < 4) /* a gap needs later blocks to show */
        want = 4;
    want = want < fit || key[KEY_WINDOW] ? want : fit;
    s.window = (uint32_t)(want ? want : 1) * s.servers;
    return s;
}

bool atp_supports(enum trib_type type, enum trib_sum op)
{
    return op == TRIB_SUM && (type == TRIB_INT32 || type == TRIB_UINT32 || type == TRIB_FLOAT32);
}

bool atp_valid(const struct trib_packet *pkt, uint32_t elements, uint32_t below)
{
    const struct atp_head *h = pkt->head;

    return pkt->head_bytes == sizeof(*h) && (h->kind == PART || h->kind == RESULT) &&
           atp_supports(h->type, TRIB_SUM) && h->count && h->count <= elements &&
           pkt->data_bytes == h->count * 4u && trib_set_below(&h->ranks, below) &&
           (h->kind == RESULT || trib_set_count(&h->ranks));
}

/* Fraction p of blocks that find their aggregator taken. Of m other blocks in flight, those that
 * have not collided themselves hold one of A aggregators each, so p = m (1 - p) / A, if they hold
 * it during all of their flight. */
static double collisions(double m, double aggregators)
{
    return m / (aggregators + m);
}

/* Time of the busiest link between switches, if a switch sends `packets` packets of a block: rounds
 * with a block of each server, and a last round with blocks of the first servers. */
static double slower_ps(const struct trib_model *m, const struct atp_shape *s, double packets,
                        double blocks, uint32_t bytes)
{
    double rounds = floor((blocks - 1) / s->servers), rest = blocks - rounds * s->servers;
    double load = rounds > 0 ? rounds * m->between(m, s->servers, packets) : 0;

    return (load + m->between(m, (unsigned)rest, packets)) *
           (double)trib_link_ps(bytes + m->overhead, m->rate_bps);
}

/* Time by walking every packet. 0: not possible. */
static int64_t walked_ps(const struct trib_model *m, const struct atp_shape *s)
{
    uint32_t head = (uint32_t)sizeof(struct atp_head);
    uint64_t blocks = s->elements ? trib_ceil_div(m->count, s->elements) : 0;

    if (!m->exchange || !blocks)
        return 0;
    return m->exchange(
        m, &(struct trib_exchange){.blocks = blocks,
                                   .servers = s->servers,
                                   .window = s->window,
                                   .bytes = head + 4 * s->elements,
                                   .last_bytes =
                                       head + 4 * (uint32_t)(m->count - (blocks - 1) * s->elements),
                                   .aggregators = (uint32_t)m->key[KEY_AGGREGATORS]});
}

/*
 * The busiest link is a server's, from its switch: sums of its blocks, parts that collide, results
 * of other servers, and by multicast its own. docs/aggregation-protocols.md derives the terms.
 */
static int64_t atp_model(const struct trib_model *m)
{
    int64_t round_trip = m->up_ps(m, m->payload) + m->down_ps(m, m->payload);
    struct atp_shape s =
        atp_shape(m->key, m->nranks, m->payload, m->window, m->rate_bps, round_trip);
    const bool all = s.servers == m->nranks;   /* every rank is a server */
    const bool alone = m->nranks <= m->leaves; /* no other rank is below a server's switch */
    double others = m->nranks - 1, leaves = alone ? others : m->leaves;
    double blocks, own, flight, wire, across, first, sent, per, back, most, slow;
    int64_t walked;
    uint32_t bytes;

    if (!s.elements || m->nranks < 2)
        return 0;
    walked = walked_ps(m, &s);
    if (walked)
        return walked;
    blocks = (double)trib_ceil_div(m->count, s.elements);
    own = ceil(blocks / s.servers);
    flight = fmin(blocks, s.window);
    bytes = (uint32_t)(sizeof(struct atp_head) + 4 * (blocks > 1 ? s.elements : m->count));
    across = (double)m->across_ps(m, bytes);
    wire = (double)trib_link_ps((bytes + m->overhead) * (uint64_t)m->ranks_a_link, m->rate_bps);
    /* Block k of the first ones meets those before it, later ones a window of others. */
    per = collisions(flight * (1 - flight / (2 * blocks)), (double)m->key[KEY_AGGREGATORS]);
    per = leaves + per * (others - leaves);
    if (s.servers == 1) { /* each sum brings one result back, in the other direction */
        back = blocks - flight;
        back += fmax(0, flight - across / wire) * (sqrt(per * per + 4) - per) / 2;
        most = 2 * across + (own * per + (alone ? 0 : back) + leaves - 2) * wire;
    } else { /* a server's first results wait at its own link behind the parts that it sent */
        first = fmax(across, (flight - flight / s.servers) * wire);
        sent = (flight - (all ? flight / s.servers : 0)) * wire;
        back = own * per + blocks - (alone ? own : 0);
        back -= fmin(first / wire, ceil(flight / s.servers) * per * fmin(1, first / sent));
        most = first + (all && !alone && m->levels ? across / m->levels : across);
        most += (back + leaves - 2) * wire;
    }
    /* each switch sends sums, and the parts of blocks that collide, over links between switches */
    if (m->between)
        most = fmax(most, slower_ps(m, &s, per / leaves, blocks, bytes) + across);
    most = fmax(most, 2 * across + (blocks - (all ? own : 0) - 1) * wire);
    /* a server's HCA: parts of others' blocks, and results of its own */
    most = fmax(most, across + (blocks - own + own * leaves) * (double)m->message_ps);
    slow = ceil(blocks / s.window) * (2 * across + (leaves - 1) * wire);
    slow += floor((blocks - 1) / s.window) * 2 * (double)m->notice_ps;
    return (int64_t)fmax(most, slow);
}

/* In the first window results wait behind parts, in an order that depends on the links. If switches
 * have several ranks, multicast results delay sums all the time. */
static unsigned atp_within(const struct trib_model *m)
{
    struct atp_shape s = atp_shape(m->key, m->nranks, m->payload, m->window, m->rate_bps,
                                   m->up_ps(m, m->payload) + m->down_ps(m, m->payload));

    bool many = m->nranks > 16; /* the formula was checked with random fabrics up to 16 ranks */

    if (walked_ps(m, &s))
        return 5;
    if (s.elements && trib_ceil_div(m->count, s.elements) < 2 * s.window)
        return many ? 100 : 45;
    return many ? 45 : m->nranks <= m->leaves ? 5 : 15;
}

static double atp_bound(const int64_t *key, enum trib_type type, enum trib_sum op, uint32_t nranks,
                        double max_abs)
{
    (void)op;
    if (type != TRIB_FLOAT32 || max_abs <= 0)
        return 0;
    return trib_fixed_bound(nranks, 1.0 / (double)key[KEY_SCALE], max_abs);
}

const struct trib_protocol trib_atp = {
    .version = TRIB_PROTOCOL_VERSION,
    .name = "atp",
    .about = "ATP: hashed aggregators of all jobs, parameter servers behind them",
    .keys = keys,
    .supports = atp_supports,
    .sw = &atp_switch,
    .rank = &atp_rank,
    .model = atp_model,
    .within = atp_within,
    .bound = atp_bound,
};
