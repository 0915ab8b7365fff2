/* SPDX-License-Identifier: BSD-3-Clause */
/* Every kernel's twin, compared bit for bit with the scalar row of aggregation/arith.c; patterns
 * and blocks with plain loops. */
#include "aggregation/arith.h"
#include "host/kernels/kernels.h"
#include "tests/support/reduce_ref.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MOST   700u
#define ROOM   (MOST * 8 + 64)
#define GUARD  0xa5
#define INPUTS 9u

static uint64_t seed = 7;
static uint8_t in[INPUTS][ROOM], out[ROOM], copy[ROOM], want[ROOM];

static unsigned rnd(unsigned below)
{
    return (unsigned)(random_next(&seed) % below);
}

/* An offset in 16 bytes; pairs need only the alignment of their halves. */
static unsigned place(enum dtype t)
{
    unsigned align = t == DT_FP32_LOC || t == DT_INT32_LOC ? 4 : dtype_size(t);

    return rnd(16 / align) * align;
}

static void check_bytes(const uint8_t *got, size_t off, size_t bytes, const char *what,
                        const struct kernel *k)
{
    for (size_t i = 0; i < ROOM; i++) {
        uint8_t must = i < off || i >= off + bytes ? GUARD : want[i - off];

        if (got[i] != must)
            fail_msg("%s, %s: byte %zu of %zu is %02x, expected %02x", k->name, what, i - off,
                     bytes, got[i], must);
    }
}

/* same: all buffers have the same offset in 16 bytes, so that there are vectors. */
static void reduce_once(enum redop op, enum dtype t, bool average, unsigned n, size_t count,
                        bool same)
{
    const struct kernel *k = kernel_reduce(op, t, average);
    unsigned esize = dtype_size(t), at = place(t);
    size_t to = same ? at : place(t), to2 = same ? at : place(t);
    struct reduce_args r = {.out = out + to,
                            .copy = rnd(2) ? copy + to2 : NULL,
                            .n = n,
                            .divide = average ? 1 + rnd(9) : 0};
    const void *inputs[INPUTS];

    assert_non_null(k);
    memset(out, GUARD, sizeof(out));
    memset(copy, GUARD, sizeof(copy));
    for (unsigned i = 0; i < n; i++) {
        r.in[i] = in[i] + (same ? at : place(t));
        inputs[i] = r.in[i];
        ref_fill(t, in[i] + (r.in[i] - in[i]), count, &seed);
    }
    arith_scalar(op, t)(want, inputs, n, count);
    if (average)
        arith_divide(want, t, r.divide, count);
    r.split = reduce_split(&r, count, esize);
    if (same && at % esize == 0 && count * esize >= 32)
        assert_true(r.split.vectors > 0);
    assert_int_equal(r.split.vectors * (16 / esize) + r.split.rest, count);
    kernel_run_twin(k, &r, reduce_grid(&r.split, 1 + rnd(2)));
    check_bytes(out, to, count * esize, "result", k);
    if (r.copy)
        check_bytes(copy, to2, count * esize, "copy", k);
}

static const size_t counts[] = {1, 2, 3, 7, 16, 17, 31, 64, 255, 256, 257, 699};

static void twins_reduce_as_the_scalar_row_does(void **state)
{
    unsigned done = 0;

    (void)state;
    for (int op = 0; op < OP_COUNT; op++)
        for (int t = 0; t < DT_COUNT; t++) {
            assert_int_equal(kernel_reduce(op, t, false) != NULL, arith_valid(op, t));
            if (!arith_valid(op, t))
                continue;
            for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
                for (unsigned n = 1; n <= INPUTS; n += 1 + (n > 3) * 2)
                    for (int same = 0; same < 2; same++) {
                        reduce_once(op, t, false, n, counts[i], same);
                        if (op == OP_AVG)
                            reduce_once(op, t, true, n, counts[i], same);
                        done++;
                    }
        }
    assert_true(done > 4000);
}

/* The switches' reduction of a member's part, in the order of the members, rounded up to whole
 * units. */
