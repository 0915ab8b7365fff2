/*
 * Three things make a machine late, and each gives a lower bound for the dilation: waking up (the
 * lag, about constant), having more to copy than it can (the rate), and the burst at the start of
 * an operation, when all ranks copy at once what their windows hold and nothing hides it. Lag and
 * rate start from a guess and follow what runs show. A lag seen while the machine was overloaded
 * says nothing of wake-ups, so a run that failed lowers the rate, where the rate was what bound it.
 */
#include "host/perf/pace.h"

#include <math.h>
#include <rte_common.h>

#define LAG_START_NS    150e3
#define LAG_LEAST_NS    20e3
#define LAG_MOST_NS     2e6
#define LAG_MARGIN      1.3
#define RATE_START      1.0e9
#define BURST_BYTES     (1u << 20) /* of a rank: about a window */
#define BURST_TOLERANCE 0.04
#define CAP_WALLS       3.0 /* wall times that one operation may last, when nothing less would hold */
#define RATE_LEAST      20e6
#define HELD_MARGIN     1.15 /* over what a warm-up needed, for the run after it to hold as well */
#define APART           1.3  /* dilations whose times tell something by their difference */
#define ENOUGH          1.2  /* a step smaller than this is not worth a warm-up */

void pace_init(struct pace *p, bool adaptive, double max_wall)
{
    *p = (struct pace){adaptive, LAG_START_NS, RATE_START, max_wall};
}

static double lag_bound(double lag_ns, const struct coll_prediction *pr)
{
    return lag_ns * 1e3 * pr->handoffs / (PACE_TOLERANCE * (double)pr->time_ps);
}

/* Every rank moves about what the busiest link carries. */
static double rate_bound(double rate, const struct coll_prediction *pr, unsigned nranks)
{
    return (double)pr->busiest_link_bytes * nranks / rate / ((double)pr->time_ps * 1e-12);
}

static double burst_bound(double rate, const struct coll_prediction *pr, unsigned nranks)
{
    double bytes = fmin((double)pr->busiest_link_bytes, BURST_BYTES);

    return bytes * nranks / rate / (BURST_TOLERANCE * (double)pr->time_ps * 1e-12);
}

static uint32_t clamp(double d)
{
    if (!(d > 1))
        return 1;
    return d >= PACE_MAX_DILATION ? PACE_MAX_DILATION : (uint32_t)ceil(d);
}

static double pace_cap(const struct pace *p, const struct coll_prediction *pr)
{
    return CAP_WALLS * p->max_wall / ((double)pr->time_ps * 1e-12);
}

uint32_t pace_dilation(const struct pace *p, const struct coll_prediction *pr, unsigned nranks)
{
    double lag = lag_bound(p->lag_ns * LAG_MARGIN, pr);
    double rate = rate_bound(p->rate_Bps, pr, nranks), burst = burst_bound(p->rate_Bps, pr, nranks);

    /* An operation lasts some max_wall at most: on a machine too busy for that, rows say that they
     * lag.
     */
    return clamp(fmax(rate, fmin(fmax(lag, burst), pace_cap(p, pr))));
}

unsigned pace_iters(const struct pace *p, unsigned want, const struct coll_prediction *pr,
                    uint32_t dilation)
{
    double fit = p->max_wall / ((double)pr->time_ps * 1e-12 * dilation);

    if (fit >= want || want <= 2)
        return want;
    return fit > 2 ? (unsigned)fit : 2;
}

struct fidelity pace_judge(const struct coll_prediction *pr, int64_t lag_p99_ns, uint32_t slow,
                           uint32_t dilation)
{
    double needed = fmax(lag_bound((double)lag_p99_ns, pr), slow);

    return (struct fidelity){.ok = needed <= dilation,
                             .p99_lag_us = (double)lag_p99_ns / 1e3 / dilation,
                             .needed = clamp(needed)};
}

uint32_t pace_retry(const struct pace *p, const struct coll_prediction *pr, uint32_t d,
                    uint32_t needed)
{
    double next = fmin(fmax(1.5 * d, LAG_MARGIN * needed), 8.0 * d);

    return clamp(fmax(d, fmin(next, pace_cap(p, pr))));
}

static void note_time(struct pace_tries *t, uint32_t d, double us)
{
    double k, whole;

    if (d > t->top.d) {
        if (d > APART * t->top.d)
            t->below = t->top;
        t->top.d = d, t->top.us = us;
    } else if (d * APART < t->top.d && d > t->below.d) {
        t->below.d = d, t->below.us = us;
    }
    if (!t->below.d)
        return;
    k = (t->below.us - t->top.us) / (1.0 / t->below.d - 1.0 / t->top.d);
    whole = t->top.us - k / t->top.d;
    t->slow = k <= 0 ? 0 : clamp(whole > 0 ? k / (PACE_TOLERANCE * whole) : PACE_MAX_DILATION);
}

uint32_t pace_settle(const struct pace *p, struct pace_tries *t, const struct coll_prediction *pr,
                     uint32_t d, uint32_t needed, double us)
{
    double next;

    note_time(t, d, us);
    if (t->held && t->held < t->slow) {
        t->failed = RTE_MAX(t->failed, t->held);
        t->held = 0;
    }
    needed = RTE_MAX(needed, t->slow);
    if (needed > d) {
        t->failed = RTE_MAX(t->failed, d);
        if (!t->held)
            return pace_retry(p, pr, t->failed, needed);
        return t->held < ENOUGH * d ? t->held : clamp(sqrt((double)t->held * d));
    }
    if (d < HELD_MARGIN * needed)
        return clamp(HELD_MARGIN * needed);
    t->held = t->held ? RTE_MIN(t->held, d) : d;
    next = fmax(HELD_MARGIN * HELD_MARGIN * needed, d / 4.0);
    if (t->failed)
        next = fmax(next, sqrt((double)t->failed * d));
    return next * ENOUGH < d ? clamp(next) : d;
}

void pace_learn(struct pace *p, const struct coll_prediction *pr, unsigned nranks,
                int64_t lag_p99_ns, uint32_t dilation, bool ok)
{
    double bound = fmax(rate_bound(p->rate_Bps, pr, nranks), burst_bound(p->rate_Bps, pr, nranks));
    bool rate_bound_it = bound >= lag_bound(p->lag_ns * LAG_MARGIN, pr);

    if (!ok && rate_bound_it) {
        /* what this dilation asked of the machine was too much */
        double asked = rate_bound(1.0, pr, nranks) / dilation;
        p->rate_Bps = fmax(RATE_LEAST, fmin(p->rate_Bps, asked / 2));
        return;
    }
    /* A bad run counts at once, a good one only partly: half of what was expected before stays. */
    double lag = (double)lag_p99_ns;
    if (lag < p->lag_ns)
        lag = (lag + p->lag_ns) / 2;
    p->lag_ns = fmin(fmax(lag, LAG_LEAST_NS), LAG_MOST_NS);
}
