/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The frame: a struct rte_mbuf, and the fields that every engine keeps in its private area.
 *
 * Shape of a frame in an engine [relied on by parse, by the egress queues and by the ports]:
 *   - All headers (Ethernet to the last RoCE extended header) are contiguous in the first segment.
 *   - The payload is contiguous: either behind the headers in the first segment, or it is the whole
 *     of the second one (frame_writable() leaves it so).
 *   - pad and ICRC follow the payload in the same segment, or are the last segment alone. Ports
 *   linearise frames from outside that have any other shape.
 *
 * Length-only payloads: meta.virt_len bytes of payload count everywhere (link time, buffer
 * occupancy, RETH lengths), but are not carried. Their place is between the headers and the pad.
 * Such a frame has no valid ICRC (FRAME_F_VIRTUAL says so) and never leaves a process.
 *
 * Every mempool that holds frames is made by frame_pool_create(), which reserves the private area.
 */
#ifndef TRIB_ROCE_FRAME_H
#define TRIB_ROCE_FRAME_H

#include "base/cacheline.h"
#include "base/frame_size.h"
#include "base/units.h"

#include <rte_mbuf.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define FRAME_ROOM 4608 /* data room of a frame, besides RTE_PKTMBUF_HEADROOM */
/* Data room of a frame in a pool for length-only payloads: headers and control messages. Reads of
 * backed memory are limited to what such frames can carry (FRAME_CARRIED). */
#define FRAME_ROOM_LENGTHS 640
#define FRAME_CARRIED      512

/* Service classes of a link. Control (PFC, ARP, IGMP) overtakes both and is never paused. */
enum frame_class { FRAME_LOSSLESS, FRAME_LOSSY, FRAME_CONTROL, FRAME_CLASSES };

enum {
    FRAME_F_VIRTUAL = 1 << 0, /* length-only payload; the ICRC is not checked */
    FRAME_F_TRUSTED = 1 << 1, /* this process has checked the ICRC */
    FRAME_F_CRC = 1 << 2,     /* crc, crc_off and crc_len are set */
    FRAME_F_DAMAGED = 1 << 3  /* length-only: its ICRC would be wrong if it carried its data */
};

struct frame_meta {
    int64_t due_ps;    /* in an egress queue: since when it waits; on a link: its arrival */
    uint32_t virt_len; /* bytes of length-only payload */
    uint16_t in_port;  /* port by which it entered the node that holds it (PFC accounting) */
    uint8_t cls;       /* enum frame_class */
    uint8_t flags;     /* FRAME_F_* */
    /* CRC of a payload that several requests hold, computed once: the register (roce_crc from 0) after
     * crc_len bytes at crc_off. */
    uint32_t crc, crc_off, crc_len;
    /* The next frame in an egress queue or on a link, and its due_ps. */
    struct rte_mbuf *behind;
    int64_t behind_ps;
};

static inline struct frame_meta *frame_meta(struct rte_mbuf *m)
{
    return (struct frame_meta *)rte_mbuf_to_priv(m);
}

/* Private area of an mbuf: a multiple of RTE_MBUF_PRIV_ALIGN. */
#define FRAME_PRIV_BYTES RTE_ALIGN(sizeof(struct frame_meta), RTE_MBUF_PRIV_ALIGN)
/* Headroom of a frame in its buffer: headers of Ethernet, IPv4, UDP and BTH (54 bytes) end a cache
 * line and the payload begins the next, since vector loads across two lines take twice as long. */
#define FRAME_HEADROOM                                                                             \
    (2 * CACHELINE - 54 - (sizeof(struct rte_mbuf) + FRAME_PRIV_BYTES) % CACHELINE)
/* In a pool for length-only payloads a frame begins at that line, which holds most frames whole. */
#define FRAME_HEADROOM_LENGTHS (FRAME_HEADROOM + 54 - CACHELINE)

/* Headroom of a frame that has its own buffer. */
static inline uint16_t frame_headroom(const struct rte_mbuf *m)
{
    return m->buf_len == RTE_PKTMBUF_HEADROOM + FRAME_ROOM_LENGTHS ? FRAME_HEADROOM_LENGTHS
                                                                   : FRAME_HEADROOM;
}

/* Resets an mbuf as its pool allocates it. */
static inline void frame_reset(struct rte_mbuf *m)
{
    m->data_off = frame_headroom(m);
    memset(frame_meta(m), 0, sizeof(struct frame_meta));
}

/* Turns an mbuf from rte_mempool_get_bulk() into a frame of n contiguous bytes, FRAME_HEADROOM
 * bytes into its buffer. Same as frame_alloc(), but touches fewer cache lines. */
static inline void frame_begin(struct rte_mbuf *m, uint32_t n)
{
    m->data_off = FRAME_HEADROOM;
    m->ol_flags = 0;
    m->packet_type = 0;
    m->pkt_len = n;
    m->data_len = (uint16_t)n;
    m->vlan_tci = 0;
    memset(frame_meta(m), 0, sizeof(struct frame_meta));
}

