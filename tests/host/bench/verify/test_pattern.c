/* SPDX-License-Identifier: BSD-3-Clause */
/* Check values: exact in every type whatever the order, and every wrong element is found. */
#include "host/bench/verify/test_pattern.h"
#include "host/bench/verify/value.h"

#include <setjmp.h>
#include <stdarg.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT 1000

static uint32_t seed = 1;

static unsigned next_random(unsigned n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

static struct layout all_reduce(unsigned rank, unsigned nranks, uint64_t count)
{
    return (struct layout){.kind = COLL_ALLREDUCE, .rank = rank, .nranks = nranks, .count = count};
}

/* Combines all ranks' contributions pairwise in a random order, rounding to the type each time. */
static void combine(enum dtype t, enum redop op, unsigned nranks, uint8_t *acc)
{
    uint8_t *part[64];
    unsigned left = nranks;

    for (unsigned r = 0; r < nranks; r++) {
        struct layout l = all_reduce(r, nranks, COUNT);
        struct test_pattern v;
        assert_int_equal(pattern_init(&v), 0);
        pattern_set(&v, &l, t, op);
        part[r] = calloc(COUNT, 8);
        pattern_fill(&v, part[r], r, 0, COUNT);
        pattern_free(&v);
    }
    while (left > 1) {
        unsigned a = next_random(left), b = next_random(left - 1);
        b += b >= a;
        const void *in[2] = {part[a], part[b]};
        arith_scalar(op == OP_AVG ? OP_SUM : op, t)(part[a], in, 2, COUNT);
        free(part[b]);
        part[b] = part[--left];
    }
    if (op == OP_AVG)
        arith_divide(part[0], t, nranks, COUNT);
    memcpy(acc, part[0], COUNT * dtype_size(t));
    free(part[0]);
}

static void any_order_gives_the_expected_bits(void **state)
{
    static const unsigned ranks[] = {1, 2, 3, 8, 16, 64};
    uint8_t acc[COUNT * 8];
    struct test_pattern v;

    (void)state;
    assert_int_equal(pattern_init(&v), 0);
    for (int t = 0; t < DT_COUNT; t++) {
        for (int op = 0; op < OP_COUNT; op++) {
            if (!arith_valid((enum redop)op, (enum dtype)t))
                continue;
            for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
                struct layout l = all_reduce(0, ranks[i], COUNT);
                combine((enum dtype)t, (enum redop)op, ranks[i], acc);
                pattern_set(&v, &l, (enum dtype)t, (enum redop)op);
                uint64_t wrong = pattern_wrong(&v, acc, LAYOUT_ALL, 0, COUNT);
                if (wrong)
                    fail_msg("%s %s %u ranks: %lu wrong", dtype_name(t), redop_name(op), ranks[i],
                             (unsigned long)wrong);
            }
        }
    }
    pattern_free(&v);
}

static void ranks_contribute_different_values(void **state)
{
    uint8_t a[COUNT * 8], b[COUNT * 8];
    struct test_pattern v;

    (void)state;
    assert_int_equal(pattern_init(&v), 0);
    for (int t = 0; t < DT_COUNT; t++) {
        for (int op = 0; op < OP_COUNT; op++) {
            struct layout l = all_reduce(0, 8, COUNT);
            if (!arith_valid((enum redop)op, (enum dtype)t))
                continue;
            for (int moves = 0; moves < 2; moves++) {
                l.kind = moves ? COLL_ALLGATHER : COLL_ALLREDUCE;
                pattern_set(&v, &l, (enum dtype)t, (enum redop)op);
                pattern_fill(&v, a, 0, 0, COUNT);
                pattern_fill(&v, b, 1, 0, COUNT);
                assert_memory_not_equal(a, b, COUNT * dtype_size(t));
            }
        }
    }
    pattern_free(&v);
}

