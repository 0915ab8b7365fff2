/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which thread makes progress in a real process, and where it sleeps.
 *
 * Progress (receive, timers, send) runs under the HCA's lock, in a program's thread during an empty
 * ibv_poll_cq or in the progress thread. On two cores the two would only compete, so the progress
 * thread parks on a private futex while a program polls. It takes over when no poll has come for
 * HANDOVER_NS, or at once when a caller is about to wait for an event. An empty poll yields twice
 * (on a busy machine the awaited frame has arrived by then), and for longer while frames arrive in
 * quick succession (busy_poll_deadline); then it sleeps on the process's doorbell. The progress
 * thread sleeps there at once: it runs for programs that do not poll, and where such a program
 * spins on memory, a thread that has yielded gets its CPU back only after whole time slices, while
 * a woken sleeper preempts. A bell takes any number of sleepers.
 *
 * Every wait here is bounded, so a lost wake-up costs time and never hangs.
 *
 * Rejected: progress by the thread alone (one wake-up of the thread and one of the program for each
 * frame), and a thread that polls alongside the program (tails of 0.6 to 4 ms on two cores).
 */
#include "host/hca/io/process_priv.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define HANDOVER_NS     500000LL
#define POLL_SLEEP_NS   1000000LL
#define THREAD_SLEEP_NS 100000000LL
#define CHECK_NS        50000000LL
#define ELSEWHERE_NS    1000000LL /* how long unfetched completions keep other pollers awake */
#define YIELDS          2
#define IDLE_SLEEP_NS   10000000LL
#define SPIN_SHARE      256 /* spinning costs an idle program under half a percent of a core */

/* Wall ns until the next deadline, at most max_ns: the time after which a sleep ends by itself. */
static int64_t until_next(struct process_hca *p, int64_t max_ns)
{
    int64_t ns = max_ns, next, d;

    if (p->retry_ns) {
        d = p->retry_ns - clock_mono_ns();
        return d < 1    ? 1
               : d < ns ? d
                        : ns; /* the ring is full: the engine's deadline does not count */
    }
    next = p->ep.next(p->ep.ctx);
    if (next == PS_NEVER)
        return ns;
    d = clock_wall_ns_until(p->sh, next);
    return d < ns ? d : ns;
}

/* Passes changes of port and link to the HCA, at intervals. With the lock held. */
static void process_check_port(struct process_hca *p, int64_t now_ns)
{
    if (p->up == p->connected && !p->lost && now_ns - p->checked_ns <= CHECK_NS)
        return;
    p->checked_ns = now_ns;
    process_say_death(p);
    hca_link_state(p->hca, process_link_is_up(p), clock_fabric_ps(p->sh));
    if (p->up && p->lost) {
        p->up = false;
        hca_port_state(p->hca, false, clock_fabric_ps(p->sh));
    }
    p->lost = !p->connected;
    if (p->up != p->connected) {
        p->up = p->connected;
        hca_port_state(p->hca, p->up, clock_fabric_ps(p->sh));
    }
}

/* ---- the driver ---- */

static void drv_lock(void *ctx)
{
    pthread_mutex_lock(&((struct process_hca *)ctx)->lock);
}

static void drv_unlock(void *ctx)
{
    pthread_mutex_unlock(&((struct process_hca *)ctx)->lock);
}

static long process_thread_futex(_Atomic uint32_t *word, int op, uint32_t val,
                                 const struct timespec *ts)
{
    return syscall(SYS_futex, (uint32_t *)word, op | FUTEX_PRIVATE_FLAG, val, ts, NULL, 0);
}

/* A posted request may set a deadline earlier than the one that the sleeping thread waits for. */
static void drv_kick(void *ctx)
{
    struct process_hca *p = ctx;

    if (!p->retry_ns || clock_mono_ns() >= p->retry_ns)
        process_transmit(p, clock_fabric_ps(p->sh));
    if (p->thread_until_ps && p->ep.next(p->ep.ctx) < p->thread_until_ps)
        process_wake(p);
}

static void set_busy(struct process_hca *p)
{
    int64_t now = clock_mono_ns();

    atomic_store_explicit(&p->busy_poll_until_ns, busy_poll_deadline(p->busy_ns, now),
                          memory_order_relaxed);
    p->busy_ns = now;
}

