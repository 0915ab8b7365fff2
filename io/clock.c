/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fabric's clock. Readers use a seqlock, so that a change of dilation is one point in both
 * times; fabric time overflows after 106 days.
 */
#include "io/shared.h"

#include <sched.h>
#include <time.h>

int64_t clock_mono_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

struct clock_view {
    int64_t mono_base_ns, fabric_base_ps;
    uint32_t dilation;
};

/* Pairs with clock_set_dilation(): an odd seq is a write in progress, a changed one a torn read. */
static struct clock_view clock_read(const struct clock_page *c)
{
    struct clock_view v;
    uint32_t seq;

    do {
        while ((seq = atomic_load_explicit(&c->seq, memory_order_acquire)) & 1)
            ;
        v.mono_base_ns = __atomic_load_n(&c->mono_base_ns, __ATOMIC_RELAXED);
        v.fabric_base_ps = __atomic_load_n(&c->fabric_base_ps, __ATOMIC_RELAXED);
        v.dilation = __atomic_load_n(&c->dilation, __ATOMIC_RELAXED);
        atomic_thread_fence(memory_order_acquire);
    } while (atomic_load_explicit(&c->seq, memory_order_relaxed) != seq);
    if (!v.dilation)
        v.dilation = 1;
    return v;
}

static int64_t view_fabric_ps(const struct clock_view *v, int64_t mono_ns)
{
    return v->fabric_base_ps + (mono_ns - v->mono_base_ns) * 1000 / v->dilation;
}

int64_t clock_fabric_at(const struct shared *sh, int64_t mono_ns)
{
    struct clock_view v = clock_read(&sh->clock);

    return view_fabric_ps(&v, mono_ns);
}

int64_t clock_fabric_ps(const struct shared *sh)
{
    struct clock_view v = clock_read(&sh->clock);

    return view_fabric_ps(&v, clock_mono_ns());
}

uint32_t clock_dilation(const struct shared *sh)
{
    return clock_read(&sh->clock).dilation;
}

void clock_set_dilation(struct shared *sh, uint32_t dilation)
{
    struct clock_page *c = &sh->clock;
    struct clock_view v;
    int64_t mono;
    uint32_t seq = atomic_load_explicit(&c->seq, memory_order_relaxed) & ~1u;

    /* Two writers at once are rare and both legal: the second waits for the first. */
    while (!atomic_compare_exchange_weak_explicit(&c->seq, &seq, seq + 1, memory_order_acquire,
                                                  memory_order_relaxed))
        seq &= ~1u;
    atomic_thread_fence(memory_order_release);
    v = (struct clock_view){c->mono_base_ns, c->fabric_base_ps, c->dilation ? c->dilation : 1};
    mono = clock_mono_ns();
    /* The first call of a page's life starts fabric time at 0. */
    __atomic_store_n(&c->fabric_base_ps, c->dilation ? view_fabric_ps(&v, mono) : 0,
                     __ATOMIC_RELAXED);
    __atomic_store_n(&c->mono_base_ns, mono, __ATOMIC_RELAXED);
    __atomic_store_n(&c->dilation, dilation ? dilation : 1, __ATOMIC_RELAXED);
    atomic_store_explicit(&c->seq, seq + 2, memory_order_release);
}

int64_t clock_wall_ns_until(const struct shared *sh, int64_t fabric_ps)
{
    struct clock_view v = clock_read(&sh->clock);
    int64_t now = view_fabric_ps(&v, clock_mono_ns());
    __int128 ns;

    if (fabric_ps <= now)
        return 0;
    /* Rounded up: after sleeping that long, the deadline is due. */
    ns = ((__int128)fabric_ps - now) * v.dilation;
    ns = (ns + 999) / 1000;
    return ns > INT64_MAX ? INT64_MAX : (int64_t)ns;
}

void clock_set_policy(uint32_t dilation)
{
    int was = sched_getscheduler(0), is = dilation > 1 ? SCHED_OTHER : SCHED_BATCH;

    if (was != is && (was == SCHED_OTHER || was == SCHED_BATCH))
        sched_setscheduler(0, is, &(struct sched_param){0});
}