/* Longer than a period, so that repetition is covered; and from the middle of one. */
static void every_wrong_element_is_counted(void **state)
{
    const size_t count = 2 * PATTERN_PERIOD + 17;
    static const uint64_t starts[] = {0, 5, PATTERN_PERIOD - 1, 3 * PATTERN_PERIOD};
    struct test_pattern v;

    (void)state;
    assert_int_equal(pattern_init(&v), 0);
    for (int t = 0; t < DT_COUNT; t++) {
        enum redop op = arith_valid(OP_SUM, (enum dtype)t) ? OP_SUM : OP_MINLOC;
        struct layout l = all_reduce(0, 3, count);
        size_t size = dtype_size(t);
        uint8_t *buf = malloc(count * size);
        pattern_set(&v, &l, (enum dtype)t, op);
        for (size_t s = 0; s < sizeof(starts) / sizeof(starts[0]); s++) {
            unsigned source = s & 1 ? LAYOUT_ALL : 1;
            const size_t at[] = {0, 1, PATTERN_PERIOD - 1, PATTERN_PERIOD, count - 1};
            pattern_fill(&v, buf, source, starts[s], count);
            assert_int_equal(pattern_wrong(&v, buf, source, starts[s], count), 0);
            for (size_t i = 0; i < 5; i++)
                buf[at[i] * size + size - 1] ^= 1;
            assert_int_equal(pattern_wrong(&v, buf, source, starts[s], count), 5);
            pattern_poison(&v, buf, source, starts[s], count);
            assert_int_equal(pattern_wrong(&v, buf, source, starts[s], count), count);
        }
        pattern_poison(&v, buf, LAYOUT_NOTHING, 0, count);
        assert_int_equal(pattern_wrong(&v, buf, LAYOUT_NOTHING, 0, count), 0);
        buf[0] ^= 1;
        buf[count * size - 1] ^= 1;
        assert_int_equal(pattern_wrong(&v, buf, LAYOUT_NOTHING, 0, count), 2);
        free(buf);
    }
    pattern_free(&v);
}

/* The result of an algorithm with a wrong offset: everything shifted by a message, a packet, an
 * element. */
static void misplaced_data_is_found(void **state)
{
    static const size_t shifts[] = {1, 1024, 4096, 8 * 4096 - 32, 65536};
    const size_t count = 200000;
    struct layout l = all_reduce(0, 1, count);
    struct test_pattern v;
    float *buf = malloc((count + 70000) * sizeof(float));

    (void)state;
    assert_int_equal(pattern_init(&v), 0);
    for (int moves = 0; moves < 2; moves++) {
        l.kind = moves ? COLL_BROADCAST : COLL_ALLREDUCE;
        pattern_set(&v, &l, DT_FP32, OP_SUM);
        pattern_fill(&v, buf, 0, 0, count + 70000);
        for (size_t i = 0; i < sizeof(shifts) / sizeof(shifts[0]); i++)
            assert_true(pattern_wrong(&v, buf + shifts[i] / 4 + (shifts[i] < 4), 0, 0, count) >
                        count / 2);
    }
    free(buf);
    pattern_free(&v);
}

/* ---- whole buffers of every collective ---- */

#define RANKS 5u

/* Rank r's block b of its input, for a plain collective. */
static const uint16_t *block(uint16_t *const *in, unsigned r, unsigned b, uint64_t n)
{
    return in[r] + b * n;
}

/* The collective computed plainly, from copies of all ranks' inputs. */
static void by_the_book(const struct layout *l, uint16_t *const *in, uint16_t *recv)
{
    uint16_t *out = recv + layout_recv_at(l);
    uint64_t n = l->count, size = n * sizeof(*out);
    unsigned me = l->rank, N = l->nranks;
    bool root = me == l->root;

    for (unsigned r = 0; r < N; r++) {
        bool sent = !l->sparse || (me + N - r) % N < l->sparse;
        if (l->kind == COLL_ALLGATHER || (l->kind == COLL_GATHER && root))
            memcpy(out + r * n, block(in, r, 0, n), size);
        if (l->kind == COLL_ALLTOALL && sent)
            memcpy(out + r * n, block(in, r, me, n), size);
    }
    if (l->kind == COLL_BROADCAST)
        memcpy(out, block(in, l->root, 0, n), size);
    if (l->kind == COLL_SCATTER)
        memcpy(out, block(in, l->root, me, n), size);
    if (l->kind == COLL_SENDRECV)
        memcpy(out, block(in, (me + N - 1) % N, 0, n), size);
    if (l->kind == COLL_ALLREDUCE || l->kind == COLL_REDUCE_SCATTER ||
        (l->kind == COLL_REDUCE && root)) {
        unsigned b = l->kind == COLL_REDUCE_SCATTER ? me : 0;
        const void *part[RANKS];
        for (unsigned r = 0; r < N; r++)
            part[r] = block(in, r, b, n);
        arith_scalar(OP_SUM, DT_FP16)(out, part, N, n);
    }
}

