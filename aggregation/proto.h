/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The protocol between members and aggregation nodes, over plain RoCE v2, so that any verbs program
 * can join.
 *
 * Control: UD SENDs of struct agg_ctl to AGG_QPN at the AN's address (Q_Key AGG_QKEY), answered to
 * the QPN that sent. Requests are repeated until answered and are idempotent.
 *
 * - JOIN, member to AN: granted once the AN's own parent has granted, or refused by name
 * - JOIN_REPLY: QPN and PSN of the AN's end of the edge, the window, the member's child index. The
 *   window may be smaller than what was asked for, but no smaller than a message; text says which
 *   AN has no more, and of what
 * - LEAVE, member to AN, gives everything back; LEAVE_REPLY
 * - ABORT, AN to member, and between ANs both ways: the group is over; status, reason as text;
 *   repeated until ABORT_ACK
 * - PEER_DOWN, NIC to AN, from AGG_NIC_QPN: the process behind QPNs with these top 8 bits at this
 *   address is gone
 * - PROBE: is the other side still there; PROBE_REPLY
 * - WINDOW, AN to member or to an AN below it: how many of the granted slots may be used from now on, because
 *   other groups need the rest, or no longer do. xid counts these messages; an older one is void. It is not
 *   answered: slots beyond the window are refused with an RNR NAK, and WINDOW is sent again.
 *
 * Data: on each edge, an RC connection, SEND messages of one agg_hdr and up to AGG_MSG_BYTES of
 * elements; members send DATA up, ANs send RESULT down, with the same header and the same division. All
 * members divide a vector alike: message k holds bytes [k * AGG_MSG_BYTES(mtu) ...) so that every
 * message but the last is full packets. A slot is one packet: the first packet of a message is
 * header + (mtu - 32) bytes of elements, the others mtu bytes. Slots are counted by each edge in
 * order from 0 since JOIN. A member may have at most `window` slots sent for which it has not got
 * the result. An operation of no bytes (barrier) is one message of one slot.
 *
 * Not everybody has elements to send: in a BROADCAST only the root's DATA carries them, in a REDUCE only the
 * root's RESULT does, and the root of a BROADCAST gets nothing back. The other messages are the header alone,
 * marked AGG_F_EMPTY, and count for all slots of the message that they stand for: so a member says that it is
 * ready to receive, and learns that its slots are free.
 * Reduce-scatter is a REDUCE to each member in turn, all-gather a BROADCAST from each.
 */
#ifndef TRIB_AGGREGATION_PROTO_H
#define TRIB_AGGREGATION_PROTO_H

#include <rte_byteorder.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The QPN of aggregation. Its top 8 bits are 0: no process has it, since QPNs of processes start at 1 << 16. */
#define AGG_QPN 0x00a991u
/* Source QPN of messages of a host's NIC. No process can send from it, nor from AGG_QPN: a NIC admits only
 * the QPNs of the process's own slot (switch/source_guard.h). */
#define AGG_NIC_QPN   0x00a992u
#define AGG_QKEY      0x54524942u
#define AGG_VERSION   1
#define AGG_MAGIC     0x54524942u /* "TRIB" */
#define AGG_HDR_BYTES 32u
#define AGG_MSG_PKTS  8u
/* Bytes of elements in a full message: AGG_MSG_PKTS packets less the header. A multiple of 8 for
 * every MTU. */
#define AGG_MSG_BYTES(mtu) ((mtu)*AGG_MSG_PKTS - AGG_HDR_BYTES)

enum agg_type {
    AGG_JOIN = 1,
    AGG_JOIN_REPLY,
    AGG_LEAVE,
    AGG_LEAVE_REPLY,
    AGG_ABORT,
    AGG_ABORT_ACK,
    AGG_PEER_DOWN,
    AGG_PROBE,
    AGG_PROBE_REPLY,
    AGG_MM_BIND, /* multimem, mm_proto.h */
    AGG_MM_BIND_REPLY,
    AGG_MM_READY,
    AGG_MM_READY_REPLY,
    AGG_MM_UNBIND,
    AGG_MM_UNBIND_REPLY,
    AGG_MM_ABORT,
    AGG_MM_ABORT_ACK,
    AGG_MM_MOVE,
    AGG_MM_MOVE_REPLY,
    AGG_WINDOW
};

