/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DCQCN's reaction point: limits the rate of a queue pair (Zhu et al., Congestion Control for
 * Large-Scale RDMA Deployments, SIGCOMM 2015; parameters by the names that mlx5 gives them).
 *
 * A notification cuts the current rate by alpha / 2 and alpha, the estimate of congestion, grows;
 * without one alpha decays. After a cut the rate rises again in steps, one every time_reset and one
 * every byte_reset sent: half of the way back to the target (fast recovery), then with the target
 * itself rising (additive, at last hyper increase). Back at line rate the limit is lifted.
 *
 * Uses integers only; the caller passes the time. There are no timers: each call first runs, in
 * order, the updates that became due since the last one.
 */
#ifndef TRIB_ROCE_CC_DCQCN_H
#define TRIB_ROCE_CC_DCQCN_H

#include <stdbool.h>
#include <stdint.h>

struct dcqcn_cfg {
    bool on;
    uint64_t line_bps;
    int64_t cnp_gap_ps;    /* min_time_between_cnps, of the notification point */
    int64_t cut_gap_ps;    /* rate_reduce_monitor_period: at most one cut in this time */
    int64_t alpha_ps;      /* dce_tcp_rtt: interval between updates of alpha */
    uint32_t g;            /* dce_tcp_g: 1024ths of alpha that an update keeps */
    int64_t time_reset_ps; /* rpg_time_reset */
    uint64_t byte_reset;   /* rpg_byte_reset; 0: increases by time only */
    uint32_t threshold;    /* rpg_threshold: steps of fast recovery */
    uint64_t ai_bps, hai_bps;
};

struct dcqcn {
    bool limited;                    /* false: at line rate; the other fields are unused */
    bool cut_wanted;                 /* a notification came too soon after the last cut */
    bool notified;                   /* a notification came since the last update of alpha */
    uint32_t alpha;                  /* in units of 2^-20 */
    uint32_t time_steps, byte_steps; /* since the last cut */
    uint64_t rate_bps, target_bps;
    uint64_t bytes;   /* sent since the last step by bytes */
    uint64_t cuts;    /* total */
    int64_t alpha_ps; /* next update */
    int64_t cut_ps;   /* last cut */
    int64_t step_ps;  /* next step by time */
    int64_t ready_ps; /* when the next frame may start */
};

/* Call it when a notification arrives. */
void dcqcn_notified(struct dcqcn *d, const struct dcqcn_cfg *c, int64_t now_ps);
/* When the next frame may be sent: now_ps or earlier, or the time at which to ask again. */
int64_t dcqcn_ready(struct dcqcn *d, const struct dcqcn_cfg *c, int64_t now_ps);
/* Call it after sending a frame of `bytes` of link time. */
void dcqcn_sent(struct dcqcn *d, const struct dcqcn_cfg *c, uint32_t bytes, int64_t now_ps);

#endif
