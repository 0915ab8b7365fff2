/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/bench/verify/value.h"

#include <math.h>
#include <string.h>

void value_store(enum dtype t, void *buf, size_t i, int64_t x)
{
    float f = (float)x;
    double d = (double)x;
    int32_t pair[2] = {(int32_t)(x >> VALUE_LOC_BITS), (int32_t)(x & VALUE_LOC_MASK)};
    uint16_t h;

    switch (t) {
    case DT_FP8_E4M3:
        ((uint8_t *)buf)[i] = fp32_to_fp8_e4m3(f);
        return;
    case DT_FP8_E5M2:
        ((uint8_t *)buf)[i] = fp32_to_fp8_e5m2(f);
        return;
    case DT_FP32_LOC:
        f = (float)pair[0];
        memcpy(pair, &f, sizeof(f));
        memcpy((uint8_t *)buf + 8 * i, pair, sizeof(pair));
        return;
    case DT_INT32_LOC:
        memcpy((uint8_t *)buf + 8 * i, pair, sizeof(pair));
        return;
    case DT_FP16:
        h = fp32_to_fp16(f);
        memcpy((uint16_t *)buf + i, &h, sizeof(h));
        return;
    case DT_BF16:
        h = fp32_to_bf16(f);
        memcpy((uint16_t *)buf + i, &h, sizeof(h));
        return;
    case DT_FP32:
        memcpy((float *)buf + i, &f, sizeof(f));
        return;
    case DT_FP64:
        memcpy((double *)buf + i, &d, sizeof(d));
        return;
    default: /* little-endian: an integer's low bytes come first */
        memcpy((uint8_t *)buf + i * dtype_size(t), &x, dtype_size(t));
    }
}

double value_of(enum dtype t, const uint8_t *p)
{
    uint64_t x = 0;
    float f;
    double d;

    memcpy(&x, p, dtype_size(t));
    switch (t) {
    case DT_FP16:
        return (double)fp16_to_fp32((uint16_t)x);
    case DT_BF16:
        return (double)bf16_to_fp32((uint16_t)x);
    case DT_FP32:
        memcpy(&f, p, sizeof(f));
        return (double)f;
    case DT_FP64:
        memcpy(&d, p, sizeof(d));
        return d;
    case DT_INT8:
        return (double)(int8_t)x;
    case DT_INT16:
        return (double)(int16_t)x;
    case DT_INT32:
        return (double)(int32_t)x;
    case DT_INT64:
        return (double)(int64_t)x;
    case DT_UINT8:
    case DT_UINT16:
    case DT_UINT32:
    case DT_UINT64:
        return (double)x;
    default: /* states no bound */
        return NAN;
    }
}

void value_scale(void *buf, size_t n, double by)
{
    float x;

    for (char *p = buf; n; n--, p += sizeof(x)) {
        memcpy(&x, p, sizeof(x));
        x = (float)(x * by);
        memcpy(p, &x, sizeof(x));
    }
}
