/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/bench/verify/exact.h"

#include "base/random.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Exact for every sum in use. */
#ifdef __clang__
typedef __float128 quad;
#else
typedef _Float128 quad;
#endif

/* Of each float type: bits after the point, smallest and largest exponent of its normal numbers,
 * and over how many powers of two the contributions are spread. */
static const struct exact_shape {
    int bits, least, most, spread;
} shapes[DT_COUNT] = {
    [DT_FP16] = {10, -14, 15, 16},   [DT_BF16] = {7, -126, 127, 16},
    [DT_FP32] = {23, -126, 127, 24}, [DT_FP64] = {52, -1022, 1023, 32},
    [DT_FP8_E4M3] = {3, -6, 8, 10},  [DT_FP8_E5M2] = {2, -14, 15, 16},
};

static uint64_t exact_mix(uint64_t a, uint64_t b)
{
    return random_mix(a * 0x9e3779b97f4a7c15ull + b * 0xd1b54a32d192ed03ull +
                      0x2545f4914f6cdd1dull);
}

/* A number of the type. The largest exponent leaves room for the sum of all ranks. */
static double exact_contribution(enum dtype t, unsigned nranks, unsigned rank, uint64_t i)
{
    const struct exact_shape *s = &shapes[t];
    uint64_t h = exact_mix(rank, i), sign = exact_mix(UINT32_MAX, i);
    int room = 1, top, low;

    while ((1u << room) < nranks)
        room++;
    top = s->most - 1 - room;
    top = top < s->spread / 2 ? top : s->spread / 2;
    low = top - s->spread > s->least ? top - s->spread : s->least;
    top = top > low ? top : low;
    double mantissa = 1 + ldexp((double)(h & ((1ull << s->bits) - 1)), -s->bits);
    double x = ldexp(mantissa, low + (int)((h >> 53) % (unsigned)(top - low + 1)));
    return sign & 1 ? -x : x;
}

static void exact_store(enum dtype t, void *buf, uint64_t i, double x)
{
    float f = (float)x;
    uint16_t h = t == DT_FP16 ? fp32_to_fp16(f) : fp32_to_bf16(f);
    uint8_t *at = (uint8_t *)buf + i * dtype_size(t);

    if (t == DT_FP64)
        memcpy(at, &x, sizeof(x));
    else if (t == DT_FP32)
        memcpy(at, &f, sizeof(f));
    else if (t == DT_FP8_E4M3)
        *at = fp32_to_fp8_e4m3(f);
    else if (t == DT_FP8_E5M2)
        *at = fp32_to_fp8_e5m2(f);
    else
        memcpy(at, &h, sizeof(h));
}

static double exact_load(enum dtype t, const void *buf, uint64_t i)
{
    const uint8_t *at = (const uint8_t *)buf + i * dtype_size(t);
    double d;
    float f;
    uint16_t h;

    switch (t) {
    case DT_FP64:
        memcpy(&d, at, sizeof(d));
        return d;
    case DT_FP32:
        memcpy(&f, at, sizeof(f));
        return (double)f;
    case DT_FP8_E4M3:
        return (double)fp8_e4m3_to_fp32(*at);
    case DT_FP8_E5M2:
        return (double)fp8_e5m2_to_fp32(*at);
    default:
        memcpy(&h, at, sizeof(h));
        return (double)(t == DT_FP16 ? fp16_to_fp32(h) : bf16_to_fp32(h));
    }
}

void exact_fill(void *buf, enum dtype t, unsigned nranks, unsigned rank, uint64_t first, uint64_t n)
{
    size_t size = dtype_size(t);
    uint64_t own = n < EXACT_PERIOD ? n : EXACT_PERIOD;

    for (uint64_t i = 0; i < own; i++)
        exact_store(t, buf, i, exact_contribution(t, nranks, rank, (first + i) % EXACT_PERIOD));
    for (uint64_t done = own; done < n; done += own) {
        uint64_t part = n - done < own ? n - done : own;
        memcpy((uint8_t *)buf + done * size, buf, part * size);
    }
}

/* Of one unit in the last place at x. */
static double unit(enum dtype t, double x)
{
    const struct exact_shape *s = &shapes[t];
    int e = x != 0 ? ilogb(x) : s->least;

    return ldexp(1, (e > s->least ? e : s->least) - s->bits);
}

int exact_error(struct ulp *u, const void *buf, enum dtype t, bool avg, unsigned nranks,
                uint64_t first, uint64_t n)
{
    uint64_t own = n < EXACT_PERIOD ? n : EXACT_PERIOD;
    quad *want = calloc(own + 1, sizeof(*want));

    if (!want)
        return -ENOMEM;
    for (uint64_t i = 0; i < own; i++) {
        for (unsigned r = 0; r < nranks; r++)
            want[i] += (quad)exact_contribution(t, nranks, r, (first + i) % EXACT_PERIOD);
        if (avg)
            want[i] /= (quad)nranks;
    }
    for (uint64_t i = 0; i < n; i++) {
        double got = exact_load(t, buf, i), off = INFINITY;
        quad x = want[i % own];

        if (isfinite(got))
            off = fabs((double)((quad)got - x)) / unit(t, (double)x);
        u->max = off > u->max ? off : u->max;
        u->sum += off;
    }
    u->n += n;
    free(want);
    return 0;
}
