/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * 1F1B: stage s of S begins with S - 1 - s forward passes, then each forward pass is followed by
 * the backward pass of the oldest microbatch under way. A pass begins when the stage is free and
 * what it needs from its neighbour is there.
 */
#include "sim/step/step.h"

#include "base/assert.h"

#include <stdlib.h>

static double step_time_later(double a, double b)
{
    return a > b ? a : b;
}

/* The part of an expert layer's communication that computing does not hide. */
static double exposed_ep(const struct step_cost *c, double math)
{
    bool other = c->stages > 1 || c->microbatches > 1;
    double ep = c->comms[ROOF_EP];

    return other ? step_time_later(0, ep - math) : ep;
}

/* A pass over the layers of a stage. gather: weights arrive layer by layer from this time on; < 0:
 * they are present. reduce: gradients of each layer are reduced after it; *end: when the last of
 * them is. */
static double step_time_pass(const struct step_cost *c, double start, double math, double gather,
                             bool reduce, double *end)
{
    double t = start, dp = c->comms[ROOF_DP], passes = c->zero ? 1 : 2;
    double each = math + c->comms[ROOF_TP] + exposed_ep(c, math);

    for (unsigned l = 0; l < c->layers; l++) {
        if (gather >= 0)
            t = step_time_later(t, gather + (l + 1) * dp);
        t += each;
        if (reduce)
            *end = step_time_later(*end, t) + passes * dp;
    }
    *end = step_time_later(*end, t);
    return t;
}

/* Whether the stage's k-th pass is a forward one, and of which microbatch. */
static bool pass_order(const struct step_cost *c, unsigned stage, unsigned k, unsigned *micro)
{
    unsigned m = c->microbatches, ahead = c->stages - 1 - stage;

    T_ASSERT(stage < c->stages && k < 2 * m, "a pass that the stage does not have");
    ahead = ahead < m ? ahead : m;
    if (k < ahead) {
        *micro = k;
        return true;
    }
    k -= ahead;
    if (k >= 2 * (m - ahead)) { /* the rest is backward */
        *micro = m - ahead + (k - 2 * (m - ahead));
        return false;
    }
    *micro = k / 2 + (k % 2 ? 0 : ahead);
    return k % 2 == 0;
}

struct time_run {
    const struct step_cost *c;
    double *done;   /* [stage][microbatch][forward, backward]; < 0: not yet */
    unsigned *next; /* [stage] pass */
    double *free, *end;
};

static double *done_at(const struct time_run *r, unsigned stage, unsigned micro, bool forward)
{
    return &r->done[((size_t)stage * r->c->microbatches + micro) * 2 + !forward];
}

/* Runs the next pass of a stage if its input is there. */
static bool stage_advance(struct time_run *r, unsigned stage)
{
    const struct step_cost *c = r->c;
    unsigned m = c->microbatches, micro;
    double ready = 0, gather = -1;
    bool forward, reduce;

    if (r->next[stage] == 2 * m)
        return false;
    forward = pass_order(c, stage, r->next[stage], &micro);
    if (forward ? stage > 0 : stage + 1 < c->stages) {
        double there = *done_at(r, forward ? stage - 1 : stage + 1, micro, forward);

        if (there < 0)
            return false;
        ready = there + c->comms[ROOF_PP];
    }
    ready = step_time_later(ready, r->free[stage]);
    reduce = !forward && micro == m - 1;
    if (c->zero && micro == 0 && (forward || c->zero == 3))
        gather = forward ? 0 : ready;
    T_ASSERT(*done_at(r, stage, micro, forward) < 0, "a stage passes a microbatch twice");
    r->free[stage] = step_time_pass(c, ready, forward ? c->forward : c->backward, gather, reduce,
                                    &r->end[stage]);
    *done_at(r, stage, micro, forward) = r->free[stage];
    r->next[stage]++;
    return true;
}

double step_seconds(const struct step_cost *c)
{
    size_t n = (size_t)c->stages * c->microbatches * 2;
    struct time_run r = {.c = c,
                         .done = malloc(n * sizeof(double)),
                         .next = calloc(c->stages, sizeof(unsigned)),
                         .free = calloc(c->stages, sizeof(double)),
                         .end = calloc(c->stages, sizeof(double))};
    double end = -1;
    bool whole = r.done && r.next && r.free && r.end, any = whole;

    for (size_t i = 0; any && i < n; i++)
        r.done[i] = -1;
    while (any) {
        any = false;
        for (unsigned s = 0; s < c->stages; s++)
            while (stage_advance(&r, s))
                any = true;
    }
    for (unsigned s = 0; whole && s < c->stages; s++)
        end = step_time_later(end, r.end[s]);
    free(r.done);
    free(r.next);
    free(r.free);
    free(r.end);
    return end;
}
