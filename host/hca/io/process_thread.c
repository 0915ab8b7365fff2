/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who makes progress in a real process, and where it sleeps.
 *
 * Progress (receive, timers, send) is made under the HCA's lock by whoever comes: a program's
 * thread in an empty ibv_poll_cq, or the progress thread. On two cores the two would only take
 * turns at each other's expense, so the thread parks on a private futex for as long as somebody
 * polls, and takes over when nobody has for HANDOVER_NS, or at once when a caller says that it is
 * going to wait for an event. An empty poll gives way twice (on a busy machine the frame it waits
 * for is then there), and for longer while frames come one soon after the other (busy_poll_deadline); then
 * it sleeps on the process's doorbell. The thread sleeps there at once: it runs for programs that do
 * not poll, and where one of those reads memory until it changes, a thread that has yielded gets its
 * CPU back after whole time slices, while one that was asleep interrupts. A bell takes any number of
 * sleepers.
 * Nothing here ever waits without a bound, so a lost wake-up could cost time but not life.
 *
 * Rejected: progress by the thread alone (a wake-up of the thread and one of the program for each
 * frame), and a thread that polls beside the program (tails of 0.6 to 4 ms on two cores).
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
#define ELSEWHERE_NS    1000000LL /* how long what nobody fetches keeps others from sleeping */
#define YIELDS          2
#define IDLE_SLEEP_NS   10000000LL
#define SPIN_SHARE      256 /* so spinning costs an idle program under half a percent of a core */
#define RETRY_MIN_NS    50000LL
#define RX_BURSTS       4

/* ---- moving frames: with the lock held ---- */

static unsigned receive(struct rim_hca *r, int64_t now_ps)
{
    struct rte_mbuf *m[RIM_BURST];
    unsigned total = 0;
    int64_t late;

    for (unsigned q = 0; q < ENDPOINT_QUEUES; q++)
        for (unsigned b = 0; b < RX_BURSTS; b++) {
            uint16_t n = rim_port_rx(r->port, (uint16_t)q, m, RIM_BURST), k;

            if (!n)
                break;
            k = r->ep.input(r->ep.ctx, m, n, now_ps);
            rte_pktmbuf_free_bulk(m + k, n - k);
            total += n;
            if (n < RIM_BURST)
                break;
        }
    /* What was announced before an empty look was served by an earlier one. */
    late = bell_served(r->bell);
    rim_served(r, late);
    if (total && late >= 0)
        lag_record(r->lag, late, total);
    return total;
}

static void drop_output(struct rim_hca *r, int64_t now_ps)
{
    struct rte_mbuf *m[RIM_BURST];

    for (unsigned q = 0; q < ENDPOINT_QUEUES; q++) {
        uint16_t n;

        rte_pktmbuf_free_bulk(r->stash[q], r->n_stash[q]);
        r->n_stash[q] = 0;
        while ((n = r->ep.output(r->ep.ctx, (enum endpoint_queue)q, m, RIM_BURST, now_ps)))
            rte_pktmbuf_free_bulk(m, n);
    }
}

/* One queue until it is empty or its ring full. Returns how many frames went. */
static unsigned send_queue(struct rim_hca *r, enum endpoint_queue q, int64_t now_ps)
{
    unsigned sent = 0;

    for (;;) {
        uint16_t n = r->n_stash[q], k;

        if (!n)
            n = r->ep.output(r->ep.ctx, q, r->stash[q], RIM_BURST, now_ps);
        if (!n)
            return sent;
        k = rim_port_tx(r->port, (uint16_t)q, r->stash[q], n);
        sent += k;
        r->n_stash[q] = n - k;
        if (k == n)
            continue;
        for (uint16_t i = 0; i < n - k; i++)
            r->stash[q][i] = r->stash[q][i + k];
        return sent;
    }
}

static unsigned transmit(struct rim_hca *r, int64_t now_ps)
{
    unsigned sent = 0;
    bool full = false;

    if (!r->up) {
        drop_output(r, now_ps);
        return 0;
    }
    for (unsigned q = 0; q < ENDPOINT_QUEUES; q++) {
        sent += send_queue(r, (enum endpoint_queue)q, now_ps);
        full |= r->n_stash[q] > 0;
    }
    if (sent) {
        bell_ring(r->peer);
        r->sent_ns = clock_mono_ns();
    }
    /* The NIC rings when it makes room in a full ring; this is only in case. */
    r->retry_ns = full ? clock_mono_ns() + rim_ring_ns(r, RETRY_MIN_NS, POLL_SLEEP_NS) : 0;
    return sent;
}

static unsigned progress(struct rim_hca *r)
{
    int64_t now_ps = clock_fabric_ps(r->sh);
    unsigned n = receive(r, now_ps);

    if (r->ep.next(r->ep.ctx) <= now_ps)
        r->ep.tick(r->ep.ctx, now_ps);
    n += transmit(r, now_ps);
    rim_fault_tell(r->hca);
    return n;
}

