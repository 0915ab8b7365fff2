/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of the fake driver: cuda.c (devices, streams, kernels) and memory.c. */
#ifndef TESTS_FAKE_FAKE_H
#define TESTS_FAKE_FAKE_H

#include "host/kernels/kernels.h"

#include <cuda.h>
#include <pthread.h>

#define API  __attribute__((visibility("default"))) CUresult
#define GPUS 64

struct CUctx_st {
    int dev;
    unsigned retained;
};

struct fake {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    size_t used;
    unsigned long devices, memory, delay, lost, given, dmabuf, cc, multicast, ready, drop;
    CUresult failed;
    unsigned left; /* streams, events and modules that were not destroyed */
    struct CUctx_st ctx[GPUS];
};
extern struct fake fake_state;
#define g fake_state

extern __thread CUcontext fake_current; /* NULL: none */

/* With the lock held. The host address of bytes that GPU dev accesses at p. NULL, and the fake
 * fails: it may not access them, or p is a multicast address. */
void *fake_real(const void *p, size_t bytes, int dev);
/* Likewise the host address of each member's bytes of a multicast address; 0: p is none. */
unsigned fake_members(const void *p, size_t bytes, int dev, uint8_t **at);
unsigned fake_memory_left(void); /* pieces, of any kind */
#endif
