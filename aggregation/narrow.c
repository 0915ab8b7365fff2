/* SPDX-License-Identifier: BSD-3-Clause */
#include "aggregation/narrow.h"

#include "base/assert.h"

#include <string.h>

const struct narrow narrow_f16 = {5, 10, 0x7bff, 0x7c00, 0x7e00};
const struct narrow narrow_bf16 = {8, 7, 0x7f7f, 0x7f80, 0x7fc0};
const struct narrow narrow_e4m3 = {4, 3, 0x7e, 0x7f, 0x7f};
const struct narrow narrow_e5m2 = {5, 2, 0x7b, 0x7c, 0x7e};

/* Whether q is rounded up, after `rest` of `unit` was cut off. */
static bool goes_up(enum rounding mode, bool negative, uint32_t q, uint32_t rest, uint32_t unit,
                    uint32_t draw)
{
    switch (mode) {
    case ROUND_ZERO:
        return false;
    case ROUND_UP:
        return rest && !negative;
    case ROUND_DOWN:
        return rest && negative;
    case ROUND_STOCHASTIC:
        return rest + (draw & (unit - 1)) >= unit;
    default:
        return rest > unit / 2 || (rest && rest == unit / 2 && (q & 1));
    }
}

static bool overflows_to_max(enum rounding mode, bool negative)
{
    return mode == ROUND_ZERO || (mode == ROUND_UP && negative) ||
           (mode == ROUND_DOWN && !negative);
}

uint32_t narrow(const struct narrow *n, float f, enum rounding mode, uint32_t draw)
{
    uint32_t u, mag, sign, sig, q, rest, code;
    int bias = (1 << (n->exp_bits - 1)) - 1, least = 1 - bias, e, shift;

    memcpy(&u, &f, sizeof(u));
    mag = u & 0x7fffffffu;
    sign = u >> 31 << (n->exp_bits + n->man_bits);
    if (mag > 0x7f800000u)
        return n->nan;
    if (mag == 0x7f800000u)
        return n->over == n->nan ? n->nan : sign | n->over;
    /* f = sig * 2^(e - 23); the last kept place is 2^(max(e, least) - man_bits). */
    e = mag >> 23 ? (int)(mag >> 23) - 127 : -126;
    sig = (mag & 0x7fffffu) | (mag >> 23 ? 0x800000u : 0);
    shift = 23 - n->man_bits + (e < least ? least - e : 0);
    if (shift > 31)
        shift = 31; /* less than half of the last place in every case */
    q = sig >> shift;
    rest = sig & ((1u << shift) - 1);
    q += goes_up(mode, u >> 31, q, rest, 1u << shift, draw);
    /* A carry propagates into the exponent, also from denormal numbers. */
    code = e < least ? q : ((uint32_t)(e - least) << n->man_bits) + q;
    if (code <= n->max)
        return sign | code;
    if (overflows_to_max(mode, u >> 31))
        return sign | n->max;
    return n->over == n->nan ? n->nan : sign | n->over;
}

/* splitmix64's last step. */
static uint32_t draw_of(uint64_t seed, uint64_t element)
{
    uint64_t z = seed + (element + 1) * 0x9e3779b97f4a7c15ull;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return (uint32_t)(z >> 32);
}

static const struct narrow *shape_of(enum dtype t)
{
    return t == DT_FP16       ? &narrow_f16
           : t == DT_BF16     ? &narrow_bf16
           : t == DT_FP8_E4M3 ? &narrow_e4m3
           : t == DT_FP8_E5M2 ? &narrow_e5m2
                              : NULL;
}

static float widen(enum dtype t, const uint8_t *p)
{
    uint16_t h;

    if (t == DT_FP8_E4M3)
        return fp8_e4m3_to_fp32(*p);
    if (t == DT_FP8_E5M2)
        return fp8_e5m2_to_fp32(*p);
    memcpy(&h, p, sizeof(h));
    return t == DT_FP16 ? fp16_to_fp32(h) : bf16_to_fp32(h);
}

#define BLOCK 256u

void arith_rounded(enum rounding mode, uint64_t seed, uint64_t first, enum redop op, enum dtype t,
                   void *out, const void *const *in, unsigned n, size_t count)
{
    const struct narrow *shape = shape_of(t);
    arith_fn kernel = arith_kernel(op, shape ? DT_FP32 : t);
    unsigned size = dtype_size(t);
    float wide[2][BLOCK];
    const void *both[2] = {wide[0], wide[1]};

    T_ASSERT(kernel, "a reduction that is not defined for its type");
    T_ASSERT(n >= 1 && n <= ARITH_MAX_INPUTS, "a reduction of no inputs, or of too many");
    T_ASSERT((unsigned)mode < ROUND_COUNT, "no such rounding");
    if (mode == ROUND_NEAREST || !shape) {
        arith_kernel(op, t)(out, in, n, count);
        return;
    }
    for (size_t at = 0; at < count; at += BLOCK) {
        size_t len = count - at < BLOCK ? count - at : BLOCK;

        for (unsigned k = 0; k < n; k++) {
            for (size_t i = 0; i < len; i++)
                wide[k > 0][i] = widen(t, (const uint8_t *)in[k] + (at + i) * size);
            if (k)
                kernel(wide[0], both, 2, len);
        }
        for (size_t i = 0; i < len; i++) {
            uint32_t code = narrow(shape, wide[0][i], mode, draw_of(seed, first + at + i));

            memcpy((uint8_t *)out + (at + i) * size, &code, size);
        }
    }
}
