/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ATP (Lao et al., NSDI 2021): docs/aggregation-protocols.md.
 *
 * A block is one packet. Blocks are numbered through all operations, and block q belongs to
 * parameter server q mod V, which is a rank. A packet to the server passes the sender's first
 * switch. A hash of job and block chooses an aggregator there: if it is free or has this block, it
 * adds the packet, else the packet passes unsummed. The server adds what it gets until it has the
 * parts of all ranks, and sends the result to the first switches, which free the aggregator and
 * multicast.
 *
 * A switch may drop its state at any time. A rank without a result sends its part again with
 * RESEND, which flushes the aggregator and passes the switch unsummed behind that. The server adds
 * a sum only if it has none of the sum's ranks, so nothing counts twice, and a single part can
 * always be added.
 */
#ifndef TRIB_PROTOCOLS_ATP_H
#define TRIB_PROTOCOLS_ATP_H

#include "protocols/builtin.h"

#include <tributary/ranks.h>

/* In order of the table of keys. */
enum { KEY_SERVERS, KEY_AGGREGATORS, KEY_WINDOW, KEY_PACKET, KEY_SCALE, KEY_TIMEOUT, KEY_PATIENCE };

enum { PART = 1, RESULT }; /* kind */
/* flags; FLOATS: a part has an element without a fixed-point value, or a result includes such a
 * part */
enum { RESEND = 1, COLLISION = 2, MARKED = 4, FLOATS = 8 };

struct atp_head {
    uint64_t seq;
    struct trib_set ranks; /* ranks in the sum, by their places below the first switch */
    uint16_t window;       /* the sender's window: it has the result of seq - window */
    uint16_t count;        /* elements */
    uint8_t kind, flags, type;
    uint8_t fan_in; /* number of parts of this block that pass the sender's first switch */
};
_Static_assert(sizeof(struct atp_head) == 32, "head on the wire");

/* Values that both ends and the formula derive from keys and fabric. */
struct atp_shape {
    uint32_t servers, window, elements; /* window: blocks in flight, a multiple of servers */
};
uint32_t atp_elements(const int64_t *key, uint32_t payload);
struct atp_shape atp_shape(const int64_t *key, uint32_t nranks, uint32_t payload, uint32_t buffers,
                           uint64_t rate_bps, int64_t round_trip);
bool atp_supports(enum trib_type type, enum trib_sum op);
/* Whether lengths and fields are valid, and places in the bitmap less than `below`. */
bool atp_valid(const struct trib_packet *pkt, uint32_t elements, uint32_t below);
/* The largest integer that a rank may send: n of them fit into 31 bits. */
static inline int32_t atp_limit(uint32_t nranks)
{
    return INT32_MAX / (int32_t)nranks;
}

extern const struct trib_switch_half atp_switch;
extern const struct trib_rank_half atp_rank;

#endif
