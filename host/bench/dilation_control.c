/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Three things make a machine late, and each gives a lower bound for the dilation: waking up (the
 * lag, about constant), having more to copy than it can (the rate), and the burst at the start of
 * an operation, when all ranks copy at once what their windows hold and nothing hides it. Lag and
 * rate start from a guess and follow what runs show. A lag seen while the machine was overloaded
 * says nothing of wake-ups, so a run that failed lowers the rate, where the rate was what bound it.
 *
 * Warm-ups vary: the 99th percentile of an operation's lateness by a third, its time by 1 %, half
 * of what is to be found by it, and where other programs run one in seven needs many times as much
 * as the rest. So the median of what all of them needed counts, lateness being about the same at
 * any dilation that the machine keeps up with, and a line through all their times but the first's,
 * which is that of memory not yet touched. Until the end that line is taken for as flat as it may
 * be: dilations that turn out too small are cheap, and those are where the machine's own work
 * shows. It takes warm-ups at dilations a factor of two apart; where half of what holds is so
 * little that the machine cannot keep up, which says nothing, twice as much does. What is left
 * without own work shows at large dilations: where that work binds, the end is not taken from times
 * far below it, of which it is a tenth and varies by a fifth, but from one beyond as well.
 */
#include "host/bench/dilation_control.h"

#include <math.h>
#include <rte_common.h>
#include <stdlib.h>

#define LAG_START_NS    150e3
#define LAG_LEAST_NS    20e3
#define LAG_MOST_NS     2e6
#define LAG_MARGIN      1.3
#define RATE_START      1.0e9
#define BURST_BYTES     (1u << 20) /* of a rank: about a window */
#define BURST_TOLERANCE 0.04
#define CAP_WALLS       3.0 /* wall times that one operation may last, when nothing less would hold */
#define RATE_LEAST      20e6
#define HELD_MARGIN     1.15 /* over what warm-ups needed, for the run after them to hold as well */
#define RETRY_MARGIN    1.1  /* over what a run needed that needed more than most */
#define RETRY_LEAST     1.05
#define RETRY_FIRST     1.25 /* at most: it may have been interrupted */
#define UP              8.0  /* steps between warm-ups at most, */
#define DOWN            4.0  /* from a guess; else LESS */
#define ENOUGH          1.2  /* and one smaller than this is not worth another, */
#define LEAST_TRIES     4    /* after so many */
#define LESS            2.0  /* where the machine's own work shows */
#define LONGER          1.15 /* than elsewhere: what cannot be moved in time */
#define APART           1.3  /* dilations whose times tell something by their difference */
#define OVERLOADED      4.0 /* of d is needed: the machine may not keep up, and its time says little */
#define TIME_NOISE      0.007 /* standard deviation of a warm-up's time, and */
#define OWN_NOISE       0.2   /* of what of it is the machine's own work */
#define PASSES          3     /* of the line, each with what the one before says of the noise */
#define REACH           2.0 /* of where own work is 2 %: a warm-up that shows what is left without, */
#define REACHED         1.5 /* unless one was so far up */
#define ERRORS_SEARCH   3.0 /* standard errors by which `slow` may be too high before the end */

void dilation_init(struct dilation_control *p, bool adaptive, double max_wall)
{
    *p = (struct dilation_control){adaptive, LAG_START_NS, RATE_START, max_wall, 0};
}

static double lag_bound(double lag_ns, const struct coll_prediction *pr)
{
    return lag_ns * 1e3 * pr->handoffs / (DILATION_TOLERANCE * (double)pr->time_ps);
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
    return d >= DILATION_MAX_DILATION ? DILATION_MAX_DILATION : (uint32_t)ceil(d);
}

static double dilation_cap(const struct dilation_control *p, const struct coll_prediction *pr)
{
    double most = p->max_op > 0 ? p->max_op : CAP_WALLS * p->max_wall;

    return most / ((double)pr->time_ps * 1e-12);
}

uint32_t dilation_first(const struct dilation_control *p, const struct coll_prediction *pr,
                        unsigned nranks)
{
    double lag = lag_bound(p->lag_ns * LAG_MARGIN, pr);
    double rate = rate_bound(p->rate_Bps, pr, nranks), burst = burst_bound(p->rate_Bps, pr, nranks);

    double cap = dilation_cap(p, pr);

    /* An operation lasts some max_wall at most: on a machine too busy for that, rows say that they
     * lag. Where a row has so much time and no more, that is better than not to be measured. */
    return clamp(p->max_op > 0 ? fmin(fmax(rate, fmax(lag, burst)), cap)
                               : fmax(rate, fmin(fmax(lag, burst), cap)));
}

