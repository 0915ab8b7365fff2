/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Zeroed memory that is freed all at once, for data that does not change once it is built.
 */
#ifndef TRIB_BASE_ARENA_H
#define TRIB_BASE_ARENA_H

#include <stddef.h>

/* Allocates n objects of size bytes. *arena: the owner's, NULL at first. Returns NULL when out of
 * memory. */
void *arena_alloc(void **arena, size_t n, size_t size);
void arena_free(void *arena);

#endif
