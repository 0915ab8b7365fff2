/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory for what a command prints. If there is not enough, the command says so and ends with exit code 1:
 * a table or picture that lacks a part would be taken for the whole. Not for engines and drivers, which
 * must go on, nor for libraries inside programs of others.
 */
#ifndef TRIB_BASE_SHORTAGE_ENOUGH_H
#define TRIB_BASE_SHORTAGE_ENOUGH_H

#include <stddef.h>

/* Allocates n elements of `bytes` bytes, zeroed; the caller frees them. */
void *enough_memory(size_t n, size_t bytes);
void enough_is_not(void) __attribute__((noreturn));

#endif
