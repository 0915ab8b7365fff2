/* SPDX-License-Identifier: BSD-3-Clause */
#include "protocols/switchml.h"

#include <tributary/fixed.h>

#define MOST_SLOTS 16384u

static const struct trib_key keys[] = {
    {"slots", "packets in flight; 0: what fills the link, rounded up to a power of two", 0, 0,
     MOST_SLOTS},
    {"packet", "elements of a packet", 256, 1, 16384},
    {"timeout_us", "first retransmission; 0: four times what a full window takes", 0, 0, 10000000},
    {"patience_ms", "a rank that is not answered for so long fails", 10000, 1, 3600000},
    {0},
};

uint32_t switchml_elements(const int64_t *key, uint32_t payload)
{
    return trib_elements(key[KEY_PACKET], payload, sizeof(struct switchml_head), 4);
}

uint32_t switchml_slots(const int64_t *key, uint32_t payload, uint64_t rate_bps, int64_t round_trip)
{
    uint64_t n = (uint64_t)key[KEY_SLOTS];
    int64_t packet = trib_link_ps(
        switchml_elements(key, payload) * 4ull + sizeof(struct switchml_head), rate_bps);
    uint32_t p = 1;

    if (!n)
        n = trib_ceil_div((uint64_t)(round_trip > 0 ? round_trip : 1),
                          (uint64_t)(packet ? packet : 1));
    while (p < n && p < MOST_SLOTS)
        p *= 2;
    return p;
}

bool switchml_supports(enum trib_type type, enum trib_sum op)
{
    return op == TRIB_SUM && (type == TRIB_INT32 || type == TRIB_UINT32 || type == TRIB_FLOAT32);
}

bool switchml_valid(const struct trib_packet *pkt, uint8_t kind, uint32_t n, uint32_t most)
{
    const struct switchml_head *h = pkt->head;

    return pkt->head_bytes == sizeof(*h) && h->kind == kind && h->slots == n &&
           switchml_supports(h->type, TRIB_SUM) && h->count <= most &&
           pkt->data_bytes == h->count * 4u;
}

/* ---- formulas ---- */

/* Time between packets with this many bytes of head and data: the longest of those on a rank's link
 * with all ranks that share it, on the slowest link between switches, of a rank's HCA, and of
 * noticing results. */
static int64_t between_ps(const struct trib_model *m, uint32_t bytes)
{
    uint64_t wire = (uint64_t)bytes + m->overhead;
    int64_t rank = trib_link_ps(wire * m->ranks_a_link, m->rate_bps),
            tree = m->tree_bps ? trib_link_ps(wire, m->tree_bps) : 0,
            notice = m->notice_every_ps ? m->notice_every_ps(m, bytes) : 0;

    rank = rank > m->message_ps ? rank : m->message_ps;
    rank = rank > notice ? rank : notice;
    return rank > tree ? rank : tree;
}

/* Round trip of a packet with this many bytes, starting at the HCA. Of the ranks that share a link,
 * the last one waits for the others, in both directions. */
static int64_t round_ps(const struct trib_model *m, uint32_t bytes)
{
    int64_t turn = trib_link_ps((bytes + m->overhead) * (uint64_t)m->ranks_a_link, m->rate_bps);

    return m->message_ps + m->up_ps(m, bytes) + m->down_ps(m, bytes) +
           2 * (turn - turn / (int64_t)m->ranks_a_link);
}

/* Packet k leaves at k times the time between packets, or when its slot is free: a round trip after
 * the slot's previous packet. The last packet may be shorter. Exponents need one more round trip.
 */
static int64_t switchml_model(const struct trib_model *m)
{
    uint64_t per = switchml_elements(m->key, m->payload), all, packets, last;
    uint32_t full, rest, n;
    int64_t wire, round, at, waits, end, exponents = 0;

    if (!per)
        return 0;
    packets = trib_ceil_div(m->count, per);
    last = packets - 1;
    full = (uint32_t)sizeof(struct switchml_head) + 4 * (uint32_t)(packets > 1 ? per : m->count);
    rest = (uint32_t)sizeof(struct switchml_head) + 4 * (uint32_t)(m->count - last * per);
    n = switchml_slots(m->key, m->payload, m->rate_bps,
                       m->up_ps(m, m->payload) + m->down_ps(m, m->payload));
    wire = between_ps(m, full);
    round = round_ps(m, full);
    at = (int64_t)last * wire;
    waits = (int64_t)(last / n) * (round + m->notice_ps) + (int64_t)(last % n) * wire;
    if (m->type == TRIB_FLOAT32) {
        uint32_t head = (uint32_t)sizeof(struct switchml_head);

        all = packets < n ? packets : n;
        wire = between_ps(m, head);
        exponents = m->message_ps + m->up_ps(m, head) + m->down_ps(m, head) + m->notice_ps;
        if ((int64_t)all * wire > exponents)
            exponents = (int64_t)all * wire;
    }
    at = at > waits ? at : waits;
    end = at + round_ps(m, rest);
    if (last && at - between_ps(m, full) + round > end)
        end = at - between_ps(m, full) + round;
    return exponents + end;
}

/* Slots run in lockstep, so no waiting is missing in the formula. If `ll` or `ll128` are slower
 * than the port, notice_ps is that of a full packet, which is too long for few elements. */
static unsigned switchml_within(const struct trib_model *m)
{
    return m->notice_every_ps && m->notice_every_ps(m, m->payload) ? 15 : 5;
}

/* The bound with integers in units of u = 2^e / floor((2^31 - 1) / n), where 2^(e - 1) <= max_abs <
 * 2^e. */
static double switchml_bound(const int64_t *key, enum trib_type type, enum trib_sum op,
                             uint32_t nranks, double max_abs)
{
    int e;

    (void)key;
    (void)op;
    if (type != TRIB_FLOAT32 || max_abs <= 0)
        return 0;
    frexp(max_abs, &e);
    return trib_fixed_bound(nranks, ldexp(1.0 / (INT32_MAX / (int32_t)nranks), e < -126 ? -126 : e),
                            max_abs);
}

const struct trib_protocol trib_switchml = {
    .version = TRIB_PROTOCOL_VERSION,
    .name = "switchml",
    .about = "SwitchML: a pool of slots at each switch, int32, float32 as integers",
    .keys = keys,
    .supports = switchml_supports,
    .sw = &switchml_switch,
    .rank = &switchml_rank,
    .model = switchml_model,
    .within = switchml_within,
    .bound = switchml_bound,
};
