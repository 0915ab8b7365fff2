/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/bench/verify/test_pattern.h"

#include "host/bench/verify/value.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Integers up to this are exact in the type (integers: small enough that avg does not wrap). */
static const int64_t exact_limit[DT_COUNT] = {
    [DT_INT8] = 127,         [DT_UINT8] = 255,         [DT_INT32] = 1 << 24, [DT_UINT32] = 1 << 24,
    [DT_INT64] = 1 << 24,    [DT_UINT64] = 1 << 24,    [DT_FP16] = 2048,     [DT_FP32] = 1 << 24,
    [DT_FP64] = 1 << 24,     [DT_BF16] = 256,          [DT_FP8_E4M3] = 16,   [DT_FP8_E5M2] = 8,
    [DT_FP32_LOC] = 1 << 24, [DT_INT32_LOC] = 1 << 24, [DT_INT16] = 32767,   [DT_UINT16] = 65535,
};

static bool is_signed(enum dtype t)
{
    return t != DT_UINT8 && t != DT_UINT16 && t != DT_UINT32 && t != DT_UINT64;
}

static uint32_t test_pattern_mix(unsigned rank, size_t i)
{
    uint64_t x = ((uint64_t)rank << 32 | (uint32_t)i) * 0x9e3779b97f4a7c15ull;

    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9ull;
    return (uint32_t)(x >> 32);
}

/* Contribution to a logical reduction; any bit means true. So many ranks contribute true that the
 * result varies. The result of a single rank is its own contribution: 0 or 1. */
static int64_t truth(const struct test_pattern *v, uint32_t h)
{
    bool rare = (h >> 8) % (2 * v->nranks) == 0;

    if (v->op == OP_LXOR ? h >> 31 : rare != (v->op == OP_LOR))
        return 0;
    return v->nranks > 1 ? (int64_t)(1ull << h % (8 * dtype_size(v->type))) : 1;
}

/* Element i of rank's contribution. */
static int64_t pattern_contribution(const struct test_pattern *v, unsigned rank, size_t i)
{
    int64_t limit = exact_limit[v->type];
    uint32_t h = test_pattern_mix(rank, i);

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
        return (int64_t) ~(1ull << h % (8 * dtype_size(v->type)));
    case OP_BOR:
    case OP_BXOR:
        return (int64_t)(1ull << h % (8 * dtype_size(v->type)));
    case OP_LAND:
    case OP_LOR:
    case OP_LXOR:
        return truth(v, h);
    case OP_MINLOC:
    case OP_MAXLOC:
        return (int64_t)(h % 1000) << VALUE_LOC_BITS | rank;
    default: {
        int64_t most = limit / v->nranks;
        if (most == 0) /* more ranks than the type can count: some of them contribute */
            return (rank + i) % (v->nranks / (size_t)limit + 1) == 0;
        int64_t x = (h >> 1) % (most + 1);
        return is_signed(v->type) && (h & 1) ? -x : x;
    }
    }
}

/* The exact result in 64-bit integers; an integer type has its low bits. */
static int64_t result(const struct test_pattern *v, size_t i)
{
    int64_t acc = pattern_contribution(v, 0, i);

    for (unsigned r = 1; r < v->nranks; r++) {
        int64_t x = pattern_contribution(v, r, i);
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
        else if (v->op == OP_LAND)
            acc = acc && x;
        else if (v->op == OP_LOR)
            acc = acc || x;
        else if (v->op == OP_LXOR)
            acc = !acc != !x;
        else if (v->op == OP_MINLOC)
            acc = x < acc ? x : acc;
        else if (v->op == OP_MAXLOC) /* of equal values the lowest index stays */
            acc = x >> VALUE_LOC_BITS > acc >> VALUE_LOC_BITS ? x : acc;
        else
            acc += x;
    }
    return acc;
}

/* Any bits, of the elements of collectives that only move them. */
static void store_bits(enum dtype t, void *buf, size_t i, unsigned rank)
{
    uint64_t x = (uint64_t)test_pattern_mix(rank, i) << 32 | test_pattern_mix(~rank, i);

    memcpy((uint8_t *)buf + i * dtype_size(t), &x, dtype_size(t));
}

