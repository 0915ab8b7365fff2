/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Doorbells: a futex word in the page that all processes share.
 *
 * No wake-up is lost: the sleeper raises its flag, fences, polls once more, and sleeps on the value
 * that seq had before; the ringer makes frames visible, fences, and reads the flag. One of the two
 * sees the other. The ringer clears the flag and wakes all sleepers; sleepers never clear it. So
 * several threads may sleep on one bell, and a sleeper that is killed costs one needless system
 * call.
 */
#include "base/assert.h"
#include "fabric/fabric.h"
#include "io/shared.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Not FUTEX_PRIVATE: sleeper and ringer are different processes. */
static long futex(_Atomic uint32_t *word, int op, uint32_t val, const struct timespec *timeout)
{
    return syscall(SYS_futex, (uint32_t *)word, op, val, timeout, NULL, 0);
}

static void wake(struct bell *b)
{
    if (!atomic_load_explicit(&b->sleeping, memory_order_relaxed))
        return;
    if (!atomic_exchange_explicit(&b->sleeping, 0, memory_order_acq_rel))
        return;
    atomic_fetch_add_explicit(&b->seq, 1, memory_order_release);
    futex(&b->seq, FUTEX_WAKE, INT_MAX, NULL);
}

void bell_ring(struct bell *b)
{
    int64_t none = 0;
    int32_t also;

    b += atomic_load_explicit(&b->forward, memory_order_relaxed);
    if (!atomic_load_explicit(&b->rung_ns, memory_order_relaxed))
        atomic_compare_exchange_strong_explicit(&b->rung_ns, &none, clock_mono_ns(),
                                                memory_order_relaxed, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    wake(b);
    also = atomic_load_explicit(&b->also, memory_order_relaxed);
    if (also)
        wake(b + also);
}

uint32_t bell_prepare(struct bell *b)
{
    uint32_t token = atomic_load_explicit(&b->seq, memory_order_acquire);

    atomic_store_explicit(&b->sleeping, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    return token;
}

void bell_sleep(struct bell *b, uint32_t token, int64_t timeout_ns)
{
    struct timespec ts = {timeout_ns / 1000000000, timeout_ns % 1000000000};

    if (timeout_ns > 0)
        futex(&b->seq, FUTEX_WAIT, token, &ts);
}

void bell_cancel(struct bell *b)
{
    (void)b; /* see above: only the ringer clears the flag */
}

int64_t bell_served(struct bell *b)
{
    int64_t rung, ns;

    if (!atomic_load_explicit(&b->rung_ns, memory_order_relaxed))
        return -1;
    rung = atomic_exchange_explicit(&b->rung_ns, 0, memory_order_relaxed);
    if (!rung)
        return -1;
    ns = clock_mono_ns() - rung;
    return ns > 0 ? ns : 0;
}

bool bell_unserved(const struct bell *b)
{
    b += atomic_load_explicit(&b->forward, memory_order_relaxed);
    return atomic_load_explicit(&b->rung_ns, memory_order_relaxed) != 0;
}

unsigned bell_of_proc(unsigned proc)
{
    return proc < BELL_HOST0 ? proc : BELL_HOST0 - 1;
}

static unsigned slots_of(const struct fabric *f)
{
    return f->slots_per_host ? f->slots_per_host : 1;
}

unsigned lag_of_port(const struct fab_node *host, unsigned port)
{
    unsigned i = BELL_HOST0 + host->dest + port;

    return i < LAGS ? i : LAGS - 1;
}

unsigned bell_room(const struct fabric *f)
{
    return (BELLS - BELL_HOST0) / slots_of(f);
}

/* A host's port uses the bell with the index of its address. rundir refuses fabrics with more
 * addresses than bells. */
unsigned bell_of_slot(const struct fabric *f, const struct fab_node *host, unsigned port,
                      unsigned slot)
{
    unsigned b = BELL_HOST0 + (host->dest + port) * slots_of(f) + slot;

    T_ASSERT_HOT(slot < slots_of(f), "the bell of a process slot that the host does not have");
    return b < BELLS ? b : BELLS - 1;
}
