/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugins/sharp/sharp_priv.h"

#include <errno.h>

static const int8_t types[SHARP_DTYPE_NULL] = {
    [SHARP_DTYPE_UNSIGNED] = TRIB_UINT32,       [SHARP_DTYPE_INT] = TRIB_INT32,
    [SHARP_DTYPE_UNSIGNED_LONG] = TRIB_UINT64,  [SHARP_DTYPE_LONG] = TRIB_INT64,
    [SHARP_DTYPE_FLOAT] = TRIB_FLOAT32,         [SHARP_DTYPE_DOUBLE] = TRIB_FLOAT64,
    [SHARP_DTYPE_UNSIGNED_SHORT] = TRIB_UINT16, [SHARP_DTYPE_SHORT] = TRIB_INT16,
    [SHARP_DTYPE_FLOAT_SHORT] = TRIB_FLOAT16,   [SHARP_DTYPE_BFLOAT16] = TRIB_BFLOAT16,
    [SHARP_DTYPE_UINT8] = TRIB_UINT8,           [SHARP_DTYPE_INT8] = TRIB_INT8,
};

static const int8_t ops[SHARP_OP_NULL] = {
    [SHARP_OP_MAX] = TRIB_MAX,   [SHARP_OP_MIN] = TRIB_MIN,       [SHARP_OP_SUM] = TRIB_SUM,
    [SHARP_OP_PROD] = TRIB_PROD, [SHARP_OP_LAND] = TRIB_LAND,     [SHARP_OP_BAND] = TRIB_BAND,
    [SHARP_OP_LOR] = TRIB_LOR,   [SHARP_OP_BOR] = TRIB_BOR,       [SHARP_OP_LXOR] = TRIB_LXOR,
    [SHARP_OP_BXOR] = TRIB_BXOR, [SHARP_OP_MAXLOC] = TRIB_MAXLOC, [SHARP_OP_MINLOC] = TRIB_MINLOC,
};

bool sharp_type(enum sharp_datatype type, enum trib_type *to)
{
    if ((unsigned)type >= SHARP_DTYPE_NULL)
        return false;
    *to = (enum trib_type)types[type];
    return true;
}

bool sharp_op(enum sharp_reduce_op op, int *to)
{
    if ((unsigned)op >= SHARP_OP_NULL)
        return false;
    *to = ops[op];
    return true;
}

bool sharp_reduces(enum sharp_datatype type, enum sharp_reduce_op op, enum trib_type *t, int *o)
{
    bool real = type == SHARP_DTYPE_FLOAT || type == SHARP_DTYPE_DOUBLE ||
                type == SHARP_DTYPE_FLOAT_SHORT || type == SHARP_DTYPE_BFLOAT16;

    if (!sharp_type(type, t) || !sharp_op(op, o))
        return false;
    if (op == SHARP_OP_MAXLOC || op == SHARP_OP_MINLOC) {
        *t = type == SHARP_DTYPE_FLOAT ? TRIB_FLOAT32_LOC : TRIB_INT32_LOC;
        return type == SHARP_DTYPE_FLOAT || type == SHARP_DTYPE_INT;
    }
    return !real || op <= SHARP_OP_PROD;
}

int sharp_status(int rc)
{
    switch (-rc) {
    case 0:
        return SHARP_COLL_SUCCESS;
    case EINVAL:
    case EFAULT:
    case E2BIG:
    case ENOENT:
        return SHARP_COLL_EINVAL;
    case ENOMEM:
        return SHARP_COLL_ENOMEM;
    case ENOTSUP:
        return SHARP_COLL_ENOT_SUPP;
    case ENODEV:
        return SHARP_COLL_ESESS_INIT;
    case ENOTCONN:
        return SHARP_COLL_ECONN_TREE;
    case ENOSPC:
    case EAGAIN:
        return SHARP_COLL_ENO_RESOURCE;
    default:
        return SHARP_COLL_ERROR;
    }
}

const char *sharp_coll_strerror(int status)
{
    static const char *const text[] = {
        "success",
        "an operation has failed",
        "not supported",
        "out of memory",
        "no aggregation group",
        "no connection to the aggregation tree",
        "the aggregation group cannot be joined",
        "a quota is used up",
        "this process runs on no fabric",
        "no such device",
        "invalid argument",
        "the processes of the job do not agree",
        "nothing known of the aggregation tree",
        "no aggregation node reaches all processes",
        "no such aggregation group",
        "an out-of-band call has failed",
        "no multicast group",
        "the aggregation group cannot be trimmed",
        "a lock was not obtained",
        "locks are not permitted",
        "the switches have refused the resources",
    };

    return status <= 0 && status >= SHARP_COLL_ENO_RESOURCE ? text[-status] : "no such status";
}
