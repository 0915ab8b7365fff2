/* SPDX-License-Identifier: BSD-3-Clause */
#include "aggregation/dtype.h"

#include <errno.h>
#include <stddef.h>
#include <strings.h>

static const struct {
    const char *name, *alias;
    unsigned size;
} dtypes[DT_COUNT] = {
    [DT_INT8] = {"int8", "i8", 1},
    [DT_UINT8] = {"uint8", "u8", 1},
    [DT_INT32] = {"int32", "int", 4},
    [DT_UINT32] = {"uint32", "u32", 4},
    [DT_INT64] = {"int64", "i64", 8},
    [DT_UINT64] = {"uint64", "u64", 8},
    [DT_FP16] = {"half", "fp16", 2},
    [DT_FP32] = {"float", "fp32", 4},
    [DT_FP64] = {"double", "fp64", 8},
    [DT_BF16] = {"bfloat16", "bf16", 2},
    [DT_FP8_E4M3] = {"f8e4m3", "fp8_e4m3", 1},
    [DT_FP8_E5M2] = {"f8e5m2", "fp8_e5m2", 1},
    [DT_FP32_LOC] = {"float_int", "fp32_loc", 8},
    [DT_INT32_LOC] = {"2int", "int32_loc", 8},
    [DT_INT16] = {"int16", "i16", 2},
    [DT_UINT16] = {"uint16", "u16", 2},
};
static const char *const redops[OP_COUNT] = {"sum",  "prod", "min",  "max",    "avg",
                                             "band", "bor",  "bxor", "minloc", "maxloc",
                                             "land", "lor",  "lxor"};

bool dtype_is_float(enum dtype t)
{
    return t == DT_FP16 || t == DT_FP32 || t == DT_FP64 || t == DT_BF16 || t == DT_FP8_E4M3 ||
           t == DT_FP8_E5M2;
}

const char *dtype_name(enum dtype t)
{
    return (unsigned)t < DT_COUNT ? dtypes[t].name : "?";
}

int dtype_by_name(const char *s)
{
    for (int t = 0; t < DT_COUNT; t++)
        if (!strcasecmp(s, dtypes[t].name) || !strcasecmp(s, dtypes[t].alias))
            return t;
    return -EINVAL;
}

unsigned dtype_size(enum dtype t)
{
    return (unsigned)t < DT_COUNT ? dtypes[t].size : 0;
}

const char *redop_name(enum redop o)
{
    return (unsigned)o < OP_COUNT ? redops[o] : "?";
}

int redop_by_name(const char *s)
{
    for (int o = 0; o < OP_COUNT; o++)
        if (!strcasecmp(s, redops[o]))
            return o;
    return -EINVAL;
}
