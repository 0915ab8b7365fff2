/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SwitchML (Sapio et al., NSDI 2021): docs/aggregation-protocols.md.
 *
 * Packets are numbered through all operations of a job. Number q belongs to slot q mod S in version
 * (q / S) mod 2: entry q mod 2S of the pool. A rank sends q + S once it has the result of q. So q +
 * S from any rank implies that all ranks have sent q, and q + 2S that all have its result: an entry
 * always goes from q to exactly q + 2S. A late duplicate has a lower number.
 *
 * Floats are sent as integers with a common exponent, the largest of all ranks. A packet carries
 * the exponent of the data `lead` packets ahead; the first `lead` packets carry nothing else.
 *
 * Rejected: clearing a rank's bit in the other version, as in the paper. That needs no number, but
 * would take a duplicate that the slot's next packet has overtaken for a new contribution.
 */
#ifndef TRIB_PROTOCOLS_SWITCHML_H
#define TRIB_PROTOCOLS_SWITCHML_H

#include "protocols/builtin.h"

#include <tributary/ranks.h>
#include <tributary/window.h>

/* In order of the table of keys. */
enum { KEY_SLOTS, KEY_PACKET, KEY_TIMEOUT, KEY_PATIENCE };

/* kind */
enum { UP = 1, DOWN };
#define NO_EXPONENT INT16_MIN
#define NOT_FINITE  (255 - 126) /* exponent of infinities and NaNs */

struct switchml_head {
    uint64_t seq;
    uint8_t kind, type;
    uint16_t slots; /* of a version; packets with another number are ignored */
    uint16_t count; /* elements */
    int16_t ahead;  /* exponent of the data `lead` packets later */
};
_Static_assert(sizeof(struct switchml_head) == 16, "head on the wire");

/* Elements of a packet. */
uint32_t switchml_elements(const int64_t *key, uint32_t payload);
/* Number of slots of a version, a power of two: the packets that fill the link for a round trip, or
 * the key's value. */
uint32_t switchml_slots(const int64_t *key, uint32_t payload, uint64_t rate_bps,
                        int64_t round_trip);
bool switchml_supports(enum trib_type type, enum trib_sum op);
/* Whether head and data are valid for a pool of this many slots and elements. */
bool switchml_valid(const struct trib_packet *pkt, uint8_t kind, uint32_t slots, uint32_t elements);

extern const struct trib_switch_half switchml_switch;
extern const struct trib_rank_half switchml_rank;

#endif
