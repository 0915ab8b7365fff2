/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pool of frames of a process, which takes memory as frames are used: a frame's header alone
 * touches a page, and a process with hundreds of links may hold a quarter of a million frames but
 * seldom does.
 */
#ifndef TRIB_IO_POOL_H
#define TRIB_IO_POOL_H

#include <rte_mempool.h>
#include <stdbool.h>

/*
 * A pool of `most` frames (rte_mempool.size) as of frame_pool_create(). whole: all have memory from
 * the start, as NICs need that learn where it is when they start. NULL and rte_errno on failure.
 */
struct rte_mempool *pool_create(const char *name, unsigned most, unsigned cache, bool whole);
/*
 * Gives more frames memory when few are left; call it once a round, in the thread that allocates.
 * Costs a look at a counter when there are enough. Without memory the pool stays as it is, and a line
 * on stderr says so.
 */
void pool_grow(struct rte_mempool *p);

#endif
