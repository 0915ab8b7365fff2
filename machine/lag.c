/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Log-linear histograms of lateness: up to 16 ns a bucket per nanosecond, then 16 buckets per power of
 * two (at most 6 % wide). Counts are relaxed atomics, which readers may load at any time.
 */
#include "machine/shared.h"

#define SUB_BITS   4
#define SUB        (1u << SUB_BITS)
#define LAG_MAX_NS 0xffffffffLL

static unsigned lag_bucket(int64_t ns)
{
    uint64_t v = ns < 0 ? 0 : ns > LAG_MAX_NS ? (uint64_t)LAG_MAX_NS : (uint64_t)ns;
    unsigned e;

    if (v < SUB)
        return (unsigned)v;
    e = 63 - (unsigned)__builtin_clzll(v);
    return (e - SUB_BITS + 1) * SUB + ((v >> (e - SUB_BITS)) & (SUB - 1));
}

/* The upper bound, so that quantiles are upper bounds, too. */
int64_t lag_bucket_top(unsigned b)
{
    unsigned shift;

    if (b < SUB)
        return b;
    shift = b / SUB - 1;
    return (((int64_t)SUB + b % SUB + 1) << shift) - 1;
}

_Static_assert((31 - SUB_BITS + 1) * SUB + SUB <= LAG_BUCKETS, "2^32 ns has a bucket");

void lag_record(struct lag_hist *h, int64_t ns, unsigned n)
{
    _Atomic uint64_t *c = &h->n[lag_bucket(ns)];

    atomic_fetch_add_explicit(c, n, memory_order_relaxed);
}

void lag_snapshot(const struct shared *sh, struct lag_hist *sum)
{
    unsigned n_sw = atomic_load_explicit(&sh->n_sw, memory_order_acquire);
    uint64_t n[LAG_BUCKETS] = {0};

    for (unsigned w = 0; w < n_sw; w++)
        for (unsigned b = 0; b < LAG_BUCKETS; b++)
            n[b] += atomic_load_explicit(&sh->sw[w].page->lag.n[b], memory_order_relaxed);
    for (unsigned b = 0; b < LAG_BUCKETS; b++)
        atomic_store_explicit(&sum->n[b], n[b], memory_order_relaxed);
}

static uint64_t lag_diff(const struct lag_hist *before, const struct lag_hist *after, unsigned b)
{
    uint64_t n = atomic_load_explicit(&after->n[b], memory_order_relaxed);

    return before ? n - atomic_load_explicit(&before->n[b], memory_order_relaxed) : n;
}

int64_t lag_quantile(const struct lag_hist *before, const struct lag_hist *after, double q)
{
    uint64_t total = 0, seen = 0, want;

    for (unsigned b = 0; b < LAG_BUCKETS; b++)
        total += lag_diff(before, after, b);
    if (!total)
        return 0;
    want = (uint64_t)(q * (double)total);
    if (want >= total)
        want = total - 1;
    for (unsigned b = 0; b < LAG_BUCKETS; b++) {
        seen += lag_diff(before, after, b);
        if (seen > want)
            return lag_bucket_top(b);
    }
    return LAG_MAX_NS;
}
