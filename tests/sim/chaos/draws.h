/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shares of draws: how often something was drawn is compared with how often it should be, by three standard
 * deviations; draws are of fixed seeds, so a test sees the same ones in every run.
 */
#ifndef TESTS_SIM_CHAOS_DRAWS_H
#define TESTS_SIM_CHAOS_DRAWS_H

#include "sim/chaos/chaos_priv.h"
#include "tests/fabric/load.h"

#include <math.h>

/* Of so many draws, each with probability p. */
static inline void share(const char *what, unsigned hits, unsigned of, double p)
{
    double expected = of * p;

    if (fabs(hits - expected) > 3 * sqrt(expected * (1 - p)) + 0.5)
        fail_msg("%s: %u of %u draws, expected %.0f", what, hits, of, expected);
}

/* Whole numbers from lowest to highest that were drawn, each as likely. */
struct range {
    unsigned n;
    double lowest, highest, sum;
};

static inline void range_add(struct range *r, double v)
{
    r->lowest = !r->n || v < r->lowest ? v : r->lowest;
    r->highest = !r->n || v > r->highest ? v : r->highest;
    r->sum += v;
    r->n++;
}

/* Both ends were drawn, and the mean is theirs. */
static inline void range_is(const char *what, const struct range *r, double lowest, double highest)
{
    double width = highest - lowest + 1, sigma = width / sqrt(12.0 * r->n);

    if (r->lowest != lowest || r->highest != highest)
        fail_msg("%s: from %g to %g, expected from %g to %g", what, r->lowest, r->highest, lowest,
                 highest);
    if (fabs(r->sum / r->n - (lowest + highest) / 2) > 4 * sigma)
        fail_msg("%s: a mean of %g in %u draws, expected %g", what, r->sum / r->n, r->n,
                 (lowest + highest) / 2);
}

/* The streams of the i-th case of a test. */
static inline void draws_of(struct chaos_case *k, uint64_t i)
{
    for (unsigned s = 0; s < DRAW_STREAMS; s++)
        k->rng[s] = random_mix(i * DRAW_STREAMS + s + 1);
}

#endif