int pattern_init(struct test_pattern *v)
{
    memset(v, 0, sizeof(*v));
    v->one_of = LAYOUT_NOTHING;
    v->all = malloc(PATTERN_BYTES);
    v->one = malloc(PATTERN_BYTES);
    if (v->all && v->one)
        return 0;
    pattern_free(v);
    return -ENOMEM;
}

void pattern_free(struct test_pattern *v)
{
    free(v->all);
    free(v->one);
    v->all = v->one = NULL;
}

void pattern_sample(struct test_pattern *v, const struct samples *s, const uint8_t *want,
                    unsigned ways)
{
    v->samples = s;
    v->want = want;
    v->ways = ways;
    v->given = NULL;
}

void pattern_set(struct test_pattern *v, const struct layout *l, enum dtype type, enum redop op)
{
    bool reduces = coll_reduces(l->kind);
    uint64_t most = l->count * l->nranks; /* the longest stream */
    size_t count = most < PATTERN_PERIOD ? (size_t)most : PATTERN_PERIOD;

    pattern_sample(v, NULL, NULL, 0);
    v->bound = 0;
    v->unit = 1;
    if (v->count >= count && v->type == type && v->op == op && v->nranks == l->nranks &&
        v->reduces == reduces)
        return;
    v->type = type;
    v->op = op;
    v->reduces = reduces;
    v->nranks = l->nranks;
    v->count = count;
    v->have_all = false;
    v->one_of = LAYOUT_NOTHING;
}

/* A power of two, so that sums stay exact. */
static double bounded_unit(enum dtype type, enum redop op, unsigned nranks)
{
    bool sums = op == OP_SUM || op == OP_AVG;

    return type == DT_FP32 && sums ? exp2(-ceil(log2(pattern_most(type, op, nranks, false)))) : 1;
}

void pattern_within(struct test_pattern *v, double bound)
{
    v->bound = bound;
    v->unit = bound > 0 ? bounded_unit(v->type, v->op, v->nranks) : 1;
}

double pattern_most(enum dtype type, enum redop op, unsigned nranks, bool bounded)
{
    int64_t most = exact_limit[type];
    double x;

    if (op == OP_PROD)
        return dtype_is_float(type) ? 2 : 127;
    if (op == OP_SUM || op == OP_AVG)
        most /= nranks;
    x = most ? (double)most : 1;
    return bounded ? x * bounded_unit(type, op, nranks) : x;
}

static void keep_unit(struct test_pattern *v)
{
    if (v->made_in == v->unit)
        return;
    v->made_in = v->unit;
    v->have_all = false;
    v->one_of = LAYOUT_NOTHING;
}

static const uint8_t *period_of_all(struct test_pattern *v)
{
    if (v->have_all)
        return v->all;
    for (size_t i = 0; i < v->count; i++)
        value_store(v->type, v->all, i, result(v, i));
    if (v->op == OP_AVG)
        arith_divide(v->all, v->type, v->nranks, v->count);
    if (v->unit < 1)
        value_scale(v->all, v->count, v->unit);
    v->have_all = true;
    return v->all;
}

static const uint8_t *period(struct test_pattern *v, unsigned source)
{
    keep_unit(v);
    if (source == LAYOUT_ALL)
        return period_of_all(v);
    if (v->one_of == source)
        return v->one;
    for (size_t i = 0; i < v->count; i++) {
        if (v->reduces)
            value_store(v->type, v->one, i, pattern_contribution(v, source, i));
        else
            store_bits(v->type, v->one, i, source);
    }
    if (v->reduces && v->unit < 1)
        value_scale(v->one, v->count, v->unit);
    v->one_of = source;
    return v->one;
}

#define UNTOUCHED 0x5a /* what must not be written */
static const uint8_t untouched[8] = {UNTOUCHED, UNTOUCHED, UNTOUCHED, UNTOUCHED,
                                     UNTOUCHED, UNTOUCHED, UNTOUCHED, UNTOUCHED};

/* A run of elements that does not go beyond the end of the period. */
struct pattern_run {
    const uint8_t *want;
    size_t n;
};

static struct pattern_run run_at(const struct test_pattern *v, const uint8_t *p, uint64_t i,
                                 uint64_t left)
{
    size_t at = (size_t)(i % v->count), n = v->count - at;

    return (struct pattern_run){p + at * dtype_size(v->type), left < n ? (size_t)left : n};
}

