/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies from and to memory that may disappear at any time: a program may unmap or protect
 * registered memory, or truncate its file. Real adapters pin the pages; here the owner's handler of
 * SIGSEGV and SIGBUS calls guard_take(), and the copy returns false.
 *
 * Without rnic_cfg.guarded copies are plain ones.
 */
#ifndef TRIB_ROCE_GUARD_H
#define TRIB_ROCE_GUARD_H

#include "roce/icrc.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* `user` of dst and src is the one that may go away. False: it has, and what dst has is undefined.
 */
bool guard_copy(void *dst, const void *src, size_t n, const void *user);
/* The same, with the CRC from *crc on (roce_crc_copy). */
bool guard_crc_copy(uint32_t *crc, void *dst, const void *src, size_t n);
/* Fetch and add, or compare and swap, of an aligned word; *orig: what was there. */
bool guard_fetch_add(uint64_t *p, uint64_t add, uint64_t *orig);
bool guard_cmp_swap(uint64_t *p, uint64_t compare, uint64_t swap, uint64_t *orig);
bool guard_store(uint64_t *p, uint64_t v);

/*
 * For a signal handler, with the address that could not be reached: does not return where the
 * thread is in one of the above and the address is in its memory.
 */
void guard_take(const void *at);

/*
 * For a fault whose address is not told, as of one that the processor does not have (x86-64: not
 * canonical): the first byte of the memory that this thread is in a copy of, NULL where it is in
 * none.
 */
const void *guard_fault_address(void);

#endif
