/* Inside of an egress queue: egress.c (a frame's way) and egress_ctl.c (set-up and control) only.
 */
#ifndef TRIB_SWITCH_EGRESS_PRIV_H
#define TRIB_SWITCH_EGRESS_PRIV_H

#include "switch/ecn.h"
#include "switch/egress.h"
#include "switch/fault.h"

#define FLIGHT_MIN   64u
#define FLIGHT_MAX   65536u
#define FLIGHT_SPARE 4u /* a frame, its duplicate, and the same of one pushed by departed() */

/* Frames in order, linked through their meta: a queue is as large as what is in it, and finding
 * when the first is due touches no frame. */
struct line {
    struct rte_mbuf *first, *last;
    int64_t first_ps, last_ps; /* due_ps of those two; first_ps PS_NEVER: empty */
    uint32_t n;
};

struct waiting {
    struct line line;
    uint32_t limit_pkts;
    uint64_t bytes, limit_bytes;
    uint64_t taken; /* frames that waited here and have started */
};

enum { START_PULL = FRAME_CLASSES };

struct egress {
    int64_t free_ps;  /* end of the last frame on the link */
    int64_t start_ps; /* next start (link permitting), PS_NEVER: nothing waits */
    int64_t pause_ps[FRAME_CLASSES];
    int64_t pull_ps;     /* since when the pull source is ready; PS_NEVER: found empty */
    int64_t ps_per_byte; /* exact, or 0 */
    uint32_t last_bytes;
    int64_t last_dur_ps;
    int64_t last_at_ps; /* latest arrival in order, jitter does not reorder */
    bool down, discards, lossy_turn;
    bool full; /* start_ps was planned for want of room on the link */
    uint8_t start_what;
    struct line flight; /* on the link, by arrival */
    uint32_t flight_max;
    struct waiting q[FRAME_CLASSES];
    uint64_t waiting_bytes;
    struct egress_cfg cfg;
    struct egress_stats st;
    struct fault fault;
    struct ecn ecn;
    void (*earlier)(void *ctx);
    void *earlier_ctx;
    void (*first)(void *ctx);
    void *first_ctx;
};

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

/* No more frames fit on the link until one arrives. */
static inline bool flight_full(const struct egress *e)
{
    return e->flight.n + FLIGHT_SPARE > e->flight_max;
}

#endif
