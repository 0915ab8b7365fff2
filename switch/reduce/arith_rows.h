/*
 * One vector row of arith.c's table: a template, included once for each instruction set with
 *   ROW(name)        the row's names
 *   ROW_BYTES        width of its vectors
 *   ROW_TARGET       function attribute that enables the instruction set
 *   ROW_REST(fn)     the kernel that takes what is less than a block: of the next narrower row
 *   ROW_F16_LOAD(p), ROW_F16_STORE(p, a)   conversions of halves; without them fp16 is left to it
 *   ROW_NAN32(a, b), ROW_NAN64(a, b)   whether any lane of two vectors of floats (doubles) is NaN
 *   ROW_EITHER32(m, n), ROW_EITHER64(m, n)   whether one of two answers of those is yes
 *   ROW_BF16_FIRST(v), ROW_BF16_SECOND(v)   a vector of bfloat16 as two of floats, in any order
 *   ROW_UPPERS(a, b), ROW_LOWERS(a, b)   upper (lower) 16 bits of two such, in bfloat16's order
 *   ROW_BF16_PLAIN(a, b)   whether the CPU rounds two such as the rule says: ROW_BF16_ROUND(a, b)
 *   ROW_AVERAGE(a, b)   of 16-bit lanes, rounded up
 * where those from ROW_NAN32 on may be left out.
 * No guard: it is meant to be included again.
 *
 * A block is some vectors of accumulators, which stay in registers while all inputs go by: each
 * input is loaded once and each output stored once. Vectors are the compiler's generic ones; where
 * intrinsics are used they were measured to matter: conversions of halves (ten operations a vector
 * without), and NaNs looked for before they are replaced, since there are none as a rule.
 */
