/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Conversion of floats to narrower types in any rounding mode, and reductions that end with one, for types
 * that accumulate in fp32 (fp16, bf16, 8-bit floats). Nearest, the default, has its own kernels
 * (arith.h); fp32 and fp64 always round to nearest at each operation.
 */
#ifndef TRIB_AGGREGATION_NARROW_H
#define TRIB_AGGREGATION_NARROW_H

#include "aggregation/arith.h"

enum rounding { ROUND_NEAREST, ROUND_ZERO, ROUND_UP, ROUND_DOWN, ROUND_STOCHASTIC, ROUND_COUNT };

/* Shape of a small float. max: code of the largest finite one; beyond it `over` (infinity, or NaN
 * where there is none). */
struct narrow {
    uint8_t exp_bits, man_bits;
    uint32_t max, over, nan;
};
extern const struct narrow narrow_f16, narrow_bf16, narrow_e4m3, narrow_e5m2;

/* Returns the code of f, with the sign in its top bit. draw: uniform bits for ROUND_STOCHASTIC, which rounds
 * up with a probability equal to the part that is cut off. Overflow: nearest, up (of a positive), down (of a
 * negative) and stochastic give `over`, the others the largest finite number. */
uint32_t narrow(const struct narrow *n, float f, enum rounding mode, uint32_t draw);

/*
 * As arith_kernel(op, t) with another final rounding. `first`: number of the first element in the
 * whole vector; the draws of stochastic rounding depend only on the seed and an element's number,
 * so that runs repeat bit for bit.
 */
void arith_rounded(enum rounding mode, uint64_t seed, uint64_t first, enum redop op, enum dtype t,
                   void *out, const void *const *in, unsigned n, size_t count);

#endif
