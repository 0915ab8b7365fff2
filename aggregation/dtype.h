/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Types of elements and the operations that reduce them: their names and sizes.
 */
#ifndef TRIB_AGGREGATION_DTYPE_H
#define TRIB_AGGREGATION_DTYPE_H

#include <stdbool.h>

/* Values on the wire: never renumber. Names are those of nccl-tests. */
enum dtype {
    DT_INT8,
    DT_UINT8,
    DT_INT32,
    DT_UINT32,
    DT_INT64,
    DT_UINT64,
    DT_FP16,
    DT_FP32,
    DT_FP64,
    DT_BF16,
    DT_FP8_E4M3,
    DT_FP8_E5M2,
    DT_FP32_LOC,  /* value, then int32 index: MPI's MPI_FLOAT_INT */
    DT_INT32_LOC, /* MPI_2INT */
    DT_INT16,
    DT_UINT16,
    DT_COUNT
};
enum redop {
    OP_SUM,
    OP_PROD,
    OP_MIN,
    OP_MAX,
    OP_AVG,
    OP_BAND,
    OP_BOR,
    OP_BXOR,
    OP_MINLOC,
    OP_MAXLOC,
    OP_LAND, /* logical, of integers: 1 or 0 */
    OP_LOR,
    OP_LXOR,
    OP_COUNT
};

const char *dtype_name(enum dtype t); /* "int8" "uint8" "int32" "uint32" "int64" "uint64" "half"
                                         "float" "double" "bfloat16" "f8e4m3" "f8e5m2" "float_int"
                                         "2int" "int16" "uint16" */
int dtype_by_name(const char *s);     /* also fp16, fp32, fp64, bf16; -EINVAL */
bool dtype_is_float(enum dtype t);    /* one number, not a pair */
unsigned dtype_size(enum dtype t);
const char *redop_name(enum redop o);
int redop_by_name(const char *s);

#endif
