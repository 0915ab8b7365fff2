/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The estimator of the dilation at which a row holds.
 *
 * Model. Three causes make a machine late, and each gives a lower bound for the dilation:
 *
 *   lag     waking up takes a wall time that is about constant: lag_bound()
 *   rate    the machine copies so many bytes a second and no more: rate_bound()
 *   burst   at the start of an operation all ranks copy what their windows hold, and nothing hides
 *           it: burst_bound()
 *
 * Lag and rate start from a guess and follow what runs show (dilation_learn()). A lag seen on an
 * overloaded machine says nothing about waking up, so a run that failed lowers the rate, if the
 * rate bound it.
 *
 * Search. Each warm-up is a sample (d, needed, us): the dilation, the dilation that its lateness
 * needs, and the time of an operation. Samples are noisy: the p99 lateness varies by a third, and
 * the time by 1 %, half of which is the quantity wanted. If other programs run, one sample in seven
 * needs many times as much as the rest. Hence two estimates:
 *
 *   lag        HELD_MARGIN times the median of `needed`: lateness is about the same at every
 *              dilation that the machine keeps up with
 *   own work   us = whole + own / d, by weighted least squares (own_work()): work other than
 *              handing frames over makes no hand-off late, but costs fabric time. The first sample
 *              is left out, because it touches memory for the first time
 *
 * The row runs at the larger of the two, with a margin for own work, and above the dilations at
 * which the machine was overloaded. During the search the line is assumed as flat as its error
 * allows (ERRORS_SEARCH): a dilation that proves too small costs little, and shows own work best.
 * The fit needs samples a factor of two apart (LESS). If the machine cannot keep up at half the
 * dilation, such a sample says nothing, and one at twice the dilation serves. `whole` shows at
 * large dilations. So if own work is the bound, samples at far smaller dilations are not enough, as
 * `whole` is only a tenth of their times and varies by a fifth: the search also needs a sample
 * beyond (to_reach()).
 */
#include "host/bench/dilation_control.h"

#include "base/assert.h"

#include <math.h>
#include <rte_common.h>
#include <stdlib.h>

/* ---- what a machine is expected to do, until runs show better ---- */

/* Initial p99 lateness: a guess, which the first run replaces. Measured values are clamped to these
 * bounds, so that neither one lucky nor one interrupted run sets the dilation of all later rows. */
#define LAG_START_NS 150e3
#define LAG_LEAST_NS 20e3
#define LAG_MOST_NS  2e6
/* Margin over the expected lag, which varies by a third from run to run. */
#define LAG_MARGIN 1.3
/* Bytes per second of all ranks: a guess, and a lower limit, so that overloaded runs cannot lower
 * the rate until no row fits its time. */
#define RATE_START 1.0e9
#define RATE_LEAST 20e6
/* A rank's burst is about a window. The fraction of an operation that it may take is a guess for
 * the first warm-up; own_work() measures it. */
#define BURST_BYTES     (1u << 20)
#define BURST_TOLERANCE 0.04
/* Limit of one operation, in max_wall, if it needs so much to hold. Beyond it, a row reports that
 * it lags instead of blocking the sweep. */
#define CAP_WALLS 3.0

/* ---- another try of a row that lagged ---- */

/* Margin over what the best run needed. It is small, because a run that lagged needed more than
 * most. */
#define RETRY_MARGIN 1.1
/* Least step: a smaller one is within the noise of the lag. */
#define RETRY_LEAST 1.05
/* Most after the first run, which something else may have interrupted. */
#define RETRY_FIRST 1.25

/* ---- the search by warm-ups ---- */

/* Margin over the median of what warm-ups needed: it varies by a third, and at the median itself
 * half of the runs would lag. */
#define HELD_MARGIN 1.15
/* Margin over the dilation at which own work equals the tolerance: lateness takes its own part of
 * it, and rows should be within 3 % in all. */
#define OWN_MARGIN 2.0
/* The margin is for short operations: it makes none longer than this fraction of max_wall. */
#define OWN_WALLS (1.0 / 30)
/* Steps between warm-ups at most. Up: one overloaded or interrupted sample must not end the search
 * far above. Down: the guess is worth little, later samples are worth more (LESS). */
#define UP   8.0
#define DOWN 4.0
/* The search goes down to where own work shows: the fit needs samples this far apart, and lower
 * ones are mostly overloaded and useless. */
