/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/world/worker_pool.h"

#include "base/assert.h"
#include "base/cacheline.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <rte_lcore.h>
#include <rte_pause.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Partitions of a slice end within some microseconds of each other, and a futex wake-up takes as
 * long: spin first. */
#define SPINS 1000u

/* A counter whose change other threads await. */
struct gate {
    atomic_uint word, sleepers;
} CACHELINE_ALIGNED;

struct pool_member {
    struct worker_pool *c;
    pthread_t thread;
    unsigned k, lcore;
    bool failed;
};

struct worker_pool {
    unsigned n, parts, cpu;     /* threads; parts of a round; the caller's CPU at creation */
    struct pool_member *member; /* [n] the first is the caller */
    atomic_uint *begun;         /* [parts] the last round in which the part was begun */
    void (*fn)(void *arg, unsigned part);
    void *arg;
    atomic_bool over;
    struct gate round; /* number of the round */
    struct gate left;  /* parts of it that have not ended */
};

/* ---- gates ---- */

static void await_change(struct gate *g, unsigned from)
{
    for (unsigned i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(&g->word, memory_order_acquire) != from)
            return;
        rte_pause();
    }
    atomic_fetch_add(&g->sleepers, 1);
    while (atomic_load(&g->word) == from)
        syscall(SYS_futex, &g->word, FUTEX_WAIT_PRIVATE, from, NULL, NULL, 0);
    atomic_fetch_sub(&g->sleepers, 1);
}

/* Called after a change of the word: either a sleeper is seen here, or the sleeper sees the
 * change. */
static void wake(struct gate *g)
{
    if (atomic_load(&g->sleepers))
        syscall(SYS_futex, &g->word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* ---- rounds ---- */

static void done(struct worker_pool *c)
{
    unsigned left = atomic_fetch_sub(&c->left.word, 1);

    T_ASSERT(left, "more parts of a round have ended than it has");
    if (left == 1)
        wake(&c->left);
}

/* Runs the part if no thread has begun it in this round. The round has not ended then, so fn is the
 * round's. A thread that is late finds all parts begun, in this round or in a later one. */
static void try(struct worker_pool *c, unsigned part, unsigned round)
{
    unsigned last = round - 1;

    if (atomic_load_explicit(&c->begun[part], memory_order_relaxed) != last ||
        !atomic_compare_exchange_strong(&c->begun[part], &last, round))
        return;
    c->fn(c->arg, part);
    done(c);
}

/* The thread's own parts, then those that their own threads would run last. */
static void take_part(struct worker_pool *c, unsigned k, unsigned round)
{
    unsigned from = k * c->parts / c->n, to = (k + 1) * c->parts / c->n;

    for (unsigned p = from; p < to; p++)
        try(c, p, round);
    for (unsigned p = c->parts; p-- > 0;)
        if (p < from || p >= to)
            try(c, p, round);
}

static unsigned worker_pool_begin(struct worker_pool *c, unsigned parts)
{
    T_ASSERT(!atomic_load(&c->left.word), "a round begins while parts of the last one run");
    atomic_store(&c->left.word, parts);
    return atomic_fetch_add(&c->round.word, 1) + 1;
}

static void await_all(struct worker_pool *c)
{
    unsigned left;

    while ((left = atomic_load_explicit(&c->left.word, memory_order_acquire)) != 0)
        await_change(&c->left, left);
}

void worker_pool_run(struct worker_pool *c, void (*fn)(void *arg, unsigned part), void *arg)
{
    unsigned round;

    c->fn = fn;
    c->arg = arg;
    round = worker_pool_begin(c, c->parts);
    wake(&c->round);
    take_part(c, 0, round);
    await_all(c);
}

/* Threads begin on different cores: the kernel wakes a thread on the core where it ran last, and if
 * that is the core of a thread that never sleeps for long, it may stay there for seconds. */
static void pool_member_spread(const struct pool_member *m)
{
    unsigned k = m->k, cpu = m->c->cpu;
    cpu_set_t all, one;

    if (sched_getaffinity(0, sizeof(all), &all))
        return;
    while (k) {
        cpu = (cpu + 1) % CPU_SETSIZE;
        k -= CPU_ISSET(cpu, &all) != 0;
    }
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof(one), &one);
    sched_setaffinity(0, sizeof(all), &all);
}

static void *work(void *arg)
{
    struct pool_member *m = arg;
    struct worker_pool *c = m->c;
    unsigned round = 0;

    pool_member_spread(m);
    m->failed = rte_thread_register() != 0;
    m->lcore = rte_lcore_id();
    done(c);
    if (m->failed)
        return NULL;
    for (;;) {
        await_change(&c->round, round);
        round = atomic_load(&c->round.word);
        if (c->over)
            break;
        take_part(c, m->k, round);
    }
    rte_thread_unregister();
    return NULL;
}

/* ---- life ---- */

/* False: the thread could not be started, or DPDK has no lcore id left. */
static bool add_member(struct worker_pool *c)
{
    struct pool_member *m = &c->member[c->n];

    T_ASSERT(!atomic_load(&c->left.word), "a thread joins the pool in the middle of a round");
    *m = (struct pool_member){.c = c, .k = c->n};
    atomic_store(&c->left.word, 1);
    if (pthread_create(&m->thread, NULL, work, m))
        return false;
    await_all(c);
    if (m->failed)
        pthread_join(m->thread, NULL);
    else
        c->n++;
    return !m->failed;
}

static void worker_pool_release(struct worker_pool *c)
{
    free(c->member);
    free(c->begun);
    free(c);
}

int worker_pool_create(struct worker_pool **out, unsigned n, unsigned parts)
{
    struct worker_pool *c = aligned_alloc(CACHELINE, sizeof(*c));

    *out = NULL;
    if (!c)
        return -ENOMEM;
    *c = (struct worker_pool){.n = 1,
                              .parts = parts,
                              .cpu = (unsigned)sched_getcpu(),
                              .member = calloc(n, sizeof(*c->member)),
                              .begun = calloc(parts, sizeof(*c->begun))};
    if (!c->member || !c->begun) {
        worker_pool_release(c);
        return -ENOMEM;
    }
    c->member[0].lcore = rte_lcore_id();
    while (c->n < n && add_member(c))
        ;
    *out = c;
    return 0;
}

void worker_pool_destroy(struct worker_pool *c)
{
    if (!c)
        return;
    c->over = true;
    worker_pool_begin(c, 0);
    wake(&c->round);
    for (unsigned k = 1; k < c->n; k++)
        pthread_join(c->member[k].thread, NULL);
    worker_pool_release(c);
}

unsigned worker_pool_size(const struct worker_pool *c)
{
    return c->n;
}

unsigned worker_pool_lcore(const struct worker_pool *c, unsigned k)
{
    T_ASSERT(k < c->n, "a lane of a thread that the pool does not have");
    return c->member[k].lcore;
}
