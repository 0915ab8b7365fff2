/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The oracle: inputs are what their documentation says, in every type; the expected result of each collective
 * is that of its definition, by hand; and a tree's order shows.
 */
#include "sim/job/oracle.h"
#include "tests/fabric/load.h"

#include <math.h>

#define COUNT 4000u

static const enum dtype types[] = {
    DT_INT8, DT_UINT8, DT_INT16, DT_UINT16, DT_INT32,    DT_UINT32,   DT_INT64,    DT_UINT64,
    DT_FP16, DT_BF16,  DT_FP32,  DT_FP64,   DT_FP8_E4M3, DT_FP8_E5M2, DT_FP32_LOC, DT_INT32_LOC};

/* The value of the i-th element, and of its index where it has one. */
static double value(const void *buf, enum dtype t, size_t i)
{
    const void *at = (const char *)buf + i * dtype_size(t);

    switch (t) {
    case DT_INT8:
        return *(const int8_t *)at;
    case DT_UINT8:
        return *(const uint8_t *)at;
    case DT_INT16:
        return *(const int16_t *)at;
    case DT_UINT16:
        return *(const uint16_t *)at;
    case DT_INT32:
    case DT_INT32_LOC:
        return *(const int32_t *)at;
    case DT_UINT32:
        return *(const uint32_t *)at;
    case DT_INT64:
        return (double)*(const int64_t *)at;
    case DT_UINT64:
        return (double)*(const uint64_t *)at;
    case DT_FP16:
        return (double)fp16_to_fp32(*(const uint16_t *)at);
    case DT_BF16:
        return (double)bf16_to_fp32(*(const uint16_t *)at);
    case DT_FP8_E4M3:
        return (double)fp8_e4m3_to_fp32(*(const uint8_t *)at);
    case DT_FP8_E5M2:
        return (double)fp8_e5m2_to_fp32(*(const uint8_t *)at);
    case DT_FP32:
    case DT_FP32_LOC:
        return (double)*(const float *)at;
    default:
        return *(const double *)at;
    }
}

static bool is_pair(enum dtype t)
{
    return t == DT_FP32_LOC || t == DT_INT32_LOC;
}

static void fill(void *buf, enum dtype t, enum redop op, unsigned rank, unsigned n, bool any)
{
    memset(buf, 0xff, COUNT * 8 + 8);
    oracle_fill(buf, t, op, COUNT, rank, n, 77, any);
    for (size_t i = COUNT * dtype_size(t); i < COUNT * 8 + 8; i++)
        if (((unsigned char *)buf)[i] != 0xff)
            fail_msg("type %d: byte %zu is beyond the input", t, i);
}

/* Whole numbers from 0 to most, each there, the same in every type, others at another rank. */
static void small(enum redop op, unsigned n, unsigned most)
{
    static uint64_t is[COUNT + 1], base[COUNT + 1], other[COUNT + 1];
    unsigned seen[8] = {0}, differ = 0;

    fill(base, DT_INT32, op, 1, n, true);
    fill(other, DT_INT32, op, 0, n, true);
    for (size_t i = 0; i < COUNT; i++) {
        double v = value(base, DT_INT32, i);

        assert_true(v >= 0 && v <= most);
        seen[(unsigned)v]++;
        differ += value(other, DT_INT32, i) != v;
    }
    for (unsigned v = 0; v <= most; v++)
        if (fabs(seen[v] - COUNT / (most + 1.0)) > 4 * sqrt(COUNT / (most + 1.0)))
            fail_msg("%u: %u times of %u", v, seen[v], COUNT);
    assert_true(differ > COUNT / 4);
    for (unsigned k = 0; k < LEN(types); k++) {
        bool eight = types[k] == DT_FP8_E4M3 || types[k] == DT_FP8_E5M2;

        if (eight && op == OP_SUM)
            continue;
        fill(is, types[k], op, 1, n, true);
        for (size_t i = 0; i < COUNT; i++) {
            assert_true(value(is, types[k], i) == value(base, DT_INT32, i));
            if (is_pair(types[k]))
                assert_int_equal(((uint32_t *)is)[2 * i + 1], value(base, DT_INT32, i));
        }
    }
}

