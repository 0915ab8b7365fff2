/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that callers register as often as they like. tributary/coll.h knows a range by its address,
 * so one that several handles have is registered once; one that starts where another of other length
 * does is left to be registered by operations. The caller has a lock.
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
/* -EBUSY: an operation uses it, and the handle stays. */
int reg_range_put(struct reg_range *r);
/* Whether [ptr, ptr + bytes) is within it. */
bool reg_range_holds(const struct reg_range *r, const void *ptr, size_t bytes);

#endif