static void one_rank(struct test_pattern *v, struct layout l)
{
    uint64_t room = l.count * l.nranks + 1;
    uint16_t *send = calloc(room, 2), *recv = calloc(room, 2), *in[RANKS];

    pattern_set(v, &l, DT_FP16, OP_SUM);
    for (unsigned r = 0; r < RANKS; r++) {
        in[r] = calloc(room, 2);
        pattern_fill(v, in[r], r, 0, l.count * l.nranks);
    }
    pattern_prepare(v, &l, send, recv);
    /* nothing was done: every element that should have changed is wrong */
    uint64_t got = 0;
    struct piece p;
    for (unsigned i = 0; layout_piece(&l, i, &p); i++)
        got += p.source == LAYOUT_NOTHING ? 0 : p.n;
    if (!l.in_place)
        assert_int_equal(pattern_check(v, &l, send, recv), got);
    by_the_book(&l, in, recv);
    if (pattern_check(v, &l, send, recv))
        fail_msg("collective %d rank %u root %u in place %d: %lu wrong", l.kind, l.rank, l.root,
                 l.in_place, (unsigned long)pattern_check(v, &l, send, recv));
    if (got) { /* one element that is off, and one of the input */
        recv[layout_recv_at(&l) + (l.sparse ? l.rank * l.count : 0)] ^= 1;
        assert_int_equal(pattern_check(v, &l, send, recv), 1);
    }
    if (!l.in_place && layout_send(&l)) {
        send[layout_send(&l) - 1] ^= 1;
        assert_int_equal(pattern_check(v, &l, send, recv), (got != 0) + 1);
    }
    for (unsigned r = 0; r < RANKS; r++)
        free(in[r]);
    free(send);
    free(recv);
}

static void buffers_of_every_collective_are_checked(void **state)
{
    static const uint64_t counts[] = {1, 7, 1000, 9001};
    struct test_pattern v;

    (void)state;
    assert_int_equal(pattern_init(&v), 0);
    for (int kind = 0; kind < COLL_BARRIER; kind++)
        for (unsigned rank = 0; rank < RANKS; rank++)
            for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
                for (unsigned root = 0; root < RANKS; root += 3) {
                    struct layout l = {
                        (enum coll_kind)kind, rank, RANKS, root, 0, counts[i], false};
                    one_rank(&v, l);
                    l.sparse = kind == COLL_ALLTOALL ? 2 : 0;
                    l.in_place = kind != COLL_ALLTOALL && kind != COLL_SENDRECV;
                    one_rank(&v, l);
                }
    pattern_free(&v);
}

/* Memory that a rank must not write, and input that must not change: reduce and gather elsewhere
 * than at the root, and the blocks of others in an in-place reduce-scatter. */
static void what_must_stay_is_looked_at(void **state)
{
    struct layout reduce = {COLL_REDUCE, 1, RANKS, 0, 0, COUNT, false};
    struct layout rs = {COLL_REDUCE_SCATTER, 1, RANKS, 0, 0, COUNT, true};
    static uint16_t send[RANKS * COUNT], recv[RANKS * COUNT];
    struct test_pattern v;

    (void)state;
    assert_int_equal(pattern_init(&v), 0);
    pattern_set(&v, &reduce, DT_FP16, OP_SUM);
    pattern_prepare(&v, &reduce, send, recv);
    assert_int_equal(pattern_check(&v, &reduce, send, recv), 0);
    recv[3]++;
    assert_int_equal(pattern_check(&v, &reduce, send, recv), 1);
    reduce.in_place = true; /* there it has no receive buffer at all */
    assert_true(layout_no_recv(&reduce));
    pattern_set(&v, &rs, DT_FP16, OP_SUM);
    pattern_prepare(&v, &rs, send, recv);
    pattern_fill(&v, recv + COUNT, LAYOUT_ALL, COUNT, COUNT);
    assert_int_equal(pattern_check(&v, &rs, send, recv), 0);
    recv[COUNT - 1]++;
    recv[2 * COUNT]++;
    assert_int_equal(pattern_check(&v, &rs, send, recv), 2);
    pattern_free(&v);
}

