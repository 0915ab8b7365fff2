/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/bench/verify/samples.h"

#include "aggregation/proto.h"
#include "base/random.h"
#include "host/bench/verify/rule.h"

#include <stdlib.h>

/* ---- positions ---- */

#define ENDS    64u                /* number of first positions, and of last positions */
#define BORDERS (SAMPLES_MAX / 8u) /* most borders of one kind */

static uint64_t samples_mix(uint64_t a, uint64_t b)
{
    return random_mix(a * 0x9e3779b97f4a7c15u + b * 0xd1b54a32d192ed03u + 0x8ebc6af09c88c6e3u);
}

static void samples_add(struct samples *s, uint64_t at, uint64_t total)
{
    if (at < total && s->n < SAMPLES_MAX)
        s->at[s->n++] = at;
}

/* Adds borders between parts of `part` bytes, the first of which is `head` bytes shorter; of many a
 * random choice. */
static void add_borders(struct samples *s, uint64_t total, unsigned size, uint64_t part,
                        uint64_t head)
{
    uint64_t n = (total * size + head) / part, most = n < BORDERS / 4 ? n : BORDERS / 4;

    for (uint64_t i = 0; i < most; i++) {
        uint64_t k = 1 + (n == most ? i : samples_mix(part, i) % n), at = (k * part - head) / size;

        for (uint64_t j = 0; j < 3; j++)
            samples_add(s, at + j - 1, total); /* before 0: beyond all */
    }
}

static void add_blocks(struct samples *s, uint64_t total, unsigned nranks)
{
    uint64_t part = total / nranks, more = total % nranks;
    unsigned step = (nranks + BORDERS / 4 - 1) / (BORDERS / 4);

    for (unsigned k = 1; k < nranks; k += step) {
        uint64_t at = k * part + (k < more ? k : more);

        for (uint64_t i = 0; i < 4; i++)
            samples_add(s, at + i - 2, total); /* before 0: beyond all */
    }
}

