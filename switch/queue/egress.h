/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An egress queue: the one place where the properties of one direction of a link live. A frame
 * waits in its class's queue (finite in bytes and in frames), occupies the link for
 * frame_wire_bytes / rate, and arrives at the other end `latency` later. The schedule is kept, not
 * the poll's: a frame that was ready starts when the one before it ended, however late egress_pop()
 * is called.
 *
 * Order of service: control first, then lossless and lossy in turn, then what the pull source has.
 * A frame starts at max(link free, its push, end of the pause of its class); a pulled one at
 * link-free time as long as the source was never found empty, else at the kick that announced it.
 *
 * Faults (loss, duplication, reordering, corruption, jitter) are drawn from a seeded generator per
 * direction. MAC control frames (PFC) are the link's own machinery and exempt.
 *
 * Reentrancy: `departed` may push to any queue, also to this one. `pull` may push to and kick other
 * queues and kick this one.
 */
#ifndef TRIB_SWITCH_QUEUE_EGRESS_H
#define TRIB_SWITCH_QUEUE_EGRESS_H

#include "roce/frame.h"

#include <stdbool.h>

#define EGRESS_MAX_PKTS 65536u /* limit_pkts above this are cut to it */

struct egress;

struct egress_faults {
    double loss, dup, reorder, corrupt;
    int64_t jitter_ps;
    uint64_t seed;
};

struct egress_cfg {
    uint64_t rate_bps; /* 0: no shaping */
    int64_t latency_ps;
    uint64_t limit_bytes[FRAME_CLASSES];
    uint32_t limit_pkts[FRAME_CLASSES];
    /* A class holding more than ecn_bytes is marked CE, as ecn.h says; 0: off. ecn_max_bytes at
     * most ecn_bytes: every frame is. */
    uint64_t ecn_bytes, ecn_max_bytes, ecn_seed;
    double ecn_prob;
    struct egress_faults faults;
    struct rte_mempool *pool; /* for duplicates, corrupted copies and marked headers */
    /* Told of frames that have started on the link, or were dropped because the link went down, and
     * when (PFC ingress accounting releases them there), so many bytes together; may be NULL. */
    void (*departed)(void *ctx, struct rte_mbuf *const *m, const int64_t *at_ps, uint32_t n,
                     uint32_t bytes);
    /* Asked for a frame when the link is free and nothing that may be sent waits; NULL: none. A NIC
     * pulls from its processes here. */
    struct rte_mbuf *(*pull)(void *ctx, int64_t now_ps, bool lossless_paused);
    void *ctx;
};

int egress_create(struct egress **e, const struct egress_cfg *cfg);
void egress_destroy(struct egress *e);
/* Takes the frame, or returns -ENOBUFS (full) and leaves it with the caller. meta.cls says the
 * class. */
int egress_push(struct egress *e, struct rte_mbuf *m, int64_t now_ps);
/* As n times egress_push(), of frames of one class and so many bytes together. False: there may not
 * be room for all, or some may be marked; nothing was done, push them one by one. */
bool egress_push_run(struct egress *e, struct rte_mbuf *const *m, uint32_t n, uint32_t bytes,
                     int64_t now_ps);
/* Frames that have arrived at the far end by now_ps, in order of arrival, meta.due_ps set to the
 * time of arrival. */
uint16_t egress_pop(struct egress *e, struct rte_mbuf **m, uint16_t n, int64_t now_ps);
/* Deadline of the next egress_pop() that does something; PS_NEVER when idle (a pull source must
 * then be announced by egress_kick). */
int64_t egress_next(const struct egress *e);
/* The pull source has frames again. */
void egress_kick(struct egress *e, int64_t now_ps);
/* PFC: class may not start a frame before until_ps (0: resume). FRAME_CONTROL is never paused. */
void egress_pause(struct egress *e, enum frame_class cls, int64_t until_ps, int64_t now_ps);
/* down: waiting and future frames are dropped; those on the link arrive. */
void egress_set_down(struct egress *e, bool down, int64_t now_ps);
bool egress_is_down(const struct egress *e);
/* The PFC watchdog: what waits in the lossless class is dropped, and so is what is pushed to it,
 * until it is called off. */
