/*
 * Arithmetic of reduction: one [op][dtype] table of kernels, each one pass over N inputs and one
 * output. Used by the aggregation nodes and by the host's algorithms alike.
 *
 * The rule (what "exact" means): out[i] = in[0][i] op in[1][i] op ... op in[n-1][i], evaluated from
 * left to right, in the type itself for fp32, fp64 and integers (integers wrap, two's complement),
 * in fp32 with one rounding (ties to even) at the end for fp16, bf16 and the 8-bit floats. A NaN
 * result is the canonical quiet NaN of its type (sign 0, only the top mantissa bit). min and max: a
 * NaN input gives NaN, and -0 is less than +0. AVG is a SUM here; the host divides at the edge.
 *
 * 8-bit floats are OCP's (OFP8): E5M2 has infinities as IEEE 754 has; E4M3 has none, and a result
 * beyond 448, infinity included, is its NaN (0x7f). BAND, BOR and BXOR are for integers. MINLOC and
 * MAXLOC are for pairs of a value and an int32 index: of equal values the lowest index; a NaN is
 * both less and greater than any number, -0 is less than +0.
 */
#ifndef TRIB_REDUCE_ARITH_H
#define TRIB_REDUCE_ARITH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Wire values: never renumber. Names as nccl-tests prints them. */
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
    OP_COUNT
};

#define ARITH_MAX_INPUTS 128 /* all GPUs of an NVL72, all children of a switch */

typedef void (*arith_fn)(void *out, const void *const *in, unsigned n, size_t count);

const char *dtype_name(enum dtype t); /* "int8" "uint8" "int32" "uint32" "int64" "uint64" "half"
                                         "float" "double" "bfloat16" "f8e4m3" "f8e5m2" "float_int"
                                         "2int" */
int dtype_by_name(const char *s);     /* also fp16, fp32, fp64, bf16; -EINVAL */
bool dtype_is_float(enum dtype t);    /* one number, not a pair */
unsigned dtype_size(enum dtype t);
const char *redop_name(enum redop o);
int redop_by_name(const char *s);

/* Whether the operation is defined for the type. */
bool arith_valid(enum redop op, enum dtype t);
/* The kernel for n inputs (1..ARITH_MAX_INPUTS) of `count` elements; out may be one of the inputs.
 * NULL where arith_valid() says no. */
arith_fn arith_kernel(enum redop op, enum dtype t);
/* The scalar row, for tests and as the definition. */
arith_fn arith_scalar(enum redop op, enum dtype t);
/* The rows of the table, narrowest first; arith_kernel() takes the last one that this CPU can run.
 * For tests and benchmarks. */
enum arith_row { ARITH_SCALAR, ARITH_V128, ARITH_V256, ARITH_V512, ARITH_ROWS };
bool arith_row_usable(enum arith_row row);
arith_fn arith_kernel_of(enum arith_row row, enum redop op,
                         enum dtype t); /* NULL: row is not of this architecture */
/* AVG at the edge: buf[i] /= n (integers truncate toward zero; fp16/bf16 through fp32). */
void arith_divide(void *buf, enum dtype t, unsigned n, size_t count);

float fp16_to_fp32(uint16_t h);
uint16_t fp32_to_fp16(float f); /* ties to even, canonical NaN */
float bf16_to_fp32(uint16_t h);
uint16_t fp32_to_bf16(float f);

float fp8_e4m3_to_fp32(uint8_t b);
uint8_t fp32_to_fp8_e4m3(float f);
float fp8_e5m2_to_fp32(uint8_t b);
uint8_t fp32_to_fp8_e5m2(float f);

#endif
