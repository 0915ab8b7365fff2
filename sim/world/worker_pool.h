/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A worker pool: runs the parts of a round on several threads, one of which is the caller, and
 * returns when all parts have ended. A thread begins with its own parts, the same ones each round,
 * whose data is in its caches, and goes on with those that no other thread has begun: a thread that
 * gets no core delays nobody for long. A waiting thread spins for some microseconds, then sleeps.
 *
 * Each thread has an lcore id of DPDK's, so a mempool keeps a cache for it, and counters can be per
 * lcore.
 */
#ifndef TRIB_SIM_WORLD_WORKER_POOL_H
#define TRIB_SIM_WORLD_WORKER_POOL_H

struct worker_pool;

/* n >= 1 threads, the caller counted, or as many of them as can be started; parts of a round. 0 or
 * -ENOMEM. */
int worker_pool_create(struct worker_pool **c, unsigned n, unsigned parts);
void worker_pool_destroy(struct worker_pool *c);
unsigned worker_pool_size(const struct worker_pool *c);
unsigned worker_pool_lcore(const struct worker_pool *c, unsigned k);
/* Calls fn(arg, part) for each part, in parallel. fn sees what the caller wrote before, the caller
 * afterwards what fn wrote. */
void worker_pool_run(struct worker_pool *c, void (*fn)(void *arg, unsigned part), void *arg);

#endif
