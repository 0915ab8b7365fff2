/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows of a vector that consists of a block of each rank. */
#ifndef TRIB_PLUGINS_COMMON_BLOCK_WINDOW_H
#define TRIB_PLUGINS_COMMON_BLOCK_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the rank's block (of `block` bytes) that are in the window [offset, offset + bytes) of
 * the vector; *at: where they start in the window. 0: none. Check block_window_fits() before, so
 * that sums do not overflow. */
size_t block_window_part(uint32_t rank, size_t block, size_t offset, size_t bytes, size_t *at);
bool block_window_fits(uint32_t ranks, size_t block, size_t offset, size_t bytes);

#endif