#define LESS 2.0
/* A step smaller than this is within the noise of `needed` and not worth a warm-up, */
#define ENOUGH 1.2
/* with so many samples: the median of fewer depends on a single interruption. */
#define LEAST_TRIES 4
/* Times of samples at dilations closer than this differ by less than their noise. */
#define APART 1.3
/* A sample is overloaded if it needed this multiple of its dilation, and its time exceeds the
 * shortest by this factor: an interruption delays hand-offs, but not the whole operation. */
#define OVERLOADED 4.0
#define LONGER     1.15
/* Noise of a sample's time, as standard deviations: relative to `whole`, and relative to own work
 * at its dilation. */
#define TIME_NOISE 0.007
#define OWN_NOISE  0.2
/* Fits of the line, each with weights from the one before. */
#define PASSES 3
/* If own work is the bound, a sample at this multiple of its estimate shows `whole`, */
#define REACH 2.0
/* unless one was at this multiple already: a third less is worth no further warm-up. */
#define REACHED 1.5
/* During the search, own work is assumed to be this many standard errors below the fit. */
#define ERRORS_SEARCH 3.0

void dilation_init(struct dilation_control *p, bool adaptive, double max_wall)
{
    *p = (struct dilation_control){adaptive, LAG_START_NS, RATE_START, max_wall, 0};
}

static double lag_bound(double lag_ns, const struct coll_prediction *pr)
{
    return lag_ns * 1e3 * pr->handoffs / (DILATION_TOLERANCE * (double)pr->time_ps);
}

/* Every rank copies about as much as the busiest link carries. */
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
    T_ASSERT(pr->time_ps > 0, "a dilation is sought for an operation that takes no time");
    double most = p->max_op > 0 ? p->max_op : CAP_WALLS * p->max_wall;

    return most / ((double)pr->time_ps * 1e-12);
}