/* A sample is right as any of the results that are given for it, and as no other. */
static void samples_are_compared_with_their_results(void **state)
{
    static struct samples s;
    struct layout l = all_reduce(0, 3, COUNT);
    float sum[COUNT], want[2 * COUNT];
    struct test_pattern v;

    (void)state;
    assert_int_equal(pattern_init(&v), 0);
    for (unsigned i = 0; i < COUNT / 10; i++)
        s.at[s.n++] = 10u * i;
    pattern_set(&v, &l, DT_FP32, OP_SUM);
    pattern_sample(&v, &s, (const uint8_t *)want, 2);
    pattern_fill(&v, sum, LAYOUT_ALL, 0, COUNT);
    for (unsigned i = 0; i < s.n; i++) {
        want[i] = 0.1f * (float)i;
        want[s.n + i] = 0.3f * (float)i;
        sum[s.at[i]] = want[i % 2 * s.n + i];
    }
    assert_int_equal(pattern_wrong(&v, sum, LAYOUT_ALL, 0, COUNT), 0);
    assert_int_equal(pattern_wrong(&v, sum + 5, LAYOUT_ALL, 5, COUNT - 7), 0);
    sum[100] += 1e-6f; /* a sample, and the last element */
    sum[COUNT - 1] += 1;
    assert_int_equal(pattern_wrong(&v, sum, LAYOUT_ALL, 0, COUNT), 2);
    v.ways = 1; /* every other sample is of the second way */
    assert_int_equal(pattern_wrong(&v, sum, LAYOUT_ALL, 0, COUNT), s.n / 2 + 2);
    v.ways = 0; /* not known */
    assert_int_equal(pattern_wrong(&v, sum, LAYOUT_ALL, 0, COUNT), 1);
    pattern_fill(&v, sum, 1, 0, COUNT);
    assert_int_equal(pattern_wrong(&v, sum, 1, 0, COUNT), 0);
    sum[20] = -sum[20];
    assert_int_equal(pattern_wrong(&v, sum, 1, 0, COUNT), 1);
    pattern_free(&v);
}

/* Element i as a number of units. */
static void store_units(const struct test_pattern *v, uint8_t *buf, size_t i, int64_t x)
{
    value_store(v->type, buf, i, x);
    if (v->unit < 1)
        value_scale(buf + i * dtype_size(v->type), 1, v->unit);
}

/* An element is right up to the bound, and wrong beyond it; inputs have none. Those of float32 are
 * not above 1 then. */
static void errors_beyond_a_bound_are_counted(void **state)
{
    static const enum dtype rows[] = {DT_FP32, DT_FP64, DT_FP16, DT_BF16, DT_INT32};
    struct layout l = all_reduce(0, 4, COUNT);
    uint8_t buf[COUNT * 8];
    struct test_pattern v;

    (void)state;
    assert_int_equal(pattern_init(&v), 0);
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++)
        for (int64_t off = 0; off <= 9; off++) {
            const enum dtype t = rows[r];
            uint64_t changed = 0, wrong;

            pattern_set(&v, &l, t, OP_SUM);
            pattern_within(&v, 1);
            assert_true(v.unit == (t == DT_FP32 ? 0x1p-22 : 1));
            pattern_within(&v, 5 * v.unit);
            pattern_fill(&v, buf, LAYOUT_ALL, 0, COUNT);
            for (size_t i = 0; i < COUNT; i += 10) {
                int64_t x = (int64_t)(value_of(t, buf + i * dtype_size(t)) / v.unit);

                if (t == DT_BF16 && (x < -80 || x > 80)) /* else not every integer is one */
                    continue;
                store_units(&v, buf, i, x + (i % 20 ? off : -off));
                changed++;
            }
            assert_true(changed > 0);
            wrong = pattern_wrong(&v, buf, LAYOUT_ALL, 0, COUNT);
            assert_int_equal(wrong, off > 5 ? changed : 0);
            pattern_fill(&v, buf, 2, 0, COUNT);
            assert_true(t != DT_FP32 || fabs(value_of(t, buf)) <= 1);
            value_store(t, buf, 7, value_of(t, buf + 7ul * dtype_size(t)) != 0 ? 0 : 1);
            assert_int_equal(pattern_wrong(&v, buf, 2, 0, COUNT), 1);
        }
    pattern_free(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_beyond_a_bound_are_counted),
        cmocka_unit_test(any_order_gives_the_expected_bits),
        cmocka_unit_test(ranks_contribute_different_values),
        cmocka_unit_test(every_wrong_element_is_counted),
        cmocka_unit_test(misplaced_data_is_found),
        cmocka_unit_test(buffers_of_every_collective_are_checked),
        cmocka_unit_test(what_must_stay_is_looked_at),
        cmocka_unit_test(samples_are_compared_with_their_results),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
