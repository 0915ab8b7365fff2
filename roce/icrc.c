/* SPDX-License-Identifier: BSD-3-Clause */
#include "roce/icrc.h"

#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words are loaded as they stand");

/* Register ~0 after eight bytes of 0xff, which replace the InfiniBand route header. */
#define ICRC_START 0xdebb20e3u
/* IPv4, UDP and BTH in five words, with the fields that routers may change as 0xff. */
#define MASK_TOS     0xff00ull /* DSCP and ECN */
#define MASK_TTL_SUM 0xffff00ffull
#define MASK_UDP_SUM 0xffff0000ull
#define MASK_BTH     0xffull /* FECN, BECN, reserved */

/*
 * Slicing by eight: entry i of row k is the register after byte i and k bytes of zero. It is linear
 * in the bits of i, so eight constants give a row at compile time. Short pieces (headers) and
 * remainders use the tables. Long ones are folded by carry-less multiplication, 64 bytes a step
 * (256 with vectors of 64 bytes), down to 16 bytes, and those to the register.
 */
#define E(i, a, b, c, d, e, f, g, h)                                                               \
    (((i)&1 ? a : 0) ^ ((i)&2 ? b : 0) ^ ((i)&4 ? c : 0) ^ ((i)&8 ? d : 0) ^ ((i)&16 ? e : 0) ^    \
     ((i)&32 ? f : 0) ^ ((i)&64 ? g : 0) ^ ((i)&128 ? h : 0))
#define E4(i, ...)                                                                                 \
    E(i, __VA_ARGS__), E((i) + 1, __VA_ARGS__), E((i) + 2, __VA_ARGS__), E((i) + 3, __VA_ARGS__)
#define E16(i, ...)                                                                                \
    E4(i, __VA_ARGS__), E4((i) + 4, __VA_ARGS__), E4((i) + 8, __VA_ARGS__),                        \
        E4((i) + 12, __VA_ARGS__)
#define E64(i, ...)                                                                                \
    E16(i, __VA_ARGS__), E16((i) + 16, __VA_ARGS__), E16((i) + 32, __VA_ARGS__),                   \
        E16((i) + 48, __VA_ARGS__)
#define ROW(...)                                                                                   \
    {E64(0, __VA_ARGS__), E64(64, __VA_ARGS__), E64(128, __VA_ARGS__), E64(192, __VA_ARGS__)},

static const uint32_t table[8][256] = {
    ROW(0x77073096u, 0xee0e612cu, 0x076dc419u, 0x0edb8832u, 0x1db71064u, 0x3b6e20c8u, 0x76dc4190u,
        0xedb88320u) ROW(0x191b3141u, 0x32366282u, 0x646cc504u, 0xc8d98a08u, 0x4ac21251u,
                         0x958424a2u, 0xf0794f05u, 0x3b83984bu)
        ROW(0x01c26a37u, 0x0384d46eu, 0x0709a8dcu, 0x0e1351b8u, 0x1c26a370u, 0x384d46e0u,
            0x709a8dc0u, 0xe1351b80u) ROW(0xb8bc6765u, 0xaa09c88bu, 0x8f629757u, 0xc5b428efu,
                                          0x5019579fu, 0xa032af3eu, 0x9b14583du, 0xed59b63bu)
            ROW(0x3d6029b0u, 0x7ac05360u, 0xf580a6c0u, 0x30704bc1u, 0x60e09782u, 0xc1c12f04u,
                0x58f35849u, 0xb1e6b092u) ROW(0xcb5cd3a5u, 0x4dc8a10bu, 0x9b914216u, 0xec53826du,
                                              0x03d6029bu, 0x07ac0536u, 0x0f580a6cu, 0x1eb014d8u)
                ROW(0xa6770bb4u, 0x979f1129u, 0xf44f2413u, 0x33ef4e67u, 0x67de9cceu, 0xcfbd399cu,
                    0x440b7579u, 0x8816eaf2u)
                    ROW(0xccaa009eu, 0x4225077du, 0x844a0efau, 0xd3e51bb5u, 0x7cbb312bu,
                        0xf9766256u, 0x299dc2edu, 0x533b85dau)};

