/*
 * One vector row of arith.c's table: a template, included once for each instruction set with
 *   ROW(name)        the row's names
 *   ROW_BYTES        width of its vectors
 *   ROW_TARGET       function attribute that enables the instruction set
 *   ROW_REST(fn)     the kernel that takes what is less than a block: of the next narrower row
 *   ROW_F16_LOAD(p), ROW_F16_STORE(p, a)   conversions of halves; without them fp16 is left to
 *   ROW_F16_REST(fn)   the kernel of another row, if not of the next narrower one
 *   ROW_F16_ADD(a, b), ROW_F16_NAN(a, b)   halves: the CPU's sum; any NaN in two vectors
 *   ROW_NAN32(a, b), ROW_NAN64(a, b)   whether any lane of two vectors of floats (doubles) is NaN
 *   ROW_EITHER32(m, n), ROW_EITHER64(m, n), ROW_EITHER16(m, n)   one of two is yes
 *   ROW_BF16_FIRST(v), ROW_BF16_SECOND(v)   a vector of bfloat16 as two of floats, in any order
 *   ROW_UPPERS(a, b), ROW_LOWERS(a, b)   upper (lower) 16 bits of two such, in bfloat16's order
 *   ROW_BF16_PLAIN(a, b)   whether the CPU rounds two such as the rule says: ROW_BF16_ROUND(a, b)
 *   ROW_BF16_UP(a)   a float's bits + 0x7fff + the last bit of its upper half
 *   ROW_BF16_NAN(a, b)   whether any lane of two vectors of bfloat16 may be NaN
 *   ROW_AVERAGE(a, b)   of 16-bit lanes, rounded up
 *   ROW_F16_KNOWN   set where sums of halves are faster with a known number of inputs
 *   ROW_ORDERED32(m, a, b), ROW_ORDERED64(m, a, b)   mask m less the lanes where a or b is NaN
 *   ROW_MASK32, ROW_MASK64   its type, a bit for each lane; sums look at a call's masks at its end
 * where those from ROW_F16_REST on may be left out.
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

#ifdef ROW_NAN32
#define FLOAT_SUMS SUMS
#else
#define ROW_NAN32(a, b)                             1
#define ROW_NAN64(a, b)                             1
#define FLOAT_SUMS(fn, V, EB, VB, LOAD, STORE, PUT) VECTOR(fn, V, EB, VB, LOAD, V_SUM, STORE)
#endif
#ifndef ROW_EITHER32
#define ROW_EITHER32(m, n) ((m) | (n))
#define ROW_EITHER64(m, n) ((m) | (n))
#endif
#ifndef ROW_UPPERS
#define ROW_UPPERS(a, b) ((a) >> 16 | ((b)&0xffff0000u))
#define ROW_LOWERS(a, b) (((a)&0xffff) | (b) << 16)
#endif
#ifndef ROW_F16_REST
#define ROW_F16_REST(fn) ROW_REST(fn)
#endif
#ifndef ROW_BF16_FIRST
#define ROW_BF16_FIRST(v)  ((v) << 16)
#define ROW_BF16_SECOND(v) ((v)&0xffff0000u)
#endif
#ifndef ROW_AVERAGE
#define ROW_AVERAGE(a, b) (((a) >> 1) + ((b) >> 1) + (((a) | (b)) & 1))
#endif

#define UNROLL _Pragma("GCC unroll 16")
#define INLINE static inline __attribute__((always_inline)) ROW_TARGET

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
 * A NaN stays one: it came from a bfloat16 or an operation, and has no bits in the lower half.
 */