static void twins_of_multimem_reduce_as_the_scalar_row_does(void **state)
{
    static uint8_t to[INPUTS][ROOM];
    unsigned done = 0;

    (void)state;
    for (int op = 0; op < OP_COUNT; op++)
        for (int t = 0; t < DT_COUNT; t++)
            for (unsigned n = 1; n <= INPUTS; n++) {
                const struct kernel *k = kernel_multimem(op, t);
                size_t count = 1 + rnd(600), bytes = count * dtype_size(t), off = 16 * rnd(4);
                struct multimem_twin m = {.n = n};
                const void *inputs[INPUTS];

                if (!k)
                    continue;
                assert_int_equal(k->takes, KERNEL_MULTIMEM);
                m.args.units = (bytes + k->unit - 1) / k->unit;
                for (unsigned i = 0; i < n; i++) {
                    inputs[i] = m.src[i] = in[i] + off;
                    m.dst[i] = to[i] + off;
                    ref_fill(t, in[i], ROOM / dtype_size(t), &seed);
                }
                count = m.args.units * k->unit / dtype_size(t);
                memset(to, GUARD, sizeof(to));
                arith_scalar(op, t)(want, inputs, n, count);
                kernel_run_twin(k, &m, multimem_grid(m.args.units, 1 + rnd(2)));
                for (unsigned i = 0; i < n; i++) {
                    memcpy(out, to[i], ROOM);
                    check_bytes(out, off, count * dtype_size(t), "a member's", k);
                }
                done++;
            }
    assert_int_equal(done, 20 * INPUTS);
}

/* All values of 16 and 8 bits, and the floats next to each. */
static void twins_know_every_small_float(void **state)
{
    static const enum dtype types[] = {DT_FP16, DT_BF16, DT_FP8_E4M3, DT_FP8_E5M2};

    (void)state;
    for (unsigned i = 0; i < 4; i++)
        for (int op = OP_SUM; op <= OP_AVG; op++) {
            enum dtype t = types[i];
            unsigned esize = dtype_size(t), codes = esize == 1 ? 256 : 65536;
            const struct kernel *k = kernel_reduce(op, t, false);
            uint8_t *a = malloc(codes * esize), *b = malloc(codes * esize),
                    *o = malloc(codes * esize), *w = malloc(codes * esize);
            struct reduce_args r = {.out = o, .n = 2, .in = {a, b}};
            const void *inputs[2] = {a, b};

            assert_true(a && b && o && w);
            for (unsigned c = 0; c < codes; c++)
                memcpy(a + c * esize, &c, esize);
            for (unsigned turn = 0; turn < 64; turn++) {
                for (unsigned c = 0; c < codes; c++) {
                    uint32_t other = rnd(codes);

                    memcpy(b + c * esize, &other, esize);
                }
                arith_scalar(op, t)(w, inputs, 2, codes);
                r.split = reduce_split(&r, codes, esize);
                kernel_run_twin(k, &r, reduce_grid(&r.split, 4));
                if (memcmp(o, w, codes * esize))
                    fail_msg("%s: not the scalar row's bits", k->name);
            }
            free(a);
            free(b);
            free(o);
            free(w);
        }
}

static void outputs_may_be_inputs(void **state)
{
    const void *inputs[3];
    struct reduce_args r = {.out = in[1] + 4, .copy = out + 4, .n = 3};

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        inputs[i] = r.in[i] = in[i] + 4;
        ref_fill(DT_FP32, in[i] + 4, 333, &seed);
    }
    arith_scalar(OP_SUM, DT_FP32)(want, inputs, 3, 333);
    r.split = reduce_split(&r, 333, 4);
    assert_true(r.split.vectors > 0);
    kernel_run_twin(kernel_reduce(OP_SUM, DT_FP32, false), &r, 1);
    assert_memory_equal(in[1] + 4, want, 333 * 4);
    assert_memory_equal(out + 4, want, 333 * 4);
}

/* ---- patterns ---- */