void egress_discard(struct egress *e, bool on, int64_t now_ps);
bool egress_discards(const struct egress *e);
bool egress_is_paused(const struct egress *e, int64_t now_ps); /* the lossless class */
/* Whether frames of the lossless class wait, the class is paused, and none has started since *taken
 * was noted; notes it again. */
bool egress_stuck(const struct egress *e, uint64_t *taken, int64_t now_ps);
uint64_t egress_occupancy(const struct egress *e, enum frame_class cls);
/* Peaks of the stats are those from here on. */
void egress_restart_peak(struct egress *e);
/* Frames of at most max_bytes that this class can still take for certain, or `most`. */
uint32_t egress_room(const struct egress *e, enum frame_class cls, uint32_t max_bytes,
                     uint32_t most);
/* From now on, from the start of f->seed's draws. */
void egress_set_faults(struct egress *e, const struct egress_faults *f);
const struct egress_faults *egress_faults(const struct egress *e);
/* fn(ctx) is called when egress_next() has become earlier by anything but egress_pop(). NULL ends
 * it. */
void egress_on_earlier(struct egress *e, void (*fn)(void *ctx), void *ctx);

/* *n is one more while the queue has faults; NULL ends it. */
void egress_count_faults(struct egress *e, uint32_t *n);

/*
 * Both ends of the link apart (net_apart.c): egress_start() puts onto it what is due, egress_take()
 * takes off it what has arrived, each with its own next time, and each end may be ahead of the
 * other by less than the link's latency. For links with a rate and a latency only, while they have
 * no faults and what is on them is in order. first(ctx) is called when a frame comes onto an empty
 * link, with the ctx of egress_on_earlier(), which comes first. first NULL: together again.
 */
bool egress_is_shaped(const struct egress *e); /* a rate and a latency */
bool egress_is_in_order(
    const struct egress *e); /* what starts now arrives behind all on the link */
void egress_apart(struct egress *e, void (*first)(void *ctx));
void egress_start(struct egress *e, int64_t now_ps);
uint16_t egress_take(struct egress *e, struct rte_mbuf **m, uint16_t n, int64_t now_ps);
/* What a start, or an arrival, will look at is on its way into the CPU's caches: of the queue, and,
 * some time later, of its next frame. */
void egress_prefetch(const struct egress *e, bool starts);
/* The frame that arrives first; NULL: none is on the link. */
const struct rte_mbuf *egress_arriving(const struct egress *e);
void egress_prefetch_frame(const struct egress *e, bool starts);
/* All of the frame that arrives next, which its receiver will read; it is near already. */
void egress_prefetch_body(const struct egress *e);
int64_t egress_next_start(const struct egress *e);
int64_t egress_next_arrival(const struct egress *e);

/* Faults that happened, frames and bytes that went onto the link (L2 bytes and link bytes). */
struct egress_stats {
    uint64_t frames, bytes, link_bytes;
    int64_t busy_ps;
    uint64_t peak_bytes; /* most that waited in all classes together */
    uint64_t class_peak_bytes[FRAME_CLASSES];
    uint64_t lost, duplicated, reordered, corrupted, ecn_marks, down_drops;
    uint64_t overflows; /* pushes that found no room */
    uint64_t discarded; /* by the PFC watchdog */
    int64_t paused_ps;  /* of the lossless class; see egress_paused_ps() */
};
struct egress_stats egress_stats(const struct egress *e);
/* For how long the lossless class has been paused up to now; stats count a pause whole when it
 * begins. */
int64_t egress_paused_ps(const struct egress *e, int64_t now_ps);

#endif
