/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernels' bodies, in the common subset of C and CUDA. Thread `at` of `step` threads does its
 * part of the work; reduce_*.cu and pattern.cu call the bodies with the grid's coordinates, the
 * twins in kernels.c with one number after the other.
 *
 * If all buffers have the same offset modulo 16 bytes, the bodies work in vectors of 16 bytes:
 * first the elements before the first whole vector (head), then the vectors, then the rest.
 * Otherwise they work element by element. The thread that writes an element has read it before, so
 * outputs may be inputs.
 */
#ifndef TRIB_HOST_KERNELS_BODY_H
#define TRIB_HOST_KERNELS_BODY_H

#include "host/kernels/element.h"
#include "host/kernels/kernels.h"

union el_vec {
    uint32_t w[4];
    uint8_t u8[16];
};

#ifdef __CUDACC__
#define EL_UNROLL         _Pragma("unroll")
#define EL_UNROLL_2       _Pragma("unroll 2")
#define EL_LOAD(E, p)     (*(const E *)(p))
#define EL_STORE(E, p, x) (*(E *)(p) = (x))
/* Streaming load, as nothing is read twice. */
EL_FN union el_vec el_load16(const uint8_t *p)
{
    uint4 q = __ldcs((const uint4 *)p);
    union el_vec v = {{q.x, q.y, q.z, q.w}};

    return v;
}
EL_FN void el_store16(uint8_t *p, union el_vec v)
{
    __stcs((uint4 *)p, make_uint4(v.w[0], v.w[1], v.w[2], v.w[3]));
}
EL_FN void el_found(struct verify_result *r, uint64_t wrong, uint64_t first)
{
    atomicAdd((unsigned long long *)&r->wrong, (unsigned long long)wrong);
    atomicMin((unsigned long long *)&r->first, (unsigned long long)first);
}
#else
#define EL_UNROLL
#define EL_UNROLL_2
#define EL_LOAD(E, p)                                                                              \
    __extension__({                                                                                \
        E e_;                                                                                      \
        memcpy(&e_, (p), sizeof(e_));                                                              \
        e_;                                                                                        \
    })
#define EL_STORE(E, p, x)                                                                          \
    do {                                                                                           \
        E s_ = (x);                                                                                \
        memcpy((p), &s_, sizeof(s_));                                                              \
    } while (0)
EL_FN union el_vec el_load16(const uint8_t *p)
{
    return EL_LOAD(union el_vec, p);
}
EL_FN void el_store16(uint8_t *p, union el_vec v)
{
    EL_STORE(union el_vec, p, v);
}
EL_FN void el_found(struct verify_result *r, uint64_t wrong, uint64_t first)
{
    r->wrong += wrong;
    r->first = first < r->first ? first : r->first;
}
#endif

/* Index of the i-th element that is in no vector. */
EL_FN uint64_t el_rest(const struct kernel_split *s, uint64_t i, unsigned esize)
{
    return i < s->head ? i : i + s->vectors * (16 / esize);
}

/* Two loads are in flight at any time: the next input's load starts before this input's elements
 * are used. */
#define REDUCE_BODY(NAME, E, ACC, IN, DO, OUT, FINISH)                                             \
    EL_FN void body_##NAME(const struct reduce_args *r, uint64_t at, uint64_t step)                \
    {                                                                                              \
        enum { LANES = 16 / sizeof(E) };                                                           \
        union lanes {                                                                              \
            union el_vec v;                                                                        \
            E e[LANES];                                                                            \
        } x, next;                                                                                 \
        ACC a[LANES];                                                                              \
                                                                                                   \
        for (uint64_t v = at; v < r->split.vectors; v += step) {                                   \
            uint64_t byte = r->split.head * sizeof(E) + v * 16;                                    \
                                                                                                   \
            x.v = el_load16(r->in[0] + byte);                                                      \
            next.v = el_load16(r->in[r->n > 1] + byte);                                            \
            EL_UNROLL                                                                              \
            for (int i = 0; i < LANES; i++)                                                        \
                a[i] = IN(x.e[i]);                                                                 \
            EL_UNROLL_2                                                                            \
            for (unsigned k = 1; k < r->n; k++) {                                                  \
                x = next;                                                                          \
                if (k + 1 < r->n)                                                                  \
                    next.v = el_load16(r->in[k + 1] + byte);                                       \
                EL_UNROLL                                                                          \
                for (int i = 0; i < LANES; i++)                                                    \
                    a[i] = (ACC)DO(a[i], (ACC)IN(x.e[i]));                                         \
            }                                                                                      \
            EL_UNROLL                                                                              \
            for (int i = 0; i < LANES; i++)                                                        \
                x.e[i] = FINISH((E)OUT(a[i]), r->divide, E, ACC, IN, OUT);                         \
            el_store16(r->out + byte, x.v);                                                        \
            if (r->copy)                                                                           \
                el_store16(r->copy + byte, x.v);                                                   \
        }                                                                                          \
        for (uint64_t i = at; i < r->split.rest; i += step) {                                      \
            uint64_t byte = el_rest(&r->split, i, sizeof(E)) * sizeof(E);                          \
            ACC one = IN(EL_LOAD(E, r->in[0] + byte));                                             \
                                                                                                   \
            for (unsigned k = 1; k < r->n; k++) {                                                  \
                ACC more = IN(EL_LOAD(E, r->in[k] + byte));                                        \
                                                                                                   \
                one = (ACC)DO(one, more);                                                          \
            }                                                                                      \
            E e = FINISH((E)OUT(one), r->divide, E, ACC, IN, OUT);                                 \
            EL_STORE(E, r->out + byte, e);                                                         \
            if (r->copy)                                                                           \
                EL_STORE(E, r->copy + byte, e);                                                    \
        }                                                                                          \
    }
