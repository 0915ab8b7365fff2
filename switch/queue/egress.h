/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An egress queue: one direction of a link with all its properties. A frame waits in the queue of
 * its class (finite in bytes and in frames), occupies the link for frame_wire_bytes / rate, and
 * arrives at the other end `latency` later. Times follow the schedule of the link, not the calls: a
 * frame that was ready starts when the previous one ended, however late egress_pop() is called.
 *
 * Order of service: control first, then lossless and lossy in turn, then the pull source. A frame
 * starts at max(link free, its push, end of the pause of its class); a pulled one at link-free time
 * as long as the source was never found empty, else at the kick that announced it.
 *
 * If the far end is a switch that cuts through, a frame arrives there with its header; a frame for the
 * switch's own address, or of FRAME_CONTROL, arrives with its last bit as everywhere else. Arrivals keep
 * the frames' order: the last bit of a frame is earlier than the header behind it.
 *
 * Faults (loss, duplication, reordering, corruption, jitter) are drawn from a seeded generator per
 * direction. MAC control frames (PFC) belong to the link itself and are exempt.
 *
 * Reentrancy: `departed` may push to any queue, also to this one. `pull` may push to and kick any
 * queue, also this one.
 */
#ifndef TRIB_SWITCH_QUEUE_EGRESS_H
#define TRIB_SWITCH_QUEUE_EGRESS_H

#include "roce/frame.h"

#include <stdbool.h>

#define EGRESS_MAX_PKTS (1u << 28) /* upper bound of limit_pkts */

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
    /* ECN: marks frames CE while their class holds more than ecn_bytes (ecn.h); 0: off. If ecn_max_bytes
     * <= ecn_bytes, marks all of them. */
    uint64_t ecn_bytes, ecn_max_bytes, ecn_seed;
    double ecn_prob;
    /* A far end that cuts through needs so many bytes of a frame, unless the frame is for its own
     * address. 0: it stores frames. */
    uint32_t cut_bytes;
    uint8_t cut_mac[6];
    /* On the link of a GPU to an NVSwitch with address mm_ip: answers to READs, and WRITEs, between the
     * two occupy the link for mm_load and mm_store times FAB_STRETCH_ONE of their time. 0: off. */
    uint32_t mm_ip, mm_load, mm_store;
    struct egress_faults faults;
    struct rte_mempool *pool; /* for duplicates, corrupted copies and marked headers */
    /* Called with frames that have started on the link, or were dropped because it is down: their times
     * and their bytes in total. PFC's ingress accounting releases them then. May be NULL. */
    void (*departed)(void *ctx, struct rte_mbuf *const *m, const int64_t *at_ps, uint32_t n,
                     uint32_t bytes);
    /* Called for a frame when the link is free and no waiting frame may be sent; NULL: no source. A
     * NIC pulls from its processes here. */
    struct rte_mbuf *(*pull)(void *ctx, int64_t now_ps, bool lossless_paused);
    void *ctx;
};

int egress_create(struct egress **e, const struct egress_cfg *cfg);
void egress_destroy(struct egress *e);
/* Takes ownership of a frame of class meta.cls. -ENOBUFS: the queue is full, the caller keeps
 * it. */
int egress_push(struct egress *e, struct rte_mbuf *m, int64_t now_ps);
/* egress_push() of a frame of which only the header has arrived. It may not start before ready_ps, because
 * its last bit would arrive too late; other frames may start before it. */
int egress_push_later(struct egress *e, struct rte_mbuf *m, int64_t ready_ps, int64_t now_ps);
/* egress_push() of n frames of one class, `bytes` in total. False: they may not all fit, or some may
 * have to be marked; nothing was done, push them one by one. */
bool egress_push_run(struct egress *e, struct rte_mbuf *const *m, uint32_t n, uint32_t bytes,
                     int64_t now_ps);
/* Takes frames that have arrived at the far end by now_ps, in order of arrival. Sets meta.due_ps to the
 * time of arrival. The caller owns them. */
uint16_t egress_pop(struct egress *e, struct rte_mbuf **m, uint16_t n, int64_t now_ps);
/* Time of the next work of egress_pop(); PS_NEVER: idle (egress_kick() then announces a pull
 * source). */