static bool polls_busily(const struct process_hca *p)
{
    return clock_mono_ns() < atomic_load_explicit(&p->busy_poll_until_ns, memory_order_relaxed);
}

static bool yields_futile(const struct process_hca *p, unsigned yields)
{
    return yields > FUTILE_YIELDS && atomic_load_explicit(&p->page->rung_ns, memory_order_relaxed);
}

/* Progress by a program's thread. true: its completion queues may have something new. */
static bool poll_once(struct process_hca *p)
{
    uint64_t done;
    unsigned n;
    bool again;

    pthread_mutex_lock(&p->lock);
    n = process_progress(p);
    done = hca_completions(p->hca);
    again = n || done != p->seen;
    /* Wake sleepers: the new completions may be for another thread. */
    if (done != p->seen && atomic_load_explicit(&p->sleepers, memory_order_relaxed))
        process_wake(p);
    p->seen = done;
    if (again)
        set_busy(p);
    else if (hca_waiting(p->hca)) /* another queue, which the program may poll next, has some */
        again = clock_mono_ns() - p->busy_ns < ELSEWHERE_NS;
    pthread_mutex_unlock(&p->lock);
    return again;
}

/* Records that the calling thread polls again within ns of wall time; until then the progress
 * thread stays parked. */
static void lease(struct process_hca *p, int64_t now, int64_t ns)
{
    atomic_store_explicit(&p->lease_ns, now + ns + HANDOVER_NS, memory_order_relaxed);
}

/* The longest sleep of an empty poll. It grows with the time since a poll found something: a
 * program without traffic may notice its other work later. */
static int64_t poll_sleep(const struct process_hca *p, int64_t now)
{
    int64_t ns = (now - p->busy_ns) / 32;

    return ns < POLL_SLEEP_NS ? POLL_SLEEP_NS : ns > IDLE_SLEEP_NS ? IDLE_SLEEP_NS : ns;
}

/*
 * Programs rely on cheap empty polls: loops that also serve sockets or shared memory, or the
 * passive side of ucx_perftest, which polls as often as the other side has requests. So after a
 * sleep, polls return at once for a small fraction of the time slept.
 */
static void earn_spin(struct process_hca *p, int64_t slept_from)
{
    int64_t now = clock_mono_ns();

    atomic_store_explicit(&p->spin_until_ns, now + (now - slept_from) / SPIN_SHARE,
                          memory_order_relaxed);
}

/*
 * A program with several ports polls their queues in turn and sleeps on one bell for all of them.
 * It must not sleep in the poll of an idle port while another port has frames or completions. So
 * each poller makes progress on every open port before it sleeps, and returns if a port has
 * completed something since its last check, so that the program gets to that port. The caller holds
 * no lock. *ns is lowered to the other ports' next deadline.
 */
static bool others_moved(struct process_hca *p, int64_t *ns)
{
    struct process_hca *q;
    bool again = false;

    for (unsigned i = 0; (q = process_hca_at(i)) != NULL; i++) {
        if (q == p)
            continue;
        pthread_mutex_lock(&q->lock);
        if (q->start_done && !q->start_rc) {
            uint64_t done;
            unsigned n = process_progress(q);

            done = hca_completions(q->hca);
            if (done != q->seen && atomic_load_explicit(&q->sleepers, memory_order_relaxed))
                process_wake(q);
            again = again || n || done != atomic_exchange(&p->seen_of[i], done);
            *ns = until_next(q, *ns);
        }
        pthread_mutex_unlock(&q->lock);
    }
    return again;
}

/* Extends the leases of the other ports that the program polls, as it polls all equally often. */
static void lease_others(struct process_hca *p, int64_t now, int64_t ns)
{
    struct process_hca *q;

    for (unsigned i = 0; (q = process_hca_at(i)) != NULL; i++)
        if (q != p && atomic_load_explicit(&q->lease_ns, memory_order_relaxed))
            lease(q, now, ns);
}

/* Tells the other ports of a sleep: a program that polls its ports in turn sleeps once a turn. */
static void slept_for_others(struct process_hca *p)
{
    struct process_hca *q;

    for (unsigned i = 0; (q = process_hca_at(i)) != NULL; i++)
        if (q != p)
            atomic_store_explicit(&q->slept_elsewhere, true, memory_order_relaxed);
}

