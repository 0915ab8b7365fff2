/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Priority flow control, IEEE 802.1Qbb: a port that fills its share of the buffers pauses its neighbour
 * before a frame is lost.
 *
 * Ingress side: counts the bytes and frames of the lossless class that came in by this port and are still
 * in the node. Above XOFF it pauses the neighbour, and repeats the pause until XON is reached. Frames that
 * the neighbour sends before it obeys fit the headroom: 2 x (latency + time of a frame) at the link's
 * rate, and the frames that both ends had begun. It counts frames as well as bytes, because an
 * acknowledgement holds a whole mbuf.
 *
 * Egress side: pfc_parse() gives the length of a pause; the egress queue obeys.
 */
#ifndef TRIB_SWITCH_QUEUE_PFC_H
#define TRIB_SWITCH_QUEUE_PFC_H

#include "base/assert.h"
#include "fabric/pfc_limits.h"
#include "roce/frame.h"

#include <stdbool.h>

#define ETHERTYPE_MAC_CONTROL 0x8808
#define PFC_OPCODE            0x0101
#define PFC_PRIORITY          3 /* of the lossless class */
#define PFC_MAX_QUANTA        0xffffu
#define PFC_QUANTUM_BITS      512

/* IEEE 802.3 annex 31D: MAC control, class-based pause. */
struct pfc_wire {
    uint8_t dst[6], src[6];
    rte_be16_t ethertype, opcode, classes;
    rte_be16_t quanta[8];
    uint8_t pad[26];
} __attribute__((packed));
_Static_assert(sizeof(struct pfc_wire) == FRAME_MIN_BYTES, "shortest frame");

enum pfc_verdict { PFC_NONE, PFC_XOFF, PFC_XON };

struct pfc {
    bool on, over;
    uint32_t pkts;
    uint64_t bytes;
    uint64_t xoff_bytes, xon_bytes;
    uint32_t xoff_pkts, xon_pkts; /* read for every frame up to here; the others at a threshold */
    int64_t due_ps;               /* next repetition; PS_NEVER: not above XOFF */
    int64_t refresh_ps;           /* gap between repeated pauses, shorter than a pause */
    uint64_t headroom_bytes;
    uint32_t headroom_pkts;
};

void pfc_init(struct pfc *p, const struct pfc_cfg *cfg);

static inline enum pfc_verdict pfc_enter(struct pfc *p, uint32_t bytes, int64_t now_ps)
{
    T_ASSERT_HOT(p->over == (p->due_ps != PS_NEVER),
                 "an active pause has no repetition time, or an inactive one has");
    p->bytes += bytes;
    p->pkts++;
    if (p->over || (p->bytes <= p->xoff_bytes && p->pkts <= p->xoff_pkts))
        return PFC_NONE;
    p->over = true;
    p->due_ps = now_ps + p->refresh_ps;
    return PFC_XOFF;
}

/* Accounts for n frames at once. False: they may cause a pause, so enter them one by one. */
static inline bool pfc_enter_quietly(struct pfc *p, uint32_t bytes, uint32_t n)
{
    if (!p->over && (p->bytes + bytes > p->xoff_bytes || p->pkts + n > p->xoff_pkts))
        return false;
    p->bytes += bytes;
    p->pkts += n;
    return true;
}

/* Accounts for n frames that have left. */
static inline void pfc_leave_quietly(struct pfc *p, uint32_t bytes, uint32_t n)
{
    T_ASSERT_HOT(p->bytes >= bytes && p->pkts >= n, "more leaves a port's accounting than entered");
    p->bytes -= bytes;
    p->pkts -= n;
}

static inline enum pfc_verdict pfc_leave(struct pfc *p, uint32_t bytes)
{
    T_ASSERT_HOT(p->bytes >= bytes && p->pkts, "more leaves a port's accounting than entered");
    p->bytes -= bytes;
    p->pkts--;
    T_ASSERT_HOT(!p->bytes == !p->pkts, "a port accounts for bytes without frames, or the reverse");
    if (!p->over || p->bytes > p->xon_bytes || p->pkts > p->xon_pkts)
        return PFC_NONE;
    p->over = false;
    p->due_ps = PS_NEVER;
    return PFC_XON;
}

/* Duration of `quanta` at this rate. */
int64_t pfc_quanta_ps(uint32_t quanta, uint64_t rate_bps);
/* Builds a pause frame of the lossless class; 0 quanta: resume. NULL: pool empty. */
struct rte_mbuf *pfc_frame(struct rte_mempool *pool, const uint8_t src[6], uint16_t quanta);
/* Quanta of the lossless class; -ENOENT: it pauses other classes only; -EINVAL: not a pause
 * frame. */
int pfc_parse(struct rte_mbuf *m);

#endif
