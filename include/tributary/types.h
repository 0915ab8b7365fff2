/* SPDX-License-Identifier: BSD-3-Clause */
/* Types of elements and reductions, for all public interfaces of Tributary. */
#ifndef TRIBUTARY_TYPES_H
#define TRIBUTARY_TYPES_H

#include <stdint.h>

enum trib_type {
    TRIB_INT8,
    TRIB_UINT8,
    TRIB_INT32,
    TRIB_UINT32,
    TRIB_INT64,
    TRIB_UINT64,
    TRIB_FLOAT16,
    TRIB_FLOAT32,
    TRIB_FLOAT64,
    TRIB_BFLOAT16,
    TRIB_TYPES, /* the types of aggregation protocols; the collectives have these too: */
    TRIB_FLOAT8_E4M3 = TRIB_TYPES,
    TRIB_FLOAT8_E5M2,
    TRIB_FLOAT32_LOC, /* a value, then an int32_t index: for TRIB_MINLOC and TRIB_MAXLOC */
    TRIB_INT32_LOC,
    TRIB_INT16,
    TRIB_UINT16,
    TRIB_ALL_TYPES
};
enum trib_sum { TRIB_SUM, TRIB_PROD, TRIB_MIN, TRIB_MAX, TRIB_REDUCTIONS };

/* Bytes of an element. */
static inline uint32_t trib_size(enum trib_type t)
{
    static const uint8_t size[TRIB_ALL_TYPES] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1, 8, 8, 2, 2};

    return (unsigned)t < TRIB_ALL_TYPES ? size[t] : 0;
}

#endif