/* Prefetches the parts of a frame that every reader needs: the mbuf, its meta, and the headers if they
 * are in its own buffer. */
static inline void frame_prefetch(struct rte_mbuf *m)
{
    cacheline_prefetch(m, sizeof(*m) + FRAME_PRIV_BYTES + FRAME_HEADROOM + 54);
}

/* Layer-2 bytes without FCS, including a length-only payload. */
static inline uint32_t frame_bytes(struct rte_mbuf *m)
{
    uint32_t n = m->pkt_len + frame_meta(m)->virt_len;

    return n < FRAME_MIN_BYTES ? FRAME_MIN_BYTES : n;
}

/* Bytes by which the frame occupies a link. */
static inline uint32_t frame_wire_bytes(struct rte_mbuf *m)
{
    return frame_bytes(m) + FRAME_LINK_OVERHEAD;
}

/* A pool of n frames with FRAME_ROOM bytes of room each. NULL and rte_errno on failure. Cache as in
 * rte_pktmbuf_pool_create. The frame freed last is used next: those few frames stay in the CPU's
 * caches, and the rest of the pool takes no memory. */
struct rte_mempool *frame_pool_create(const char *name, unsigned n, unsigned cache);
/* The same in memory of the caller, `bytes` from `at` on, which must outlive the pool. lengths: with
 * FRAME_ROOM_LENGTHS bytes of room each. frame_pool_bytes() returns the size. */
struct rte_mempool *frame_pool_create_at(const char *name, unsigned n, unsigned cache, bool lengths,
                                         void *at, size_t bytes);
size_t frame_pool_bytes(unsigned n, bool lengths);
/*
 * frame_pool_reserve() makes a pool for `most` frames (rte_mempool.size) that has none yet.
 * frame_pool_extend() adds the frames that fit into `bytes` at `at` (frame_pool_bytes() of any number);
 * release() is called with `at` as opaque when the pool ends. No other thread may allocate meanwhile.
 * Returns the number of frames, or -errno; then the caller keeps the memory.
 */
struct rte_mempool *frame_pool_reserve(const char *name, unsigned most, unsigned cache);
int frame_pool_extend(struct rte_mempool *p, void *at, size_t bytes,
                      rte_mempool_memchunk_free_cb_t *release);
/* A pool of n frames whose data and headroom are in memory of the caller, frame_data_bytes(n) from `at`
 * on. That memory holds nothing else, so other processes may write to it. The pool cannot hold clones
 * (frame_clone, frame_writable): DPDK would not find an mbuf's own data again. */
struct rte_mempool *frame_pool_create_over(const char *name, unsigned n, void *at);
size_t frame_data_bytes(unsigned n);
/* A pool of n small mbufs for frame_share(): the few in use stay in the CPU's caches. */
struct rte_mempool *frame_parts_create(const char *name, unsigned n, unsigned cache);
/* Whether frames of the pool have room for payloads. */
bool frame_pool_carries(const struct rte_mempool *pool);
/* Failed allocations by frame_alloc(), frame_clone(), frame_copy() or frame_writable() from a pool
 * of frame_pool_create_at() or frame_pool_create_over(); 0 for any other pool. */
uint64_t frame_pool_missed(struct rte_mempool *pool);

/* One frame with cleared meta, or NULL when the pool is empty. */
struct rte_mbuf *frame_alloc(struct rte_mempool *pool);

/* Like rte_pktmbuf_free() of each frame. */
void frame_free_burst(struct rte_mbuf **m, unsigned n);

/* A second reference to the same bytes, with a meta of its own (copied). Payload is never copied.
 * NULL: pool empty. */
struct rte_mbuf *frame_clone(struct rte_mbuf *m, struct rte_mempool *pool);

/* A copy of the bytes, with the meta of a new frame. NULL: pool empty. */
struct rte_mbuf *frame_copy(struct rte_mbuf *m, struct rte_mempool *pool);

/* Appends to the headers of m, by reference, len bytes from `off` of the only segment of `held`, then
 * `tail` bytes (at most FRAME_TAIL), and returns the address of the tail. held must not be of a pool made
 * by frame_pool_create_over(). NULL: the pool of parts is empty, and m is unchanged. */
#define FRAME_TAIL 8u
uint8_t *frame_share(struct rte_mbuf *m, struct rte_mbuf *held, uint32_t off, uint32_t len,
                     uint32_t tail, struct rte_mempool *parts);

/* Makes the headers in m's first segment writable for its owner alone, by copying headers only. NULL: the
 * pool is empty, and m is unchanged. */
struct rte_mbuf *frame_writable(struct rte_mbuf *m, struct rte_mempool *pool);

#endif
