/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arithmetic of reduction: a table of kernels by operation and type, each of which makes one pass over N
 * inputs and one output. Aggregation nodes and the host's algorithms use the same one.
 *
 * The rule (what "exact" means): out[i] = in[0][i] op in[1][i] op ... op in[n-1][i], evaluated from
 * left to right, in the type itself for fp32, fp64 and integers (integers wrap, two's complement),
 * in fp32 with one rounding (ties to even) at the end for fp16, bf16 and the 8-bit floats. A NaN
 * result is the canonical quiet NaN of its type (sign 0, only the top mantissa bit). min and max: a
 * NaN input gives NaN, and -0 is less than +0. AVG is a SUM here; the host divides at the edge.
 *
 * 8-bit floats are OCP's (OFP8): E5M2 has infinities as IEEE 754 has; E4M3 has none, and a result
 * beyond 448, infinity included, is its NaN (0x7f). BAND, BOR and BXOR are for integers, as are LAND,
 * LOR and LXOR, which take what is not zero as 1 and give 1 or 0, also of one input. MINLOC and
 * MAXLOC are for pairs of a value and an int32 index: of equal values the lowest index; a NaN is
 * both less and greater than any number, -0 is less than +0.
 */
#ifndef TRIB_AGGREGATION_ARITH_H
#define TRIB_AGGREGATION_ARITH_H

#include "aggregation/dtype.h"

#include <stddef.h>
#include <stdint.h>

#define ARITH_MAX_INPUTS 128 /* limit: inputs of a reduction: children of a switch, GPUs */

typedef void (*arith_fn)(void *out, const void *const *in, unsigned n, size_t count);

/* Whether the operation is defined for the type. */
bool arith_valid(enum redop op, enum dtype t);
/* The kernel for n inputs (1..ARITH_MAX_INPUTS) of `count` elements; out may be one of the inputs. NULL if
 * arith_valid() is false. */
arith_fn arith_kernel(enum redop op, enum dtype t);
/* The kernel of the scalar row: the definition, for tests. */
arith_fn arith_scalar(enum redop op, enum dtype t);
/* The rows of the table, narrowest first; all give the same bits. arith_kernel() takes the widest that this
 * CPU can run. Tests and benchmarks name one. */
enum arith_row { ARITH_SCALAR, ARITH_V128, ARITH_V256, ARITH_V512, ARITH_ROWS };
bool arith_row_usable(enum arith_row row);
/* The kernel of one row. NULL: this architecture does not have the row. */
arith_fn arith_kernel_of(enum arith_row row, enum redop op, enum dtype t);
/* Divides for AVG: buf[i] /= n (integers truncate toward zero; fp16/bf16 through fp32). */
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