#define VEC(name, type, bytes)                                                                     \
    typedef type ROW(name) __attribute__((vector_size(bytes)));                                    \
    typedef type ROW(name##_mem) __attribute__((vector_size(bytes), aligned(1), may_alias))

VEC(i8, int8_t, ROW_BYTES);
VEC(u8, uint8_t, ROW_BYTES);
VEC(u16, uint16_t, ROW_BYTES);
VEC(i32, int32_t, ROW_BYTES);
VEC(u32, uint32_t, ROW_BYTES);
VEC(i64, int64_t, ROW_BYTES);
VEC(u64, uint64_t, ROW_BYTES);
VEC(f32, float, ROW_BYTES);
VEC(f64, double, ROW_BYTES);
#undef VEC

#ifndef ROW_NAN32
#define ROW_NAN32(a, b) 1
#define ROW_NAN64(a, b) 1
#endif
#ifndef ROW_EITHER32
#define ROW_EITHER32(m, n) ((m) | (n))
#define ROW_EITHER64(m, n) ((m) | (n))
#endif
#ifndef ROW_UPPERS
#define ROW_UPPERS(a, b) ((a) >> 16 | ((b)&0xffff0000u))
#define ROW_LOWERS(a, b) (((a)&0xffff) | (b) << 16)
#endif
#ifndef ROW_BF16_FIRST
#define ROW_BF16_FIRST(v)  ((v) << 16)
#define ROW_BF16_SECOND(v) ((v)&0xffff0000u)
#endif
#ifndef ROW_AVERAGE
#define ROW_AVERAGE(a, b) (((a) >> 1) + ((b) >> 1) + (((a) | (b)) & 1))
#endif

#define KNOWN_BLOCK 4 /* vectors of a sum of a known number of inputs */
#define UNROLL      _Pragma("GCC unroll 8")
#define INLINE      static inline __attribute__((always_inline)) ROW_TARGET

/* a where the mask is set, else b; masks are all ones or all zeros per lane. */
#define PICK(V, mask, a, b)                                                                        \
    ((V)(((mask) & (__typeof__(mask))(a)) | (~(mask) & (__typeof__(mask))(b))))

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
    INLINE void ROW(f##_no_nan_in)(ROW(f) * a)                                                     \
    {                                                                                              \
        if (__builtin_expect(EITHER(NAN_IN(a[0], a[1]), NAN_IN(a[2], a[3])), 0))                   \
            UNROLL for (unsigned i = 0; i < KNOWN_BLOCK; i++) a[i] = ROW(f##_canonical)(a[i]);     \
    }
FLOAT_OPS(f32, u32, F32_NAN, ROW_NAN32, ROW_EITHER32)
FLOAT_OPS(f64, u64, F64_NAN, ROW_NAN64, ROW_EITHER64)
#undef FLOAT_OPS

/*
 * A bfloat16 is the upper half of a float. By default, of a vector of them, the even ones are
 * shifted up, the odd ones only masked, and no lane ever moves. Two accumulators a vector; the
 * results are put together the same way.
 */
INLINE ROW(f32) ROW(bf16_first)(const uint8_t *p)
{
    return (ROW(f32))ROW_BF16_FIRST(*(const ROW(u32_mem) *)p);
}

INLINE ROW(f32) ROW(bf16_second)(const uint8_t *p)
{
    return (ROW(f32))ROW_BF16_SECOND(*(const ROW(u32_mem) *)p);
}

/*
 * Rounds numbers, two halves of 16 bits at a time: the upper half plus the carry out of the lower
 * one + 0x7fff + the upper's last bit. That carry is the top bit of a rounding average, which adds
 * the missing one: (lower + (0x7ffe | last bit) + 1) >> 1. No carry leaves a number's upper half.
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
#ifdef ROW_BF16_PLAIN
    if (__builtin_expect(ROW_BF16_PLAIN(a, b), 1)) {
        *(ROW(u16_mem) *)p = (ROW(u16))ROW_BF16_ROUND(a, b);
        return;
    }
#endif
    ROW(f32_no_nan)(&a, &b);
    *(ROW(u16_mem) *)p = ROW(bf16_round)(a, b);
}

/*
 * Sums of 2, 4 and 8 inputs, numbers that are known here: where each input begins stays in a
 * register, so that nothing but elements is loaded. For more there are not enough registers.
 * VB and LOAD as below; STORE puts a block of sums.
 */
#define SUM_KNOWN(fn, V, VB, LOAD, STORE)                                                          \
    INLINE size_t ROW(fn##_known)(uint8_t * out, const void *const *in, const unsigned n,          \
                                  size_t at, size_t bytes)                                         \
    {                                                                                              \
        const uint8_t *p[8];                                                                       \
                                                                                                   \
        UNROLL for (unsigned k = 0; k < n; k++) p[k] = in[k];                                      \
        for (; at + KNOWN_BLOCK * (VB) <= bytes; at += KNOWN_BLOCK * (VB)) {                       \
            ROW(V) a[KNOWN_BLOCK];                                                                 \
                                                                                                   \
            UNROLL for (unsigned i = 0; i < KNOWN_BLOCK; i++) a[i] = LOAD(V, p[0] + at, i);        \
            UNROLL for (unsigned k = 1; k < n; k++)                                                \
                UNROLL for (unsigned i = 0; i < KNOWN_BLOCK; i++) a[i] += LOAD(V, p[k] + at, i);   \
            STORE(V, out + at, a);                                                                 \
        }                                                                                          \
        return at;                                                                                 \
    }
#define KNOWN_STORE(V, p, a) UNROLL for (unsigned i = 0; i < KNOWN_BLOCK; i++) V_AT(V, p, i) = a[i]
#define KNOWN_STORE_F(V, p, a)                                                                     \
    ROW(V##_no_nan_in)(a);                                                                         \
    KNOWN_STORE(V, p, a)
#define KNOWN_STORE_BF(V, p, a)                                                                    \
    BF_STORE(V, p, 0, a[0], a[1]);                                                                 \
    BF_STORE(V, p, 2, a[2], a[3])
#define FOR_ANY(fn)
#define FOR_KNOWN(fn)                                                                              \
    at = n == 2   ? ROW(fn##_known)(out, in, 2, at, bytes)                                         \
         : n == 4 ? ROW(fn##_known)(out, in, 4, at, bytes)                                         \
         : n == 8 ? ROW(fn##_known)(out, in, 8, at, bytes)                                         \
                  : at

/*
 * The loop. V: accumulator, EB: bytes of an element in a frame, VB: bytes in a frame of V's
 * elements. LOAD gives accumulator i of a block, STORE puts accumulators i and i + 1. Blocks of
 * eight accumulators while there are, then of two; what is before the first whole vector of the
 * output and behind the last block is left to the narrower row.
 */
#define VECTOR(fn, V, EB, VB, LOAD, DO, STORE) VECTOR_OF(fn, V, EB, VB, LOAD, DO, STORE, FOR_ANY)
#define VECTOR_OF(fn, V, EB, VB, LOAD, DO, STORE, KNOWN)                                           \
    static __attribute__((unused)) ROW_TARGET void ROW(fn)(void *out, const void *const *in,       \
                                                           unsigned n, size_t count)               \
    {                                                                                              \
        const size_t bytes = count * (EB);                                                         \
        size_t at = arith_unaligned(out, ROW_BYTES, EB, bytes);                                    \
                                                                                                   \
        if (at)                                                                                    \
            arith_part(ROW_REST(fn), out, in, n, 0, at / (EB));                                    \
        KNOWN(fn);                                                                                 \
        for (; at + 8 * (VB) <= bytes; at += 8 * (VB)) {                                           \
            const uint8_t *p = (const uint8_t *)in[0] + at;                                        \
            uint8_t *q = (uint8_t *)out + at;                                                      \
            ROW(V) a0 = LOAD(V, p, 0), a1 = LOAD(V, p, 1), a2 = LOAD(V, p, 2), a3 = LOAD(V, p, 3); \
            ROW(V) a4 = LOAD(V, p, 4), a5 = LOAD(V, p, 5), a6 = LOAD(V, p, 6), a7 = LOAD(V, p, 7); \
                                                                                                   \
            for (unsigned k = 1; k < n; k++) {                                                     \
                p = (const uint8_t *)in[k] + at;                                                   \
                a0 = DO(V, a0, LOAD(V, p, 0)), a1 = DO(V, a1, LOAD(V, p, 1));                      \
                a2 = DO(V, a2, LOAD(V, p, 2)), a3 = DO(V, a3, LOAD(V, p, 3));                      \
                a4 = DO(V, a4, LOAD(V, p, 4)), a5 = DO(V, a5, LOAD(V, p, 5));                      \
                a6 = DO(V, a6, LOAD(V, p, 6)), a7 = DO(V, a7, LOAD(V, p, 7));                      \
            }                                                                                      \
            STORE(V, q, 0, a0, a1);                                                                \
            STORE(V, q, 2, a2, a3);                                                                \
            STORE(V, q, 4, a4, a5);                                                                \
            STORE(V, q, 6, a6, a7);                                                                \
        }                                                                                          \
        for (; at + 2 * (VB) <= bytes; at += 2 * (VB)) {                                           \
            const uint8_t *p = (const uint8_t *)in[0] + at;                                        \
            ROW(V) a0 = LOAD(V, p, 0), a1 = LOAD(V, p, 1);                                         \
                                                                                                   \
            for (unsigned k = 1; k < n; k++) {                                                     \
                p = (const uint8_t *)in[k] + at;                                                   \
                a0 = DO(V, a0, LOAD(V, p, 0)), a1 = DO(V, a1, LOAD(V, p, 1));                      \
            }                                                                                      \
            STORE(V, (uint8_t *)out + at, 0, a0, a1);                                              \
        }                                                                                          \
        if (at < bytes)                                                                            \
            arith_part(ROW_REST(fn), out, in, n, at, count - at / (EB));                           \
    }

#define V_AT(V, p, i)            (*(ROW(V##_mem) *)((p) + (i)*ROW_BYTES))
#define V_LOAD(V, p, i)          (*(const ROW(V##_mem) *)((p) + (i)*ROW_BYTES))
#define V_STORE(V, p, i, a, b)   (V_AT(V, p, i) = (a), V_AT(V, p, (i) + 1) = (b))
#define V_STORE_F(V, p, i, a, b) (ROW(V##_no_nan)(&(a), &(b)), V_STORE(V, p, i, a, b))
#define V_SUM(V, a, b)           ((a) + (b))
#define V_PROD(V, a, b)          ((a) * (b))
#define V_BAND(V, a, b)          ((a) & (b))
#define V_BOR(V, a, b)           ((a) | (b))
#define V_BXOR(V, a, b)          ((a) ^ (b))
#define V_MIN(V, a, b)           ROW(V##_min)(a, b)
#define V_MAX(V, a, b)           ROW(V##_max)(a, b)
#define BF_LOAD(V, p, i)                                                                           \
    ((i) % 2 ? ROW(bf16_second)((p) + (i) / 2 * ROW_BYTES)                                         \
             : ROW(bf16_first)((p) + (i) / 2 * ROW_BYTES))
#define BF_STORE(V, p, i, a, b) ROW(bf16_store)((p) + (i) / 2 * ROW_BYTES, a, b)
#define HF_LOAD(V, p, i)        ROW_F16_LOAD((p) + (i) * (ROW_BYTES / 2))
/* The conversion keeps a NaN's top bits and sign: canonical before, canonical after. */
#define HF_STORE(V, p, i, a, b)                                                                    \
    (ROW(f32_no_nan)(&(a), &(b)), ROW_F16_STORE((p) + (i) * (ROW_BYTES / 2), a),                   \
     ROW_F16_STORE((p) + ((i) + 1) * (ROW_BYTES / 2), b))

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
INT_OPS(i32)
INT_OPS(u32)
INT_OPS(i64)
INT_OPS(u64)
#undef INT_OPS

#define WRAPPING(V, bits)                                                                          \
    SUM_KNOWN(sum_##bits, V, ROW_BYTES, V_LOAD, KNOWN_STORE)                                       \
    VECTOR_OF(sum_##bits, V, bits / 8, ROW_BYTES, V_LOAD, V_SUM, V_STORE, FOR_KNOWN)               \
    VECTOR(prod_##bits, V, bits / 8, ROW_BYTES, V_LOAD, V_PROD, V_STORE)                           \
    VECTOR(band_##bits, V, bits / 8, ROW_BYTES, V_LOAD, V_BAND, V_STORE)                           \
    VECTOR(bor_##bits, V, bits / 8, ROW_BYTES, V_LOAD, V_BOR, V_STORE)                             \
    VECTOR(bxor_##bits, V, bits / 8, ROW_BYTES, V_LOAD, V_BXOR, V_STORE)
#define ORDERED(V, bits)                                                                           \
    VECTOR(min_##V, V, bits / 8, ROW_BYTES, V_LOAD, V_MIN, V_STORE)                                \
    VECTOR(max_##V, V, bits / 8, ROW_BYTES, V_LOAD, V_MAX, V_STORE)
#define FLOATING(name, V, EB, VB, LOAD, STORE, KNOWN)                                              \
    VECTOR_OF(sum_##name, V, EB, VB, LOAD, V_SUM, STORE, KNOWN)                                    \
    VECTOR(prod_##name, V, EB, VB, LOAD, V_PROD, STORE)                                            \
    VECTOR(min_##name, V, EB, VB, LOAD, V_MIN, STORE)                                              \
    VECTOR(max_##name, V, EB, VB, LOAD, V_MAX, STORE)

WRAPPING(u8, 8)
WRAPPING(u32, 32)
WRAPPING(u64, 64)
ORDERED(i8, 8)
ORDERED(u8, 8)
ORDERED(i32, 32)
ORDERED(u32, 32)
ORDERED(i64, 64)
ORDERED(u64, 64)
SUM_KNOWN(sum_f32, f32, ROW_BYTES, V_LOAD, KNOWN_STORE_F)
SUM_KNOWN(sum_f64, f64, ROW_BYTES, V_LOAD, KNOWN_STORE_F)
/* cppcheck-suppress invalidPointerCast */
FLOATING(f32, f32, 4, ROW_BYTES, V_LOAD, V_STORE_F, FOR_KNOWN)
/* cppcheck-suppress invalidPointerCast */
FLOATING(f64, f64, 8, ROW_BYTES, V_LOAD, V_STORE_F, FOR_KNOWN)
#ifdef ROW_BF16_ROUND /* else a known number of inputs is no faster */
SUM_KNOWN(sum_bf16, f32, ROW_BYTES / 2, BF_LOAD, KNOWN_STORE_BF)
FLOATING(bf16, f32, 2, ROW_BYTES / 2, BF_LOAD, BF_STORE, FOR_KNOWN)
#else
FLOATING(bf16, f32, 2, ROW_BYTES / 2, BF_LOAD, BF_STORE, FOR_ANY)
#endif
#ifdef ROW_F16_LOAD
FLOATING(f16, f32, 2, ROW_BYTES / 2, HF_LOAD, HF_STORE, FOR_ANY)
#else
#define PLAIN(fn)                                                                                  \
    static __attribute__((unused)) void ROW(fn)(void *out, const void *const *in, unsigned n,      \
                                                size_t count)                                      \
    {                                                                                              \
        ROW_REST(fn)(out, in, n, count);                                                           \
    }
PLAIN(sum_f16)
PLAIN(prod_f16)
PLAIN(min_f16)
PLAIN(max_f16)
#undef PLAIN
#endif

#undef ROW
#undef ROW_BYTES
#undef ROW_TARGET
#undef ROW_REST
#undef ROW_NAN32
#undef ROW_NAN64
#undef ROW_EITHER32
#undef ROW_EITHER64
#undef ROW_UPPERS
#undef ROW_LOWERS
#undef ROW_AVERAGE
#undef ROW_F16_LOAD
#undef ROW_F16_STORE
#undef ROW_BF16_FIRST
#undef ROW_BF16_SECOND
#undef ROW_BF16_PLAIN
#undef ROW_BF16_ROUND
#undef INLINE
#undef PICK
#undef VECTOR
#undef VECTOR_OF
#undef SUM_KNOWN
#undef KNOWN_BLOCK
#undef UNROLL
#undef FOR_ANY
#undef FOR_KNOWN
#undef KNOWN_STORE
#undef KNOWN_STORE_F
#undef KNOWN_STORE_BF
#undef V_AT
#undef V_LOAD
#undef V_STORE
#undef V_STORE_F
#undef V_SUM
#undef V_PROD
#undef V_BAND
#undef V_BOR
#undef V_BXOR
#undef V_MIN
#undef V_MAX
#undef BF_LOAD
#undef BF_STORE
#undef HF_LOAD
#undef HF_STORE
#undef WRAPPING
#undef ORDERED
#undef FLOATING
