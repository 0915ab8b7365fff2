/* SPDX-License-Identifier: BSD-3-Clause */
/* Internals of an egress queue, only for egress.c (frames), egress_cut.c (frames that may not start yet)
 * and egress_ctl.c (set-up and control). */
#ifndef TRIB_SWITCH_QUEUE_EGRESS_PRIV_H
#define TRIB_SWITCH_QUEUE_EGRESS_PRIV_H

#include "base/assert.h"
#include "base/cacheline.h"
#include "switch/queue/ecn.h"
#include "switch/queue/egress.h"
#include "switch/queue/link_fault.h"
#include "switch/queue/pfc.h"

#define FLIGHT_MIN   64u
#define FLIGHT_MAX   65536u
#define START_MAX    32u /* frames that start together */
#define FLIGHT_SPARE 4u  /* a frame, its duplicate, and both of a frame that departed() pushes */

/* A list of frames, linked through their meta: so a queue needs no memory of its own, and the deadline of
 * the first frame is known without reading it. */
struct egress_line {
    struct rte_mbuf *first, *last;
    int64_t first_ps, last_ps; /* due_ps of those two; first_ps PS_NEVER: empty */
    uint32_t n, limit;         /* limit: of n */
};

struct waiting {
    struct egress_line line;
    uint64_t bytes, limit_bytes;
    uint64_t taken; /* frames that waited here and have started */
};
_Static_assert(sizeof(struct waiting) == CACHELINE, "one cache line");

enum { START_PULL = FRAME_CLASSES };

/* Fields in order of use: a simulated fabric has thousands of queues, and each cache line of a cold one
 * costs a miss. A frame that finds the link idle reads the first four lines and that of its class. */
struct egress {
    int64_t free_ps;  /* end of the last frame on the link */
    int64_t start_ps; /* next start, if the link is not full; PS_NEVER: nothing waits */
    int64_t pull_ps;  /* since when the pull source may have frames; PS_NEVER: it was empty */
    int64_t pause_ps[FRAME_CLASSES];
    int64_t last_at_ps; /* latest arrival so far, without reordered frames */
    bool full;          /* the link was full when start_ps was planned */
    uint8_t start_what;
    uint8_t classes; /* bit of each class in which frames wait */
    bool down, discards, lossy_turn;
    bool later;     /* frames may wait that are not ready (egress_push_later()) */
    bool stretches; /* cfg.mm_load or mm_store, on a link with a rate */

    struct egress_line flight; /* in flight, by arrival */
    int64_t latency_ps;
    int64_t takes_ps; /* time per byte; if not `exact`, time of last_bytes */
    uint32_t last_bytes;
    bool exact, faults, marks; /* fault.on, ecn.min_bytes */
    bool cuts;                 /* cfg.cut_bytes, on a link with a rate */

    void (*departed)(void *ctx, struct rte_mbuf *const *m, const int64_t *at_ps, uint32_t n,
                     uint32_t bytes);
    struct rte_mbuf *(*pull)(void *ctx, int64_t now_ps, bool lossless_paused);
    void *ctx;
    void (*earlier)(void *ctx);
    void *watcher; /* ctx of earlier and first */
    void (*first)(void *ctx);
    uint64_t waiting_bytes;
    uint64_t rate_bps;

    struct egress_stats st; /* except link_bytes, which are derived */
    struct waiting q[FRAME_CLASSES] CACHELINE_ALIGNED;
    struct egress_cfg cfg;
    struct fault fault;
    uint32_t *n_faulty; /* egress_count_faults() */
    struct ecn ecn;
    int64_t header_ps; /* time of cfg.cut_bytes */
} CACHELINE_ALIGNED;
_Static_assert(offsetof(struct egress, flight) == CACHELINE &&
                   offsetof(struct egress, departed) == 2 * CACHELINE &&
                   offsetof(struct egress, st) == 3 * CACHELINE,
               "whole cache lines");

static inline void line_add(struct egress_line *l, struct rte_mbuf *m, int64_t due_ps)
{
    T_ASSERT_HOT(!l->n == (l->first_ps == PS_NEVER), "a list counts frames that it does not have");
    frame_meta(m)->due_ps = due_ps;
    if (l->n++) {
        frame_meta(l->last)->behind = m;
        frame_meta(l->last)->behind_ps = due_ps;
    } else {
        l->first = m;
        l->first_ps = due_ps;
    }
    l->last = m;
    l->last_ps = due_ps;
}

/* Adds a frame sorted by due_ps, behind all of the same time. */
static inline void line_insert(struct egress_line *l, struct rte_mbuf *m, int64_t due_ps)
{
    struct rte_mbuf *before = l->first;

    if (!l->n || l->last_ps <= due_ps) {
        line_add(l, m, due_ps);
        return;
    }
    frame_meta(m)->due_ps = due_ps;
    l->n++;
    if (due_ps < l->first_ps) {
        frame_meta(m)->behind = l->first;
        frame_meta(m)->behind_ps = l->first_ps;
        l->first = m;
        l->first_ps = due_ps;
        return;
    }
    while (frame_meta(before)->behind_ps <= due_ps)
        before = frame_meta(before)->behind;
    frame_meta(m)->behind = frame_meta(before)->behind;
    frame_meta(m)->behind_ps = frame_meta(before)->behind_ps;
    frame_meta(before)->behind = m;
    frame_meta(before)->behind_ps = due_ps;
}

