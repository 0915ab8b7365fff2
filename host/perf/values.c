#include "host/perf/values.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Integers up to this are exact in the type (integers: small enough that avg does not wrap). */
static const int64_t exact_limit[DT_COUNT] = {
    [DT_INT8] = 127,         [DT_UINT8] = 255,         [DT_INT32] = 1 << 24, [DT_UINT32] = 1 << 24,
    [DT_INT64] = 1 << 24,    [DT_UINT64] = 1 << 24,    [DT_FP16] = 2048,     [DT_FP32] = 1 << 24,
    [DT_FP64] = 1 << 24,     [DT_BF16] = 256,          [DT_FP8_E4M3] = 16,   [DT_FP8_E5M2] = 8,
    [DT_FP32_LOC] = 1 << 24, [DT_INT32_LOC] = 1 << 24,
};

static bool is_signed(enum dtype t)
{
    return t != DT_UINT8 && t != DT_UINT32 && t != DT_UINT64;
}

static uint32_t mix(unsigned rank, size_t i)
{
    uint64_t x = ((uint64_t)rank << 32 | (uint32_t)i) * 0x9e3779b97f4a7c15ull;

    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9ull;
    return (uint32_t)(x >> 32);
}

/* Pairs as one number: the value, and below it the index, which is the rank. */
#define LOC_BITS 20
#define LOC_MASK ((1 << LOC_BITS) - 1)

/* Element i of rank's contribution. */
static int64_t contribution(const struct values *v, unsigned rank, size_t i)
{
    int64_t limit = exact_limit[v->type];
    uint32_t h = mix(rank, i);

    switch (v->op) {
    case OP_PROD:
        /* Integers wrap, and an odd factor never loses a bit. Floats: at most some eight factors of
         * two. */
        if (!dtype_is_float(v->type))
            return (int64_t)(h % 127) | 1;
        return (rank + i) % ((v->nranks + 7) / 8) == 0 && (h & 1) ? 2 : 1;
    case OP_MIN:
    case OP_MAX:
        h %= (uint32_t)limit;
        return is_signed(v->type) && (h & 1) ? -(int64_t)h : (int64_t)h;
    case OP_BAND:
        return ~(1LL << h % (8 * dtype_size(v->type)));
    case OP_BOR:
    case OP_BXOR:
        return 1LL << h % (8 * dtype_size(v->type));
    case OP_MINLOC:
    case OP_MAXLOC:
        return (int64_t)(h % 1000) << LOC_BITS | rank;
    default: {
        int64_t most = limit / v->nranks;
        if (most == 0) /* more ranks than the type can count: some of them contribute */
            return (rank + i) % (v->nranks / (size_t)limit + 1) == 0;
        int64_t x = (h >> 1) % (most + 1);
        return is_signed(v->type) && (h & 1) ? -x : x;
    }
    }
}

/* The exact result in 64-bit integers; what an integer type keeps of it are its low bits. */
static int64_t result(const struct values *v, size_t i)
{
    int64_t acc = contribution(v, 0, i);

    for (unsigned r = 1; r < v->nranks; r++) {
        int64_t x = contribution(v, r, i);
        if (v->op == OP_PROD)
            acc = (int64_t)((uint64_t)acc * (uint64_t)x);
        else if (v->op == OP_MIN)
            acc = x < acc ? x : acc;
        else if (v->op == OP_MAX)
            acc = x > acc ? x : acc;
        else if (v->op == OP_BAND)
            acc &= x;
        else if (v->op == OP_BOR)
            acc |= x;
        else if (v->op == OP_BXOR)
            acc ^= x;
        else if (v->op == OP_MINLOC)
            acc = x < acc ? x : acc;
        else if (v->op == OP_MAXLOC) /* of equal values the lowest index stays */
            acc = x >> LOC_BITS > acc >> LOC_BITS ? x : acc;
        else
            acc += x;
    }
    return acc;
}

static void store(enum dtype t, void *buf, size_t i, int64_t x)
{
    float f = (float)x;
    double d = (double)x;
    int32_t pair[2] = {(int32_t)(x >> LOC_BITS), (int32_t)(x & LOC_MASK)};
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

int values_init(struct values *v)
{
    memset(v, 0, sizeof(*v));
    v->mine = malloc(VALUES_BYTES);
    v->want = malloc(VALUES_BYTES);
    if (v->mine && v->want)
        return 0;
    values_free(v);
    return -ENOMEM;
}

void values_free(struct values *v)
{
    free(v->mine);
    free(v->want);
    v->mine = v->want = NULL;
}

void values_set(struct values *v, enum dtype type, enum redop op, unsigned rank, unsigned nranks,
                size_t count)
{
    if (count > VALUES_PERIOD)
        count = VALUES_PERIOD;
    if (v->count >= count && v->count && v->type == type && v->op == op && v->rank == rank &&
        v->nranks == nranks)
        return;
    v->type = type;
    v->op = op;
    v->rank = rank;
    v->nranks = nranks;
    v->count = count;
    for (size_t i = 0; i < count; i++) {
        store(type, v->mine, i, contribution(v, rank, i));
        store(type, v->want, i, result(v, i));
    }
    if (op == OP_AVG)
        arith_divide(v->want, type, nranks, count);
}

void values_fill(const struct values *v, void *buf, size_t count)
{
    size_t size = dtype_size(v->type);

    for (size_t at = 0; at < count; at += v->count) {
        size_t n = count - at < v->count ? count - at : v->count;
        memcpy((uint8_t *)buf + at * size, v->mine, n * size);
    }
}

void values_poison(const struct values *v, void *buf, size_t count)
{
    size_t period = v->count * dtype_size(v->type), bytes = count * dtype_size(v->type);
    uint8_t *out = buf;

    for (size_t at = 0; at < bytes; at += period) {
        size_t n = bytes - at < period ? bytes - at : period;
        for (size_t i = 0; i < n; i++)
            out[at + i] = (uint8_t)~v->want[i];
    }
}

uint64_t values_wrong(const struct values *v, const void *buf, size_t count)
{
    size_t size = dtype_size(v->type);
    uint64_t wrong = 0;

    for (size_t at = 0; at < count; at += v->count) {
        size_t n = count - at < v->count ? count - at : v->count;
        const uint8_t *got = (const uint8_t *)buf + at * size;
        if (!memcmp(got, v->want, n * size))
            continue;
        for (size_t i = 0; i < n; i++)
            wrong += memcmp(got + i * size, v->want + i * size, size) != 0;
    }
    return wrong;
}