#define AS_REDUCED(e, n, E, ACC, IN, OUT) (e)
#define EL_DIV_I(e, n, E, ACC, IN, OUT)   ((E)((int64_t)(e) / (int64_t)(n)))
#define EL_DIV_U(e, n, E, ACC, IN, OUT)   ((E)((e) / (uint64_t)(n)))
#define EL_DIV_F(e, n, E, ACC, IN, OUT)   OUT(IN(e) / (ACC)(n))

#define REDUCTION(NAME, E, ACC, IN, DO, OUT) REDUCE_BODY(NAME, E, ACC, IN, DO, OUT, AS_REDUCED)
#define AVERAGE(NAME, E, ACC, IN, DIV, OUT)  REDUCE_BODY(NAME, E, ACC, IN, EL_SUM, OUT, DIV)

/* ---- patterns ---- */

/* Offset in the period of byte i of the buffer. */
EL_FN uint32_t pattern_at(const struct pattern_args *p, uint64_t i)
{
    return (uint32_t)((p->first + i) % p->period_bytes);
}

EL_FN uint8_t pattern_next(const struct pattern_args *p, uint32_t *at)
{
    uint8_t x = (uint8_t)(p->period[*at] ^ p->flip);

    *at = *at + 1 == p->period_bytes ? 0 : *at + 1;
    return x;
}

/* `step` is a multiple of the pattern's cycle, so all vectors of a thread are equal and it computes
 * their 16 bytes once. */
EL_FN union el_vec pattern_vec(const struct pattern_args *p, uint64_t v)
{
    uint32_t at = pattern_at(p, p->split.head * p->esize + v * 16);
    union el_vec x;

    EL_UNROLL
    for (unsigned w = 0; w < 4; w++) {
        x.w[w] = 0;
        EL_UNROLL
        for (unsigned b = 0; b < 32; b += 8)
            x.w[w] |= (uint32_t)pattern_next(p, &at) << b;
    }
    return x;
}

/* Whether an element has the pattern's value. */
EL_FN bool pattern_holds(const struct pattern_args *p, uint64_t element)
{
    const uint8_t *got = p->buf + element * p->esize;
    uint32_t at = pattern_at(p, element * p->esize);
    bool same = true;

    for (unsigned b = 0; b < p->esize; b++)
        same = got[b] == pattern_next(p, &at) && same;
    return same;
}

EL_FN void body_fill(const struct pattern_args *p, uint64_t at, uint64_t step)
{
    if (at < p->split.vectors) {
        union el_vec x = pattern_vec(p, at);

        for (uint64_t v = at; v < p->split.vectors; v += step)
            el_store16(p->buf + p->split.head * p->esize + v * 16, x);
    }
    for (uint64_t i = at; i < p->split.rest; i += step) {
        uint64_t byte = el_rest(&p->split, i, p->esize) * p->esize;
        uint32_t offset = pattern_at(p, byte);

        for (unsigned b = 0; b < p->esize; b++)
            p->buf[byte + b] = pattern_next(p, &offset);
    }
}

EL_FN void body_verify(const struct pattern_args *p, uint64_t at, uint64_t step)
{
    uint64_t wrong = 0, first = ~0ull;

    if (at < p->split.vectors) {
        union el_vec x = pattern_vec(p, at), y;

        for (uint64_t v = at; v < p->split.vectors; v += step) {
            y = el_load16(p->buf + p->split.head * p->esize + v * 16);
            if (!((x.w[0] ^ y.w[0]) | (x.w[1] ^ y.w[1]) | (x.w[2] ^ y.w[2]) | (x.w[3] ^ y.w[3])))
                continue;
            for (unsigned e = 0; e < 16 / p->esize; e++) { /* rare */
                uint64_t here = p->split.head + v * (16 / p->esize) + e;
                bool same = pattern_holds(p, here);

                wrong += !same;
                first = !same && here < first ? here : first;
            }
        }
    }
    for (uint64_t i = at; i < p->split.rest; i += step) {
        uint64_t here = el_rest(&p->split, i, p->esize);
        bool same = pattern_holds(p, here);

        wrong += !same;
        first = !same && here < first ? here : first;
    }
    if (wrong)
        el_found(p->result, wrong, first);
}

/* ---- blocks ---- */

#define COPY_UNITS(T)                                                                              \
    for (uint64_t i = at; i < total; i += step) {                                                  \
        uint64_t block = i / units, byte = i % units * sizeof(T);                                  \
        uint64_t o = block / b->inner, n = block % b->inner;                                       \
                                                                                                   \
        EL_STORE(T, b->dst + o * b->dst_outer + n * b->dst_inner + byte,                           \
                 EL_LOAD(T, b->src + o * b->src_outer + n * b->src_inner + byte));                 \
    }

EL_FN void body_blocks(const struct blocks_args *b, uint64_t at, uint64_t step)
{
    uint64_t units = b->bytes / b->unit, total = units * b->inner * b->outer;

    if (b->unit == 16) {
        for (uint64_t i = at; i < total; i += step) {
            uint64_t block = i / units, byte = i % units * 16;
            uint64_t o = block / b->inner, n = block % b->inner;

            el_store16(b->dst + o * b->dst_outer + n * b->dst_inner + byte,
                       el_load16(b->src + o * b->src_outer + n * b->src_inner + byte));
        }
    } else if (b->unit == 4) {
        COPY_UNITS(uint32_t)
    } else {
        COPY_UNITS(uint8_t)
    }
}

#endif