/* Wall ns until there is something to do without a bell. */
static int64_t until_next(struct rim_hca *r, int64_t max_ns)
{
    int64_t ns = max_ns, next, d;

    if (r->retry_ns) {
        d = r->retry_ns - clock_mono_ns();
        return d < 1    ? 1
               : d < ns ? d
                        : ns; /* the engine may have more, but there is no room for it */
    }
    next = r->ep.next(r->ep.ctx);
    if (next == PS_NEVER)
        return ns;
    d = clock_wall_ns_until(r->sh, next);
    return d < ns ? d : ns;
}

void rim_check_port(struct rim_hca *r, int64_t now_ns)
{
    if (r->up == r->connected && !r->lost && now_ns - r->checked_ns <= CHECK_NS)
        return;
    r->checked_ns = now_ns;
    hca_link_state(r->hca, !atomic_load(r->link_down), clock_fabric_ps(r->sh));
    if (r->up && r->lost) {
        r->up = false;
        hca_port_state(r->hca, false, clock_fabric_ps(r->sh));
    }
    r->lost = !r->connected;
    if (r->up != r->connected) {
        r->up = r->connected;
        hca_port_state(r->hca, r->up, clock_fabric_ps(r->sh));
    }
}

/* ---- the driver ---- */

static void drv_lock(void *ctx)
{
    pthread_mutex_lock(&((struct rim_hca *)ctx)->lock);
}

static void drv_unlock(void *ctx)
{
    pthread_mutex_unlock(&((struct rim_hca *)ctx)->lock);
}

static long futex(_Atomic uint32_t *word, int op, uint32_t val, const struct timespec *ts)
{
    return syscall(SYS_futex, (uint32_t *)word, op | FUTEX_PRIVATE_FLAG, val, ts, NULL, 0);
}

/* What was posted may have to be seen again earlier than the sleeping thread knows. */
static void drv_kick(void *ctx)
{
    struct rim_hca *r = ctx;

    if (!r->retry_ns || clock_mono_ns() >= r->retry_ns)
        transmit(r, clock_fabric_ps(r->sh));
    if (r->thread_until_ps && r->ep.next(r->ep.ctx) < r->thread_until_ps)
        bell_ring(r->bell);
}

static void set_busy(struct rim_hca *r)
{
    int64_t now = clock_mono_ns();

    atomic_store_explicit(&r->busy_poll_until_ns, busy_poll_deadline(r->busy_ns, now),
                          memory_order_relaxed);
    r->busy_ns = now;
}

static bool hasty(const struct rim_hca *r)
{
    return clock_mono_ns() < atomic_load_explicit(&r->busy_poll_until_ns, memory_order_relaxed);
}

static bool yields_futile(const struct rim_hca *r, unsigned yields)
{
    return yields > FUTILE_YIELDS && bell_unserved(r->peer);
}

/* Progress by a program's thread. true: it has a reason to look at its completion queues again. */
static bool poll_once(struct rim_hca *r)
{
    uint64_t done;
    unsigned n;
    bool again;

    pthread_mutex_lock(&r->lock);
    n = progress(r);
    done = hca_completions(r->hca);
    again = n || done != r->seen;
    /* Another thread's completion may be among them, and that thread on the bell. */
    if (done != r->seen && atomic_load_explicit(&r->sleepers, memory_order_relaxed))
        bell_ring(r->bell);
    r->seen = done;
    if (again)
        set_busy(r);
    else if (hca_waiting(r->hca)) /* in another queue, maybe the one that is polled next */
        again = clock_mono_ns() - r->busy_ns < ELSEWHERE_NS;
    pthread_mutex_unlock(&r->lock);
    return again;
}

/* The calling thread will poll again within ns of wall time; until then the progress thread may
 * stay parked. */
static void lease(struct rim_hca *r, int64_t now, int64_t ns)
{
    atomic_store_explicit(&r->lease_ns, now + ns + HANDOVER_NS, memory_order_relaxed);
}

/* How long an empty poll sleeps at most: a program that has found nothing for long can wait longer
 * for what is not verbs. */
static int64_t poll_sleep(const struct rim_hca *r, int64_t now)
{
    int64_t ns = (now - r->busy_ns) / 32;

    return ns < POLL_SLEEP_NS ? POLL_SLEEP_NS : ns > IDLE_SLEEP_NS ? IDLE_SLEEP_NS : ns;
}

/*
 * Programs count on a cheap empty poll: a loop that serves sockets or shared memory besides, or the
 * passive side of ucx_perftest, which polls as often as the other side has requests. So a sleep
 * pays for a while in which polls return at once: a small share of the time slept.
 */
static void earn_spin(struct rim_hca *r, int64_t slept_from)
{
    int64_t now = clock_mono_ns();

    atomic_store_explicit(&r->spin_until_ns, now + (now - slept_from) / SPIN_SHARE,
                          memory_order_relaxed);
}

/*
 * A program with several ports polls their queues in turn, and sleeps on one bell for all of them:
 * it must not sleep on a port without anything while another has frames or completions. Each poller
 * looks at every port that is open before it sleeps; what has been completed there since its last
 * look is a reason to return, so that the program gets to that port. Never with a lock held. *ns:
 * lowered to when a port has something to do by itself.
 */