static void sums_are_of_small_numbers(void **state)
{
    (void)state;
    small(OP_SUM, 4, 4);
    small(OP_LAND, 2, 2);
    small(OP_LOR, 2, 2);
    small(OP_LXOR, 2, 2);
    small(OP_LAND, 1, 1);
    small(OP_LOR, 1, 1);
    small(OP_LXOR, 1, 1);
}

/* Logical operations take small numbers whatever the order is. */
static void truth_is_small_in_any_order(void **state)
{
    static uint64_t a[COUNT + 1], b[COUNT + 1];

    (void)state;
    fill(a, DT_UINT8, OP_LXOR, 2, 4, true);
    fill(b, DT_UINT8, OP_LXOR, 2, 4, false);
    assert_memory_equal(a, b, COUNT);
}

/* One factor of two in eight ranks or fewer, one in all of more; sums of 8-bit floats within 8 ranks. */
static void products_and_narrow_sums_stay_small(void **state)
{
    static uint64_t is[COUNT + 1];
    static const unsigned ranks[] = {2, 8, 9, 16};

    (void)state;
    for (unsigned k = 0; k < LEN(ranks); k++) {
        unsigned n = ranks[k], ones = 0;

        for (unsigned r = 0; r < n; r++) {
            fill(is, DT_FP16, OP_PROD, r, n, true);
            for (size_t i = 0; i < COUNT; i++)
                assert_true(value(is, DT_FP16, i) == ((i + r) % (n > 8 ? n : 8) ? 1 : 2));
            for (unsigned t = 0; t < 2; t++) {
                fill(is, t ? DT_FP8_E4M3 : DT_FP8_E5M2, OP_SUM, r, n, true);
                for (size_t i = 0; i < COUNT; i++) {
                    double v = value(is, t ? DT_FP8_E4M3 : DT_FP8_E5M2, i);

                    assert_true(v == 0 || (v == 1 && (i + r) % n < 4));
                    ones += v == 1;
                }
            }
        }
        /* Half of those that may be. */
        assert_true(fabs(ones - COUNT * (n < 4 ? n : 4.)) < 4 * sqrt(COUNT * 8.));
    }
}

/* ---- inputs of which the order shows ---- */

struct bits {
    uint64_t any, all;  /* that were ever set, and always */
    unsigned exponents; /* a bit for each above the least */
};

static struct bits random_bits(enum dtype t, unsigned size, unsigned mantissa, unsigned width,
                               unsigned least)
{
    static uint64_t is[COUNT + 1];
    struct bits b = {0, UINT64_MAX, 0};

    fill(is, t, OP_SUM, 3, 4, false);
    for (size_t i = 0; i < COUNT; i++) {
        uint64_t v = 0;

        memcpy(&v, (char *)is + i * dtype_size(t), size);
        b.any |= v;
        b.all &= v;
        if (width) {
            unsigned e = (unsigned)(v >> mantissa & ((1u << width) - 1));

            if (e < least || e >= least + 32)
                fail_msg("type %d: exponent %u", t, e);
            b.exponents |= 1u << (e - least);
        }
    }
    return b;
}

static void floats_have_few_exponents(void **state)
{
    static const struct {
        enum dtype type;
        unsigned size, mantissa, width, least, n;
    } rows[] = {{DT_FP16, 2, 10, 5, 13, 4},     {DT_BF16, 2, 7, 8, 125, 5},
                {DT_FP32, 4, 23, 8, 123, 8},    {DT_FP64, 8, 52, 11, 1019, 8},
                {DT_FP8_E4M3, 1, 3, 4, 5, 4},   {DT_FP8_E5M2, 1, 2, 5, 14, 2},
                {DT_FP32_LOC, 4, 23, 8, 127, 1}};

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        struct bits b =
            random_bits(rows[i].type, rows[i].size, rows[i].mantissa, rows[i].width, rows[i].least);
        uint64_t mantissa = (1ull << rows[i].mantissa) - 1, sign = 1ull << (8 * rows[i].size - 1);

        if (b.exponents != (1u << rows[i].n) - 1)
            fail_msg("type %d: exponents %x", rows[i].type, b.exponents);
        assert_true((b.any & mantissa) == mantissa && !(b.all & mantissa));
        assert_true((b.any & sign) && !(b.all & sign));
    }
}