/* X(name, text for people) */
#define AGG_STATUS(X)                                                                              \
    X(OK, "ok")                                                                                    \
    X(E_VERSION, "protocol version not supported")                                                 \
    X(E_TREE, "unknown tree")                                                                      \
    X(E_NOT_IN_TREE, "this aggregation node is not in that tree")                                  \
    X(E_NOT_MEMBER, "not a member of the group")                                                   \
    X(E_KEY, "wrong key for the group")                                                            \
    X(E_MTU, "MTU differs from the group's")                                                       \
    X(E_MISMATCH, "member list differs from the group's")                                          \
    X(E_QUOTA_GROUPS, "over quota: groups")                                                        \
    X(E_QUOTA_SLOTS, "over quota: slots")                                                          \
    X(E_QUOTA_BUFFERS, "over quota: buffers")                                                      \
    X(E_NO_REDUCTION, "this switch does not reduce")                                               \
    X(E_DUPLICATE, "member has joined from another queue pair")                                    \
    X(E_PARENT, "parent unreachable")                                                              \
    X(E_OP_MISMATCH, "members disagree on the operation")                                          \
    X(E_OP_UNSUPPORTED, "collective, type or operation not supported")                             \
    X(E_MEMBER_LOST, "a member is missing")                                                        \
    X(E_MEMBER_LEFT, "a member left in mid-operation")                                             \
    X(E_EDGE, "connection of an edge failed")                                                      \
    X(E_PROTOCOL, "malformed message")                                                             \
    X(E_NO_GROUP, "no such group here")                                                            \
    X(E_CHILDREN, "too many children below one aggregation node")                                  \
    X(E_NO_MULTIMEM, "this switch has no multimem")                                                \
    X(E_REGION, "memory that cannot be bound to a region")                                         \
    X(E_QUOTA_HOST, "over quota: what one host may hold alone")
enum agg_status {
#define X(n, t) AGG_##n,
    AGG_STATUS(X)
#undef X
        AGG_STATUS_COUNT
};
const char *agg_status_name(enum agg_status s); /* "E_KEY" */
const char *agg_status_text(enum agg_status s);

/*
 * Members in a message: a bit each for ids below AGG_BITS. 4,096 bits would not fit into one packet at every
 * MTU, so a group with higher ids lists them as spans: `count` ids from `first` on, `stride` apart, in
 * ascending order of first. All hosts, a rail, or half of a fabric are one span.
 */
#define AGG_BITS  1024u
#define AGG_SPANS 21u
#define AGG_NAME  64u
#define AGG_TEXT  176u
struct agg_span {
    rte_be16_t first, count, stride;
} __attribute__((packed));

/* Control message on the wire: one UD packet at every MTU. Integers in network order. */
struct agg_ctl {
    rte_be32_t magic;
    uint8_t version, type; /* enum agg_type */
    rte_be16_t status;     /* enum agg_status, replies and ABORT */
    rte_be32_t xid;        /* of the request; a reply repeats it */
    rte_be16_t tree, mtu;  /* mtu in bytes */
    rte_be32_t group;
    rte_be32_t window; /* slots: requested, granted */
    rte_be64_t key;
    rte_be32_t qpn, psn; /* sender's end of the edge */
    rte_be32_t member;   /* member id; an AN as child: the lowest member id below it */
    rte_be16_t node;     /* fabric index of the sender when it is an AN, else 0xffff */
    /* JOIN_REPLY: index among the AN's children. JOIN, ABORT: how often the group has been given up and
     * is made again, from 0: a JOIN with a higher number ends the group of a lower one. */
    union {
        rte_be16_t child, attempt;
    };
    /* ABORT: slot that was open. JOIN: how many groups with this key, which is a job's, the AN can
     * expect, so that they share evenly what is left (8 bits, 0: this one alone); its parent (the 8
     * above them), and so on. */
    rte_be32_t slot;
    rte_be16_t ranks_per_host;
    rte_be16_t n_spans; /* 0: members are in bits */
    union {
        struct { /* JOIN */
            union {
                rte_be64_t bits[AGG_BITS / 64]; /* members, bit id % 64 of word id / 64 */
                struct agg_span span[AGG_SPANS];
            };
            char name[AGG_NAME]; /* of the protocol, NUL-terminated; "": SHARP's own */
        };
        char text[AGG_TEXT]; /* all others: why; for people, NUL-terminated */
    };
} __attribute__((packed));
_Static_assert(sizeof(struct agg_ctl) == 248, "one packet at every MTU from 256");

