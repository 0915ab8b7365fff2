/* SPDX-License-Identifier: BSD-3-Clause */
/* When a port pauses its neighbour by PFC, as switches do (switch/queue/pfc.h) and models predict. */
#ifndef TRIB_FABRIC_PFC_LIMITS_H
#define TRIB_FABRIC_PFC_LIMITS_H

#include "base/frame_size.h"
#include "base/units.h"

#include <stdbool.h>
#include <stdint.h>

struct pfc_cfg {
    bool on;
    uint64_t rate_bps;
    int64_t latency_ps;
    int64_t lag_ps;       /* delay of pauses and frames beyond the link's */
    uint32_t max_frame;   /* layer-2 bytes */
    uint64_t share_bytes; /* share of the buffers for this port: XOFF, or less if the link needs
                             more headroom */
    uint32_t share_pkts;
};

/* When a port pauses its neighbour and when it resumes it. */
struct pfc_limits {
    uint64_t xoff_bytes, xon_bytes;
    uint32_t xoff_pkts, xon_pkts;
};

static inline struct pfc_limits pfc_limits(const struct pfc_cfg *cfg)
{
    uint32_t wire = cfg->max_frame + FRAME_LINK_OVERHEAD;
    /* A round trip passes between XON and the first frame that follows it: the queue must not run
     * empty meanwhile. */
    uint64_t least =
        (uint64_t)((unsigned __int128)(2 * cfg->latency_ps) * cfg->rate_bps / (8 * PS_PER_S)) +
        6 * (uint64_t)wire;
    uint64_t xoff = cfg->share_bytes > least ? cfg->share_bytes : least;
    uint32_t pkts = cfg->share_pkts > 64 ? cfg->share_pkts : 64;

    return (struct pfc_limits){xoff, xoff - 2 * (uint64_t)wire, pkts, pkts - 16};
}

#endif
