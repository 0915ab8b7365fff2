/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies from and to memory that may disappear at any time: a program may unmap or protect
 * registered memory, or truncate its file. Real adapters pin the pages; here the owner's handler of
 * SIGSEGV and SIGBUS calls guard_take(), and the copy returns false.
 *
 * Without rnic_cfg.guarded, copies are not guarded.
 */
#ifndef TRIB_ROCE_GUARD_H
#define TRIB_ROCE_GUARD_H

#include "roce/icrc.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Copies. user: dst or src, whichever may disappear. False: it has, and the contents of dst are
 * undefined. */
bool guard_copy(void *dst, const void *src, size_t n, const void *user);
/* The same; updates the CRC in *crc (roce_crc_copy). */
bool guard_crc_copy(uint32_t *crc, void *dst, const void *src, size_t n);
/* Fetch and add, or compare and swap, of an aligned word. *orig: its value before. */
bool guard_fetch_add(uint64_t *p, uint64_t add, uint64_t *orig);
bool guard_cmp_swap(uint64_t *p, uint64_t compare, uint64_t swap, uint64_t *orig);
bool guard_store(uint64_t *p, uint64_t v);

/*
 * For a signal handler, with the address of the fault: does not return if the thread is in one of
 * the functions above and the address is in the guarded memory.
 */
void guard_take(const void *at);

/*
 * For a fault without an address, such as that of a non-canonical one on x86-64: the first byte of the
 * memory that this thread is copying; NULL: it is copying none.
 */
const void *guard_fault_address(void);

#endif
