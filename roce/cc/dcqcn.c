/* SPDX-License-Identifier: BSD-3-Clause */
#include "roce/cc/dcqcn.h"

#include "base/assert.h"
#include "base/units.h"

#include <rte_common.h>

#define ALPHA_BITS 20
#define ALPHA_ONE  (1u << ALPHA_BITS)
#define ALPHA_MAX  (ALPHA_ONE / 1024 * 1023) /* initial_alpha_value: 1023 of 1024 */
#define MIN_BPS    1000000u                  /* rpg_min_rate: 1 Mb/s */
/* A late caller may send so many frames at once to catch up, so lateness does not lower the rate. */
#define BURST_FRAMES 8

/* (g / 1024)^n, times 2^30. */
static uint64_t decay(uint32_t g, uint64_t n)
{
    uint64_t base = (uint64_t)g << 20, x = 1u << 30;

    for (; n; n >>= 1) {
        if (n & 1)
            x = x * base >> 30;
        base = base * base >> 30;
    }
    return x;
}

/* Runs the updates of alpha that are due. Only the first of them can have seen notifications. */
static void update_alpha(struct dcqcn *d, const struct dcqcn_cfg *c, int64_t t)
{
    uint64_t n = t < d->alpha_ps ? 0 : (uint64_t)((t - d->alpha_ps) / c->alpha_ps) + 1;

    if (!n)
        return;
    d->alpha_ps += (int64_t)n * c->alpha_ps;
    if (d->notified) {
        d->alpha =
            (uint32_t)(((uint64_t)d->alpha * c->g + (uint64_t)ALPHA_ONE * (1024 - c->g)) >> 10);
        d->alpha = RTE_MIN(d->alpha, ALPHA_MAX);
        d->notified = false;
        n--;
    }
    d->alpha = (uint32_t)(d->alpha * decay(c->g, n) >> 30);
}

/* Cuts the rate. The target becomes the present rate only if time has raised that since the last cut
 * (clamp_tgt_rate_after_time_inc): several cuts in one congestion keep the target from before it. */
static void dcqcn_cut(struct dcqcn *d, const struct dcqcn_cfg *c, int64_t t)
{
    update_alpha(d, c, t);
    if (d->time_steps)
        d->target_bps = d->rate_bps;
    d->rate_bps -= d->rate_bps * (uint64_t)(d->alpha / 2) >> ALPHA_BITS;
    d->rate_bps = RTE_MAX(d->rate_bps, (uint64_t)MIN_BPS);
    d->cuts++;
    d->cut_wanted = false;
    d->time_steps = d->byte_steps = 0;
    d->bytes = 0;
    d->cut_ps = t;
    d->step_ps = t + c->time_reset_ps;
}

/* One step of rate increase at time t. */
static void raise_rate(struct dcqcn *d, const struct dcqcn_cfg *c, int64_t t)
{
    uint32_t most = RTE_MAX(d->time_steps, d->byte_steps);
    uint32_t least = RTE_MIN(d->time_steps, d->byte_steps);
    uint64_t before = d->rate_bps;

    if (least > c->threshold)
        d->target_bps += (least - c->threshold) * c->hai_bps;
    else if (most > c->threshold)
        d->target_bps += c->ai_bps;
    d->target_bps = RTE_MIN(d->target_bps, c->line_bps);
    d->rate_bps = RTE_MAX((d->rate_bps + d->target_bps + 1) / 2, before);
    if (d->rate_bps >= c->line_bps)
        d->limited = false;
    /* Scales a pending wait to the new rate. */
    if (d->ready_ps > t)
        d->ready_ps =
            t + (int64_t)((unsigned __int128)(uint64_t)(d->ready_ps - t) * before / d->rate_bps);
}

static inline void dcqcn_check(const struct dcqcn *d, const struct dcqcn_cfg *c)
{
    T_ASSERT_HOT(!d->limited || (d->rate_bps >= MIN_BPS || d->rate_bps == c->line_bps),
                 "a queue pair is slower than DCQCN's least rate");
    T_ASSERT_HOT(!d->limited || (d->rate_bps <= c->line_bps && d->target_bps <= c->line_bps),
                 "a queue pair is faster than its line");
    T_ASSERT_HOT(d->alpha <= ALPHA_MAX, "the estimate of congestion is above one");
    T_ASSERT_HOT(!d->limited || d->step_ps > d->cut_ps, "the next step up is before the last cut");
}

static void catch_up(struct dcqcn *d, const struct dcqcn_cfg *c, int64_t now)
{
    while (d->limited) {
        int64_t next_cut = d->cut_wanted ? d->cut_ps + c->cut_gap_ps : PS_NEVER;

        if (RTE_MIN(next_cut, d->step_ps) > now)
            return;
        if (next_cut <= d->step_ps) {
            dcqcn_cut(d, c, next_cut);
        } else {
            int64_t t = d->step_ps;

            d->step_ps += c->time_reset_ps;
            d->time_steps++;
            raise_rate(d, c, t);
        }
    }
}

void dcqcn_notified(struct dcqcn *d, const struct dcqcn_cfg *c, int64_t now)
{
    catch_up(d, c, now);
    dcqcn_check(d, c);
    if (!d->limited) {
        *d = (struct dcqcn){.limited = true,
                            .alpha = ALPHA_MAX,
                            .rate_bps = c->line_bps,
                            .target_bps = c->line_bps,
                            .cuts = d->cuts,
                            .alpha_ps = now + c->alpha_ps,
                            .ready_ps = d->ready_ps};
        dcqcn_cut(d, c, now);
        return;
    }
    update_alpha(d, c, now);
    d->notified = true;
    if (now - d->cut_ps >= c->cut_gap_ps)
        dcqcn_cut(d, c, now);
    else
        d->cut_wanted = true;
}

int64_t dcqcn_ready(struct dcqcn *d, const struct dcqcn_cfg *c, int64_t now)
{
    catch_up(d, c, now);
    if (!d->limited)
        return now;
    return d->ready_ps <= now ? d->ready_ps : RTE_MIN(d->ready_ps, d->step_ps);
}

void dcqcn_sent(struct dcqcn *d, const struct dcqcn_cfg *c, uint32_t bytes, int64_t now)
{
    int64_t lasts;

    dcqcn_check(d, c);
    if (!d->limited)
        return;
    lasts = link_time_ps(bytes, d->rate_bps);
    d->ready_ps = RTE_MAX(d->ready_ps, now - BURST_FRAMES * lasts) + lasts;
    d->bytes += bytes;
    if (!c->byte_reset || d->bytes < c->byte_reset)
        return;
    d->bytes -= c->byte_reset;
    d->byte_steps++;
    raise_rate(d, c, now);
}
