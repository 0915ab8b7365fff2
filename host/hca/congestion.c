/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/fabric.h"
#include "host/hca/hca.h"

struct dcqcn_cfg hca_dcqcn(const struct fab_dcqcn *f, uint64_t rate_bps)
{
    return (struct dcqcn_cfg){.on = f->on,
                              .line_bps = rate_bps,
                              .cnp_gap_ps = f->min_time_between_cnps_ps,
                              .cut_gap_ps = f->rate_reduce_monitor_period_ps,
                              .alpha_ps = f->dce_tcp_rtt_ps,
                              .g = f->dce_tcp_g,
                              .time_reset_ps = f->rpg_time_reset_ps,
                              .byte_reset = f->rpg_byte_reset,
                              .threshold = f->rpg_threshold,
                              .ai_bps = f->rpg_ai_bps,
                              .hai_bps = f->rpg_hai_bps};
}