INLINE ROW(u16) ROW(bf16_round)(ROW(f32) first, ROW(f32) second)
{
    ROW(u32) a = (ROW(u32))first, b = (ROW(u32))second;
#ifdef ROW_BF16_UP
    return (ROW(u16))ROW_UPPERS(ROW_BF16_UP(a), ROW_BF16_UP(b));
#else
    ROW(u16) upper = (ROW(u16))ROW_UPPERS(a, b), lower = (ROW(u16))ROW_LOWERS(a, b);
    ROW(u16) bias = (upper & 1) | 0x7ffe;

    return upper + ((ROW(u16))ROW_AVERAGE(lower, bias) >> 15);
#endif
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
 * The loop. V: accumulator, EB: bytes of an element in a frame, VB: bytes in a frame of V's
 * elements. LOAD gives accumulator i of a block, STORE puts accumulators i and i + 1. Blocks of
 * eight accumulators while there are, then of two; what is before the first whole vector of the
 * output and behind the last block is left to the narrower row.
 */
#define VECTOR(fn, V, EB, VB, LOAD, DO, STORE) VECTOR_OF(fn, fn, V, EB, VB, LOAD, DO, STORE)
#define VECTOR_OF(name, fn, V, EB, VB, LOAD, DO, STORE)                                            \
    static __attribute__((unused)) ROW_TARGET void ROW(name)(void *out, const void *const *in,     \
                                                             unsigned n, size_t count)             \
    {                                                                                              \
        const size_t bytes = count * (EB);                                                         \
        size_t at = arith_unaligned(out, ROW_BYTES, EB, bytes);                                    \
                                                                                                   \
        if (at)                                                                                    \
            arith_part(ROW_REST(fn), out, in, n, 0, at / (EB));                                    \
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
#define F16_ADD(V, a, b)        (ROW(u16)) ROW_F16_ADD(a, b)
#define HF_STORE(V, p, i, a, b) (ROW(f32_no_nan)(&(a), &(b)), HF_STORE_ANY(V, p, i, a, b))
/* NaNs as they are. */
#define BF_STORE_ANY(V, p, i, a, b) (V_AT(u16, p, (i) / 2) = ROW(bf16_round)(a, b))
#define HF_STORE_ANY(V, p, i, a, b)                                                                \
    (ROW_F16_STORE((p) + (i) * (ROW_BYTES / 2), a),                                                \
     ROW_F16_STORE((p) + ((i) + 1) * (ROW_BYTES / 2), b))

/*
 * Sums of 2, 4, 8 and 16 inputs, numbers that are known here: where each input begins stays in a
 * register (of 16, on the stack), and a call of whole blocks takes nothing but its loop. PUT stores
 * a block's `width` sums, or says no where one of them may not be a number: what is left of the
 * call is then the general loop's, fn_any. Of 16 inputs, which do not all fit into the first cache,
 * a little of each at a time: they are fetched from the second one more evenly.
 */
#define BLOCK(V, LOAD, ADD, n, width)                                                              \
    ROW(V) a[width];                                                                               \
                                                                                                   \
    UNROLL for (unsigned i = 0; i < (width); i++) a[i] = LOAD(V, p[0] + at, i);                    \
    UNROLL for (unsigned k = 1; k < (n); k++) UNROLL for (unsigned i = 0; i < (width); i++) a[i] = \
        ADD(V, a[i], LOAD(V, p[k] + at, i));
#define KNOWN(fn, V, EB, VB, LOAD, ADD, PUT, n, width)                                             \
    static __attribute__((unused)) ROW_TARGET void ROW(fn##_of_##n)(                               \
        void *out, const void *const *in, size_t at, size_t end)                                   \
    {                                                                                              \
        const uint8_t *p[n];                                                                       \
                                                                                                   \
        UNROLL for (unsigned k = 0; k < (n); k++) p[k] = in[k];                                    \
        for (; at < end; at += (width) * (VB)) {                                                   \
            BLOCK(V, LOAD, ADD, n, width)                                                          \
            if (__builtin_expect(!PUT((uint8_t *)out + at, a, width), 0)) {                        \
                arith_part(ROW(fn##_any), out, in, n, at, (end - at) / (EB));                      \
                return;                                                                            \
            }                                                                                      \
        }                                                                                          \
    }
/* The kernel that picks among them. */
#define SUM(fn, EB, VB, ...)                                                                       \
    static const __attribute__((unused)) struct arith_sum ROW(fn##_loops) = {                      \
        {__VA_ARGS__}, ROW(fn##_any), ROW_REST(fn), EB, ROW_BYTES, 8 * (VB)};                      \
    static __attribute__((unused)) void ROW(fn)(void *out, const void *const *in, unsigned n,      \
                                                size_t count)                                      \
    {                                                                                              \
        arith_sum(&ROW(fn##_loops), out, in, n, count);                                            \
    }
#define SUMS(fn, V, EB, VB, LOAD, STORE, PUT)                                                      \
    VECTOR_OF(fn##_any, fn, V, EB, VB, LOAD, V_SUM, STORE)                                         \
    KNOWN(fn, V, EB, VB, LOAD, V_SUM, PUT, 2, 8)                                                   \
    KNOWN(fn, V, EB, VB, LOAD, V_SUM, PUT, 4, 4)                                                   \
    KNOWN(fn, V, EB, VB, LOAD, V_SUM, PUT, 8, 8)                                                   \
    KNOWN(fn, V, EB, VB, LOAD, V_SUM, PUT, 16, 2)                                                  \
    SUM(fn, EB, VB, [2] = ROW(fn##_of_2), [4] = ROW(fn##_of_4), [8] = ROW(fn##_of_8),              \
        [16] = ROW(fn##_of_16))

#ifdef ROW_ORDERED32
/*
 * The same where a branch for each block costs more than a mask of the lanes that were numbers so
 * far: no loop is left, and if a sum was none, those of the call are looked at again where they
 * lie (a NaN stays one on the way there). Two masks, since each waits for the one before it. STORE
 * stores NaNs as they are.
 */
#define KNOWN_LATE(fn, bits, V, VB, LOAD, STORE, n)                                                \
    static __attribute__((unused)) ROW_TARGET void ROW(fn##_of_##n)(                               \
        void *out, const void *const *in, size_t at, size_t end)                                   \
    {                                                                                              \
        const uint8_t *p[n];                                                                       \
        const size_t begin = at;                                                                   \
        ROW_MASK##bits numbers[] = {(ROW_MASK##bits) ~0, (ROW_MASK##bits) ~0};                     \
                                                                                                   \
        UNROLL for (unsigned k = 0; k < (n); k++) p[k] = in[k];                                    \
        for (; at < end; at += 4 * (VB)) {                                                         \
            BLOCK(V, LOAD, V_SUM, n, 4)                                                            \
            UNROLL for (unsigned i = 0; i < 4; i += 2)                                             \
            {                                                                                      \
                numbers[i / 2] = ROW_ORDERED##bits(numbers[i / 2], a[i], a[i + 1]);                \
                STORE(V, (uint8_t *)out + at, i, a[i], a[i + 1]);                                  \
            }                                                                                      \
        }                                                                                          \
        if (__builtin_expect((ROW_MASK##bits)(numbers[0] & numbers[1]) != (ROW_MASK##bits) ~0, 0)) \
            ROW(fn##_canonical)((uint8_t *)out + begin, end - begin);                              \
    }
/* CAREFUL stores canonical NaNs; U is the unsigned type of an element. */
#define SUMS_LATE(fn, bits, V, U, EB, VB, LOAD, CAREFUL, STORE, inf, nan)                          \
    static __attribute__((unused, noinline)) ROW_TARGET void ROW(fn##_canonical)(uint8_t * p,      \
                                                                                 size_t bytes)     \
    {                                                                                              \
        for (size_t at = 0; at < bytes; at += ROW_BYTES) {                                         \
            ROW(U) a = V_AT(U, p + at, 0);                                                         \
                                                                                                   \
            V_AT(U, p + at, 0) = PICK(ROW(U), a << 1 >> 1 > (inf), (ROW(U)){} + (nan), a);         \
        }                                                                                          \
    }                                                                                              \
    VECTOR_OF(fn##_any, fn, V, EB, VB, LOAD, V_SUM, CAREFUL)                                       \
    KNOWN_LATE(fn, bits, V, VB, LOAD, STORE, 2)                                                    \
    KNOWN_LATE(fn, bits, V, VB, LOAD, STORE, 4)                                                    \
    KNOWN_LATE(fn, bits, V, VB, LOAD, STORE, 8)                                                    \
    SUM(fn, EB, VB, [2] = ROW(fn##_of_2), [4] = ROW(fn##_of_4), [8] = ROW(fn##_of_8))
#endif

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
PUTS(u32, ALWAYS)
PUTS(u64, ALWAYS)
PUTS(f32, ROW(f32_numbers))
PUTS(f64, ROW(f64_numbers))
#undef ALWAYS
#undef PUTS

INLINE bool ROW(bf16_put)(uint8_t *p, const ROW(f32) * a, const unsigned width)
{
#ifdef ROW_BF16_NAN /* looked for in the results, half as many vectors */
    ROW(u16) r[4];

    UNROLL for (unsigned i = 0; i < width / 2; i++) r[i] = ROW(bf16_round)(a[2 * i], a[2 * i + 1]);
    if (ROW_EITHER16(ROW_BF16_NAN(r[0], r[1]), ROW_BF16_NAN(r[2], r[3])))
        return false;
    UNROLL for (unsigned i = 0; i < width / 2; i++) V_AT(u16, p, i) = r[i];
#else
    UNROLL for (unsigned i = 0; i < width; i += 2) BF_STORE(f32, p, i, a[i], a[i + 1]);
#endif
    return true;
}

#ifdef ROW_F16_LOAD
INLINE bool ROW(f16_put)(uint8_t *p, const ROW(f32) * a, const unsigned width)
{
    if (!ROW(f32_numbers)(a, width))
        return false;
    UNROLL for (unsigned i = 0; i < width; i++) ROW_F16_STORE(p + i * (ROW_BYTES / 2), a[i]);
    return true;
}
#endif

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
    SUMS(sum_##bits, V, bits / 8, ROW_BYTES, V_LOAD, V_STORE, ROW(V##_put))                        \
    VECTOR(prod_##bits, V, bits / 8, ROW_BYTES, V_LOAD, V_PROD, V_STORE)                           \
    VECTOR(band_##bits, V, bits / 8, ROW_BYTES, V_LOAD, V_BAND, V_STORE)                           \
    VECTOR(bor_##bits, V, bits / 8, ROW_BYTES, V_LOAD, V_BOR, V_STORE)                             \
    VECTOR(bxor_##bits, V, bits / 8, ROW_BYTES, V_LOAD, V_BXOR, V_STORE)
#define ORDERED(V, bits)                                                                           \
    VECTOR(min_##V, V, bits / 8, ROW_BYTES, V_LOAD, V_MIN, V_STORE)                                \
    VECTOR(max_##V, V, bits / 8, ROW_BYTES, V_LOAD, V_MAX, V_STORE)
#define FLOATING(name, V, EB, VB, LOAD, STORE)                                                     \
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
/* cppcheck-suppress-begin invalidPointerCast */
#ifdef ROW_ORDERED32
SUMS_LATE(sum_f32, 32, f32, u32, 4, ROW_BYTES, V_LOAD, V_STORE_F, V_STORE, F32_INF, F32_NAN)
#else
FLOAT_SUMS(sum_f32, f32, 4, ROW_BYTES, V_LOAD, V_STORE_F, ROW(f32_put))
#endif
FLOATING(f32, f32, 4, ROW_BYTES, V_LOAD, V_STORE_F)
#ifdef ROW_ORDERED64
SUMS_LATE(sum_f64, 64, f64, u64, 8, ROW_BYTES, V_LOAD, V_STORE_F, V_STORE, F64_INF, F64_NAN)
#else
FLOAT_SUMS(sum_f64, f64, 8, ROW_BYTES, V_LOAD, V_STORE_F, ROW(f64_put))
#endif
FLOATING(f64, f64, 8, ROW_BYTES, V_LOAD, V_STORE_F)
/* cppcheck-suppress-end invalidPointerCast */
/* For which numbers of inputs a loop of their own is faster was measured. */
#if defined(ROW_ORDERED32)
SUMS_LATE(sum_bf16, 32, f32, u16, 2, ROW_BYTES / 2, BF_LOAD, BF_STORE, BF_STORE_ANY, BF16_INF,
          BF16_NAN)
#elif defined(ROW_BF16_NAN)
VECTOR_OF(sum_bf16_any, sum_bf16, f32, 2, ROW_BYTES / 2, BF_LOAD, V_SUM, BF_STORE)
KNOWN(sum_bf16, f32, 2, ROW_BYTES / 2, BF_LOAD, V_SUM, ROW(bf16_put), 2, 8)
KNOWN(sum_bf16, f32, 2, ROW_BYTES / 2, BF_LOAD, V_SUM, ROW(bf16_put), 4, 8)
SUM(sum_bf16, 2, ROW_BYTES / 2, [2] = ROW(sum_bf16_of_2), [4] = ROW(sum_bf16_of_4))
#elif defined(ROW_BF16_ROUND)
VECTOR_OF(sum_bf16_any, sum_bf16, f32, 2, ROW_BYTES / 2, BF_LOAD, V_SUM, BF_STORE)
KNOWN(sum_bf16, f32, 2, ROW_BYTES / 2, BF_LOAD, V_SUM, ROW(bf16_put), 2, 4)
KNOWN(sum_bf16, f32, 2, ROW_BYTES / 2, BF_LOAD, V_SUM, ROW(bf16_put), 4, 4)
KNOWN(sum_bf16, f32, 2, ROW_BYTES / 2, BF_LOAD, V_SUM, ROW(bf16_put), 8, 4)
SUM(sum_bf16, 2,
    ROW_BYTES / 2, [2] = ROW(sum_bf16_of_2), [4] = ROW(sum_bf16_of_4), [8] = ROW(sum_bf16_of_8))
#else
VECTOR(sum_bf16, f32, 2, ROW_BYTES / 2, BF_LOAD, V_SUM, BF_STORE)
#endif
FLOATING(bf16, f32, 2, ROW_BYTES / 2, BF_LOAD, BF_STORE)
#ifdef ROW_F16_LOAD
#if defined(ROW_ORDERED32)
SUMS_LATE(sum_f16, 32, f32, u16, 2, ROW_BYTES / 2, HF_LOAD, HF_STORE, HF_STORE_ANY, F16_INF,
          F16_NAN)
#elif defined(ROW_F16_KNOWN)
VECTOR_OF(sum_f16_any, sum_f16, f32, 2, ROW_BYTES / 2, HF_LOAD, V_SUM, HF_STORE)
KNOWN(sum_f16, f32, 2, ROW_BYTES / 2, HF_LOAD, V_SUM, ROW(f16_put), 4, 8)
KNOWN(sum_f16, f32, 2, ROW_BYTES / 2, HF_LOAD, V_SUM, ROW(f16_put), 8, 4)
KNOWN(sum_f16, f32, 2, ROW_BYTES / 2, HF_LOAD, V_SUM, ROW(f16_put), 16, 2)
SUM(sum_f16, 2,
    ROW_BYTES / 2, [4] = ROW(sum_f16_of_4), [8] = ROW(sum_f16_of_8), [16] = ROW(sum_f16_of_16))
#else
VECTOR(sum_f16, f32, 2, ROW_BYTES / 2, HF_LOAD, V_SUM, HF_STORE)
#endif
FLOATING(f16, f32, 2, ROW_BYTES / 2, HF_LOAD, HF_STORE)
#else
#define PLAIN(name, fn)                                                                            \
    static __attribute__((unused)) void ROW(name)(void *out, const void *const *in, unsigned n,    \
                                                  size_t count)                                    \
    {                                                                                              \
        ROW_F16_REST(fn)(out, in, n, count);                                                       \
    }
#ifdef ROW_F16_ADD
/*
 * Of two halves the CPU's own sum is the rule's: fp32 has twice a half's bits and two more, so
 * that rounding to it first changes nothing, and neither takes denormals for zero. Of three there
 * are sums that differ.
 */
INLINE bool ROW(f16_two)(uint8_t *p, const ROW(u16) * a, const unsigned width)
{
    UNROLL for (unsigned i = 0; i < width; i += 4)
    {
        if (ROW_EITHER16(ROW_F16_NAN(a[i], a[i + 1]), ROW_F16_NAN(a[i + 2], a[i + 3])))
            return false;
    }
    UNROLL for (unsigned i = 0; i < width; i++) V_AT(u16, p, i) = a[i];
    return true;
}
PLAIN(sum_f16_any, sum_f16)
KNOWN(sum_f16, u16, 2, ROW_BYTES, V_LOAD, F16_ADD, ROW(f16_two), 2, 8)
SUM(sum_f16, 2, ROW_BYTES, [2] = ROW(sum_f16_of_2))
#else
PLAIN(sum_f16, sum_f16)
#endif
PLAIN(prod_f16, prod_f16)
PLAIN(min_f16, min_f16)
PLAIN(max_f16, max_f16)
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
#undef ROW_BF16_UP
#undef ROW_BF16_NAN
#undef ROW_F16_KNOWN
#undef ROW_F16_REST
#undef ROW_F16_ADD
#undef ROW_F16_NAN
#undef ROW_EITHER16
#undef ROW_ORDERED32
#undef ROW_ORDERED64
#undef ROW_MASK32
#undef ROW_MASK64
#undef INLINE
#undef PICK
#undef VECTOR
#undef VECTOR_OF
#undef UNROLL
#undef BLOCK
#undef KNOWN
#undef KNOWN_LATE
#undef SUMS_LATE
#undef SUM
#undef SUMS
#undef FLOAT_SUMS
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
#undef BF_STORE_ANY
#undef HF_LOAD
#undef HF_STORE
#undef HF_STORE_ANY
#undef F16_ADD
#undef WRAPPING
#undef ORDERED
#undef FLOATING