static void integers_are_any_bits(void **state)
{
    static uint64_t is[COUNT + 1];
    uint32_t any = 0, all = UINT32_MAX;

    (void)state;
    for (unsigned k = 0; k < 8; k++) {
        struct bits b = random_bits(types[k], dtype_size(types[k]), 0, 0, 0);

        assert_true(b.any == UINT64_MAX >> (64 - 8 * dtype_size(types[k])) && !b.all);
    }
    fill(is, DT_FP32_LOC, OP_MINLOC, 3, 4, false); /* indices of 24 bits */
    for (size_t i = 0; i < COUNT; i++) {
        any |= ((uint32_t *)is)[2 * i + 1];
        all &= ((uint32_t *)is)[2 * i + 1];
    }
    assert_true(any == 0xffffff && !all);
}

/* ---- results ---- */

#define N 3u

/* Rank r sends r0, r1, ... of two bytes each; each rank of a group has blocks of two elements. */
static void results_are_those_of_the_definitions(void **state)
{
    static const struct {
        enum coll_kind kind;
        unsigned root, sparse, rank;
        size_t in, out;
        int16_t want[6]; /* -1: as it was */
    } rows[] = {
        {COLL_ALLREDUCE, 0, 0, 1, 2, 2, {90, 91, -1, -1, -1, -1}},
        {COLL_REDUCE, 1, 0, 1, 2, 2, {90, 91, -1, -1, -1, -1}},
        {COLL_REDUCE, 1, 0, 0, 2, 0, {-1, -1, -1, -1, -1, -1}},
        {COLL_BROADCAST, 2, 0, 0, 0, 2, {20, 21, -1, -1, -1, -1}},
        {COLL_BROADCAST, 2, 0, 2, 2, 2, {20, 21, -1, -1, -1, -1}},
        {COLL_ALLGATHER, 0, 0, 1, 2, 6, {0, 1, 10, 11, 20, 21}},
        {COLL_REDUCE_SCATTER, 0, 0, 2, 6, 2, {94, 95, -1, -1, -1, -1}},
        {COLL_ALLTOALL, 0, 0, 1, 6, 6, {2, 3, 12, 13, 22, 23}},
        {COLL_ALLTOALL, 0, 1, 1, 6, 6, {-1, -1, 12, 13, -1, -1}},
        {COLL_ALLTOALL, 0, 2, 1, 6, 6, {2, 3, 12, 13, -1, -1}},
        {COLL_ALLTOALL, 0, 2, 0, 6, 6, {0, 1, -1, -1, 20, 21}},
        {COLL_GATHER, 1, 0, 1, 2, 6, {0, 1, 10, 11, 20, 21}},
        {COLL_GATHER, 1, 0, 2, 2, 0, {-1, -1, -1, -1, -1, -1}},
        {COLL_SCATTER, 1, 0, 2, 0, 2, {14, 15, -1, -1, -1, -1}},
        {COLL_SCATTER, 1, 0, 1, 6, 2, {12, 13, -1, -1, -1, -1}},
        {COLL_SENDRECV, 0, 0, 0, 2, 2, {20, 21, -1, -1, -1, -1}},
        {COLL_SENDRECV, 0, 0, 2, 2, 2, {10, 11, -1, -1, -1, -1}},
        {COLL_BARRIER, 0, 0, 1, 0, 0, {-1, -1, -1, -1, -1, -1}},
    };
    int16_t send[N][6], reduced[6] = {90, 91, 92, 93, 94, 95};
    const void *in[N];

    (void)state;
    for (unsigned r = 0; r < N; r++) {
        in[r] = send[r];
        for (int i = 0; i < 6; i++)
            send[r][i] = (int16_t)(10 * r + (unsigned)i);
    }
    for (unsigned i = 0; i < LEN(rows); i++) {
        struct coll_args a = {.kind = rows[i].kind,
                              .count = 2,
                              .type = DT_INT16,
                              .root = rows[i].root,
                              .sparse = rows[i].sparse};
        int16_t is[6] = {-1, -1, -1, -1, -1, -1};
        size_t bytes = oracle_expect(&a, rows[i].rank, N, in, reduced, is);

        if (bytes != 2 * rows[i].out || memcmp(is, rows[i].want, sizeof(is)))
            fail_msg("row %u: %zu bytes, %d %d %d %d %d %d", i, bytes, is[0], is[1], is[2], is[3],
                     is[4], is[5]);
        assert_int_equal(oracle_in_count(&a, rows[i].rank, N), rows[i].in);
        assert_int_equal(oracle_out_count(&a, rows[i].rank, N), rows[i].out);
    }
}

