/* SPDX-License-Identifier: BSD-3-Clause */
/* Which elements of which buffer each rank of a collective sends and gets, in place and not, and elements as numbers. */
#include "host/bench/verify/layout.h"
#include "host/bench/verify/value.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))
#define N      7u /* elements of one block */
#define RANKS  3u
#define ROOT   2u

/* ---- buffers ---- */

/* Of one rank, in blocks of N: what it sends and gets, and where both lie in place. */
static const struct {
    enum coll_kind kind;
    unsigned rank, send, recv, send_at, recv_at, in_place_recv, blocks;
} rows[] = {
    {COLL_ALLREDUCE, 1, 1, 1, 0, 0, 1, 1},      {COLL_ALLREDUCE, 2, 1, 1, 0, 0, 1, 1},
    {COLL_REDUCE, 1, 1, 1, 0, 0, 0, 1},         {COLL_REDUCE, 2, 1, 1, 0, 0, 1, 1},
    {COLL_BROADCAST, 1, 0, 1, 0, 0, 1, 1},      {COLL_BROADCAST, 2, 1, 1, 0, 0, 1, 1},
    {COLL_ALLGATHER, 1, 1, 3, 1, 0, 3, 3},      {COLL_ALLGATHER, 2, 1, 3, 2, 0, 3, 3},
    {COLL_REDUCE_SCATTER, 1, 3, 1, 0, 1, 1, 3}, {COLL_REDUCE_SCATTER, 2, 3, 1, 0, 2, 1, 3},
    {COLL_ALLTOALL, 1, 3, 3, 0, 0, 3, 3},       {COLL_ALLTOALL, 2, 3, 3, 0, 0, 3, 3},
    {COLL_GATHER, 1, 1, 3, 0, 0, 0, 3},         {COLL_GATHER, 2, 1, 3, 2, 0, 3, 3},
    {COLL_SCATTER, 1, 0, 1, 0, 0, 1, 3},        {COLL_SCATTER, 2, 3, 1, 0, 2, 1, 3},
    {COLL_SENDRECV, 1, 1, 1, 0, 0, 1, 1},       {COLL_SENDRECV, 2, 1, 1, 0, 0, 1, 1},
    {COLL_BARRIER, 1, 0, 0, 0, 0, 0, 1},        {COLL_BARRIER, 2, 0, 0, 0, 0, 0, 1},
};

static struct layout layout_of(unsigned i, bool in_place)
{
    return (struct layout){.kind = rows[i].kind,
                           .nranks = RANKS,
                           .rank = rows[i].rank,
                           .root = ROOT,
                           .count = N,
                           .in_place = in_place};
}

static void buffers_have_so_many_elements(void **state)
{
    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        struct layout apart = layout_of(i, false), in_place = layout_of(i, true);
        bool none =
            (rows[i].kind == COLL_REDUCE || rows[i].kind == COLL_GATHER) && !(rows[i].rank == ROOT);

        assert_int_equal(layout_send(&apart), N * rows[i].send);
        assert_int_equal(layout_recv(&apart), N * rows[i].recv);
        assert_int_equal(layout_send_at(&apart), 0);
        assert_int_equal(layout_recv_at(&apart), 0);
        assert_false(layout_no_recv(&apart));
        assert_int_equal(layout_send(&in_place), N * rows[i].send);
        assert_int_equal(layout_recv(&in_place), N * rows[i].in_place_recv);
        assert_int_equal(layout_send_at(&in_place), N * rows[i].send_at);
        assert_int_equal(layout_recv_at(&in_place), N * rows[i].recv_at);
        assert_int_equal(layout_no_recv(&in_place), none);
        assert_int_equal(layout_blocks(rows[i].kind, RANKS, 0), rows[i].blocks);
        assert_int_equal(layout_blocks(rows[i].kind, RANKS, 2),
                         rows[i].kind == COLL_ALLTOALL ? 2 : rows[i].blocks);
    }
}

/* ---- pieces ---- */

#define ALL     LAYOUT_ALL
#define NOTHING LAYOUT_NOTHING

