/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Multimem: a region of memory that stands for the memory of all members of a group, offered by an
 * NVSwitch-like node as a target of standard RDMA. READ of the region is ld_reduce: the switch
 * reads the members' memory at that offset and answers with the reduction, by member index, one
 * pass (arith.h). WRITE to it is a multicast st, acknowledged when every member has acknowledged.
 *
 * Control: UD SENDs of struct mm_ctl to AGG_QPN at the switch's address, as in proto.h: requests
 * are repeated until answered, and are idempotent.
 *
 * - MM_BIND: member i of n joins with the group's key, which the first one sets, and binds `length`
 *   bytes of its memory (va, rkey) to area `area` of the region; 0 bytes: nothing yet. Everything
 * that the group needs at this switch is reserved then, or the request is refused by name.
 * - MM_BIND_REPLY: QPN and PSN of the switch's end, base address and rkey of the region, and how
 *   much the member may have outstanding.
 * - MM_MOVE, MM_MOVE_REPLY: the member binds other memory to an area; the later xid of two counts.
 *   An area is as long as the shortest memory that a member has bound to it.
 * - MM_READY: the member's queue pair is in RTS. MM_READY_REPLY comes when all n are ready. READs
 *   that come earlier wait, WRITEs are answered with an RNR NAK.
 * - MM_UNBIND, MM_UNBIND_REPLY: gives the member's place back. What others do after that fails.
 * - MM_ABORT, switch to member: the group is over; status, and the reason as text. Repeated until
 *   MM_ABORT_ACK. READs and WRITEs under way end with a NAK of remote operational error.
 *
 * Data: one RC queue pair between member and switch is used both ways: READ and WRITE of the region
 * from the member, READ and WRITE of the member's memory from the switch; so the member's queue
 * pair allows both and grants `reads` outstanding READs. The switch cuts READs into slices of
 * mm_slice() at most, WRITEs into slices of MM_SLICE. WRITEs of one member reach another in order.
 *
 * The address says what to do with the bytes (mm_addr), since an RDMA READ has no other field for
 * it.
 *
 *   63 62 61      56  55 54  53      52   51  48 47   40 39          0
 *   0  1  0 ... 0     area   others  own  op     dtype   offset
 *
 * others: all members but the caller (else: all). own: 16-bit floats are accumulated in their own
 * type, with a rounding at every member (else: in fp32, one rounding). WRITE looks at area, others
 * and offset alone.
 *
 * Nothing orders one member's accesses with another member's own use of its memory. Before a member reads or
 * writes a region it must know that all members have put there what is to be read, and no longer need what is
 * overwritten; before it uses (or moves) its memory again it must know that all others' READs and WRITEs are
 * complete. Two barriers for each operation do that: one when everybody has begun, one when everybody's
 * requests are complete. In between, a member may overwrite a share that it alone reads, once its READ is
 * complete (all-reduce in place): a READ that is repeated because of loss is not complete.
 */
#ifndef TRIB_AGGREGATION_MM_PROTO_H
#define TRIB_AGGREGATION_MM_PROTO_H

#include "fabric/fabric.h"
#include "aggregation/arith.h"
#include "aggregation/proto.h"

#define MM_SLICE      16384u /* bytes; a multiple of every path MTU */
#define MM_SLICE_MAX  65536u
#define MM_LOADS      32u /* most slices of a group's READs that the switch reads at a time */
#define MM_READS      16u /* outstanding on a queue pair, in either direction */
#define MM_BASE       (1ULL << 62)
#define MM_MAX_LENGTH (1ULL << 40)
#define MM_AREAS      4u

struct mm_ctl {
    rte_be32_t magic; /* same start as struct agg_ctl */
    uint8_t version, type;
    rte_be16_t status;
    rte_be32_t xid;
    rte_be32_t group;
    rte_be64_t key;
    rte_be16_t members, member; /* how many, which */
    rte_be16_t mtu;
    uint8_t area, spare;
    rte_be32_t qpn, psn;   /* the sender's end of the queue pair */
    rte_be64_t va, length; /* the member's memory; BIND_REPLY: va of the region */
    rte_be32_t rkey;       /* of that memory */
    rte_be32_t reads;      /* READs outstanding: BIND: the switch's, BIND_REPLY: the member's */
    rte_be32_t
        write_slices; /* window of unacknowledged WRITE slices of a member: requested, granted */
    rte_be32_t spare2;
    char text[AGG_TEXT]; /* as in struct agg_ctl */
} __attribute__((packed));
_Static_assert(sizeof(struct mm_ctl) == sizeof(struct agg_ctl), "one size of control messages");

/* A decoded address of the region, whose base is in BIND_REPLY: position, and the operation. */
struct mm_what {
    uint64_t off;
    bool others, own;
    uint8_t op, dtype; /* enum redop, enum dtype */
    uint8_t area;
};

static inline uint64_t mm_addr(uint64_t base, const struct mm_what *w)
{
    return base + (w->off | (uint64_t)w->dtype << 40 | (uint64_t)w->op << 48 |
                   (uint64_t)w->own << 52 | (uint64_t)w->others << 53 | (uint64_t)w->area << 54);
}

/* Decodes an address. False: it is not in the region. op and dtype may have any value. */
static inline bool mm_addr_read(uint64_t va, struct mm_what *w)
{
    *w = (struct mm_what){.off = va & (MM_MAX_LENGTH - 1),
                          .dtype = va >> 40 & 0xff,
                          .op = va >> 48 & 0xf,
                          .own = va >> 52 & 1,
                          .others = va >> 53 & 1,
                          .area = va >> 54 & 3};
    return va >> 56 == MM_BASE >> 56;
}

/* Latency of a link, in the slower direction. */
static inline int64_t mm_link_ps(const struct fabric *f, const struct fab_port *p)
{
    int64_t back = f->nodes[p->peer_node].ports[p->peer_port].latency_ps;

    return back > p->latency_ps ? back : p->latency_ps;
}

/*
 * Slice size of READs, equal for the switch and its n members. The READs that a queue pair may have
 * outstanding cover one and a half round trips: over the two links between the switch and a member, which all
 * callers share, and over the four links between a caller and the members, of whose rate a caller gets its
 * share.
 */
static inline uint32_t mm_slice(unsigned n, uint64_t rate_bps, int64_t link_ps)
{
    int64_t ps = 3 * link_ps * (n == 2 ? 2 : 1);
    uint64_t bytes = rate_bps / 8 / 1000000 * (uint64_t)ps / 1000000;
    uint32_t slice = MM_SLICE;

    while (slice < MM_SLICE_MAX && (uint64_t)slice * MM_READS < bytes)
        slice *= 2;
    return slice;
}

/* Divisor of the slices in flight: each slice takes a buffer for every member, so groups of more
 * than 8 have fewer, and a switch of 72 needs little more than one of 8. 8 slices of 16 KiB still
 * cover a round trip, and writing members take turns. Shorter slices instead leave links idle: the
 * switch may have MM_READS outstanding at a member, whatever their length (72 members reached 61 %
 * of their links with slices of 4 KiB, and 96 % with these). */
static inline unsigned mm_fewer(unsigned n)
{
    return n <= 8 ? 1 : n <= 16 ? 2 : 4;
}

#endif
