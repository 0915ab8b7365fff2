/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts what is allocated in this process, by shared objects too. */
#ifndef TRIB_PROTOCOLS_CHECK_CHECK_HEAP_H
#define TRIB_PROTOCOLS_CHECK_CHECK_HEAP_H

#include <stddef.h>

/* Bytes of blocks that are allocated; 0 in sanitizer builds, which count for themselves. */
size_t heap_bytes(void);

#endif
