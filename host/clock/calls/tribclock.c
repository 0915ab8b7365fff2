/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Joins the fabric, finds the system's calls, and decides by the address of its caller whether a
 * call gets wall time. So all code in our libraries does, including that of DPDK in libtribverbs.
 *
 * Rejected: linking our libraries so that they bypass this one. Each would need the list of calls,
 * and a call that is missing in it would be a clock that is wrong by the dilation.
 */
#include "host/clock/calls/tribclock.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEEPERS 64 /* most programs and libraries that keep wall time */

struct tribclock tribclock;

static struct clock_keeper {
    _Atomic uintptr_t from, to;
} keepers[KEEPERS];
static _Atomic unsigned n_keepers;
static _Atomic int stage; /* start() has not run: 0; runs: 1; has run: 2 */
static __thread bool starting __attribute__((tls_model("initial-exec")));

/* ---- who keeps wall time ---- */

static int find_module(struct dl_phdr_info *info, size_t size, void *arg)
{
    uintptr_t *range = arg, from, to;

    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];

        from = info->dlpi_addr + p->p_vaddr;
        to = from + p->p_memsz;
        if (p->p_type == PT_LOAD && p->p_flags & PF_X && range[0] >= from && range[0] < to) {
            range[0] = from;
            range[1] = to;
            return 1;
        }
    }
    return 0;
}

void tribclock_keep_wall_time(const void *address, bool loaded)
{
    uintptr_t range[2] = {(uintptr_t)address, 0};
    unsigned n = atomic_load(&n_keepers), i;

    if (!dl_iterate_phdr(find_module, range))
        return;
    for (i = 0; i < n && atomic_load(&keepers[i].from) != range[0]; i++)
        ;
    if (!loaded) {
        if (i < n)
            atomic_store(&keepers[i].to, 0);
        return;
    }
    for (unsigned k = 0; i == n && k < n; k++) /* reuse the entry of an unloaded library */
        if (!atomic_load(&keepers[k].to))
            i = k;
    if (i == KEEPERS)
        return;
    atomic_store(&keepers[i].from, range[0]);
    atomic_store(&keepers[i].to, range[1]);
    if (i == n)
        atomic_store(&n_keepers, n + 1);
}

static bool keeps_wall_time(uintptr_t caller)
{
    unsigned n = atomic_load_explicit(&n_keepers, memory_order_relaxed);

    for (unsigned i = 0; i < n; i++)
        if (caller >= atomic_load_explicit(&keepers[i].from, memory_order_relaxed) &&
            caller < atomic_load_explicit(&keepers[i].to, memory_order_relaxed))
            return true;
    return false;
}

/* ---- start ---- */

/*
 * Finds the C library's default versions of the calls. RTLD_NEXT would find the oldest version of
 * pthread_cond_timedwait() and of the timers. It serves C libraries that have some of the calls in
 * other libraries (librt, libpthread).
 */
static void find_calls(void)
{
    void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);

#define X(name)                                                                                    \
    tribclock.name = (__typeof__(&name))(uintptr_t)(libc ? dlsym(libc, #name) : NULL);             \
    if (!tribclock.name)                                                                           \
        tribclock.name = (__typeof__(&name))(uintptr_t)dlsym(RTLD_NEXT, #name);
    TRIBCLOCK_CALLS(X)
#undef X
    tribclock.pthread_cond_timedwait_old =
        (__typeof__(&pthread_cond_timedwait))(uintptr_t)(libc ? dlvsym(libc,
                                                                       "pthread_cond_timedwait",
                                                                       "GLIBC_2.2.5")
                                                              : NULL);
}

static void tribclock_end(const char *found)
{
    fprintf(stderr,
            "tributary: %s: TRIB_CLOCK is %s, and found %s; expected a fabric that is up, and a "
            "program that is run by trib exec --clock fabric\n",
            program_invocation_short_name, getenv("TRIB_CLOCK"), found);
    _exit(1);
}

static void tribclock_join(void)
{
    const char *clock = getenv("TRIB_CLOCK"), *dir = getenv("TRIB_RUN");

    if (!clock || !*clock || !strcmp(clock, "wall"))
        return;
    tribclock.scale_waits = !strcmp(clock, "fabric,scale-waits");
    if (!tribclock.scale_waits && strcmp(clock, "fabric") != 0)
        tribclock_end("neither wall, nor fabric, nor fabric,scale-waits in it");
    if (!dir || !*dir)
        tribclock_end("no run directory in TRIB_RUN");
    if (shared_join(&tribclock.fabric, dir))
        tribclock_end("none in TRIB_RUN");
    if (!atomic_load(&tribclock.fabric->clock->turn))
        tribclock_end("one whose dilation is unknown");
}

/* Runs before main(), or in the first call that a library's constructor makes. Calls that it makes
 * itself enter it again, and return at once. */
__attribute__((constructor(102))) static void start(void)
{
    int none = 0;

    if (starting)
        return;
    if (!atomic_compare_exchange_strong(&stage, &none, 1)) {
        while (atomic_load_explicit(&stage, memory_order_acquire) != 2)
            sched_yield();
        return;
    }
    starting = true;
    find_calls();
    tribclock_keep_wall_time((const void *)(uintptr_t)start, true);
    tribclock_join();
    starting = false;
    atomic_store_explicit(&stage, 2, memory_order_release);
}

bool tribclock_applies(const void *caller)
{
    if (atomic_load_explicit(&stage, memory_order_acquire) != 2)
        start();
    return !starting && tribclock.fabric && !keeps_wall_time((uintptr_t)caller);
}

/* ---- for the calls ---- */

const struct timespec *tribclock_deadline(clockid_t id, const struct timespec *deadline,
                                          struct timespec *out)
{
    struct timespec now;
    int64_t wait;

    if (!deadline || !timespec_valid(deadline))
        return deadline;
    wait = program_wait_ns(tribclock.fabric,
                           program_clock_of(id) == PROGRAM_REALTIME ? PROGRAM_REALTIME
                                                                    : PROGRAM_MONOTONIC,
                           ns_of_timespec(deadline), tribclock.scale_waits);
    tribclock.clock_gettime(id, &now);
    *out = timespec_of_ns(ns_sum(ns_of_timespec(&now), wait));
    if (out->tv_sec < 0) /* the system refuses negative times; 0 has passed, too */
        *out = (struct timespec){.tv_sec = 0};
    return out;
}

const struct timespec *tribclock_stretched(const struct timespec *wait, struct timespec *out)
{
    if (!wait || !timespec_valid(wait))
        return wait;
    *out = timespec_of_ns(program_stretch_ns(tribclock.fabric, ns_of_timespec(wait)));
    return out;
}
