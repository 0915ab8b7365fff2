/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugins/common/block_window.h"

bool block_window_fits(uint32_t ranks, size_t block, size_t offset, size_t bytes)
{
    size_t whole;

    return !__builtin_mul_overflow((size_t)ranks, block, &whole) && offset <= whole &&
           bytes <= whole - offset;
}

size_t block_window_part(uint32_t rank, size_t block, size_t offset, size_t bytes, size_t *at)
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
