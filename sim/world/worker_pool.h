/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that do one thing together, time and again: its parts are shared out among them, and the
 * caller, who is one of them, goes on when all are done. Each begins with parts of its own, always
 * the same ones, which are in its caches, and goes on with those that nobody has begun: so nobody
 * waits long for a thread that the machine has no core for. Who waits spins for some microseconds
 * and then sleeps.
 *
 * Each has an lcore id of DPDK's, so a pool keeps a cache for it, and counters can be per lcore.
 */
#ifndef TRIB_SIM_WORLD_WORKER_POOL_H
#define TRIB_SIM_WORLD_WORKER_POOL_H

struct worker_pool;

/* n threads, the caller counted, or as many of them as there can be; so many parts. 0 or -ENOMEM.
 */
int worker_pool_create(struct worker_pool **c, unsigned n, unsigned parts);
void worker_pool_destroy(struct worker_pool *c);
unsigned worker_pool_size(const struct worker_pool *c);
unsigned worker_pool_lcore(const struct worker_pool *c, unsigned k);
/* fn(arg, part) for each part, at the same time; what was written before is seen by fn, and what fn
 * wrote by the caller afterwards. */
void worker_pool_run(struct worker_pool *c, void (*fn)(void *arg, unsigned part), void *arg);

#endif
