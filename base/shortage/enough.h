/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory for what a command prints: where there is not enough, the command says so and ends with exit
 * code 1, since a table or picture that lacks a part would be taken for the whole. Not for engines and
 * drivers, which go on without, and not for libraries in programs of others.
 */
#ifndef TRIB_BASE_SHORTAGE_ENOUGH_H
#define TRIB_BASE_SHORTAGE_ENOUGH_H

#include <stddef.h>

/* n elements of so many bytes, all 0; the caller's to free. */
void *enough_memory(size_t n, size_t bytes);
void enough_is_not(void) __attribute__((noreturn));

#endif
