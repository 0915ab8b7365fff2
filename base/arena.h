/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Zeroed memory that is freed all at once: for what is never changed after it was built.
 */
#ifndef TRIB_BASE_ARENA_H
#define TRIB_BASE_ARENA_H

#include <stddef.h>

/* n objects of size bytes. *arena: NULL at first, the owner's. NULL: there is no memory. */
void *arena_alloc(void **arena, size_t n, size_t size);
void arena_free(void *arena);

#endif
