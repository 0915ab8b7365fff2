/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugins/sharp/sharp_priv.h"

bool sharp_window_fits(uint32_t ranks, size_t block, size_t offset, size_t bytes)
{
    size_t whole;

    return !__builtin_mul_overflow((size_t)ranks, block, &whole) && offset <= whole &&
           bytes <= whole - offset;
}

size_t sharp_window_part(uint32_t rank, size_t block, size_t offset, size_t bytes, size_t *at)
{
    size_t begin = rank * block, end = begin + block, last = offset + bytes;

    if (begin < offset)
        begin = offset;
    if (end > last)
        end = last;
    if (begin >= end)
        return 0;
    *at = begin - offset;
    return end - begin;
}

size_t sharp_even_part(uint32_t rank, uint32_t ranks, size_t count, size_t *at)
{
    size_t each = count / ranks, more = count % ranks;

    *at = rank * each + (rank < more ? rank : more);
    return each + (rank < more);
}
