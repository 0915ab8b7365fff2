/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes that nobody may write. */
#ifndef TRIB_PLUGINS_CHECK_MARKS_H
#define TRIB_PLUGINS_CHECK_MARKS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define MARK 0xee

/* The first of n bytes that is no mark; n: all are. */
static inline size_t marks_broken(const uint8_t *at, size_t n)
{
    size_t i = 0;

    if (!n || (at[0] == MARK && !memcmp(at, at + 1, n - 1)))
        return n;
    while (at[i] == MARK)
        i++;
    return i;
}

#endif
