/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/trunk/trunk_follow.h"

#include <stdlib.h>

#define DRIFT_MAX 1e-3       /* quartz is off by 1e-4 at most */
#define DRIFT_NS  2000000000 /* shorter spans say nothing of drift */

bool follow_take(struct follow *f, int64_t a_ns, int64_t b_ns, int64_t c_ns, int64_t d_ns)
{
    struct follow_point p = {.at_ns = b_ns, .way_ns = (b_ns - c_ns) - (a_ns - d_ns)};

    if (b_ns < c_ns || a_ns < d_ns || p.way_ns < 0)
        return false;
    p.offset_ns = (a_ns - b_ns) / 2 + (d_ns - c_ns) / 2;
    if (!f->until_ns) /* the first exchange counts at once */
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

/* Least squares, about the newest point so that numbers stay small. */
bool follow_line(const struct follow *f, int64_t now_ns, struct follow_line *out)
{
    const struct follow_point *last = &f->point[(f->next + FOLLOW_POINTS - 1) % FOLLOW_POINTS];
    double sx = 0, sy = 0, sxx = 0, sxy = 0, slope = 0, mean_x, mean_y;
    int64_t span = 0, way = INT64_MAX;

    if (!f->n)
        return false;
    for (unsigned i = 0; i < f->n; i++) {
        double x = (double)(f->point[i].at_ns - last->at_ns);
        double y = (double)(f->point[i].offset_ns - last->offset_ns);

        sx += x, sy += y, sxx += x * x, sxy += x * y;
        span = llabs(last->at_ns - f->point[i].at_ns) > span
                   ? llabs(last->at_ns - f->point[i].at_ns)
                   : span;
        way = f->point[i].way_ns < way ? f->point[i].way_ns : way;
    }
    mean_x = sx / f->n;
    mean_y = sy / f->n;
    if (span >= DRIFT_NS)
        slope = (sxy - sx * mean_y) / (sxx - sx * mean_x);
    slope = slope > DRIFT_MAX ? DRIFT_MAX : slope < -DRIFT_MAX ? -DRIFT_MAX : slope;
    *out = (struct follow_line){.at_ns = now_ns, .drift = slope, .unsure_ns = way / 2};
    if (span >= DRIFT_NS)
        out->offset_ns =
            last->offset_ns + (int64_t)(mean_y + slope * ((double)(now_ns - last->at_ns) - mean_x));
    else
        out->offset_ns = last->offset_ns;
    return true;
}

int64_t follow_way(const struct follow *f)
{
    struct follow_line l;

    return follow_line(f, 0, &l) ? 2 * l.unsure_ns : 0;
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
