/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets of aggregation protocols on the wire: UD SENDs to PROTO_QPN at a switch's address, from
 * there to a rank's queue pair, or from rank to rank.
 *
 *   struct proto_head   16 bytes, integers in network order
 *   struct proto_target 8 bytes, with PROTO_F_TARGET: where the switch may forward it to
 *   head                of the protocol's own, padded to a multiple of 4
 *   data
 *
 * Control messages are those of aggregation/proto.h (struct agg_ctl) with PROTO_MAGIC and AGG_JOIN,
 * AGG_JOIN_REPLY, AGG_LEAVE, AGG_LEAVE_REPLY, AGG_ABORT, AGG_PROBE or AGG_PROBE_REPLY:
 *
 * - `slot` has the tag of the job.
 * - JOIN goes from a member or switch to the switch above. text: the protocol's name; psn: the
 *   rank; window: the number of ranks. A switch that has the JOINs of all its children sends its
 *   own. Once the root has all, it answers, and the answer goes down. Members repeat their JOIN
 *   until then.
 * - LEAVE is answered at once; the last one closes the job and goes up.
 * - ABORT goes down, once. A member that misses it learns by PROBE that the job has ended.
 *
 * A job has an instance of the protocol on each of its trees, with its own queue pairs; to switches
 * each instance is a job. A packet's number and tag tell its instance. The tag is derived from the
 * job's key, so that nobody else can send in its name, and from protocol and tree.
 */
#ifndef TRIB_PROTOCOLS_HOST_PROTOCOL_WIRE_H
#define TRIB_PROTOCOLS_HOST_PROTOCOL_WIRE_H

#include <rte_byteorder.h>
#include <stdint.h>

/* No process has this QPN: those of processes start at 1 << 16. */
#define PROTO_QPN   0x00a993u
#define PROTO_QKEY  0x54524950u
#define PROTO_MAGIC 0x54524950u /* "TRIP", of control messages */
#define PROTO_DATA  0xa6u       /* first byte of the others */

enum { PROTO_F_TARGET = 1 };
#define PROTO_FROM_SWITCH 0xffffu

struct proto_head {
    uint8_t magic, flags; /* PROTO_DATA; PROTO_F_* */
    uint8_t head_bytes;   /* of the protocol's head, without padding */
    uint8_t reserved;
    rte_be16_t from;  /* rank; PROTO_FROM_SWITCH */
    rte_be16_t child; /* of the switch that gets it, as JOIN_REPLY says; 0xffff: not its child */
    rte_be32_t job, tag;
} __attribute__((packed));

struct proto_target {
    rte_be32_t ip, qpn;
} __attribute__((packed));

_Static_assert(sizeof(struct proto_head) == 16 && sizeof(struct proto_target) == 8, "on the wire");

#define PROTO_PAD(bytes) (((bytes) + 3u) & ~3u)
/* Most bytes of a packet before the protocol's own. */
#define PROTO_HEAD_MAX (sizeof(struct proto_head) + sizeof(struct proto_target))
/* Bytes of the protocol's head and data that fit in a packet, including the padding between them.
 */
#define PROTO_PAYLOAD(mtu) ((uint32_t)((mtu)-PROTO_HEAD_MAX - 4))

/* Tag of a job with this number and key, for the protocol of that name on this tree (0xffff: none).
 * attempt: how often the job was given up and made again. */
static inline uint32_t proto_tag(uint32_t job, uint64_t key, const char *name, uint16_t tree,
                                 uint16_t attempt)
{
    uint64_t x = key ^ (uint64_t)job << 32 ^ 0x9e3779b97f4a7c15ull;

    for (; *name; name++)
        x = (x ^ (uint8_t)*name) * 0x100000001b3ull;
    x = (x ^ ((uint32_t)tree << 16 | attempt)) * 0x100000001b3ull;
    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9ull;
    return (uint32_t)(x >> 32);
}

#endif
