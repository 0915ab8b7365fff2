/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of an egress queue: egress.c (a frame's way) and egress_ctl.c (set-up and control) only.
 */
#ifndef TRIB_SWITCH_QUEUE_EGRESS_PRIV_H
#define TRIB_SWITCH_QUEUE_EGRESS_PRIV_H

#include "switch/queue/ecn.h"
#include "switch/queue/egress.h"
#include "switch/queue/link_fault.h"

#define FLIGHT_MIN   64u
#define FLIGHT_MAX   65536u
#define START_MAX    32u /* frames that are put on the link at once */
#define FLIGHT_SPARE 4u  /* a frame, its duplicate, and the same of one pushed by departed() */

/* Frames in order, linked through their meta: a queue is as large as what is in it, and finding
 * when the first is due touches no frame. */
struct line {
    struct rte_mbuf *first, *last;
    int64_t first_ps, last_ps; /* due_ps of those two; first_ps PS_NEVER: empty */
    uint32_t n, limit;         /* most frames that may be in it */
};

struct waiting {
    struct line line;
    uint64_t bytes, limit_bytes;
    uint64_t taken; /* frames that waited here and have started */
};
_Static_assert(sizeof(struct waiting) == RTE_CACHE_LINE_SIZE, "a line of the CPU's caches");

enum { START_PULL = FRAME_CLASSES };

/* In order of use: a simulated fabric has thousands of queues, and what costs is each line of a
 * cold one. A frame that finds the link idle takes the first four and its class's. */
struct egress {
    int64_t free_ps;  /* end of the last frame on the link */
    int64_t start_ps; /* next start (link permitting), PS_NEVER: nothing waits */
    int64_t pull_ps;  /* since when the pull source is ready; PS_NEVER: found empty */
    int64_t pause_ps[FRAME_CLASSES];
    int64_t last_at_ps; /* latest arrival in order, jitter does not reorder */
    bool full;          /* start_ps was planned for want of room on the link */
    uint8_t start_what;
    uint8_t classes; /* bit of each class that has something waiting */
    bool down, discards, lossy_turn;

    struct line flight; /* on the link, by arrival */
    int64_t latency_ps;
    int64_t takes_ps; /* a byte; where that is not exact, last_bytes do */
    uint32_t last_bytes;
    bool exact, faults, marks; /* fault.on, ecn.min_bytes */

    void (*departed)(void *ctx, struct rte_mbuf *const *m, const int64_t *at_ps, uint32_t n,
                     uint32_t bytes);
    struct rte_mbuf *(*pull)(void *ctx, int64_t now_ps, bool lossless_paused);
    void *ctx;
    void (*earlier)(void *ctx);
    void *watcher; /* ctx of earlier and first */
    void (*first)(void *ctx);
    uint64_t waiting_bytes;
    uint64_t rate_bps;

    struct egress_stats st; /* but for link_bytes, which follow */
    struct waiting q[FRAME_CLASSES] __rte_cache_aligned;
    struct egress_cfg cfg;
    struct fault fault;
    uint32_t *n_faulty; /* egress_count_faults() */
    struct ecn ecn;
} __rte_cache_aligned;
_Static_assert(offsetof(struct egress, flight) == RTE_CACHE_LINE_SIZE &&
                   offsetof(struct egress, departed) == 2 * RTE_CACHE_LINE_SIZE &&
                   offsetof(struct egress, st) == 3 * RTE_CACHE_LINE_SIZE,
               "lines of the CPU's caches");

static inline void line_add(struct line *l, struct rte_mbuf *m, int64_t due_ps)
{
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

/* There must be one. */
static inline struct rte_mbuf *line_take(struct line *l)
{
    struct rte_mbuf *m = l->first;

    if (--l->n) {
        l->first = frame_meta(m)->behind;
        l->first_ps = frame_meta(m)->behind_ps;
    } else {
        l->first_ps = PS_NEVER;
    }
    return m;
}

/* What waits grows until something leaves: peaks are noted then; egress_stats() sees to the rest.
 */
static inline void note_peaks(struct egress *e, unsigned cls)
{
    uint64_t *peak = &e->st.class_peak_bytes[cls];

    e->st.peak_bytes = RTE_MAX(e->st.peak_bytes, e->waiting_bytes);
    *peak = RTE_MAX(*peak, e->q[cls].bytes);
}

/* There must be one. */
static inline struct rte_mbuf *wait_take(struct egress *e, unsigned cls)
{
    struct waiting *r = &e->q[cls];
    struct rte_mbuf *m = line_take(&r->line);
    uint32_t bytes = frame_bytes(m);

    note_peaks(e, cls);
    r->bytes -= bytes;
    e->waiting_bytes -= bytes;
    if (!r->line.n)
        e->classes &= (uint8_t) ~(1u << cls);
    return m;
}

/* No more frames fit on the link until one arrives. */
static inline bool flight_full(const struct egress *e)
{
    return e->flight.n + FLIGHT_SPARE > e->flight.limit;
}

#endif
