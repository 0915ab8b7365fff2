/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fabric's clock. Readers check a sequence number, so that a change of dilation is one point in
 * both times; fabric time overflows after 106 days.
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

#define TRIES 16 /* so many changes of dilation while one read takes place are none */

/* Pairs with clock_set_dilation(): a changed turn may be a torn read. A reader never waits for the
 * writer, which may have died, and gives up after TRIES. With `mono_ns`, the time is taken between
 * the two looks at the turn: a reader that was off the CPU in between would extend an old line. */
static struct clock_view clock_read(const struct clock_page *c, int64_t *mono_ns)
{
    struct clock_view v;
    uint32_t turn;

    for (unsigned i = 0; i < TRIES; i++) {
        const struct clock_state *s;

        turn = atomic_load_explicit(&c->turn, memory_order_acquire);
        s = &c->state[turn % 2];
        v.mono_base_ns = __atomic_load_n(&s->mono_base_ns, __ATOMIC_RELAXED);
        v.fabric_base_ps = __atomic_load_n(&s->fabric_base_ps, __ATOMIC_RELAXED);
        v.dilation = __atomic_load_n(&s->dilation, __ATOMIC_RELAXED);
        if (mono_ns)
            *mono_ns = clock_mono_ns();
        atomic_thread_fence(memory_order_acquire);
        if (atomic_load_explicit(&c->turn, memory_order_relaxed) == turn)
            break;
    }
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
    struct clock_view v = clock_read(sh->clock, NULL);

    return view_fabric_ps(&v, mono_ns);
}

int64_t clock_fabric_ps(const struct shared *sh)
{
    int64_t mono_ns;
    struct clock_view v = clock_read(sh->clock, &mono_ns);

    return view_fabric_ps(&v, mono_ns);
}

uint32_t clock_dilation(const struct shared *sh)
{
    return clock_read(sh->clock, NULL).dilation;
}

void clock_set_dilation(struct clock_page *c, uint32_t dilation)
{
    struct clock_state *next;
    struct clock_view v;
    uint32_t turn;
    int64_t mono;

    while (atomic_exchange_explicit(&c->writing, 1, memory_order_acquire)) /* another thread */
        sched_yield();
    v = clock_read(c, NULL);
    turn = atomic_load_explicit(&c->turn, memory_order_relaxed);
    next = &c->state[(turn + 1) % 2];
    mono = clock_mono_ns();
    /* Who still reads this state began two changes ago and must see the turn that follows it. */
    atomic_thread_fence(memory_order_release);
    /* The first call of a page's life starts fabric time at 0. Later ones round up: none goes back. */
    __atomic_store_n(&next->fabric_base_ps, turn ? view_fabric_ps(&v, mono) + 1 : 0,
                     __ATOMIC_RELAXED);
    __atomic_store_n(&next->mono_base_ns, mono, __ATOMIC_RELAXED);
    __atomic_store_n(&next->dilation, dilation ? dilation : 1, __ATOMIC_RELAXED);
    atomic_store_explicit(&c->turn, turn + 1 ? turn + 1 : 2, memory_order_release);
    atomic_store_explicit(&c->writing, 0, memory_order_release);
}

int64_t clock_wall_ns_until(const struct shared *sh, int64_t fabric_ps)
{
    int64_t mono_ns;
    struct clock_view v = clock_read(sh->clock, &mono_ns);
    int64_t now = view_fabric_ps(&v, mono_ns);
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