/* To move by 2^k bytes, d bits: x^(d + 32) and x^(d - 32) mod P, reflected. */
static const uint64_t by_bytes[32][2] = {
    {0x077073096, 0x03f036dc2}, {0x1c26a3700, 0x1ae24a6b0}, {0x163cd6124, 0x100000000},
    {0x0ccaa009e, 0x1db710640}, {0x1751997d0, 0x0ccaa009e}, {0x0f1da05aa, 0x15a546366},
    {0x154442bd4, 0x1c6e41596}, {0x1e88ef372, 0x14a7fe880}, {0x11542778a, 0x1322d1430},
    {0x01072db28, 0x1d741f35c}, {0x123e0f72e, 0x0bbf2f6d6}, {0x153c7bc22, 0x1a03baef6},
    {0x05ad8a92c, 0x1b3b1a484}, {0x0b566f6e2, 0x1f848d714}, {0x146e02ffe, 0x0e0ee5efe},
    {0x02ee43a2c, 0x1f2b342ca}, {0x01b4511ee, 0x190e02912}, {0x0bce15202, 0x079d78d2c},
    {0x12479e3ae, 0x16b3f2b0a}, {0x06f76172e, 0x1b17fa50e}, {0x18d84ccf8, 0x19677ce9e},
    {0x0385993ac, 0x1153260fe}, {0x0b4247b20, 0x143e74a14}, {0x1b22080e6, 0x042572086},
    {0x066bc001e, 0x04a8257e2}, {0x16efa21f2, 0x02b116eb6}, {0x0fe273162, 0x104d16ae6},
    {0x108b88e52, 0x16ab3bcbe}, {0x0f7d6deb4, 0x094829948}, {0x0edb88320, 0x180448992},
    {0x076dc4190, 0x11b534288}, {0x01db71064, 0x046d4d0a2},
};

static inline uint64_t load64(const void *p)
{
    uint64_t v;

    memcpy(&v, p, 8);
    return v;
}

/* Separate loads: one load of 16 bytes would wait until both stores have left the CPU's store
 * buffer. */
static inline uint64_t load64_alone(const void *p)
{
    uint64_t v = load64(p);

    __asm__("" : "+r"(v));
    return v;
}

/* Register after eight bytes. */
static inline uint32_t step8(uint32_t crc, uint64_t v)
{
    v ^= crc;
    return table[7][v & 0xff] ^ table[6][v >> 8 & 0xff] ^ table[5][v >> 16 & 0xff] ^
           table[4][v >> 24 & 0xff] ^ table[3][v >> 32 & 0xff] ^ table[2][v >> 40 & 0xff] ^
           table[1][v >> 48 & 0xff] ^ table[0][v >> 56];
}

static uint32_t crc_table(uint32_t crc, const uint8_t *p, size_t n)
{
    for (; n >= 8; p += 8, n -= 8)
        crc = step8(crc, load64(p));
    for (; n; p++, n--)
        crc = table[0][(crc ^ *p) & 0xff] ^ crc >> 8;
    return crc;
}

#if defined(__x86_64__)
#define CLMUL __attribute__((target("pclmul,sse4.1")))
#define WIDE  __attribute__((target("vpclmulqdq,avx512f,avx512vl,pclmul,sse4.1")))

/* x moved forward by the number of bits of k (a pair of x^(d + 32), x^(d - 32) mod P,
 * reflected). */
CLMUL static inline __m128i fold(__m128i x, __m128i k, __m128i next)
{
    return _mm_xor_si128(
        next, _mm_xor_si128(_mm_clmulepi64_si128(x, k, 0x00), _mm_clmulepi64_si128(x, k, 0x11)));
}

CLMUL static inline __m128i pair(uint64_t first, uint64_t second)
{
    return _mm_set_epi64x((long long)second, (long long)first);
}

/* Folds the accumulator a with the remaining whole vectors of the n bytes at p. */
CLMUL static inline uint32_t crc_last(__m128i a, const uint8_t *p, size_t n)
{
    const __m128i by128 = pair(0x1751997d0, 0x0ccaa009e), by64 = pair(0x163cd6124, 0);
    const __m128i poly = pair(0x1db710641, 0x1f7011641), low = pair(0xffffffff, 0);
    __m128i q;

    for (const uint8_t *end = p + (n & ~(size_t)15); p < end; p += 16)
        a = fold(a, by128, _mm_loadu_si128((const __m128i *)p));
    /* 128 bits to 96, to 64, and Barrett's reduction: quotient by P's inverse, and its product with
     * P taken away. */
    a = _mm_xor_si128(_mm_srli_si128(a, 8), _mm_clmulepi64_si128(a, by128, 0x10));
    a = _mm_xor_si128(_mm_srli_si128(a, 4),
                      _mm_clmulepi64_si128(_mm_and_si128(a, low), by64, 0x00));
    q = _mm_and_si128(_mm_clmulepi64_si128(_mm_and_si128(a, low), poly, 0x10), low);
    a = _mm_xor_si128(a, _mm_clmulepi64_si128(q, poly, 0x00));
    return (uint32_t)_mm_extract_epi32(a, 1);
}

/* The bytes of n that remain after whole vectors. */
static inline uint32_t crc_rest(uint32_t crc, const uint8_t *p, size_t n)
{
    return n & 15 ? crc_table(crc, p + (n & ~(size_t)15), n & 15) : crc;
}

