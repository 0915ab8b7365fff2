/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts the memory that is allocated in this process, also by shared objects. */
#ifndef TRIB_PROTOCOLS_CHECK_CHECK_HEAP_H
#define TRIB_PROTOCOLS_CHECK_CHECK_HEAP_H

#include <stddef.h>

/* Bytes of allocated blocks; 0 in sanitizer builds, which find leaks themselves. */
size_t heap_bytes(void);

#endif
