/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/trunk/trunk_follow.h"

#include <math.h>
#include <stdlib.h>

#define QUARTZ    1e-4       /* largest drift of a quartz, */
#define DRIFT_MAX 1e-3       /* so no real drift is larger */
#define DRIFT_NS  2000000000 /* points over a shorter span give no drift */

bool follow_take(struct follow *f, int64_t a_ns, int64_t b_ns, int64_t c_ns, int64_t d_ns)
{
    struct follow_point p = {.at_ns = b_ns, .way_ns = (b_ns - c_ns) - (a_ns - d_ns)};

    if (b_ns < c_ns || a_ns < d_ns || p.way_ns < 0)
        return false;
    p.offset_ns = (a_ns - b_ns) / 2 + (d_ns - c_ns) / 2;
    if (!f->until_ns) /* the first exchange is an interval by itself */
        f->until_ns = b_ns;
    if (!f->best.at_ns || p.way_ns < f->best.way_ns)
        f->best = p;
    if (b_ns < f->until_ns)
        return false;
    f->point[f->next] = f->best;
    f->next = (f->next + 1) % FOLLOW_POINTS;
    f->n += f->n < FOLLOW_POINTS;
    f->best.at_ns = 0;
    f->until_ns = b_ns + FOLLOW_INTERVAL_NS;
    return true;
}

/* Sums of the points, relative to the newest one so that numbers stay small. */
struct fit {
    double sx, sy, sxx, sxy;
    int64_t span;
};

static struct fit fit_of(const struct follow *f, const struct follow_point *last)
{
    struct fit s = {0};

    for (unsigned i = 0; i < f->n; i++) {
        double x = (double)(f->point[i].at_ns - last->at_ns);
        double y = (double)(f->point[i].offset_ns - last->offset_ns);
        int64_t ago = llabs(last->at_ns - f->point[i].at_ns);

        s.sx += x, s.sy += y, s.sxx += x * x, s.sxy += x * y;
        s.span = ago > s.span ? ago : s.span;
    }
    return s;
}

/* Bound of the line's error at x. Each offset is right to half its round trip, and least squares weigh
 * it in the line at x by 1 / n + (x - mean) (x_i - mean) / sum of (x_j - mean)^2. */
static int64_t fit_unsure(const struct follow *f, const struct follow_point *last,
                          const struct fit *s, double x)
{
    double mean = s->sx / f->n, sum = s->sxx - s->sx * mean, unsure = 0;

    for (unsigned i = 0; i < f->n; i++) {
        double xi = (double)(f->point[i].at_ns - last->at_ns);

        unsure +=
            fabs(1.0 / f->n + (x - mean) * (xi - mean) / sum) * (double)f->point[i].way_ns / 2;
    }
    return (int64_t)unsure;
}

bool follow_line(const struct follow *f, int64_t now_ns, struct follow_line *out)
{
    const struct follow_point *last = &f->point[(f->next + FOLLOW_POINTS - 1) % FOLLOW_POINTS];
    double x = (double)(now_ns - last->at_ns), slope, mean;
    struct fit s;

    if (!f->n)
        return false;
    s = fit_of(f, last);
    if (s.span < DRIFT_NS) {
        *out = (struct follow_line){.at_ns = now_ns,
                                    .offset_ns = last->offset_ns,
                                    .unsure_ns = last->way_ns / 2 + (int64_t)(fabs(x) * QUARTZ)};
        return true;
    }
    mean = s.sx / f->n;
    slope = (s.sxy - s.sx * s.sy / f->n) / (s.sxx - s.sx * mean);
    slope = slope > DRIFT_MAX ? DRIFT_MAX : slope < -DRIFT_MAX ? -DRIFT_MAX : slope;
    *out = (struct follow_line){.at_ns = now_ns,
                                .offset_ns =
                                    last->offset_ns + (int64_t)(s.sy / f->n + slope * (x - mean)),
                                .drift = slope,
                                .unsure_ns = fit_unsure(f, last, &s, x + FOLLOW_INTERVAL_NS)};
    return true;
}

int64_t follow_way(const struct follow *f)
{
    int64_t way = f->n ? INT64_MAX : 0;

    for (unsigned i = 0; i < f->n; i++)
        way = f->point[i].way_ns < way ? f->point[i].way_ns : way;
    return way;
}

int64_t follow_theirs(const struct follow_line *l, int64_t at_ns)
{
    return at_ns + l->offset_ns + (int64_t)(l->drift * (double)(at_ns - l->at_ns));
}

int64_t follow_ours(const struct follow_line *l, int64_t at_ns)
{
    int64_t since = at_ns - l->offset_ns - l->at_ns;

    return l->at_ns + (int64_t)((double)since / (1 + l->drift));
}