/* l: not empty. */
static inline struct rte_mbuf *line_take(struct egress_line *l)
{
    struct rte_mbuf *m = l->first;

    T_ASSERT_HOT(l->n, "a frame is taken from an empty list");
    if (--l->n) {
        l->first = frame_meta(m)->behind;
        l->first_ps = frame_meta(m)->behind_ps;
    } else {
        l->first_ps = PS_NEVER;
    }
    return m;
}

/* A queue grows until a frame leaves: peaks are recorded then, the last one in egress_stats(). */
static inline void note_peaks(struct egress *e, unsigned cls)
{
    uint64_t *peak = &e->st.class_peak_bytes[cls];

    e->st.peak_bytes = RTE_MAX(e->st.peak_bytes, e->waiting_bytes);
    *peak = RTE_MAX(*peak, e->q[cls].bytes);
}

/* Removes the first waiting frame of the class. */
static inline struct rte_mbuf *wait_take(struct egress *e, unsigned cls)
{
    struct waiting *r = &e->q[cls];
    struct rte_mbuf *m = line_take(&r->line);
    uint32_t bytes = frame_bytes(m);

    note_peaks(e, cls);
    T_ASSERT_HOT(r->bytes >= bytes && e->waiting_bytes >= bytes, "a class counts too few bytes");
    r->bytes -= bytes;
    e->waiting_bytes -= bytes;
    if (!r->line.n)
        e->classes &= (uint8_t) ~(1u << cls);
    return m;
}

/* Whether counts, bytes and bits of the classes are consistent. */
static inline bool classes_agree(const struct egress *e)
{
    uint64_t bytes = 0;
    bool ok = true;

    for (unsigned c = 0; c < FRAME_CLASSES; c++) {
        const struct waiting *r = &e->q[c];

        bytes += r->bytes;
        ok &= !r->line.n == !(e->classes >> c & 1) && !r->line.n == !r->bytes &&
              !r->line.n == (r->line.first_ps == PS_NEVER);
    }
    return ok && bytes == e->waiting_bytes;
}

/* PFC and other MAC control: exempt from faults. */
static inline bool is_mac_control(struct rte_mbuf *m)
{
    return frame_meta(m)->cls == FRAME_CONTROL && m->data_len >= 14 &&
           *rte_pktmbuf_mtod_offset(m, rte_be16_t *, 12) == RTE_BE16(ETHERTYPE_MAC_CONTROL);
}

/* Whether no frame may start until one arrives. */
static inline bool flight_full(const struct egress *e)
{
    return e->flight.n + FLIGHT_SPARE > e->flight.limit;
}

static inline int64_t duration(struct egress *e, uint32_t bytes)
{
    if (likely(e->exact))
        return bytes * e->takes_ps;
    if (bytes != e->last_bytes) {
        e->last_bytes = bytes;
        e->takes_ps = e->rate_bps ? link_time_ps(bytes, e->rate_bps) : 0;
    }
    return e->takes_ps;
}

/* How much earlier than its last bit a frame arrives at the far end. */
static inline int64_t ahead(const struct egress *e, struct rte_mbuf *m, int64_t dur)
{
    if (likely(!e->cuts) || frame_meta(m)->cls == FRAME_CONTROL ||
        !memcmp(rte_pktmbuf_mtod(m, const uint8_t *), e->cfg.cut_mac, sizeof(e->cfg.cut_mac)))
        return 0;
    T_ASSERT_HOT(dur >= e->header_ps, "a frame is shorter than its header");
    return dur - e->header_ps;
}

/* Whether a frame fits into its class; counts it if not. */
static inline bool egress_fits(struct egress *e, const struct waiting *r, uint32_t bytes)
{
    if (likely(r->line.n < r->line.limit && r->bytes + bytes <= r->limit_bytes))
        return true;
    e->discards &&r == &e->q[FRAME_LOSSLESS] ? e->st.discarded++ : e->st.overflows++;
    return false;
}

/* The frame, marked CE if its class holds too much. */
static inline struct rte_mbuf *egress_marked(struct egress *e, const struct waiting *r,
                                             struct rte_mbuf *m)
{
    if (unlikely(e->marks && r->bytes > e->ecn.min_bytes) && ecn_hits(&e->ecn, r->bytes))
        m = ecn_mark(m, e->cfg.pool, &e->st.ecn_marks);
    return m;
}

/* The time that egress_on_earlier() watches; while both ends run apart, the next start only. */
static inline int64_t watched(const struct egress *e)
{
    return e->first ? e->start_ps : egress_next(e);
}

static inline void call_if_earlier(struct egress *e, int64_t before)
{
    if (e->earlier && watched(e) < before)
        e->earlier(e->watcher);
}

/* egress_ctl.c: how long a frame that takes dur occupies the link, if it carries data of multimem. */
int64_t egress_stretched(const struct egress *e, struct rte_mbuf *m, int64_t dur);

/* egress.c: plans the next start. */
void egress_plan(struct egress *e);
/* egress_cut.c: queues n frames that fit, sorted by the time from which they may start, and plans the
 * next start. */
void egress_enter_sorted(struct egress *e, struct waiting *r, struct rte_mbuf *const *m, uint32_t n,
                         int64_t ready_ps);

#endif
