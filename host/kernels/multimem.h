/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reductions of multicast memory: the switch combines the values of all members at an address and
 * stores the result to all of them. A line of MULTIMEM(X) is X(name, esize, unit, LOAD, STORE): the
 * corresponding reduction of element.h, the bytes of an element and of one instruction's operand,
 * and the suffixes of multimem.ld_reduce and multimem.st (PTX ISA 8.1, sm_90).
 *
 * The results correspond but need not have the same bits: the hardware adds in its own order and
 * has its own rules for NaN. Sums that are exact in any order are equal.
 */
#ifndef TRIB_HOST_KERNELS_MULTIMEM_H
#define TRIB_HOST_KERNELS_MULTIMEM_H

/* Only floats have operands of 16 bytes; integers wrap, and signed ones are added as unsigned. */
#define MULTIMEM(X)                                                                                \
    X(sum_f32, 4, 16, "add.v4.f32", "v4.f32")                                                      \
    X(sum_f16, 2, 16, "add.acc::f32.v4.f16x2", "v4.f16x2")                                         \
    X(sum_bf16, 2, 16, "add.acc::f32.v4.bf16x2", "v4.bf16x2")                                      \
    X(min_f16, 2, 16, "min.v4.f16x2", "v4.f16x2")                                                  \
    X(max_f16, 2, 16, "max.v4.f16x2", "v4.f16x2")                                                  \
    X(min_bf16, 2, 16, "min.v4.bf16x2", "v4.bf16x2")                                               \
    X(max_bf16, 2, 16, "max.v4.bf16x2", "v4.bf16x2")                                               \
    X(sum_f64, 8, 8, "add.f64", "f64")                                                             \
    X(sum_64, 8, 8, "add.u64", "u64")                                                              \
    X(min_i64, 8, 8, "min.s64", "s64")                                                             \
    X(max_i64, 8, 8, "max.s64", "s64")                                                             \
    X(min_u64, 8, 8, "min.u64", "u64")                                                             \
    X(max_u64, 8, 8, "max.u64", "u64")                                                             \
    X(sum_32, 4, 4, "add.u32", "u32")                                                              \
    X(min_i32, 4, 4, "min.s32", "s32")                                                             \
    X(max_i32, 4, 4, "max.s32", "s32")                                                             \
    X(min_u32, 4, 4, "min.u32", "u32")                                                             \
    X(max_u32, 4, 4, "max.u32", "u32")

#endif