int64_t egress_next(const struct egress *e);
/* Call it when the pull source has frames again. */
void egress_kick(struct egress *e, int64_t now_ps);
/* PFC: class may not start a frame before until_ps (0: resume). FRAME_CONTROL is never paused. */
void egress_pause(struct egress *e, enum frame_class cls, int64_t until_ps, int64_t now_ps);
/* down: drops waiting and future frames; frames in flight arrive. */
void egress_set_down(struct egress *e, bool down, int64_t now_ps);
bool egress_is_down(const struct egress *e);
/* For the PFC watchdog: drops the waiting frames of the lossless class, and refuses new ones until it is
 * switched off. */
void egress_discard(struct egress *e, bool on, int64_t now_ps);
bool egress_discards(const struct egress *e);
bool egress_is_paused(const struct egress *e, int64_t now_ps); /* the lossless class */
/* Whether the lossless class has waiting frames, is paused, and has started none since the last call with
 * this *taken. */
bool egress_stuck(const struct egress *e, uint64_t *taken, int64_t now_ps);
uint64_t egress_occupancy(const struct egress *e, enum frame_class cls);
/* Restarts the peaks of the statistics. */
void egress_restart_peak(struct egress *e);
/* Number of frames of max_bytes that still fit in this class, at most `most`. */
uint32_t egress_room(const struct egress *e, enum frame_class cls, uint32_t max_bytes,
                     uint32_t most);
/* Sets the faults; draws restart from f->seed. Not while both ends run apart. */
void egress_set_faults(struct egress *e, const struct egress_faults *f);
const struct egress_faults *egress_faults(const struct egress *e);
/*
 * Sets rate (not 0) and latency from the next frame on. A frame on the link ends as it began, and no
 * frame arrives before one that was sent earlier, however much shorter the latency is. Call egress_pop()
 * for what is due before; not while both ends run apart.
 */
void egress_set_link(struct egress *e, uint64_t rate_bps, int64_t latency_ps);
uint64_t egress_rate_bps(const struct egress *e);
int64_t egress_latency_ps(const struct egress *e);
/* Calls fn(ctx) when anything but egress_pop() makes egress_next() earlier. fn NULL: no callback. */
void egress_on_earlier(struct egress *e, void (*fn)(void *ctx), void *ctx);

/* From now on *n counts queues with faults, this one included; NULL: no longer. */
void egress_count_faults(struct egress *e, uint32_t *n);

/*
 * Runs both ends of the link apart (net_logical_process.c): egress_start() starts the frames that
 * are due, egress_take() takes those that have arrived, each with its own next time, and each end
 * may be ahead of the other by less than the link's latency. Only for links with a rate and a
 * latency, while they have no faults and the frames in flight are in order. first(ctx) is called
 * when a frame starts on an empty link, with the ctx of egress_on_earlier(), which must be called
 * before. first NULL: runs both ends together again.
 */
bool egress_is_shaped(const struct egress *e); /* a rate and a latency */
bool egress_is_in_order(
    const struct egress *e); /* a frame that starts now arrives behind all in flight */
void egress_apart(struct egress *e, void (*first)(void *ctx));
void egress_start(struct egress *e, int64_t now_ps);
uint16_t egress_take(struct egress *e, struct rte_mbuf **m, uint16_t n, int64_t now_ps);
/* Prefetches what a start, or an arrival, reads of the queue, but not its frames. */
void egress_prefetch(const struct egress *e, bool starts);
/* The lossless frame that starts next, or the frame that arrives next; NULL: there is none. */
struct rte_mbuf *egress_first(const struct egress *e, bool starts);
int64_t egress_next_start(const struct egress *e);
int64_t egress_next_arrival(const struct egress *e);

/* Frames and bytes that started on the link (layer 2, and with link overhead), and faults. */
struct egress_stats {
    uint64_t frames, bytes, link_bytes;
    int64_t busy_ps;
    uint64_t peak_bytes; /* most bytes that waited, all classes together */
    uint64_t class_peak_bytes[FRAME_CLASSES];
    uint64_t lost, lost_bytes; /* lost by a fault after their start; also in frames and bytes */
    uint64_t duplicated, reordered, corrupted, ecn_marks, down_drops;
    uint64_t overflows; /* pushes that found no room */
    uint64_t discarded; /* by the PFC watchdog */
    int64_t paused_ps;  /* of the lossless class; see egress_paused_ps() */
};
struct egress_stats egress_stats(const struct egress *e);
/* Time for which the lossless class has been paused so far; the statistics count a whole pause when
 * it begins. */
int64_t egress_paused_ps(const struct egress *e, int64_t now_ps);

#endif
