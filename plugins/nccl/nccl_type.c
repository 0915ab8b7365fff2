/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugins/nccl/nccl_coll.h"

static const int8_t types[NCCL_TYPES] = {
    [NCCL_INT8] = TRIB_INT8,
    [NCCL_UINT8] = TRIB_UINT8,
    [NCCL_INT32] = TRIB_INT32,
    [NCCL_UINT32] = TRIB_UINT32,
    [NCCL_INT64] = TRIB_INT64,
    [NCCL_UINT64] = TRIB_UINT64,
    [NCCL_FLOAT16] = TRIB_FLOAT16,
    [NCCL_FLOAT32] = TRIB_FLOAT32,
    [NCCL_FLOAT64] = TRIB_FLOAT64,
    [NCCL_BFLOAT16] = TRIB_BFLOAT16,
    [NCCL_FLOAT8E4M3] = TRIB_FLOAT8_E4M3,
    [NCCL_FLOAT8E5M2] = TRIB_FLOAT8_E5M2,
};

static const int8_t ops[NCCL_OPS] = {
    [NCCL_SUM] = TRIB_SUM, [NCCL_PROD] = TRIB_PROD, [NCCL_MAX] = TRIB_MAX,
    [NCCL_MIN] = TRIB_MIN, [NCCL_AVG] = -1,
};

bool nccl_type_of(int type, enum trib_type *to)
{
    if (type < 0 || type >= NCCL_TYPES)
        return false;
    *to = (enum trib_type)types[type];
    return true;
}

bool nccl_op_of(int op, int *to)
{
    if (op < 0 || op >= NCCL_OPS || ops[op] < 0)
        return false;
    *to = ops[op];
    return true;
}

int nccl_reduce_support(int type, int op, int *supported)
{
    enum trib_type t;
    int o;

    if (!supported)
        return nccl_refuse(NCCL_INVALID_ARGUMENT, "reduceSupport: found no place for the answer");
    *supported = nccl_type_of(type, &t) && nccl_op_of(op, &o);
    return NCCL_SUCCESS;
}