/* n >= 64. Register after whole vectors. */
CLMUL static inline __attribute__((always_inline)) uint32_t crc_vectors(uint32_t crc,
                                                                        const uint8_t *p, size_t n)
{
    const __m128i by512 = pair(0x154442bd4, 0x1c6e41596), by128 = pair(0x1751997d0, 0x0ccaa009e);
    const __m128i *v = (const __m128i *)p;
    __m128i a = _mm_xor_si128(_mm_loadu_si128(v), _mm_cvtsi32_si128((int)crc));
    __m128i b = _mm_loadu_si128(v + 1), c = _mm_loadu_si128(v + 2), d = _mm_loadu_si128(v + 3);

    for (v += 4, n -= 64; n >= 64; v += 4, n -= 64) {
        a = fold(a, by512, _mm_loadu_si128(v));
        b = fold(b, by512, _mm_loadu_si128(v + 1));
        c = fold(c, by512, _mm_loadu_si128(v + 2));
        d = fold(d, by512, _mm_loadu_si128(v + 3));
    }
    a = fold(fold(fold(a, by128, b), by128, c), by128, d);
    return crc_last(a, (const uint8_t *)v, n);
}

CLMUL static uint32_t crc_clmul(uint32_t crc, const uint8_t *p, size_t n)
{
    return crc_rest(crc_vectors(crc, p, n), p, n);
}

/* The same in instructions of three operands. */
WIDE static uint32_t crc_short(uint32_t crc, const uint8_t *p, size_t n)
{
    return crc_rest(crc_vectors(crc, p, n), p, n);
}

WIDE static inline __m512i fold4(__m512i x, __m128i k, __m512i next)
{
    __m512i k4 = _mm512_broadcast_i32x4(k);

    return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(x, k4, 0x00),
                                     _mm512_clmulepi64_epi128(x, k4, 0x11), next, 0x96);
}

/* Loads 64 bytes at p and copies them to `to`, unless it is NULL. */
WIDE static inline __attribute__((always_inline)) __m512i load(uint8_t *to, const uint8_t *p,
                                                               size_t at)
{
    __m512i v = _mm512_loadu_si512(p + at);

    if (to)
        _mm512_storeu_si512(to + at, v);
    return v;
}

/* n >= 256: four vectors of four. Copied to `to`, unless it is NULL. */
WIDE static inline __attribute__((always_inline)) uint32_t wide(uint32_t crc, uint8_t *to,
                                                                const uint8_t *p, size_t n)
{
    const __m128i by2048 = pair(0x11542778a, 0x1322d1430), by512 = pair(0x154442bd4, 0x1c6e41596);
    const __m128i by384 = pair(0x03db1ecdc, 0x174359406), by256 = pair(0x0f1da05aa, 0x15a546366);
    const __m128i by128 = pair(0x1751997d0, 0x0ccaa009e);
    __m512i a =
        _mm512_xor_si512(load(to, p, 0), _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)crc)));
    __m512i b = load(to, p, 64), c = load(to, p, 128), d = load(to, p, 192);
    size_t at = 256;
    __m128i x;

    for (; at + 256 <= n; at += 256) {
        a = fold4(a, by2048, load(to, p, at));
        b = fold4(b, by2048, load(to, p, at + 64));
        c = fold4(c, by2048, load(to, p, at + 128));
        d = fold4(d, by2048, load(to, p, at + 192));
    }
    a = fold4(fold4(fold4(a, by512, b), by512, c), by512, d);
    for (; at + 64 <= n; at += 64)
        a = fold4(a, by512, load(to, p, at));
    x = fold(_mm512_castsi512_si128(a), by384, _mm512_extracti32x4_epi32(a, 3));
    x = fold(_mm512_extracti32x4_epi32(a, 1), by256, x);
    x = fold(_mm512_extracti32x4_epi32(a, 2), by128, x);
    if (to && at < n)
        memcpy(to + at, p + at, n - at);
    p = to ? to + at : p + at;
    n -= at;
    crc = crc_last(x, p, n);
    _mm256_zeroupper(); /* gcc 12 omits it before a tail call, and every later SSE instruction then
                           waits for the register that it writes to */
    return crc_rest(crc, p, n);
}

WIDE static uint32_t crc_wide(uint32_t crc, const uint8_t *p, size_t n)
{
    return wide(crc, NULL, p, n);
}

WIDE static uint32_t copy_wide(uint32_t crc, uint8_t *to, const uint8_t *p, size_t n)
{
    return wide(crc, to, p, n);
}

/* Appends n bytes of zero to the data of a. */
CLMUL static inline __m128i fold_zeros(__m128i a, uint32_t n)
{
    for (; n; n &= n - 1) {
        const uint64_t *k = by_bytes[__builtin_ctz(n)];

        a = fold(a, pair(k[0], k[1]), _mm_setzero_si128());
    }
    return a;
}