unsigned dilation_iters(const struct dilation_control *p, unsigned want,
                        const struct coll_prediction *pr, uint32_t dilation)
{
    double fit = p->max_wall / ((double)pr->time_ps * 1e-12 * dilation);

    if (fit >= want || want <= 2)
        return want;
    return fit > 2 ? (unsigned)fit : 2;
}

struct fidelity dilation_judge(const struct coll_prediction *pr, int64_t lag_p99_ns, uint32_t slow,
                               uint32_t dilation)
{
    double needed = fmax(lag_bound((double)lag_p99_ns, pr), slow);

    return (struct fidelity){.ok = needed <= dilation,
                             .p99_lag_us = (double)lag_p99_ns / 1e3 / dilation,
                             .needed = clamp(needed)};
}

uint32_t dilation_retry(const struct dilation_control *p, const struct coll_prediction *pr,
                        uint32_t d, uint32_t least_needed, unsigned runs)
{
    double next = fmin(RETRY_MARGIN * least_needed, (runs > 1 ? UP : RETRY_FIRST) * d);

    return clamp(fmax(d, fmin(fmax(RETRY_LEAST * d, next), dilation_cap(p, pr))));
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Far more was needed than there was, and it took longer than elsewhere: the machine could not move
 * what this asks for, it was not just interrupted. */
static bool overloaded(const struct dilation_tries *t, const struct dilation_try *at)
{
    double least = at->us;

    for (unsigned i = 0; i < t->n; i++)
        least = fmin(least, t->at[i].us);
    return at->needed > OVERLOADED * at->d && at->us > LONGER * least;
}

/* Of those not overloaded; of two in the middle the lower one, since an interruption only adds. */
static double median_needed(const struct dilation_tries *t)
{
    double v[RTE_DIM(t->at)] = {0};
    unsigned n = 0;

    for (unsigned i = 0; i < t->n; i++)
        if (!overloaded(t, &t->at[i]))
            v[n++] = t->at[i].needed;
    qsort(v, n, sizeof(v[0]), by_value);
    return n ? v[(n - 1) / 2] : 0;
}

/* Its time says something of the machine's own work. */
static bool tells(const struct dilation_try *a)
{
    return !a->cold && a->needed < OVERLOADED * a->d;
}

/*
 * us = whole + own / d by least squares: the d at which own / d is DILATION_TOLERANCE of the whole, for
 * an `own` that is so many standard errors less. 0: not known. What the machine does itself varies
 * most, so a time at a small d, which is made of it, counts for less. A time that tells nothing is
 * too long if anything, so it counts where it is shorter than the line says.
 */
static double own_work(const struct dilation_tries *t, double errors)
{
    double own = 0, whole = 0, error = 0, least = INFINITY, most = 0;

    for (unsigned pass = 0; pass < PASSES; pass++) {
        double n = 0, x = 0, y = 0, xx = 0, xy = 0;

        for (unsigned i = 0; i < t->n; i++) {
            const struct dilation_try *a = &t->at[i];
            double noise = pass ? hypot(TIME_NOISE * whole, OWN_NOISE * own / a->d) : 1;
            double w = 1 / (noise * noise);

            if (tells(a))
                least = fmin(least, a->d), most = fmax(most, a->d);
            else if (!pass || a->us >= whole + own / a->d)
                continue;
            n += w, x += w / a->d, y += w * a->us;
            xx += w / (a->d * a->d), xy += w * a->us / a->d;
        }
        if (most < APART * least)
            return 0;
        xx -= x * x / n;
        own = fmax(0, (xy - x * y / n) / xx);
        whole = (y - own * x) / n;
        error = 1 / sqrt(xx);
        if (whole <= 0)
            return DILATION_MAX_DILATION;
    }
    return fmax(0, own - errors * error) / (DILATION_TOLERANCE * whole);
}

/* Up to the least that held beyond the dilations at which it was overloaded, or halfway to it. */
static double above_overload(const struct dilation_tries *t, bool at_last)
{
    double failed = 0, held = INFINITY;

    for (unsigned i = 0; i < t->n; i++)
        if (overloaded(t, &t->at[i]))
            failed = fmax(failed, t->at[i].d);
    for (unsigned i = 0; i < t->n; i++)
        if (t->at[i].d > failed && t->at[i].needed <= t->at[i].d)
            held = fmin(held, t->at[i].d);
    if (!failed || isinf(held))
        return 2 * failed;
    return at_last || held < APART * failed ? held : sqrt(failed * held);
}

/*
 * Whether warm-ups have told something at about d, and at dilations apart from each other, which
 * the line through their times needs. Where they have not been apart: at which to try next, less
 * than d, or more where less was found to be too little to say anything.
 */
static bool tried(const struct dilation_tries *t, double d, double *contrast)
{
    double least = INFINITY, most = 0, mute = 0;
    bool near = false;

    for (unsigned i = 0; i < t->n; i++) {
        const struct dilation_try *a = &t->at[i];

        if (tells(a)) {
            least = fmin(least, a->d), most = fmax(most, a->d);
            near |= a->d < ENOUGH * d && d < ENOUGH * a->d;
        } else if (!a->cold) {
            mute = fmax(mute, a->d);
        }
    }
    *contrast = most >= LESS * least ? 0 : mute * ENOUGH < d / LESS ? d / LESS : d * LESS;
    return near;
}

/*
 * Where own work is what binds and no warm-up was at about where it is DILATION_TOLERANCE or beyond: at
 * which one is to be, no more than `cap`; else 0. From times far below alone the line's end is half
 * or twice of what is right.
 */
static double to_reach(const struct dilation_tries *t, double lag, double cap)
{
    double own = own_work(t, 0), most = 0;

    for (unsigned i = 0; i < t->n; i++)
        if (tells(&t->at[i]))
            most = fmax(most, t->at[i].d);
    return own <= lag || most >= fmin(REACHED * own, floor(cap)) ? 0 : fmin(REACH * own, cap);
}

uint32_t dilation_settle(const struct dilation_control *p, struct dilation_tries *t,
                         const struct coll_prediction *pr, uint32_t d, uint32_t needed, double us)
{
    double lag, own, next, contrast, reach, cap = dilation_cap(p, pr);
    bool near, enough;

    t->at[t->n++] = (struct dilation_try){d, needed, us, !t->warm};
    t->warm = true;
    if (!t->most)
        t->most = DILATION_WARM_UPS;
    lag = HELD_MARGIN * median_needed(t);
    next = fmax(fmax(lag, own_work(t, ERRORS_SEARCH)), above_overload(t, false));
    near = tried(t, next, &contrast);
    reach = to_reach(t, lag, cap);
    enough = t->n >= LEAST_TRIES && near && !contrast;
    t->settled = t->n == t->most || (next > d && d >= floor(cap)) || (enough && !reach);
    own = own_work(t, 0);
    t->slow = own > 0 ? clamp(own) : 0;
    if (t->settled) {
        next = fmax(fmax(lag, t->slow), above_overload(t, true));
        return clamp(fmin(next, fmax(d, cap)));
    }
    if (reach && (enough || t->n + 1 == t->most))
        next = reach;
    else if (near && contrast)
        next = contrast;
    return clamp(fmin(fmin(fmax(next, d / (t->n > 1 ? LESS : DOWN)), UP * d), fmax(d, cap)));
}

uint32_t dilation_end(const struct dilation_control *p, struct dilation_tries *t,
                      const struct coll_prediction *pr, uint32_t d)
{
    double own = own_work(t, 0), next;

    t->settled = true;
    if (!t->n)
        return d;
    t->slow = own > 0 ? clamp(own) : 0;
    next = fmax(fmax(HELD_MARGIN * median_needed(t), t->slow), above_overload(t, true));
    return clamp(fmin(next > 0 ? next : d, fmax(d, dilation_cap(p, pr))));
}

unsigned dilation_warm_up(const struct dilation_control *p, unsigned want,
                          const struct coll_prediction *pr, uint32_t dilation)
{
    bool fits = (double)pr->time_ps * 1e-12 * dilation <= p->max_wall;

    if (p->adaptive && want && want < DILATION_OPS && fits)
        return DILATION_OPS;
    return dilation_iters(p, want, pr, dilation);
}

void dilation_again(struct dilation_tries *t)
{
    t->settled = t->warm = false;
    t->most = RTE_MIN(t->n + DILATION_MORE, (unsigned)RTE_DIM(t->at));
}

void dilation_learn(struct dilation_control *p, const struct coll_prediction *pr, unsigned nranks,
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
