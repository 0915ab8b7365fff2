/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <rte_mempool.h>
#include <string.h>

#include "switch/queue/egress.h"
#include "switch/queue/pfc.h"
#include "tests/support/eal.h"
#include "tests/support/egress_fixture.h"

static struct rte_mempool *pool;

#define MANY 4000

/* Sends MANY frames; returns how many arrive. */
static unsigned faulty(const struct egress_faults *f, uint32_t *tag, int64_t *at,
                       struct egress_stats *st)
{
    struct egress_cfg c = egress_fixture_usual(pool);
    struct egress *e;
    unsigned n = 0;

    c.faults = *f;
    e = egress_fixture_make(&c);
    for (uint32_t i = 0; i < MANY; i += 100) {
        for (uint32_t j = i; j < i + 100; j++)
            assert_int_equal(egress_push(e, egress_fixture_frame(pool, FRAME_LOSSLESS, 64, j),
                                         (int64_t)i * 100 * 1000),
                             0);
        n += egress_fixture_drain(e, tag ? tag + n : NULL, at ? at + n : NULL, 2 * MANY - n);
    }
    if (st)
        *st = egress_stats(e);
    egress_destroy(e);
    return n;
}

/* Five standard deviations of a binomial with p = 0.1. */
#define EXPECTED  (MANY / 10)
#define TOLERANCE 95

static void faults_come_as_often_as_asked(void **state)
{
    struct egress_stats st;
    unsigned n;

    (void)state;
    n = faulty(&(struct egress_faults){.loss = 0.1, .seed = 1}, NULL, NULL, &st);
    assert_in_range(st.lost, EXPECTED - TOLERANCE, EXPECTED + TOLERANCE);
    assert_int_equal(n, MANY - st.lost);
    assert_int_equal(st.frames, MANY); /* they were on the link */
    assert_int_equal(st.lost_bytes * MANY, st.lost * st.bytes);
    n = faulty(&(struct egress_faults){.dup = 0.1, .seed = 2}, NULL, NULL, &st);
    assert_in_range(st.duplicated, EXPECTED - TOLERANCE, EXPECTED + TOLERANCE);
    assert_int_equal(n, MANY + st.duplicated);
    n = faulty(&(struct egress_faults){.corrupt = 0.1, .seed = 3}, NULL, NULL, &st);
    assert_in_range(st.corrupted, EXPECTED - TOLERANCE, EXPECTED + TOLERANCE);
    assert_int_equal(n, MANY);
}

static void reordered_frames_come_later_than_their_followers_and_jitter_keeps_order(void **state)
{
    static uint32_t tag[2 * MANY];
    static int64_t at[2 * MANY];
    struct egress_stats st;
    unsigned inversions = 0;

    (void)state;
    assert_int_equal(faulty(&(struct egress_faults){.reorder = 0.1, .seed = 4}, tag, at, &st),
                     MANY);
    for (unsigned i = 1; i < MANY; i++) {
        inversions += tag[i] < tag[i - 1];
        assert_true(at[i] >= at[i - 1]);
    }
    assert_in_range(st.reordered, EXPECTED - TOLERANCE, EXPECTED + TOLERANCE);
    assert_in_range(inversions, st.reordered / 2, 2 * st.reordered);
    assert_int_equal(
        faulty(&(struct egress_faults){.jitter_ps = PS_PER_US, .seed = 5}, tag, at, NULL), MANY);
    for (unsigned i = 1; i < MANY; i++)
        assert_true(tag[i] == tag[i - 1] + 1 && at[i] >= at[i - 1]);
}