static void any_bit_is_wrong(void **state)
{
    const uint16_t a[] = {1, 2, 3, 4}, b[] = {1, 0x8002, 3, 5};

    (void)state;
    assert_int_equal(oracle_wrong(a, b, DT_UINT16, 0), 0);
    assert_int_equal(oracle_wrong(a, b, DT_UINT16, 1), 0);
    assert_int_equal(oracle_wrong(a, b, DT_UINT16, 2), 1);
    assert_int_equal(oracle_wrong(a, b, DT_UINT16, 3), 1);
    assert_int_equal(oracle_wrong(a, b, DT_UINT16, 4), 2);
    assert_int_equal(oracle_wrong(a, b, DT_UINT32, 2), 2);
    assert_int_equal(oracle_wrong(a, b, DT_UINT8, 4), 1);
}

/* Two leaves of two members each under a spine: the sums of the leaves are added. */
static void a_tree_has_its_order(void **state)
{
    static const float v[4][2] = {{1, 4}, {1e8f, 8}, {-1e8f, 12}, {1, 16}};
    const void *in[] = {v[0], v[1], v[2], v[3]};
    struct fabric *f = load_file("conf/leaf-spine-8.conf");
    struct fab_members m = {.ranks_per_host = 1};
    float out[2];

    (void)state;
    fab_members_add(&m, 0);
    fab_members_add(&m, 2);
    fab_members_add(&m, 5);
    fab_members_add(&m, 7);
    assert_int_equal(oracle_tree(f, &f->trees[0], &m, DT_FP32, OP_SUM, 2, in, out), 0);
    assert_true(out[0] == 0 && out[1] == 40);
    assert_int_equal(oracle_tree(f, &f->trees[0], &m, DT_FP32, OP_AVG, 2, in, out), 0);
    assert_true(out[0] == 0 && out[1] == 10);
    assert_int_equal(oracle_tree(f, &f->trees[1], &m, DT_FP32, OP_MAX, 1, in, out), 0);
    assert_true(out[0] == 1e8f && out[1] == 10);
    oracle_plain(DT_FP32, OP_SUM, 2, 4, in, out);
    assert_true(out[0] == 1 && out[1] == 40);
    oracle_plain(DT_FP32, OP_AVG, 2, 4, in, out);
    assert_true(out[0] == 0.25f && out[1] == 10);
    oracle_plain(DT_FP32, OP_MIN, 1, 3, in, out);
    assert_true(out[0] == -1e8f && out[1] == 10);
    fabric_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_of_small_numbers),
        cmocka_unit_test(truth_is_small_in_any_order),
        cmocka_unit_test(products_and_narrow_sums_stay_small),
        cmocka_unit_test(floats_have_few_exponents),
        cmocka_unit_test(integers_are_any_bits),
        cmocka_unit_test(results_are_those_of_the_definitions),
        cmocka_unit_test(any_bit_is_wrong),
        cmocka_unit_test(a_tree_has_its_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
