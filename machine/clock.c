/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fabric's clock. Readers check a sequence number, so that they see a change of speed at one moment
 * of both times. Fabric time overflows after 106 days.
 */
#include "machine/shared.h"

#include <dlfcn.h>
#include <sched.h>
#include <time.h>

/*
 * `trib exec --clock fabric` makes the system's clocks show fabric time to programs (host/clock). Code
 * that computes fabric time from CLOCK_MONOTONIC needs the system's own clock, so every program or
 * library with this file in it (libtribverbs and libtributary, too) keeps wall time for all its calls.
 */
static void keep_wall_time(bool loaded)
{
    void (*keeps)(const void *, bool) =
        (void (*)(const void *, bool))(uintptr_t)dlsym(RTLD_DEFAULT, "tribclock_keep_wall_time");

    if (keeps)
        keeps((const void *)(uintptr_t)keep_wall_time, loaded);
}

__attribute__((constructor(101))) static void loaded(void)
{
    keep_wall_time(true);
}

__attribute__((destructor(101))) static void unloaded(void)
{
    keep_wall_time(false);
}

int64_t clock_mono_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

#define TRIES   16      /* a reader gives up after so many changes during one read */
#define LEAD_NS 5000000 /* a change is announced so long before it takes effect */

/* Reads the clock's line. Pairs with take_effect(): if turn has changed, the read may be torn. A reader
 * never waits for the writer, which may have died, and gives up after TRIES. mono_ns: the time, taken
 * between the two reads of turn, because a reader that lost the CPU after them would extend an old line. */
static struct clock_state clock_read(const struct clock_page *c, int64_t *mono_ns)
{
    struct clock_state v;
    uint32_t turn;

    for (unsigned i = 0; i < TRIES; i++) {
        const struct clock_state *s;

        turn = atomic_load_explicit(&c->turn, memory_order_acquire);
        s = &c->state[turn % 2];
        v.change_ns = __atomic_load_n(&s->change_ns, __ATOMIC_RELAXED);
        v.change_ps = __atomic_load_n(&s->change_ps, __ATOMIC_RELAXED);
        v.before = __atomic_load_n(&s->before, __ATOMIC_RELAXED);
        v.dilation = __atomic_load_n(&s->dilation, __ATOMIC_RELAXED);
        v.before_skew_ppb = __atomic_load_n(&s->before_skew_ppb, __ATOMIC_RELAXED);
        v.skew_ppb = __atomic_load_n(&s->skew_ppb, __ATOMIC_RELAXED);
        if (mono_ns)
            *mono_ns = clock_mono_ns();
        atomic_thread_fence(memory_order_acquire);
        if (atomic_load_explicit(&c->turn, memory_order_relaxed) == turn)
            break;
    }
    v.before = v.before ? v.before : 1;
    v.dilation = v.dilation ? v.dilation : 1;
    return v;
}

#define PPB 1000000000

static inline int64_t skewed(int64_t ps, int32_t ppb)
{
    return ppb ? ps + (int64_t)((__int128)ps * ppb / PPB) : ps;
}

/* Rounds down; before the change, away from it: so no time before it is later than the change. */
int64_t clock_line_ps(const struct clock_state *v, int64_t mono_ns)
{
    int64_t ns = mono_ns - v->change_ns;

    if (ns >= 0)
        return v->change_ps + skewed(ns * 1000 / v->dilation, v->skew_ppb);
    return v->change_ps - skewed((-ns * 1000 + v->before - 1) / v->before, v->before_skew_ppb);
}

/* The first ns at which clock_line_ps() reaches `fabric_ps`; with a skew, perhaps one ns later. */
static __int128 mono_of(const struct clock_state *v, int64_t fabric_ps)
{
    __int128 ps = (__int128)fabric_ps - v->change_ps;
    int32_t ppb = ps > 0 ? v->skew_ppb : v->before_skew_ppb;

    if (ppb)
        ps = ps * PPB / (PPB + ppb) + (ps > 0);
    if (ps > 0)
        return v->change_ns + (ps * v->dilation + 999) / 1000;
    return v->change_ns - -ps * v->before / 1000;
}

int64_t clock_fabric_at(const struct shared *sh, int64_t mono_ns)
{
    struct clock_state v = clock_read(sh->clock, NULL);

    return clock_line_ps(&v, mono_ns);
}

int64_t clock_fabric_ps(const struct shared *sh)
{
    int64_t mono_ns;
    struct clock_state v = clock_read(sh->clock, &mono_ns);

    return clock_line_ps(&v, mono_ns);
}

uint32_t clock_dilation(const struct shared *sh)
{
    return clock_read(sh->clock, NULL).dilation;
}

/* Writes the state that is not in use. A reader of that state began two changes ago, and will see that
 * turn has changed. */
