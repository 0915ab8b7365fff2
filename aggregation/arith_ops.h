/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The vectors of a row of arith.c's table and the operations on them. arith_rows.h includes it again for each
 * row, and says what a row defines. Part of arith.c.
 */
#define VEC(name, type, bytes)                                                                     \
    typedef type ROW(name) __attribute__((vector_size(bytes)));                                    \
    typedef type ROW(name##_mem) __attribute__((vector_size(bytes), aligned(1), may_alias))

VEC(i8, int8_t, ROW_BYTES);
VEC(u8, uint8_t, ROW_BYTES);
VEC(i16, int16_t, ROW_BYTES);
VEC(u16, uint16_t, ROW_BYTES);
VEC(i32, int32_t, ROW_BYTES);
VEC(u32, uint32_t, ROW_BYTES);
VEC(i64, int64_t, ROW_BYTES);
VEC(u64, uint64_t, ROW_BYTES);
VEC(f32, float, ROW_BYTES);
VEC(f64, double, ROW_BYTES);
#undef VEC

#define FLOAT_OPS(f, bits, nan, NAN_IN, EITHER)                                                    \
    INLINE ROW(f) ROW(f##_min)(ROW(f) a, ROW(f) b)                                                 \
    {                                                                                              \
        ROW(bits) first = (ROW(bits))((a < b) | (a != a)), tie = (ROW(bits))(a == b);              \
                                                                                                   \
        return (ROW(f))((ROW(bits))PICK(ROW(f), first, a, b) | (tie & (ROW(bits))a));              \
    }                                                                                              \
    INLINE ROW(f) ROW(f##_max)(ROW(f) a, ROW(f) b)                                                 \
    {                                                                                              \
        ROW(bits) first = (ROW(bits))((a > b) | (a != a)), tie = (ROW(bits))(a == b);              \
                                                                                                   \
        return (ROW(f))((ROW(bits))PICK(ROW(f), first, a, b) & (~tie | (ROW(bits))a));             \
    }                                                                                              \
    INLINE ROW(f) ROW(f##_canonical)(ROW(f) a)                                                     \
    {                                                                                              \
        ROW(bits) number = (ROW(bits))(a == a);                                                    \
                                                                                                   \
        return (ROW(f))((number & (ROW(bits))a) | (~number & (nan)));                              \
    }                                                                                              \
    INLINE void ROW(f##_no_nan)(ROW(f) * a, ROW(f) * b)                                            \
    {                                                                                              \
        if (__builtin_expect(NAN_IN(*a, *b), 0))                                                   \
            *a = ROW(f##_canonical)(*a), *b = ROW(f##_canonical)(*b);                              \
    }                                                                                              \
    /* Of 2 or of 4 vectors at a time. */                                                          \
    INLINE bool ROW(f##_numbers)(const ROW(f) * a, const unsigned width)                           \
    {                                                                                              \
        (void)a; /* not every row looks */                                                         \
        if (width == 2)                                                                            \
            return !NAN_IN(a[0], a[1]);                                                            \
        UNROLL for (unsigned i = 0; i < width; i += 4)                                             \
        {                                                                                          \
            bool any = EITHER(NAN_IN(a[i], a[i + 1]), NAN_IN(a[i + 2], a[i + 3]));                 \
                                                                                                   \
            if (any)                                                                               \
                return false;                                                                      \
        }                                                                                          \
        return true;                                                                               \
    }
FLOAT_OPS(f32, u32, F32_NAN, ROW_NAN32, ROW_EITHER32)
FLOAT_OPS(f64, u64, F64_NAN, ROW_NAN64, ROW_EITHER64)
#undef FLOAT_OPS

/*
 * A bfloat16 is the upper half of a float. Of a vector of them, the even ones are shifted up and the odd ones
 * masked, so no lane moves. That makes two accumulators for each vector; the results are put together the
 * same way.
 */
INLINE ROW(f32) ROW(bf16_first)(const uint8_t *p)
{
    return (ROW(f32))(*(const ROW(u32_mem) *)p << 16);
}

INLINE ROW(f32) ROW(bf16_second)(const uint8_t *p)
{
    return (ROW(f32))(*(const ROW(u32_mem) *)p & 0xffff0000u);
}

/*
 * Rounds floats to bfloat16, two halves of 16 bits at a time: the result is the upper half plus the carry from
 * the lower half + 0x7fff + the upper half's last bit. That carry is the top bit of a rounding average, which
 * adds the missing one: (lower + (0x7ffe | last bit) + 1) >> 1. No carry leaves a number's upper half. A NaN
 * stays one: it came from a bfloat16 or an operation, and has no bits in the lower half.
 */
INLINE ROW(u16) ROW(bf16_round)(ROW(f32) first, ROW(f32) second)
{
    ROW(u32) a = (ROW(u32))first, b = (ROW(u32))second;
    ROW(u16) upper = (ROW(u16))ROW_UPPERS(a, b), lower = (ROW(u16))ROW_LOWERS(a, b);
    ROW(u16) bias = (upper & 1) | 0x7ffe;

    return upper + ((ROW(u16))ROW_AVERAGE(lower, bias) >> 15);
}

INLINE void ROW(bf16_store)(uint8_t *p, ROW(f32) a, ROW(f32) b)
{
    ROW(f32_no_nan)(&a, &b);
    *(ROW(u16_mem) *)p = ROW(bf16_round)(a, b);
}

#define PUTS(V, NUMBERS)                                                                           \
    INLINE bool ROW(V##_put)(uint8_t * p, const ROW(V) * a, const unsigned width)                  \
    {                                                                                              \
        if (!NUMBERS(a, width))                                                                    \
            return false;                                                                          \
        UNROLL for (unsigned i = 0; i < width; i++) V_AT(V, p, i) = a[i];                          \
        return true;                                                                               \
    }
#define ALWAYS(a, width) true
PUTS(u8, ALWAYS)
PUTS(u16, ALWAYS)
PUTS(u32, ALWAYS)
PUTS(u64, ALWAYS)
PUTS(f32, ROW(f32_numbers))
PUTS(f64, ROW(f64_numbers))
#undef ALWAYS
#undef PUTS

#define INT_OPS(V)                                                                                 \
    INLINE ROW(V) ROW(V##_min)(ROW(V) a, ROW(V) b)                                                 \
    {                                                                                              \
        return PICK(ROW(V), a < b, a, b);                                                          \
    }                                                                                              \
    INLINE ROW(V) ROW(V##_max)(ROW(V) a, ROW(V) b)                                                 \
    {                                                                                              \
        return PICK(ROW(V), a > b, a, b);                                                          \
    }
INT_OPS(i8)
INT_OPS(u8)
INT_OPS(i16)
INT_OPS(u16)
INT_OPS(i32)
INT_OPS(u32)
INT_OPS(i64)
INT_OPS(u64)
#undef INT_OPS
