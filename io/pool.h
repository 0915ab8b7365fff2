/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pool of frames of a process. It takes memory only as frames are used: initialising a frame's
 * header alone would touch its page, and a process with hundreds of links may hold a quarter of a
 * million frames but seldom does.
 */
#ifndef TRIB_IO_POOL_H
#define TRIB_IO_POOL_H

#include <rte_mempool.h>
#include <stdbool.h>

/*
 * Makes a pool of `most` frames (rte_mempool.size), like frame_pool_create(). whole: all frames get
 * memory now, for NICs that have to learn its address when they start. NULL and rte_errno on failure.
 */
struct rte_mempool *pool_create(const char *name, unsigned most, unsigned cache, bool whole);
/*
 * Adds memory when few frames are free. Call it once a round, in the thread that allocates; it costs
 * one read of a counter if enough are free. Without memory the pool stays as it is, and a line on stderr
 * says so.
 */
void pool_grow(struct rte_mempool *p);

#endif