static void clock_announce(struct clock_page *c, uint32_t turn, const struct clock_state *change)
{
    struct clock_state *next = &c->state[(turn + 1) % 2];

    atomic_thread_fence(memory_order_release);
    __atomic_store_n(&next->change_ns, change->change_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&next->change_ps, change->change_ps, __ATOMIC_RELAXED);
    __atomic_store_n(&next->before, change->before, __ATOMIC_RELAXED);
    __atomic_store_n(&next->dilation, change->dilation, __ATOMIC_RELAXED);
    __atomic_store_n(&next->before_skew_ppb, change->before_skew_ppb, __ATOMIC_RELAXED);
    __atomic_store_n(&next->skew_ppb, change->skew_ppb, __ATOMIC_RELAXED);
}

static void take_effect(struct clock_page *c, uint32_t turn)
{
    atomic_store_explicit(&c->turn, turn + 1 ? turn + 1 : 2, memory_order_release);
}

static void start_real(struct clock_page *c, int64_t mono_ns, int64_t before_ns)
{
    struct timespec real;

    clock_gettime(CLOCK_REALTIME, &real);
    c->start_ns = mono_ns - before_ns;
    c->start_real_ns = (int64_t)real.tv_sec * 1000000000 + real.tv_nsec - before_ns;
}

/*
 * A change takes effect a little after it is announced, and until then both states give the same line: if
 * it lay in the past, a reader of the old line could already have seen later fabric times and would see
 * it run backwards. A writer that lost the CPU before the announcement starts again. It may still lose the
 * CPU between its last look at the clock and the announcement: LEAD_NS is longer than the time slices that
 * a virtual machine's host gives to others.
 */
void clock_set_dilation(struct clock_page *c, uint32_t dilation)
{
    struct clock_state was, next = {.dilation = dilation ? dilation : 1};
    uint32_t turn;

    while (atomic_exchange_explicit(&c->writing, 1, memory_order_acquire)) /* another thread */
        sched_yield();
    turn = atomic_load_explicit(&c->turn, memory_order_relaxed);
    if (!turn) { /* fabric time starts here, at 0 */
        next.change_ns = clock_mono_ns();
        start_real(c, next.change_ns, 0);
        next.before = next.dilation;
        clock_announce(c, turn, &next);
    } else {
        was = clock_read(c, NULL);
        next.before = was.dilation;
        next.before_skew_ppb = next.skew_ppb = was.skew_ppb;
        do {
            next.change_ns = clock_mono_ns() + LEAD_NS;
            /* One more, against rounding down: a reader that changes to the new state never goes back. */
            next.change_ps = clock_line_ps(&was, next.change_ns) + 1;
            clock_announce(c, turn, &next);
        } while (clock_mono_ns() > next.change_ns - LEAD_NS / 2);
    }
    take_effect(c, turn);
    while (clock_mono_ns() < next.change_ns)
        clock_nanosleep(
            CLOCK_MONOTONIC, TIMER_ABSTIME,
            &(struct timespec){next.change_ns / 1000000000, next.change_ns % 1000000000}, NULL);
    atomic_store_explicit(&c->writing, 0, memory_order_release);
}

struct clock_state clock_state_of(const struct clock_page *c)
{
    return clock_read(c, NULL);
}

void clock_start_at(struct clock_page *c, const struct clock_state *s)
{
    uint32_t turn = atomic_load_explicit(&c->turn, memory_order_relaxed);
    int64_t now = clock_mono_ns();

    start_real(c, now, clock_line_ps(s, now) / 1000 * s->dilation);
    clock_announce(c, turn, s);
    take_effect(c, turn);
}

void clock_follow(struct clock_page *c, int64_t at_ns, uint32_t dilation, int32_t skew_ppb)
{
    struct clock_state was = clock_read(c, NULL);
    /* Added against rounding, as in clock_set_dilation(); a skew, up to 2, rounds three times more. */
    struct clock_state next = {.change_ns = at_ns,
                               .change_ps = clock_line_ps(&was, at_ns) + (was.skew_ppb ? 6 : 1),
                               .before = was.dilation,
                               .before_skew_ppb = was.skew_ppb,
                               .dilation = dilation,
                               .skew_ppb = skew_ppb};
    uint32_t turn = atomic_load_explicit(&c->turn, memory_order_relaxed);

    clock_announce(c, turn, &next);
    take_effect(c, turn);
}

int64_t clock_wall_ns_until(const struct shared *sh, int64_t fabric_ps)
{
    int64_t mono_ns;
    struct clock_state v = clock_read(sh->clock, &mono_ns);
    __int128 ns = mono_of(&v, fabric_ps) - mono_ns;

    if (fabric_ps <= clock_line_ps(&v, mono_ns))
        return 0;
    return ns > INT64_MAX ? INT64_MAX : (int64_t)ns;
}

void clock_set_policy(uint32_t dilation)
{
    int was = sched_getscheduler(0), is = dilation > 1 ? SCHED_OTHER : SCHED_BATCH;

    if (was != is && (was == SCHED_OTHER || was == SCHED_BATCH))
        sched_setscheduler(0, is, &(struct sched_param){0});
}
