/* SPDX-License-Identifier: BSD-3-Clause */
/* Elements that are exact in every type, and what their reductions are. */
#ifndef TRIB_TESTS_TOOLS_SHARP_ELEMENTS_H
#define TRIB_TESTS_TOOLS_SHARP_ELEMENTS_H

#include "sharp_job.h"

static size_t bytes_of(enum sharp_datatype t)
{
    static const uint8_t bytes[SHARP_DTYPE_NULL] = {4, 4, 8, 8, 4, 8, 2, 2, 2, 2, 1, 1};

    return bytes[t];
}

static bool is_float(enum sharp_datatype t)
{
    return t == SHARP_DTYPE_FLOAT || t == SHARP_DTYPE_DOUBLE || t == SHARP_DTYPE_FLOAT_SHORT ||
           t == SHARP_DTYPE_BFLOAT16;
}

/* IEEE 754 binary16 of a number below 2,048. */
static uint64_t half(unsigned v)
{
    unsigned e = 0;

    if (!v)
        return 0;
    while (v >> (e + 1))
        e++;
    return (15 + e) << 10 | ((v << (10 - e)) & 0x3ff);
}

static void set(void *buf, size_t i, enum sharp_datatype t, unsigned v)
{
    uint64_t bits = v;
    uint32_t word;
    float f = (float)v;
    double d = v;

    memcpy(&word, &f, 4);
    if (t == SHARP_DTYPE_FLOAT_SHORT)
        bits = half(v);
    else if (t == SHARP_DTYPE_BFLOAT16)
        bits = word >> 16;
    else if (t == SHARP_DTYPE_FLOAT)
        bits = word;
    else if (t == SHARP_DTYPE_DOUBLE)
        memcpy(&bits, &d, 8);
    memcpy((char *)buf + i * bytes_of(t), &bits, bytes_of(t));
}

static unsigned input(int r, size_t i, enum sharp_reduce_op op)
{
    if (op == SHARP_OP_PROD)
        return (r + (int)(i % 3)) % 4 == 1 ? 2 : 1;
    return ((unsigned)r + 1 + (unsigned)(i % 3)) % 4;
}

static unsigned reduced(int ranks, size_t i, enum sharp_reduce_op op)
{
    unsigned v = input(0, i, op);

    for (int r = 1; r < ranks; r++) {
        unsigned x = input(r, i, op);

        switch (op) {
        case SHARP_OP_SUM:
            v += x;
            break;
        case SHARP_OP_PROD:
            v *= x;
            break;
        case SHARP_OP_MIN:
            v = x < v ? x : v;
            break;
        case SHARP_OP_MAX:
            v = x > v ? x : v;
            break;
        case SHARP_OP_LAND:
            v = v && x;
            break;
        case SHARP_OP_LOR:
            v = v || x;
            break;
        case SHARP_OP_LXOR:
            v = !v != !x;
            break;
        case SHARP_OP_BAND:
            v &= x;
            break;
        case SHARP_OP_BOR:
            v |= x;
            break;
        default:
            v ^= x;
        }
    }
    return v;
}

/* Elements from `first` of the vector on. */
static void fill(void *buf, size_t first, size_t n, enum sharp_datatype t, enum sharp_reduce_op op)
{
    for (size_t i = 0; i < n; i++)
        set(buf, i, t, input(rank, first + i, op));
}

static void expect(const void *buf, size_t i, enum sharp_datatype t, unsigned v, const char *what)
{
    uint64_t want = 0;

    set(&want, 0, t, v);
    must(!memcmp((const char *)buf + i * bytes_of(t), &want, bytes_of(t)),
         "%s: element %zu of type %d is %u", what, i, (int)t, v);
}

static void *room(size_t bytes)
{
    void *p = malloc(bytes + 1);

    must(p, "memory");
    memset(p, 0x5a, bytes + 1);
    return p;
}

#endif