enum agg_coll { AGG_ALLREDUCE = 1, AGG_REDUCE, AGG_BROADCAST, AGG_BARRIER };
enum { AGG_DATA = 1, AGG_RESULT = 2 };
enum { AGG_F_EMPTY = 1 }; /* agg_hdr.flags */

struct agg_hdr {
    uint8_t version, type; /* AGG_DATA, AGG_RESULT */
    uint8_t coll, dtype, op, flags;
    rte_be16_t root;    /* REDUCE, BROADCAST: member id; else 0 */
    rte_be32_t opseq;   /* operation in this group, from 0 */
    rte_be32_t msg_len; /* bytes of elements in this message */
    rte_be64_t total;   /* bytes of the whole vector */
    rte_be64_t offset;  /* of this message in it */
} __attribute__((packed));
_Static_assert(sizeof(struct agg_hdr) == AGG_HDR_BYTES, "header of every message");

/* Writes the list of a JOIN. -E2BIG: it takes more than AGG_SPANS spans. */
struct fab_members;
int agg_members_write(struct agg_ctl *c, const struct fab_members *m);
/* Reads the list into *m. -EINVAL: invalid spans, or members beyond FAB_MAX_MEMBERS. */
int agg_members_read(const struct agg_ctl *c, struct fab_members *m);

const char *agg_type_name(unsigned type); /* "JOIN"; "?" for an unknown type */

/* Checks a received control message. AGG_OK; AGG_E_VERSION: answer it; AGG_E_PROTOCOL: not of this protocol,
 * do not answer. */
enum agg_status agg_ctl_check(const void *p, uint32_t len);

/* Number of packets (and slots) of a message with msg_len bytes of elements. */
static inline uint32_t agg_msg_slots(uint32_t msg_len, uint32_t mtu)
{
    return (AGG_HDR_BYTES + msg_len + mtu - 1) / mtu;
}

static inline bool agg_is_empty(const struct agg_hdr *h)
{
    return h->flags & AGG_F_EMPTY;
}

/* Bytes on the wire of the message with this header. */
static inline uint32_t agg_msg_bytes(const struct agg_hdr *h)
{
    return AGG_HDR_BYTES + (agg_is_empty(h) ? 0 : rte_be_to_cpu_32(h->msg_len));
}

/* Checks a message's header on its own: AGG_OK, or AGG_E_OP_UNSUPPORTED or AGG_E_PROTOCOL with
 * *what naming the wrong field. */
enum agg_status agg_hdr_check(const struct agg_hdr *h, unsigned type, uint32_t mtu,
                              const char **what);

/* Whether `next` follows `prev` on an edge: the next message of the same operation, or the first message of
 * another operation after the last one. */
int agg_hdr_follows(const struct agg_hdr *prev, const struct agg_hdr *next);

/* The first field in which two members' headers differ, for people: "type: float, int32". 0: they agree.
 * Whether elements are carried does not matter. */
bool agg_hdr_same(const struct agg_hdr *a, const struct agg_hdr *b);
int agg_hdr_differ(const struct agg_hdr *a, const struct agg_hdr *b, char *text, size_t size);

#endif