static int sample_compare(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

void samples_choose(struct samples *s, const struct layout *l, enum dtype t, uint32_t mtu)
{
    uint64_t total = l->kind == COLL_REDUCE_SCATTER ? l->count * l->nranks : l->count, left;
    unsigned size = dtype_size(t), n = 0;

    s->n = 0;
    if (total <= SAMPLES_MAX) {
        for (uint64_t i = 0; i < total; i++)
            samples_add(s, i, total);
        return;
    }
    for (uint64_t i = 0; i < ENDS; i++) {
        samples_add(s, i, total);
        samples_add(s, total - 1 - i, total);
    }
    add_blocks(s, total, l->nranks);
    add_borders(s, total, size, mtu, 0);
    add_borders(s, total, size, mtu, AGG_HDR_BYTES);
    add_borders(s, total, size, AGG_MSG_BYTES(mtu), 0);
    left = SAMPLES_MAX - s->n;
    for (uint64_t i = 0; i < left; i++) {
        uint64_t from = total / left * i, to = i + 1 < left ? total / left * (i + 1) : total;

        samples_add(s, from + samples_mix(total, i) % (to - from), total);
    }
    qsort(s->at, s->n, sizeof(*s->at), sample_compare);
    for (unsigned i = 0; i < s->n; i++)
        if (!n || s->at[n - 1] != s->at[i])
            s->at[n++] = s->at[i];
    s->n = n;
}

unsigned samples_from(const struct samples *s, uint64_t at)
{
    unsigned from = 0, to = s->n;

    while (from < to) {
        unsigned mid = (from + to) / 2;

        if (s->at[mid] < at)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

/* ---- contributions ---- */

/* Kinds of samples; most are sums of numbers near each other. */
enum sample_kind { NEAR, FAR, LOWEST, HALFWAY, HIGHEST, SPECIAL, ZEROS, CANCEL };
static const uint8_t kinds[16] = {NEAR,    NEAR,   NEAR,   NEAR,    NEAR,    FAR,
                                  FAR,     LOWEST, LOWEST, HALFWAY, HALFWAY, HIGHEST,
                                  SPECIAL, ZEROS,  CANCEL, CANCEL};

struct number {
    bool negative;
    int e; /* exponent above that of 1; below the least: a denormal number */
    uint64_t man;
};

/* Bits of a float type of any shape; beyond the top: the largest numbers. */
static uint64_t encode(int exp_bits, int man_bits, struct number x)
{
    int bias = (1 << (exp_bits - 1)) - 1, e = x.e + bias;

    e = e < 0 ? 0 : e > 2 * bias ? 2 * bias : e;
    return (uint64_t)x.negative << (exp_bits + man_bits) | (uint64_t)e << man_bits |
           (x.man & ((1ull << man_bits) - 1));
}

/* Factors of products: numbers near 1, except for one rank's, which makes the product small or
 * large. */
static struct number factor(enum sample_kind kind, int bias, unsigned nranks, unsigned rank,
                            uint64_t at, uint64_t h)
{
    struct number x = {.negative = h >> 63, .e = (int)(h >> 52 & 1) - 1, .man = h};

    if (kind == FAR)
        x.e = (int)(h >> 52 & 7) - 4;
    if ((kind != LOWEST && kind != HIGHEST) || rank != at % nranks)
        return x;
    x.e = kind == HIGHEST ? bias - (int)(h >> 52 & 1) : (int)(h >> 52 & 3) - bias;
    return x;
}

static struct number summand(enum sample_kind kind, int bias, int man_bits, unsigned nranks,
                             unsigned rank, uint64_t at, uint64_t h)
{
    struct number x = {.negative = h >> 63, .e = (int)(h >> 52 & 7) - 4, .man = h};
    int room = 1;

    while (1u << room < nranks)
        room++;
    switch (kind) {
    case FAR:
        x.e = (int)((h >> 40) % (unsigned)(2 * bias)) - bias;
        x.e = x.e > bias - room ? x.e - room : x.e;
        break;
    case LOWEST:
        x.e = (int)(h >> 52 & 1) - bias;
        break;
    case HALFWAY: /* one rank's number, and half a unit in its last place, or nothing, or a unit */
        x.e = rank == at % nranks ? 0 : (int)(h >> 52 & 3) - man_bits - 2;
        x.man = rank == at % nranks ? h : 0;
        x.negative = at & 1;
        break;
    case HIGHEST:
        x.e = bias - (int)(h >> 52 & 1);
        break;
    case CANCEL: /* numbers and their negatives, in different order at every position */
        h = samples_mix(at, (rank + at) / 2);
        x = (struct number){(rank + at) & 1, (int)(h >> 52 & 15) - 8, h};
        x.man ^= rank % 3 == 0;
        break;
    default:
        break;
    }
    return x;
}

/* An infinity or any NaN, a signalling one too; E4M3's NaN. */
static uint64_t special_bits(int exp_bits, int man_bits, uint64_t h)
{
    uint64_t top = ((1ull << exp_bits) - 1) << man_bits, man = (1ull << man_bits) - 1;

    return (h >> 63) << (exp_bits + man_bits) | top |
           (exp_bits == 4 ? man
            : h & 1       ? 0
                          : (h >> 1 & man) | (h >> 62 & 1));
}

static uint64_t float_value(int exp_bits, int man_bits, enum redop op, unsigned nranks,
                            unsigned rank, uint64_t at, uint64_t h)
{
    enum sample_kind kind = kinds[samples_mix(at, UINT32_MAX) % 16];
    int bias = (1 << (exp_bits - 1)) - 1;
    bool one_of = rank == at % nranks || rank == (at >> 8) % nranks;

    if (kind == SPECIAL && one_of)
        return special_bits(exp_bits, man_bits, h);
    if (kind == ZEROS && (rank != (at >> 4) % nranks || at & 1)) /* or only negative ones */
        return (at & 6 ? h >> 63 : 1) << (exp_bits + man_bits);
    return encode(exp_bits, man_bits,
                  op == OP_PROD ? factor(kind, bias, nranks, rank, at, h)
                                : summand(kind, bias, man_bits, nranks, rank, at, h));
}

/* Random bits, with so many set (for `or`: clear) that the result has bits of both values. */
static uint64_t bits_value(enum redop op, unsigned nranks, uint64_t h)
{
    for (uint64_t k = 1; op != OP_BXOR && k < nranks; k *= 2)
        h = op == OP_BAND ? h | samples_mix(h, k) : h & samples_mix(h, k);
    return h;
}

/* Zeros and other values, whose lowest bit is mostly clear, so that of many ranks one decides. */
static uint64_t logical_value(enum redop op, unsigned nranks, uint64_t h)
{
    bool rare = (h >> 32) % (2 * nranks) == 0;

    return (op == OP_LXOR ? h >> 63 : rare != (op == OP_LOR)) ? 0 : h << (h >> 8 & 7);
}

uint64_t samples_value(enum dtype t, enum redop op, unsigned nranks, unsigned rank, uint64_t at)
{
    const struct rule_shape *s = rule_shape(t);
    uint64_t h = samples_mix(rank, at);

    if (t == DT_FP64)
        return float_value(11, 52, op, nranks, rank, at, h);
    if (t == DT_INT32_LOC) /* few values and few indexes: some are equal */
        return (at & 1 ? h & 0xffffffffu : (uint32_t)(h & 7) - 3u) | (h >> 60) << 32;
    if (t == DT_FP32_LOC)
        return (float_value(8, 23, op, nranks, rank, at, at & 1 ? h : h & 0x8010000000600000u) &
                0xffffffffu) |
               (h >> 59 & 15) << 32;
    if (s)
        return float_value(s->exp_bits, s->man_bits, op, nranks, rank, at, h);
    if (op == OP_LAND || op == OP_LOR || op == OP_LXOR)
        return logical_value(op, nranks, h);
    return op == OP_BAND || op == OP_BOR || op == OP_BXOR ? bits_value(op, nranks, h) : h;
}