static void pattern_once(unsigned esize, uint64_t period_count, uint64_t first, size_t count,
                         unsigned off, unsigned flip)
{
    static uint8_t period[1000 * 8];
    struct verify_result found = {.first = ~0ull};
    struct pattern_args p = {.buf = out + off,
                             .period = period,
                             .result = &found,
                             .first = first * esize,
                             .period_bytes = period_count * esize,
                             .esize = esize,
                             .flip = flip};
    uint64_t wrong = 0, least = ~0ull;
    unsigned grid;

    for (unsigned i = 0; i < period_count * esize; i++)
        period[i] = (uint8_t)rnd(256);
    for (size_t i = 0; i < count * esize; i++)
        want[i] = period[(first * esize + i) % (period_count * esize)] ^ (uint8_t)flip;
    memset(out, GUARD, sizeof(out));
    p.split = pattern_split(&p, count);
    grid = pattern_grid(&p, 1 + rnd(3));
    assert_true(p.step && p.step <= (uint64_t)grid * KERNEL_THREADS);
    kernel_run_twin(kernel_fill(), &p, grid);
    check_bytes(out, off, count * esize, "filled", kernel_fill());
    kernel_run_twin(kernel_verify(), &p, grid);
    assert_int_equal(found.wrong, 0);
    for (unsigned i = 0; i < 5 && count; i++) {
        size_t e = rnd((unsigned)count);
        uint8_t *b = out + off + e * esize + rnd(esize);

        wrong += memcmp(out + off + e * esize, want + e * esize, esize) == 0;
        *b = (uint8_t)~want[b - out - off];
        least = e < least ? e : least;
    }
    kernel_run_twin(kernel_verify(), &p, grid);
    assert_int_equal(found.wrong, wrong);
    assert_int_equal(found.first, least);
}

static void patterns_are_filled_and_wrong_elements_found(void **state)
{
    static const unsigned sizes[] = {1, 2, 4, 8};

    (void)state;
    for (unsigned i = 0; i < 2000; i++) {
        unsigned esize = sizes[rnd(4)];

        pattern_once(esize, 1 + rnd(i % 2 ? 1000 : 12), rnd(100000), rnd(MOST),
                     rnd(16 / esize) * esize, rnd(2) * 0xff);
    }
}

/* ---- blocks ---- */

static void blocks_go_there_and_back(void **state)
{
    static uint8_t packed[4096], back[8192];

    (void)state;
    for (unsigned i = 0; i < 500; i++) {
        unsigned unit = (const unsigned[]){1, 4, 16}[rnd(3)];
        uint64_t bytes = unit * (1 + rnd(4)), ranks = 1 + rnd(5), rows = 1 + rnd(6);
        uint64_t stride = ranks * bytes + unit * rnd(3);
        struct blocks_args b = {.dst = packed,
                                .src = (const uint8_t *)in + rnd(2) * unit,
                                .outer = ranks,
                                .inner = rows,
                                .bytes = bytes,
                                .dst_outer = rows * bytes,
                                .dst_inner = bytes,
                                .src_outer = bytes,
                                .src_inner = stride};
        struct blocks_args u = b;

        ref_fill(DT_UINT8, in, sizeof(in), &seed);
        memset(packed, GUARD, sizeof(packed));
        b.unit = kernel_unit(&b);
        kernel_run_twin(kernel_blocks(), &b, blocks_grid(&b, 1));
        for (uint64_t r = 0; r < ranks; r++)
            for (uint64_t w = 0; w < rows; w++)
                assert_memory_equal(packed + (r * rows + w) * bytes, b.src + w * stride + r * bytes,
                                    bytes);
        assert_int_equal(packed[ranks * rows * bytes], GUARD);
        memset(back, GUARD, sizeof(back));
        u.src = packed;
        u.dst = back;
        u.src_outer = b.dst_outer, u.src_inner = b.dst_inner;
        u.dst_outer = b.src_outer, u.dst_inner = b.src_inner;
        u.unit = kernel_unit(&u);
        kernel_run_twin(kernel_blocks(), &u, blocks_grid(&u, 2));
        for (uint64_t w = 0; w < rows; w++)
            assert_memory_equal(back + w * stride, b.src + w * stride, ranks * bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(twins_reduce_as_the_scalar_row_does),
        cmocka_unit_test(twins_of_multimem_reduce_as_the_scalar_row_does),
        cmocka_unit_test(twins_know_every_small_float),
        cmocka_unit_test(outputs_may_be_inputs),
        cmocka_unit_test(patterns_are_filled_and_wrong_elements_found),
        cmocka_unit_test(blocks_go_there_and_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