/* An element's bits; little-endian. */
static inline uint64_t element(const uint8_t *p, size_t size)
{
    uint64_t x = 0;

    if (size == 4)
        memcpy(&x, p, 4);
    else if (size == 2)
        memcpy(&x, p, 2);
    else
        memcpy(&x, p, size == 8 ? 8 : 1);
    return x;
}

/* What a rank contributes at a sample. */
static const uint8_t *given(const struct test_pattern *v, unsigned rank, unsigned k, uint64_t *mem)
{
    size_t size = dtype_size(v->type);

    if (v->given)
        return v->given + ((size_t)rank * v->samples->n + k) * size;
    *mem = samples_value(v->type, v->op, v->nranks, rank, v->samples->at[k]);
    return (const uint8_t *)mem;
}

static void fill_samples(const struct test_pattern *v, uint8_t *buf, unsigned rank, uint64_t first,
                         uint64_t n)
{
    const struct samples *s = v->samples;
    size_t size = dtype_size(v->type);

    for (unsigned k = s ? samples_from(s, first) : 0; s && k < s->n && s->at[k] - first < n; k++) {
        uint64_t mem, x = element(given(v, rank, k, &mem), size);

        memcpy(buf + (s->at[k] - first) * size, &x, size);
    }
}

void pattern_fill(struct test_pattern *v, void *buf, unsigned source, uint64_t first, uint64_t n)
{
    const uint8_t *p = n ? period(v, source) : NULL;
    size_t size = dtype_size(v->type);

    if (v->device && n) {
        device_fill(v->device, buf, p, v->count, first, n, (unsigned)size, false);
        return;
    }
    for (uint64_t done = 0; done < n;) {
        struct pattern_run r = run_at(v, p, first + done, n - done);
        memcpy((uint8_t *)buf + done * size, r.want, r.n * size);
        done += r.n;
    }
    if (source != LAYOUT_ALL)
        fill_samples(v, buf, source, first, n);
}

static void invert(uint8_t *p, size_t bytes)
{
    uint64_t x;

    for (; bytes >= sizeof(x); p += sizeof(x), bytes -= sizeof(x)) {
        memcpy(&x, p, sizeof(x));
        x = ~x;
        memcpy(p, &x, sizeof(x));
    }
    for (; bytes; bytes--, p++)
        *p = (uint8_t) ~*p;
}

void pattern_poison(struct test_pattern *v, void *buf, unsigned source, uint64_t first, uint64_t n)
{
    size_t size = dtype_size(v->type);

    if (v->device && n && source == LAYOUT_NOTHING) {
        device_fill(v->device, buf, untouched, 1, 0, n, (unsigned)size, false);
        return;
    }
    if (v->device && n) {
        device_fill(v->device, buf, period(v, source), v->count, first, n, (unsigned)size, true);
        return;
    }
    if (source == LAYOUT_NOTHING) {
        memset(buf, UNTOUCHED, n * size);
        return;
    }
    pattern_fill(v, buf, source, first, n);
    invert(buf, n * size);
}

static uint64_t touched(const struct test_pattern *v, const uint8_t *buf, uint64_t n)
{
    size_t size = dtype_size(v->type);
    uint64_t wrong = 0;

    for (uint64_t i = 0; i < n; i++) {
        bool same = true;
        for (size_t b = 0; b < size; b++)
            same = same && buf[i * size + b] == UNTOUCHED;
        wrong += !same;
    }
    return wrong;
}

static bool is_within(const struct test_pattern *v, const uint8_t *got, const uint8_t *want,
                      unsigned source)
{
    return source == LAYOUT_ALL && v->bound > 0 &&
           fabs(value_of(v->type, got) - value_of(v->type, want)) <= v->bound;
}

/* Elements that are no samples. */
static uint64_t plain_wrong(const struct test_pattern *v, const uint8_t *buf, const uint8_t *p,
                            unsigned source, uint64_t first, uint64_t n)
{
    size_t size = dtype_size(v->type);
    uint64_t wrong = 0;

    for (uint64_t done = 0; done < n;) {
        struct pattern_run r = run_at(v, p, first + done, n - done);
        const uint8_t *got = buf + done * size;

        done += r.n;
        if (!memcmp(got, r.want, r.n * size))
            continue;
        for (size_t i = 0; i < r.n; i++)
            wrong += memcmp(got + i * size, r.want + i * size, size) != 0 &&
                     !is_within(v, got + i * size, r.want + i * size, source);
    }
    return wrong;
}

