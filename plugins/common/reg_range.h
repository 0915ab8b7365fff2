/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that callers may register repeatedly. tributary/coll.h identifies a range by its address.
 * So a range with several handles is registered once, and a range that starts where a range of
 * another length does is left for operations to register. The caller holds a lock.
 */
#ifndef TRIB_PLUGINS_COMMON_REG_RANGE_H
#define TRIB_PLUGINS_COMMON_REG_RANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reg_range {
    uint8_t *base;
    size_t bytes;
    unsigned handles;
    bool registered;
    struct reg_range *next;
};

/* NULL: out of memory. */
struct reg_range *reg_range_get(uint8_t *base, size_t bytes);
/* Gives a handle back. -EBUSY: an operation uses the range, and the handle stays valid. */
int reg_range_put(struct reg_range *r);
/* Whether [ptr, ptr + bytes) is within it. */
bool reg_range_holds(const struct reg_range *r, const void *ptr, size_t bytes);

#endif