static void one_seed_gives_one_history_and_another_seed_another(void **state)
{
    static uint32_t tag[3][2 * MANY];
    static int64_t at[3][2 * MANY];
    struct egress_faults f = {
        .loss = 0.05, .dup = 0.05, .reorder = 0.05, .jitter_ps = 1000, .seed = 77};
    unsigned n[3];

    (void)state;
    n[0] = faulty(&f, tag[0], at[0], NULL);
    n[1] = faulty(&f, tag[1], at[1], NULL);
    f.seed = 78;
    n[2] = faulty(&f, tag[2], at[2], NULL);
    assert_int_equal(n[0], n[1]);
    assert_memory_equal(tag[0], tag[1], n[0] * sizeof(**tag));
    assert_memory_equal(at[0], at[1], n[0] * sizeof(**at));
    assert_int_not_equal(memcmp(tag[0], tag[2], sizeof(**tag) * RTE_MIN(n[0], n[2])), 0);
}

static void corruption_flips_one_bit_of_a_copy_and_never_a_shared_payload(void **state)
{
    struct egress_cfg c = egress_fixture_usual(pool);
    struct rte_mbuf *orig = egress_fixture_frame(pool, FRAME_LOSSLESS, LEN, 1), *m[4];
    const uint8_t *a = rte_pktmbuf_mtod(orig, uint8_t *);
    uint8_t before[BYTES];
    struct egress *e;

    (void)state;
    memcpy(before, a, BYTES);
    c.faults = (struct egress_faults){.corrupt = 1, .seed = 6};
    e = egress_fixture_make(&c);
    for (int round = 0; round < 50; round++) {
        struct rte_mbuf *cl = frame_clone(orig, pool);
        unsigned bits = 0;
        const uint8_t *b;

        frame_meta(cl)->flags |= FRAME_F_TRUSTED;
        egress_push(e, cl, round * 2 * DUR);
        assert_int_equal(egress_pop(e, m, 4, (round * 2 + 1) * DUR + LATENCY), 1);
        b = rte_pktmbuf_mtod(m[0], uint8_t *);
        assert_ptr_not_equal(a, b);
        assert_memory_equal(a, before, BYTES);
        for (int i = 0; i < BYTES; i++)
            bits += (unsigned)__builtin_popcount(a[i] ^ b[i]);
        assert_int_equal(bits, 1);
        assert_memory_equal(a, b, 12);
        assert_int_equal(frame_meta(m[0])->flags & FRAME_F_TRUSTED, 0);
        rte_pktmbuf_free(m[0]);
    }
    /* A payload that is not carried cannot be checked: the frame arrives and says that it is
     * damaged. */
    frame_meta(orig)->flags |= FRAME_F_VIRTUAL;
    egress_push(e, orig, 1000 * DUR);
    assert_int_equal(egress_pop(e, m, 4, 1001 * DUR + LATENCY), 1);
    assert_true(frame_meta(m[0])->flags & FRAME_F_DAMAGED);
    rte_pktmbuf_free(m[0]);
    egress_destroy(e);
}

static void pause_frames_are_exempt_from_faults(void **state)
{
    static const uint8_t src[6] = {2, 0x54, 10, 0, 0, 1};
    struct egress_cfg c = egress_fixture_usual(pool);
    struct egress *e;

    (void)state;
    c.faults = (struct egress_faults){.loss = 1, .seed = 6};
    e = egress_fixture_make(&c);
    egress_push(e, pfc_frame(pool, src, 100), 0);
    egress_push(e, egress_fixture_frame(pool, FRAME_CONTROL, 60, 0), 0);
    assert_int_equal(egress_fixture_drain(e, NULL, NULL, 2), 1);
    egress_destroy(e);
}

#define T(f) cmocka_unit_test_prestate_setup_teardown(f, NULL, egress_fixture_no_leak, pool)

int main(void)
{
    test_eal_init();
    pool = test_pool(16383);
    const struct CMUnitTest tests[] = {
        T(faults_come_as_often_as_asked),
        T(reordered_frames_come_later_than_their_followers_and_jitter_keeps_order),
        T(one_seed_gives_one_history_and_another_seed_another),
        T(corruption_flips_one_bit_of_a_copy_and_never_a_shared_payload),
        T(pause_frames_are_exempt_from_faults),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
