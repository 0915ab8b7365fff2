/* SPDX-License-Identifier: BSD-3-Clause */
/* Marks: none up to the lower threshold, all above the upper one, in between with the stated
 * probability. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "switch/queue/ecn.h"
#include "tests/support/eal.h"
#include "tests/support/switch_fixture.h"

#define N 100000

static struct rte_mempool *pool;

static unsigned hits(struct ecn *e, uint64_t waiting)
{
    unsigned n = 0;

    for (unsigned i = 0; i < N; i++)
        n += ecn_hits(e, waiting);
    return n;
}

static void the_probability_grows_between_the_thresholds(void **state)
{
    static const struct row {
        uint64_t waiting;
        double want;
    } rows[] = {{0, 0},         {99999, 0},     {100000, 0}, {110000, 0.02},
                {150000, 0.10}, {200000, 0.20}, {200001, 1}, {1000000000000, 1}};
    struct ecn e;

    (void)state;
    ecn_init(&e, 100000, 200000, 0.2, 7);
    for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        double got = (double)hits(&e, rows[i].waiting) / N;

        /* Five standard deviations of N draws. */
        assert_true(got <= rows[i].want + 0.0064 && got >= rows[i].want - 0.0064);
        if (rows[i].want == 0 || rows[i].want == 1)
            assert_true(got == rows[i].want);
    }
}

static void one_threshold_marks_all_above_it_and_none_switches_it_off(void **state)
{
    struct ecn e;

    (void)state;
    ecn_init(&e, 1000, 0, 0, 1);
    assert_int_equal(hits(&e, 1000), 0);
    assert_int_equal(hits(&e, 1001), N);
    ecn_init(&e, 0, 0, 1, 1);
    assert_int_equal(hits(&e, UINT64_MAX), 0);
}

static void marks_follow_from_the_seed(void **state)
{
    struct ecn a, b, c;
    unsigned differ = 0;

    (void)state;
    ecn_init(&a, 10, 20, 0.5, 3);
    ecn_init(&b, 10, 20, 0.5, 3);
    ecn_init(&c, 10, 20, 0.5, 4);
    for (unsigned i = 0; i < 1000; i++) {
        bool hit = ecn_hits(&a, 18);

        assert_int_equal(hit, ecn_hits(&b, 18));
        differ += hit != ecn_hits(&c, 18);
    }
    assert_true(differ > 100);
}

/* Bytes of a frame that others hold (a copy kept for retransmission, other branches of a multicast)
 * stay as they were; the mark goes into a header of its own, or the frame is not marked. */
static void a_mark_is_seen_by_this_copy_alone(void **state)
{
    const struct frame_spec spec = {.src_ip = 0x0a000001, .dst_ip = 0x0a000002, .len = 200};

    (void)state;
    for (unsigned shared = 0; shared < 3; shared++) /* not; by reference; by a clone */
        for (int own_header = 0; own_header < 2; own_header++) {
            struct rte_mbuf *m = switch_fixture_frame(pool, &spec), *other = NULL, *got;
            uint8_t before = rte_pktmbuf_mtod(m, uint8_t *)[15];
            uint64_t marks = 0;
            bool can = !shared || own_header;

            assert_int_equal(before & 3, 2);
            if (shared == 1)
                rte_mbuf_refcnt_update(other = m, 1);
            else if (shared == 2)
                other = m, m = rte_pktmbuf_clone(m, pool);
            got = ecn_mark(m, own_header ? pool : NULL, &marks);
            assert_int_equal(marks, can);
            assert_int_equal(rte_pktmbuf_mtod(got, uint8_t *)[15], can ? before | 3 : before);
            assert_int_equal(switch_fixture_ip_checksum(rte_pktmbuf_mtod(got, uint8_t *) + 14, 20),
                             0);
            if (other)
                assert_int_equal(rte_pktmbuf_mtod(other, uint8_t *)[15], before);
            rte_pktmbuf_free(got);
            rte_pktmbuf_free(other);
            assert_int_equal(rte_mempool_in_use_count(pool), 0);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mark_is_seen_by_this_copy_alone),
        cmocka_unit_test(the_probability_grows_between_the_thresholds),
        cmocka_unit_test(one_threshold_marks_all_above_it_and_none_switches_it_off),
        cmocka_unit_test(marks_follow_from_the_seed),
    };

    test_eal_init();
    pool = test_pool(63);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
