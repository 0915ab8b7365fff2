/* SPDX-License-Identifier: BSD-3-Clause */
#include "protocols/check/values.h"

#include "aggregation/arith.h"
#include "base/random.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Elements that are reduced at a time. */
#define BLOCK 512u

static bool is_float(enum trib_type t)
{
    return t == TRIB_FLOAT16 || t == TRIB_FLOAT32 || t == TRIB_FLOAT64 || t == TRIB_BFLOAT16;
}

static bool bounded(const struct check_case *c, enum trib_type t)
{
    return c->protocol->bound && is_float(t);
}

static double max_abs(const struct check_case *c, unsigned op)
{
    return ldexp(1.0, (int)(random_mix(c->seed * 16 + op) % 9) - 4);
}

static uint64_t random_of(const struct check_case *c, unsigned job, unsigned op, unsigned rank,
                          uint64_t i)
{
    return random_mix(random_mix(c->seed << 20 | job << 16 | op << 12 | rank) + i);
}

/* A small whole number. Sums up to 12 * 8 are exact in the 8 bits of a bfloat16, and so are
 * products of a few twos. */
static double whole(const struct case_op *o, unsigned rank, uint64_t x)
{
    if (o->op == TRIB_PROD)
        return (x & 1 ? -1.0 : 1.0) * (rank < 4 && x & 2 ? 2.0 : 1.0);
    return (double)(x % 17) - 8.0;
}

static double of_any_size(double most, uint64_t x)
{
    double d = (double)(x >> 12) / (double)(1ull << 52) * most;

    return ldexp(x & 1 ? -d : d, -(int)(x >> 1 & 15));
}

static void values_store(enum trib_type t, void *to, uint64_t i, double d)
{
    switch (t) {
    case TRIB_FLOAT16:
        ((uint16_t *)to)[i] = fp32_to_fp16((float)d);
        break;
    case TRIB_BFLOAT16:
        ((uint16_t *)to)[i] = fp32_to_bf16((float)d);
        break;
    case TRIB_FLOAT32:
        ((float *)to)[i] = (float)d;
        break;
    default:
        ((double *)to)[i] = d;
        break;
    }
}

static double values_load(enum trib_type t, const void *from, uint64_t i)
{
    switch (t) {
    case TRIB_INT8:
        return ((const int8_t *)from)[i];
    case TRIB_UINT8:
        return ((const uint8_t *)from)[i];
    case TRIB_INT32:
        return ((const int32_t *)from)[i];
    case TRIB_UINT32:
        return ((const uint32_t *)from)[i];
    case TRIB_INT64:
        return (double)((const int64_t *)from)[i];
    case TRIB_UINT64:
        return (double)((const uint64_t *)from)[i];
    case TRIB_FLOAT16:
        return fp16_to_fp32(((const uint16_t *)from)[i]);
    case TRIB_BFLOAT16:
        return bf16_to_fp32(((const uint16_t *)from)[i]);
    case TRIB_FLOAT32:
        return ((const float *)from)[i];
    default:
        return ((const double *)from)[i];
    }
}

/* Fills elements first to first + n - 1. */
static void check_case_fill(const struct check_case *c, unsigned job, unsigned op, unsigned rank,
                            uint64_t first, uint64_t n, void *to)
{
    const struct case_op *o = &c->job[job].op[op];
    const uint32_t size = trib_size(o->type);
    const double most = max_abs(c, op);

    for (uint64_t i = 0; i < n; i++) {
        uint64_t x = random_of(c, job, op, rank, first + i);

        if (!is_float(o->type))
            memcpy((uint8_t *)to + i * size, &x, size);
        else if (bounded(c, o->type) && o->op != TRIB_PROD)
            values_store(o->type, to, i, of_any_size(most, x));
        else
            values_store(o->type, to, i, whole(o, rank, x));
    }
}

void values_fill(const struct check_case *c, unsigned job, unsigned op, unsigned rank, void *to)
{
    check_case_fill(c, job, op, rank, 0, c->job[job].op[op].count, to);
}

static bool differs(const struct check_case *c, unsigned job, unsigned op, uint64_t first,
                    uint64_t n, const void *result, const void *in, char *why, size_t room)
{
    const struct case_op *o = &c->job[job].op[op];
    const uint32_t size = trib_size(o->type);
    uint64_t i = 0;

    while (i < n && !memcmp((const uint8_t *)result + (first + i) * size,
                            (const uint8_t *)in + i * size, size))
        i++;
    if (i == n)
        return false;
    snprintf(why, room, "element %" PRIu64 " of %" PRIu64 " is %.17g, expected %.17g", first + i,
             o->count, values_load(o->type, result, first + i), values_load(o->type, in, i));
    return true;
}

/* Compares with sums in double, whose own error is far below any bound. */
static bool beyond_bound(const struct check_case *c, unsigned job, unsigned op, uint64_t first,
                         uint64_t n, const void *result, char *why, size_t room)
{
    const struct case_op *o = &c->job[job].op[op];
    const unsigned ranks = c->job[job].nranks;
    const double most = o->op == TRIB_PROD ? 2.0 : max_abs(c, op);
    const double bound = c->protocol->bound(c->key, o->type, o->op, ranks, most);
    _Alignas(8) uint8_t in[CASE_RANKS][BLOCK * 8];

    for (unsigned r = 0; r < ranks; r++)
        check_case_fill(c, job, op, r, first, n, in[r]);
    for (uint64_t i = 0; i < n; i++) {
        double want = values_load(o->type, in[0], i), got = values_load(o->type, result, first + i);

        for (unsigned r = 1; r < ranks; r++) {
            double x = values_load(o->type, in[r], i);

            want = o->op == TRIB_SUM    ? want + x
                   : o->op == TRIB_PROD ? want * x
                   : o->op == TRIB_MIN  ? fmin(want, x)
                                        : fmax(want, x);
        }
        if (!(fabs(got - want) <= bound)) {
            snprintf(why, room,
                     "element %" PRIu64 " of %" PRIu64
                     " is %.9g, expected %.9g, an error of %.3g; the stated bound is %.3g",
                     first + i, o->count, got, want, fabs(got - want), bound);
            return true;
        }
    }
    return false;
}

bool values_check(const struct check_case *c, unsigned job, unsigned op, const void *result,
                  char *why, size_t size)
{
    const struct case_op *o = &c->job[job].op[op];
    const arith_fn kernel = arith_kernel((enum redop)o->op, (enum dtype)o->type);
    _Alignas(8) uint8_t sum[BLOCK * 8], in[BLOCK * 8];

    for (uint64_t i = 0; i < o->count; i += BLOCK) {
        uint64_t n = o->count - i < BLOCK ? o->count - i : BLOCK;

        if (bounded(c, o->type)) {
            if (beyond_bound(c, job, op, i, n, result, why, size))
                return false;
            continue;
        }
        check_case_fill(c, job, op, 0, i, n, sum);
        for (unsigned r = 1; r < c->job[job].nranks; r++) {
            check_case_fill(c, job, op, r, i, n, in);
            kernel(sum, (const void *const[]){sum, in}, 2, n);
        }
        if (differs(c, job, op, i, n, result, sum, why, size))
            return false;
    }
    return true;
}