uint32_t dilation_first(const struct dilation_control *p, const struct coll_prediction *pr,
                        unsigned nranks)
{
    double lag = lag_bound(p->lag_ns * LAG_MARGIN, pr);
    double rate = rate_bound(p->rate_Bps, pr, nranks), burst = burst_bound(p->rate_Bps, pr, nranks);

    double cap = dilation_cap(p, pr);

    /* An operation lasts CAP_WALLS max_wall at most: on a machine too busy for that, rows say that
     * they lag. With a limit on the operation (max_op) the rate is capped too: a row that lags is
     * better than one that is not measured. */
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
                        uint32_t d, uint32_t least_needed, unsigned runs, bool blind)
{
    double next = fmin(RETRY_MARGIN * least_needed, (runs > 1 || blind ? UP : RETRY_FIRST) * d);

    return clamp(fmax(d, fmin(fmax(RETRY_LEAST * d, next), dilation_cap(p, pr))));
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Whether the machine could not keep up at this dilation, rather than being interrupted. */
static bool overloaded(const struct dilation_tries *t, const struct dilation_try *at)
{
    double least = at->us;

    for (unsigned i = 0; i < t->n; i++)
        least = fmin(least, t->at[i].us);
    return at->needed > OVERLOADED * at->d && at->us > LONGER * least;
}

/* Median over samples that were not overloaded; the lower of two in the middle, because an
 * interruption only adds. */
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

/* Whether the sample's time shows own work: memory was touched before, and the machine kept up. */
static bool tells(const struct dilation_try *a)
{
    return !a->cold && a->needed < OVERLOADED * a->d;
}

/*
 * Fits us = whole + own / d by weighted least squares. Returns the d at which own / d is
 * DILATION_TOLERANCE of the whole, for an `own` that is `errors` standard errors less. 0: samples
 * are not APART. Own work varies most, so times at small d, which consist of it, weigh less. A
 * sample that does not show own work can only be too long, so it counts only if it is below the
 * line.
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

/* Lower bound from overload: the least dilation that held above all overloaded ones, or during the
 * search halfway to it. 0: none was overloaded. */
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
 * Whether samples at about d show own work. *contrast 0: they are also a factor LESS apart, as the
 * fit needs. Else it is the dilation of the next warm-up: less than d, or more if the machine could
 * not keep up at less.
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
 * The dilation, at most `cap`, of a warm-up that shows `whole`. It is needed if own work is the
 * bound and no sample was at about REACH times its estimate: fitted from far smaller dilations
 * only, the estimate may be half or twice the right one. 0: not needed.
 */
static double to_reach(const struct dilation_tries *t, double lag, double cap)
{
    double own = own_work(t, 0), most = 0;

    for (unsigned i = 0; i < t->n; i++)
        if (tells(&t->at[i]))
            most = fmax(most, t->at[i].d);
    return own <= lag || most >= fmin(REACHED * own, floor(cap)) ? 0 : fmin(REACH * own, cap);
}

static void note_time(struct dilation_tries *t, double us)
{
    t->least_us = t->least_us > 0 ? fmin(t->least_us, us) : us;
}

/* The dilation that own work needs, with its margin. */
static double own_bound(const struct dilation_control *p, const struct dilation_tries *t,
                        const struct coll_prediction *pr)
{
    double longest = OWN_WALLS * p->max_wall / ((double)pr->time_ps * 1e-12);

    return fmax(t->slow, fmin(OWN_MARGIN * t->slow, longest));
}

uint32_t dilation_settle(const struct dilation_control *p, struct dilation_tries *t,
                         const struct coll_prediction *pr, uint32_t d, uint32_t needed, double us)
{
    double lag, own, next, contrast, reach, cap = dilation_cap(p, pr);
    bool near, enough;

    T_ASSERT(t->n < RTE_DIM(t->at), "a row has more warm-ups than its search records");
    T_ASSERT(!t->settled, "a warm-up follows a search that has ended");
    t->at[t->n++] = (struct dilation_try){d, needed, us, !t->warm};
    t->warm = true;
    note_time(t, us);
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
        next = fmax(fmax(lag, own_bound(p, t, pr)), above_overload(t, true));
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
    next = fmax(fmax(HELD_MARGIN * median_needed(t), own_bound(p, t, pr)), above_overload(t, true));
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

/* Whether samples that show own work are far enough apart for a line through them. */
static bool own_work_known(const struct dilation_tries *t)
{
    double least = INFINITY, most = 0;

    for (unsigned i = 0; i < t->n; i++)
        if (tells(&t->at[i]))
            least = fmin(least, t->at[i].d), most = fmax(most, t->at[i].d);
    return most >= LESS * least / ENOUGH;
}

static void lags(struct fidelity *f, double needed)
{
    f->ok = false;
    f->needed = RTE_MAX(f->needed, clamp(needed));
}

/* The excess is proportional to 1 / dilation, so `needed` is the dilation at which it equals the
 * tolerance. */
void dilation_compare(struct fidelity *f, struct dilation_tries *t, uint32_t d, double us)
{
    double over, own;

    if (t->n < RTE_DIM(t->at))
        t->at[t->n++] = (struct dilation_try){d, f->needed, us, !t->warm};
    t->warm = true;
    note_time(t, us);
    over = us / t->least_us - 1;
    if (over > DILATION_APART)
        lags(f, d * fmin(over / DILATION_TOLERANCE, UP));
    f->blind = !own_work_known(t);
    if (f->blind) {
        lags(f, LESS * d);
        return;
    }
    own = own_work(t, 0);
    t->slow = own > 0 ? clamp(own) : 0;
    if (own * DILATION_TOLERANCE > DILATION_APART * d)
        lags(f, own);
}

void dilation_again(struct dilation_tries *t)
{
    t->settled = t->warm = false;
    t->least_us = 0;
    t->most = t->n + DILATION_MORE;
}

void dilation_learn(struct dilation_control *p, const struct coll_prediction *pr, unsigned nranks,
                    int64_t lag_p99_ns, uint32_t dilation, bool ok)
{
    double bound = fmax(rate_bound(p->rate_Bps, pr, nranks), burst_bound(p->rate_Bps, pr, nranks));
    bool rate_bound_it = bound >= lag_bound(p->lag_ns * LAG_MARGIN, pr);

    if (!ok && rate_bound_it) {
        /* the machine was too slow at this dilation */
        double asked = rate_bound(1.0, pr, nranks) / dilation;
        p->rate_Bps = fmax(RATE_LEAST, fmin(p->rate_Bps, asked / 2));
        return;
    }
    /* A bad run replaces the expected lag, a good one moves it by half. */
    double lag = (double)lag_p99_ns;
    if (lag < p->lag_ns)
        lag = (lag + p->lag_ns) / 2;
    p->lag_ns = fmin(fmax(lag, LAG_LEAST_NS), LAG_MOST_NS);
}
