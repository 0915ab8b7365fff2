/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays that grow by doubling. A command that has no memory for one says so and ends. */
#ifndef TRIB_TRACE_GROW_H
#define TRIB_TRACE_GROW_H

#include "base/shortage/enough.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* The array `at` with room for n elements of `size` bytes and more; *room: what it has room for. */
static inline void *grow_array(void *at, size_t n, size_t *room, size_t size)
{
    size_t want = *room ? *room : 16;
    void *more;

    if (n <= *room)
        return at;
    while (want < n)
        want *= 2;
    if (want > SIZE_MAX / size)
        enough_is_not();
    more = realloc(at, want * size);
    if (!more)
        enough_is_not();
    *room = want;
    return more;
}

#define GROW(array, n, room) ((array) = grow_array((array), (n), (room), sizeof(*(array))))

#endif