static void sleep_once(struct process_hca *p)
{
    uint32_t token;
    int64_t now, ns, others = IDLE_SLEEP_NS;

    atomic_fetch_add(&p->sleepers, 1);
    token = bell_prepare(p->sleep_bell);
    if (poll_once(p) || others_moved(p, &others)) {
        bell_cancel(p->sleep_bell);
    } else {
        pthread_mutex_lock(&p->lock);
        now = clock_mono_ns();
        process_check_port(p, now);
        ns = until_next(p, poll_sleep(p, now));
        pthread_mutex_unlock(&p->lock);
        ns = others < ns ? others : ns;
        lease(p, now, ns);
        lease_others(p, now, ns);
        bell_sleep(p->sleep_bell, token, ns);
        earn_spin(p, now);
        slept_for_others(p);
        poll_once(p);
    }
    atomic_fetch_sub(&p->sleepers, 1);
}

static void drv_idle(void *ctx)
{
    struct process_hca *p = ctx;
    int64_t now = clock_mono_ns();

    lease(p, now, 0);
    if (now < atomic_load_explicit(&p->spin_until_ns, memory_order_relaxed) ||
        atomic_exchange_explicit(&p->slept_elsewhere, false, memory_order_relaxed)) {
        poll_once(p);
        return;
    }
    for (unsigned i = 0; i < YIELDS || (polls_busily(p) && !yields_futile(p, i)); i++) {
        if (poll_once(p))
            return;
        sched_yield();
    }
    sleep_once(p);
    lease(p, clock_mono_ns(), 0);
}

static void drv_block(void *ctx)
{
    struct process_hca *p = ctx;

    atomic_store(&p->lease_ns, 0);
    if (!atomic_load(&p->parked))
        return;
    atomic_fetch_add(&p->park, 1);
    process_thread_futex(&p->park, FUTEX_WAKE, 1, NULL);
}

struct hca_driver process_driver(struct process_hca *p)
{
    return (struct hca_driver){.lock = drv_lock,
                               .unlock = drv_unlock,
                               .kick = drv_kick,
                               .idle = drv_idle,
                               .block = drv_block,
                               .check_memory = process_check_memory,
                               .prefetch = process_prefetch,
                               .say = process_say,
                               .guarded = true,
                               .ctx = p};
}

/* ---- the progress thread ---- */

/* Waits while programs' threads poll. Returns whether it waited. */
static bool park(struct process_hca *p)
{
    uint32_t token = atomic_load(&p->park);
    int64_t until, left;
    struct timespec ts;

    atomic_store(&p->parked, 1);
    until = atomic_load(&p->lease_ns);
    left = until ? until - clock_mono_ns() : 0;
    if (left > 0) {
        ts = (struct timespec){0, left};
        process_thread_futex(&p->park, FUTEX_WAIT, token, &ts);
    }
    atomic_store(&p->parked, 0);
    return left > 0;
}

static void sleep_on_bell(struct process_hca *p)
{
    uint32_t token = bell_prepare(p->bell);
    int64_t now = clock_mono_ns(), ns;
    unsigned n;

    pthread_mutex_lock(&p->lock);
    n = process_progress(p);
    if (n)
        set_busy(p);
    process_check_port(p, now);
    ns = until_next(p, THREAD_SLEEP_NS);
    p->thread_until_ps = n ? 0 : ns < THREAD_SLEEP_NS ? p->ep.next(p->ep.ctx) : PS_NEVER;
    pthread_mutex_unlock(&p->lock);
    if (n) {
        bell_cancel(p->bell);
        return;
    }
    bell_sleep(p->bell, token, ns);
    pthread_mutex_lock(&p->lock);
    p->thread_until_ps = 0;
    pthread_mutex_unlock(&p->lock);
}

void *progress_thread(void *arg)
{
    struct process_hca *p = arg;
    int rc;

    pthread_mutex_lock(&p->lock);
    while (!p->start_done)
        pthread_cond_wait(&p->started, &p->lock);
    rc = p->start_rc;
    pthread_mutex_unlock(&p->lock);
    while (!rc) {
        if (!park(p))
            sleep_on_bell(p);
    }
    return NULL;
}