static bool others_moved(struct rim_hca *r, int64_t *ns)
{
    struct rim_hca *q;
    bool again = false;

    for (unsigned i = 0; (q = rim_hca_at(i)) != NULL; i++) {
        if (q == r)
            continue;
        pthread_mutex_lock(&q->lock);
        if (q->start_done && !q->start_rc) {
            uint64_t done;
            unsigned n = progress(q);

            done = hca_completions(q->hca);
            if (done != q->seen && atomic_load_explicit(&q->sleepers, memory_order_relaxed))
                bell_ring(q->bell);
            again = again || n || done != atomic_exchange(&r->told[i], done);
            *ns = until_next(q, *ns);
        }
        pthread_mutex_unlock(&q->lock);
    }
    return again;
}

/* For the ports whose threads are parked because the program polls them: it polls this one too. */
static void lease_others(struct rim_hca *r, int64_t now, int64_t ns)
{
    struct rim_hca *q;

    for (unsigned i = 0; (q = rim_hca_at(i)) != NULL; i++)
        if (q != r && atomic_load_explicit(&q->lease_ns, memory_order_relaxed))
            lease(q, now, ns);
}

static void sleep_once(struct rim_hca *r)
{
    uint32_t token;
    int64_t now, ns, others = IDLE_SLEEP_NS;

    atomic_fetch_add(&r->sleepers, 1);
    token = bell_prepare(r->rest);
    if (poll_once(r) || others_moved(r, &others)) {
        bell_cancel(r->rest);
    } else {
        pthread_mutex_lock(&r->lock);
        now = clock_mono_ns();
        rim_check_port(r, now);
        ns = until_next(r, poll_sleep(r, now));
        pthread_mutex_unlock(&r->lock);
        ns = others < ns ? others : ns;
        lease(r, now, ns);
        lease_others(r, now, ns);
        bell_sleep(r->rest, token, ns);
        earn_spin(r, now);
        poll_once(r);
    }
    atomic_fetch_sub(&r->sleepers, 1);
}

static void drv_idle(void *ctx)
{
    struct rim_hca *r = ctx;
    int64_t now = clock_mono_ns();

    lease(r, now, 0);
    if (now < atomic_load_explicit(&r->spin_until_ns, memory_order_relaxed)) {
        poll_once(r);
        return;
    }
    for (unsigned i = 0; i < YIELDS || (hasty(r) && !yields_futile(r, i)); i++) {
        if (poll_once(r))
            return;
        sched_yield();
    }
    sleep_once(r);
    lease(r, clock_mono_ns(), 0);
}

static void drv_block(void *ctx)
{
    struct rim_hca *r = ctx;

    atomic_store(&r->lease_ns, 0);
    if (!atomic_load(&r->parked))
        return;
    atomic_fetch_add(&r->park, 1);
    futex(&r->park, FUTEX_WAKE, 1, NULL);
}

struct hca_driver rim_driver(struct rim_hca *r)
{
    return (struct hca_driver){.lock = drv_lock,
                               .unlock = drv_unlock,
                               .kick = drv_kick,
                               .idle = drv_idle,
                               .block = drv_block,
                               .check_memory = rim_check_memory,
                               .prefetch = rim_prefetch,
                               .say = rim_say,
                               .guarded = true,
                               .ctx = r};
}

/* ---- the progress thread ---- */

/* Waits while others poll. Returns whether it did. */
static bool park(struct rim_hca *r)
{
    uint32_t token = atomic_load(&r->park);
    int64_t until, left;
    struct timespec ts;

    atomic_store(&r->parked, 1);
    until = atomic_load(&r->lease_ns);
    left = until ? until - clock_mono_ns() : 0;
    if (left > 0) {
        ts = (struct timespec){0, left};
        futex(&r->park, FUTEX_WAIT, token, &ts);
    }
    atomic_store(&r->parked, 0);
    return left > 0;
}

static void sleep_on_bell(struct rim_hca *r)
{
    uint32_t token = bell_prepare(r->bell);
    int64_t now = clock_mono_ns(), ns;
    unsigned n;

    pthread_mutex_lock(&r->lock);
    n = progress(r);
    if (n)
        set_busy(r);
    rim_check_port(r, now);
    ns = until_next(r, THREAD_SLEEP_NS);
    r->thread_until_ps = n ? 0 : ns < THREAD_SLEEP_NS ? r->ep.next(r->ep.ctx) : PS_NEVER;
    pthread_mutex_unlock(&r->lock);
    if (n) {
        bell_cancel(r->bell);
        return;
    }
    bell_sleep(r->bell, token, ns);
    pthread_mutex_lock(&r->lock);
    r->thread_until_ps = 0;
    pthread_mutex_unlock(&r->lock);
}

void *rim_thread(void *arg)
{
    struct rim_hca *r = arg;
    int rc;

    pthread_mutex_lock(&r->lock);
    while (!r->start_done)
        pthread_cond_wait(&r->started, &r->lock);
    rc = r->start_rc;
    pthread_mutex_unlock(&r->lock);
    while (!rc) {
        if (!park(r))
            sleep_on_bell(r);
    }
    return NULL;
}
