/* SPDX-License-Identifier: BSD-3-Clause */
/* The EAL and the frame pool of a simulation, in memory that is private to the process. */
#ifndef TRIB_SIM_WORLD_MEMORY_H
#define TRIB_SIM_WORLD_MEMORY_H

#include <rte_mempool.h>
#include <stdbool.h>

struct memory {
    struct rte_mempool *pool;
    void *at; /* of the pool */
    size_t bytes;
};

/*
 * Page size of malloc(): pages of 2 MiB where the kernel has them, which is faster (dense); or
 * small pages for more than MEMORY_DENSE_RANKS or where memory is short, so that rings of thousands
 * of ports take memory only where they are used.
 */
#define MEMORY_DENSE_RANKS 1024
void memory_lay_out(bool dense);
/* Whether malloc() uses pages of 2 MiB by default. */
bool memory_can_be_dense(void);
/* Starts the EAL and creates a pool of n frames, plus those that caches of threads hold;
 * lengths: frames without space for payloads. NULL: err says how much memory there is and how
 * much is needed. */
struct rte_mempool *memory_frames(struct memory *m, unsigned n, unsigned threads, bool lengths,
                                  char *err, size_t size);
size_t memory_frames_bytes(unsigned n, unsigned threads, bool lengths);
/* Frees the pool and ends the EAL. */
void memory_end(struct memory *m);

#endif
