/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rule of reduction (aggregation/arith.h), by arithmetic on values rather than on bits: the
 * plain reference that results of rows are held to. It shares no code with the kernels. Floats of
 * up to 32 bits are computed in fp64 and rounded here, so neither the CPU's rounding mode nor its
 * treatment of denormals matters to them.
 */
#ifndef TRIB_HOST_BENCH_VERIFY_RULE_H
#define TRIB_HOST_BENCH_VERIFY_RULE_H

#include "aggregation/dtype.h"

#include <stddef.h>
#include <stdint.h>

/* Of a float type: bits of its exponent and of its mantissa; code of the largest finite number. */
struct rule_shape {
    uint8_t exp_bits, man_bits;
    uint32_t max;
};
/* NULL: not a float type of at most 32 bits. DT_FP32_LOC: its value's. */
const struct rule_shape *rule_shape(enum dtype t);

/* out[i] = (in[0][i] op in[1][i]) op ...; out is none of the inputs. The operation is defined for
 * the type; OP_AVG is a sum. */
void rule_reduce(enum redop op, enum dtype t, void *out, const void *const *in, unsigned n,
                 size_t count);
/* OP_AVG at the edge: out[i] = in[i] / n. */
void rule_divide(enum dtype t, void *out, const void *in, unsigned n, size_t count);

#endif
