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

struct ring {
    struct rte_mbuf **slot;
    uint32_t mask, head, tail, limit_pkts;
    uint64_t bytes, limit_bytes;
    uint64_t taken; /* frames that waited here and have started */
};

struct flight {
    struct rte_mbuf *m;
    int64_t at_ps;
};

enum { START_PULL = FRAME_CLASSES, START_NONE };

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
    uint8_t start_what;
    struct ring q[FRAME_CLASSES];
    struct flight *fl;
    uint32_t fl_mask, fl_head, fl_tail;
    uint64_t waiting_bytes;
    struct egress_cfg cfg;
    struct egress_stats st;
    struct fault fault;
    struct ecn ecn;
    void (*earlier)(void *ctx);
    void *earlier_ctx;
};

static inline uint32_t ring_used(const struct ring *r)
{
    return r->tail - r->head;
}

static inline uint32_t flight_used(const struct egress *e)
{
    return e->fl_tail - e->fl_head;
}

#endif
