/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Doorbells: a futex word in a page that sleeper and ringer share.
 *
 * No wake-up is lost: the sleeper raises its flag, fences, polls once more, and sleeps on the value that
 * seq had before; the ringer makes frames visible, fences, and reads the flag. One of the two sees the
 * other. The ringer clears the flag and wakes all sleepers; sleepers never clear it. So several threads
 * may sleep on one bell, and a sleeper that is killed costs one needless system call.
 *
 * Of a loop bell, ringers can write only the futex word. The loop's own page says whether it sleeps, and
 * how often it has slept; a ringer rings once for each sleep. A wrong value in the word makes the loop wake
 * at once. A ring is lost only if somebody writes the old value back between the sleeper's last poll and
 * its system call, and then the sleep ends at its timeout.
 */
#include "base/assert.h"
#include "fabric/fabric.h"
#include "machine/shared.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Without FUTEX_PRIVATE_FLAG: sleeper and ringer are different processes. */
static long bell_futex(_Atomic uint32_t *word, int op, uint32_t val, const struct timespec *timeout)
{
    return syscall(SYS_futex, (uint32_t *)word, op, val, timeout, NULL, 0);
}

void bell_stamp(_Atomic int64_t *rung_ns)
{
    int64_t none = 0;

    if (!atomic_load_explicit(rung_ns, memory_order_relaxed))
        atomic_compare_exchange_strong_explicit(rung_ns, &none, clock_mono_ns(),
                                                memory_order_relaxed, memory_order_relaxed);
}

int64_t bell_take_stamp(_Atomic int64_t *rung_ns, int64_t now_ns, int64_t max_ns)
{
    int64_t rung, ns;

    if (!atomic_load_explicit(rung_ns, memory_order_relaxed))
        return -1;
    rung = atomic_exchange_explicit(rung_ns, 0, memory_order_relaxed);
    if (!rung)
        return -1;
    if (rung > now_ns || rung < 0) /* rung after now_ns was read, or an invalid stamp */
        return 0;
    ns = now_ns - rung;
    return ns < max_ns ? ns : max_ns;
}

void bell_wake(struct bell *b)
{
    atomic_thread_fence(memory_order_seq_cst);
    if (!atomic_load_explicit(&b->sleeping, memory_order_relaxed))
        return;
    if (!atomic_exchange_explicit(&b->sleeping, 0, memory_order_acq_rel))
        return;
    atomic_fetch_add_explicit(&b->seq, 1, memory_order_release);
    bell_futex(&b->seq, FUTEX_WAKE, INT_MAX, NULL);
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
        bell_futex(&b->seq, FUTEX_WAIT, token, &ts);
}

void bell_cancel(struct bell *b)
{
    (void)b; /* only the ringer clears the flag, see above */
}

int64_t bell_served(struct bell *b)
{
    int64_t now;

    if (!atomic_load_explicit(&b->rung_ns, memory_order_relaxed))
        return -1;
    now = clock_mono_ns();
    atomic_store_explicit(&b->served_ns, now, memory_order_relaxed);
    return bell_take_stamp(&b->rung_ns, now, INT64_MAX);
}

bool bell_unserved(const struct bell *b)
{
    return atomic_load_explicit(&b->rung_ns, memory_order_relaxed) != 0;
}

/* ---- loop bells ---- */

void loop_bell_ring(const struct switch_page *page, struct loop_bell *b, _Atomic uint32_t *rung)
{
    uint32_t sleep;

    atomic_thread_fence(memory_order_seq_cst);
    sleep = atomic_load_explicit(&page->sleeps, memory_order_relaxed);
    if (!(sleep & 1) || atomic_load_explicit(rung, memory_order_relaxed) == sleep)
        return;
    atomic_fetch_add_explicit(&b->seq, 1, memory_order_release);
    bell_futex(&b->seq, FUTEX_WAKE, INT_MAX, NULL);
    atomic_store_explicit(rung, sleep, memory_order_relaxed);
}

uint32_t loop_bell_prepare(struct switch_page *page, const struct loop_bell *b)
{
    uint32_t token = atomic_load_explicit(&b->seq, memory_order_acquire);

    atomic_store_explicit(&page->sleeps,
                          atomic_load_explicit(&page->sleeps, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    return token;
}

void loop_bell_cancel(struct switch_page *page)
{
    atomic_store_explicit(&page->sleeps,
                          atomic_load_explicit(&page->sleeps, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

void loop_bell_sleep(struct switch_page *page, struct loop_bell *b, uint32_t token,
                     int64_t timeout_ns)
{
    struct timespec ts = {timeout_ns / 1000000000, timeout_ns % 1000000000};

    if (timeout_ns > 0)
        bell_futex(&b->seq, FUTEX_WAIT, token, &ts);
    loop_bell_cancel(page);
}

/* ---- which bell ---- */

static unsigned slots_of(const struct fabric *f)
{
    return f->slots_per_host ? f->slots_per_host : 1;
}

unsigned bell_room(const struct fabric *f)
{
    return (BELLS - BELL_HOST0) / slots_of(f);
}

/* Uses the bells in order of the ports' addresses. rundir refuses fabrics with more addresses than
 * bells. */
unsigned bell_of_slot(const struct fabric *f, const struct fab_node *host, unsigned port,
                      unsigned slot)
{
    unsigned b = BELL_HOST0 + (host->dest + port) * slots_of(f) + slot;

    T_ASSERT_HOT(slot < slots_of(f), "the bell of a process slot that the host does not have");
    return b < BELLS ? b : BELLS - 1;
}