static const struct {
    enum coll_kind kind;
    unsigned rank, sparse, pieces;
    unsigned first; /* in blocks, of each piece */
    unsigned source[RANKS];
} pieces[] = {
    {COLL_ALLREDUCE, 1, 0, 1, 0, {ALL}},
    {COLL_REDUCE, 1, 0, 1, 0, {NOTHING}},
    {COLL_REDUCE, 2, 0, 1, 0, {ALL}},
    {COLL_BROADCAST, 0, 0, 1, 0, {2}},
    {COLL_BROADCAST, 2, 0, 1, 0, {2}},
    {COLL_ALLGATHER, 1, 0, 3, 0, {0, 1, 2}},
    {COLL_REDUCE_SCATTER, 1, 0, 1, 1, {ALL}},
    {COLL_REDUCE_SCATTER, 2, 0, 1, 2, {ALL}},
    {COLL_ALLTOALL, 0, 0, 3, 0, {0, 1, 2}},
    {COLL_ALLTOALL, 2, 0, 3, 2, {0, 1, 2}},
    {COLL_ALLTOALL, 0, 1, 3, 0, {0, NOTHING, NOTHING}}, /* of itself alone */
    {COLL_ALLTOALL, 0, 2, 3, 0, {0, NOTHING, 2}},       /* and of the rank before it */
    {COLL_ALLTOALL, 1, 2, 3, 1, {0, 1, NOTHING}},
    {COLL_ALLTOALL, 2, 3, 3, 2, {0, 1, 2}},
    {COLL_GATHER, 1, 0, 3, 0, {NOTHING, NOTHING, NOTHING}},
    {COLL_GATHER, 2, 0, 3, 0, {0, 1, 2}},
    {COLL_SCATTER, 0, 0, 1, 0, {2}},
    {COLL_SCATTER, 1, 0, 1, 1, {2}},
    {COLL_SENDRECV, 0, 0, 1, 0, {2}},
    {COLL_SENDRECV, 1, 0, 1, 0, {0}},
    {COLL_SENDRECV, 2, 0, 1, 0, {1}},
    {COLL_BARRIER, 1, 0, 0, 0, {0}},
};

static void blocks_come_from_their_ranks(void **state)
{
    (void)state;
    for (unsigned i = 0; i < LEN(pieces); i++) {
        struct layout l = {.kind = pieces[i].kind,
                           .nranks = RANKS,
                           .rank = pieces[i].rank,
                           .root = ROOT,
                           .sparse = pieces[i].sparse,
                           .count = N};
        struct piece p = {.at = 99};

        for (unsigned k = 0; k < pieces[i].pieces; k++) {
            assert_true(layout_piece(&l, k, &p));
            assert_int_equal(p.at, N * k);
            assert_int_equal(p.n, N);
            assert_int_equal(p.first, N * pieces[i].first);
            assert_int_equal(p.source, pieces[i].source[k]);
        }
        p.at = 99;
        assert_false(layout_piece(&l, pieces[i].pieces, &p));
        assert_int_equal(p.at, 99);
        if (l.kind == COLL_REDUCE || l.kind == COLL_GATHER) { /* in place others have no buffer */
            l.in_place = true;
            assert_int_equal(layout_piece(&l, 0, &p), l.rank == ROOT);
        }
    }
}

/* ---- elements ---- */

static void a_number_is_stored_in_its_place(void **state)
{
    static const struct {
        enum dtype type;
        int64_t x;
        uint64_t bits;
    } each[] = {
        {DT_INT8, -2, 0xfe},
        {DT_UINT8, 200, 200},
        {DT_INT16, -2, 0xfffe},
        {DT_UINT16, 0x1234, 0x1234},
        {DT_INT32, -2, 0xfffffffe},
        {DT_UINT32, 0x12345678, 0x12345678},
        {DT_INT64, -2, 0xfffffffffffffffe},
        {DT_UINT64, 0x123456789, 0x123456789},
        {DT_FP16, -3, 0xc200},
        {DT_BF16, -3, 0xc040},
        {DT_FP32, -3, 0xc0400000},
        {DT_FP64, -3, 0xc008000000000000},
        {DT_FP8_E4M3, -3, 0xc4},
        {DT_FP8_E5M2, -3, 0xc2},
        {DT_INT32_LOC, (3 << VALUE_LOC_BITS) + 5, 0x500000003},
        {DT_INT32_LOC, -3 * (1 << VALUE_LOC_BITS) + 5, 0x5fffffffd},
        {DT_FP32_LOC, -3 * (1 << VALUE_LOC_BITS) + VALUE_LOC_MASK, 0xfffffc0400000},
    };

    (void)state;
    for (unsigned i = 0; i < LEN(each); i++) {
        unsigned size = dtype_size(each[i].type);
        uint8_t buf[40], want[40];
        uint64_t odd = 0;
        double x;

        memset(buf, 0xa5, sizeof(buf)), memset(want, 0xa5, sizeof(want));
        memcpy(want + 2ul * size, &each[i].bits, size);
        value_store(each[i].type, buf, 2, each[i].x);
        assert_memory_equal(buf, want, sizeof(buf));
        memcpy(&odd, buf + 2ul * size, size);
        x = value_of(each[i].type, (uint8_t *)&odd);
        if (each[i].type == DT_INT32_LOC || each[i].type == DT_FP32_LOC ||
            each[i].type == DT_FP8_E4M3 || each[i].type == DT_FP8_E5M2)
            assert_true(isnan(x));
        else
            assert_true(x == (double)each[i].x);
    }
}

static void numbers_are_scaled_in_place(void **state)
{
    float x[4] = {1, -2, 0.5f, 7};
    static const float want[4] = {0.25f, -0.5f, 0.125f, 7};

    (void)state;
    value_scale(x, 3, 0.25);
    assert_memory_equal(x, want, sizeof(x));
    value_scale(x, 0, 0.25);
    assert_memory_equal(x, want, sizeof(x));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffers_have_so_many_elements),
        cmocka_unit_test(blocks_come_from_their_ranks),
        cmocka_unit_test(a_number_is_stored_in_its_place),
        cmocka_unit_test(numbers_are_scaled_in_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