/* roce_icrc_headers() in vectors, without tables that would have to be in the cache. Eight bytes of
 * zero in front change nothing. */
CLMUL static uint32_t headers_clmul(const uint8_t *p, uint32_t n, uint32_t zeros)
{
    const __m128i by128 = pair(0x1751997d0, 0x0ccaa009e);
    __m128i a = pair(0, (load64(p) | MASK_TOS) ^ ICRC_START);

    a = fold(a, by128, pair(load64(p + 8) | MASK_TTL_SUM, load64(p + 16)));
    a = fold(a, by128, pair(load64_alone(p + 24) | MASK_UDP_SUM, load64_alone(p + 32) | MASK_BTH));
    for (p += 40, n -= 40; n;) { /* extended headers */
        uint32_t piece = n < 16 ? n : 16;
        uint8_t last[16] = {0};

        memcpy(last + 16 - piece, p, piece);
        a = _mm_xor_si128(fold_zeros(a, piece), _mm_loadu_si128((const __m128i *)last));
        p += piece, n -= piece;
    }
    return crc_last(fold_zeros(a, zeros), p, 0);
}

static inline bool have_clmul(void)
{
    return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
}

static inline bool have_wide(void)
{
    return __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx512vl");
}
#else
static inline bool have_wide(void)
{
    return false;
}
static uint32_t crc_wide(uint32_t crc, const uint8_t *p, size_t n)
{
    return crc_table(crc, p, n);
}
static uint32_t copy_wide(uint32_t crc, uint8_t *to, const uint8_t *p, size_t n)
{
    return crc_table(crc, memcpy(to, p, n), n);
}
static uint32_t crc_short(uint32_t crc, const uint8_t *p, size_t n)
{
    return crc_table(crc, p, n);
}
static inline bool have_clmul(void)
{
    return false;
}
static uint32_t crc_clmul(uint32_t crc, const uint8_t *p, size_t n)
{
    return crc_table(crc, p, n);
}
static uint32_t headers_clmul(const uint8_t *p, uint32_t n, uint32_t zeros)
{
    return crc_table(zeros, p, n);
}
#endif

uint32_t roce_crc(uint32_t crc, const void *p, size_t n)
{
    if (n >= 64 && have_wide())
        return n >= 256 ? crc_wide(crc, p, n) : crc_short(crc, p, n);
    if (n >= 64 && have_clmul())
        return crc_clmul(crc, p, n);
    return crc_table(crc, p, n);
}

uint32_t roce_crc_copy(uint32_t crc, void *to, const void *p, size_t n)
{
    if (n >= 256 && have_wide())
        return copy_wide(crc, to, p, n);
    return roce_crc(crc, memcpy(to, p, n), n);
}

/* Product of polynomials without carries. */
static uint64_t mul(uint32_t a, uint32_t b)
{
    uint64_t r = 0;

    for (unsigned i = 0; i < 32; i++)
        if (a >> i & 1)
            r ^= (uint64_t)b << i;
    return r;
}

/* Reducing a product of 64 bits by step8() multiplies by x^32 once more. */
uint32_t roce_crc_shift(uint32_t crc, uint32_t n)
{
    for (; n; n &= n - 1)
        crc = step8(0, mul(crc, (uint32_t)(by_bytes[__builtin_ctz(n)][1] >> 1)) << 1);
    return crc;
}

uint32_t roce_icrc_headers(const uint8_t *p, uint32_t n, uint32_t zeros)
{
    uint32_t crc;

    if (have_clmul())
        return headers_clmul(p, n, zeros);
    crc = step8(ICRC_START, load64(p) | MASK_TOS);
    crc = step8(crc, load64(p + 8) | MASK_TTL_SUM);
    crc = step8(crc, load64(p + 16));
    crc = step8(crc, load64(p + 24) | MASK_UDP_SUM);
    crc = step8(crc, load64(p + 32) | MASK_BTH);
    return roce_crc_shift(roce_crc(crc, p + 40, n - 40), zeros);
}

/* By table: frames with IPv6 are few. Traffic class and flow label, hop limit, UDP's checksum and
 * BTH's byte 4 are masked. */
uint32_t roce_icrc_headers6(const uint8_t *p, uint32_t n, uint32_t zeros)
{
    uint8_t h[40 + 8 + 12];

    memcpy(h, p, sizeof(h));
    h[0] |= 0x0f;
    h[1] = h[2] = h[3] = h[7] = 0xff;
    h[46] = h[47] = h[52] = 0xff;
    return roce_crc_shift(
        crc_table(crc_table(ICRC_START, h, sizeof(h)), p + sizeof(h), n - sizeof(h)), zeros);
}