static bool sample_right(const struct test_pattern *v, const uint8_t *got, unsigned source,
                         unsigned k)
{
    size_t size = dtype_size(v->type);
    uint64_t x = element(got, size), mem;

    if (source != LAYOUT_ALL)
        return x == element(given(v, source, k, &mem), size);
    for (unsigned w = 0; w < v->ways; w++)
        if (x == element(v->want + ((size_t)w * v->samples->n + k) * size, size))
            return true;
    return !v->ways;
}

/* Elements before the first sample, then each sample and those that follow it. */
static uint64_t sampled_wrong(const struct test_pattern *v, const uint8_t *buf, const uint8_t *p,
                              unsigned source, uint64_t first, uint64_t n)
{
    const struct samples *s = v->samples;
    size_t size = dtype_size(v->type);
    unsigned k = samples_from(s, first);
    uint64_t done = k < s->n && s->at[k] - first < n ? s->at[k] - first : n;
    uint64_t wrong = plain_wrong(v, buf, p, source, first, done),
             in_period = (first + done) % v->count;

    while (done < n) {
        uint64_t next = k + 1 < s->n ? s->at[k + 1] - first : n;

        wrong += !sample_right(v, buf + done * size, source, k++);
        next = (next < n ? next : n) - ++done; /* elements until the next sample */
        in_period = in_period + 1 < v->count ? in_period + 1 : 0;
        if (in_period + next > v->count ||
            memcmp(buf + done * size, p + in_period * size, next * size) != 0)
            wrong += plain_wrong(v, buf + done * size, p, source, first + done, next);
        done += next;
        in_period += next;
        while (in_period >= v->count)
            in_period -= v->count;
    }
    return wrong;
}

uint64_t pattern_wrong(struct test_pattern *v, const void *buf, unsigned source, uint64_t first,
                       uint64_t n)
{
    size_t size = dtype_size(v->type);

    if (v->device && n) {
        bool none = source == LAYOUT_NOTHING;
        struct device_wrong w = {0};

        device_verify(v->device, buf, none ? untouched : period(v, source), none ? 1 : v->count,
                      none ? 0 : first, n, (unsigned)size, &w);
        return w.n;
    }
    if (!n || source == LAYOUT_NOTHING)
        return n ? touched(v, buf, n) : 0;
    const uint8_t *p = period(v, source);
    return v->samples ? sampled_wrong(v, buf, p, source, first, n)
                      : plain_wrong(v, buf, p, source, first, n);
}

/* ---- both buffers of a rank ---- */

void pattern_prepare(struct test_pattern *v, const struct layout *l, void *send, void *recv)
{
    size_t size = dtype_size(v->type);
    uint8_t *out = (uint8_t *)recv + layout_recv_at(l) * size;
    uint8_t *in = l->in_place ? (uint8_t *)recv + layout_send_at(l) * size : send;
    struct piece p;

    for (unsigned i = 0; layout_piece(l, i, &p); i++)
        pattern_poison(v, out + p.at * size, p.source, p.first, p.n);
    pattern_fill(v, in, l->rank, 0, layout_send(l));
}

/* The input must be unchanged, except where the result has replaced it. */
static uint64_t input_wrong(struct test_pattern *v, const struct layout *l, const uint8_t *in)
{
    uint64_t n = layout_send(l), from = l->in_place ? layout_recv_at(l) : n;
    uint64_t to = l->in_place ? from + layout_recv(l) : n;
    size_t size = dtype_size(v->type);

    if (l->in_place && layout_send_at(l))
        return 0; /* a block of the result, and looked at as such */
    from = from < n ? from : n;
    to = to < n ? to : n;
    return pattern_wrong(v, in, l->rank, 0, from) +
           pattern_wrong(v, in + to * size, l->rank, to, n - to);
}

uint64_t pattern_check(struct test_pattern *v, const struct layout *l, const void *send,
                       const void *recv)
{
    size_t size = dtype_size(v->type);
    const uint8_t *out = (const uint8_t *)recv + layout_recv_at(l) * size;
    uint64_t wrong = input_wrong(v, l, l->in_place ? recv : send);
    struct piece p;

    for (unsigned i = 0; layout_piece(l, i, &p); i++)
        wrong += pattern_wrong(v, out + p.at * size, p.source, p.first, p.n);
    return wrong;
}
