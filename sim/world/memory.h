/* SPDX-License-Identifier: BSD-3-Clause */
/* The EAL and the one pool of frames of a simulation: memory of this process alone. */
#ifndef TRIB_SIM_WORLD_MEMORY_H
#define TRIB_SIM_WORLD_MEMORY_H

#include <rte_mempool.h>
#include <stdbool.h>

struct memory {
    struct rte_mempool *pool;
    void *at; /* of the pool */
    size_t bytes;
};

/* The EAL on one core, without privileges, huge pages, devices or files that others see; 0, or -1
 * and rte_errno. */
int memory_start_eal(unsigned mib);
void memory_end_eal(void);
/*
 * How malloc() lays out what a simulation takes: together, in pages of 2 MiB where there are any,
 * which is faster, or, for more than MEMORY_DENSE_RANKS or where memory is short, in small pages,
 * so that of rings of thousands of ports only what is used takes memory.
 */
#define MEMORY_DENSE_RANKS 1024
void memory_lay_out(bool dense);
/* Whether malloc() has pages of 2 MiB, if it is left as it is. */
bool memory_can_be_dense(void);
/* A pool of n frames, and some more that threads keep at hand, the EAL started for it; lengths:
 * frames without room for payloads. NULL: err says what there is and what would be needed. */
struct rte_mempool *memory_frames(struct memory *m, unsigned n, unsigned threads, bool lengths,
                                  char *err, size_t size);
size_t memory_frames_bytes(unsigned n, unsigned threads, bool lengths);
/* Frees the pool, too. */
void memory_end(struct memory *m);

#endif
