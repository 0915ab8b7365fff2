/* SPDX-License-Identifier: BSD-3-Clause */
/* A queue whose link gets another rate or latency while frames wait and are in flight. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <rte_mempool.h>

#include "switch/queue/egress.h"
#include "switch/queue/link_fault.h"
#include "tests/support/eal.h"
#include "tests/support/egress_fixture.h"

#define Gb 1000000000ull

static struct rte_mempool *pool;

static void push(struct egress *e, uint32_t n, uint32_t first, int64_t now)
{
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(
            egress_push(e, egress_fixture_frame(pool, FRAME_LOSSLESS, LEN, first + i), now), 0);
}

static void the_frame_on_the_link_ends_as_it_began_and_the_next_has_the_new_rate(void **state)
{
    struct egress_cfg c = egress_fixture_usual(pool);
    struct egress *e = egress_fixture_make(&c);
    int64_t at[3];

    (void)state;
    push(e, 3, 0, 0);
    egress_set_link(e, 100 * Gb, LATENCY);
    assert_int_equal(egress_rate_bps(e), 100 * Gb);
    assert_int_equal(egress_fixture_drain(e, NULL, at, 3), 3);
    assert_int_equal(at[0], DUR + LATENCY);
    assert_int_equal(at[1], 5 * DUR + LATENCY);
    assert_int_equal(at[2], 9 * DUR + LATENCY);
    assert_int_equal(egress_stats(e).busy_ps, 9 * DUR);
    egress_destroy(e);
}

/* Rates that divide no picosecond keep the time of the last length. */
static void a_frame_time_that_was_kept_is_not_that_of_the_old_rate(void **state)
{
    static const uint64_t rates[] = {300, 400, 300, 700, 300};
    struct egress_cfg c = egress_fixture_usual(pool);
    struct egress *e = egress_fixture_make(&c);
    int64_t at, now = PS_PER_S;

    (void)state;
    for (unsigned i = 0; i < sizeof(rates) / sizeof(rates[0]); i++, now += PS_PER_S) {
        egress_set_link(e, rates[i] * Gb, LATENCY);
        push(e, 1, i, now);
        assert_int_equal(egress_fixture_drain(e, NULL, &at, 1), 1);
        assert_int_equal(at, now + link_time_ps(BYTES + 24, rates[i] * Gb) + LATENCY);
    }
    egress_destroy(e);
}

static void a_shorter_latency_delivers_nothing_before_what_was_sent_earlier(void **state)
{
    struct egress_cfg c = egress_fixture_usual(pool);
    struct egress *e;
    uint32_t tag[6];
    int64_t at[6];

    (void)state;
    c.latency_ps = PS_PER_MS;
    e = egress_fixture_make(&c);
    push(e, 3, 0, 0);
    egress_start(e, 3 * DUR);
    egress_set_link(e, RATE, 0);
    push(e, 2, 3, 3 * DUR);
    egress_start(e, 10 * DUR);
    push(e, 1, 5, PS_PER_MS + 50 * DUR); /* when those are gone, it has the new latency */
    assert_int_equal(egress_fixture_drain(e, tag, at, 6), 6);
    for (uint32_t i = 0; i < 6; i++)
        assert_int_equal(tag[i], i);
    for (int i = 0; i < 3; i++)
        assert_int_equal(at[i], (i + 1) * DUR + PS_PER_MS);
    assert_int_equal(at[3], at[2]);
    assert_int_equal(at[4], at[2]);
    assert_int_equal(at[5], PS_PER_MS + 51 * DUR);
    egress_destroy(e);
}

/* The link holds as many frames as its new latency takes, although the queue was laid out for
 * few. */
static void a_longer_latency_holds_as_many_frames_as_it_takes(void **state)
{
    enum { MANY = 2000 };
    static int64_t at[MANY];
    struct egress_cfg c = egress_fixture_usual(pool);
    struct egress *e;

    (void)state;
    c.latency_ps = 0;
    e = egress_fixture_make(&c);
    egress_set_link(e, RATE, PS_PER_MS);
    push(e, MANY, 0, 0);
    egress_start(e, MANY * DUR);
    assert_int_equal(egress_occupancy(e, FRAME_LOSSLESS), 0);
    assert_int_equal(egress_fixture_drain(e, NULL, at, MANY), MANY);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(at[i], (i + 1) * DUR + PS_PER_MS);
    egress_destroy(e);
}

static void a_header_that_goes_ahead_has_the_time_of_the_new_rate(void **state)
{
    struct egress_cfg c = egress_fixture_usual(pool);
    struct egress *e;
    int64_t at[2];

    (void)state;
    c.cut_bytes = 64;
    c.cut_mac[0] = 0xee; /* the frames are for somebody behind the switch */
    e = egress_fixture_make(&c);
    push(e, 2, 0, 0);
    egress_set_link(e, 100 * Gb, LATENCY);
    assert_int_equal(egress_fixture_drain(e, NULL, at, 2), 2);
    assert_int_equal(at[0], 64 * 20 + LATENCY);
    assert_int_equal(at[1], DUR + 64 * 80 + LATENCY);
    egress_destroy(e);
}

/* Times by a model of one line: each frame ends at the rate that its start finds, and arrives with
 * the latency of then, behind the one before it. */
static void any_changes_keep_order_and_every_frame_has_the_terms_of_its_start(void **state)
{
    enum { ROUNDS = 2000, EACH = 4 };
    static int64_t at[ROUNDS * EACH], want[ROUNDS * EACH];
    static uint32_t tag[ROUNDS * EACH];
    struct egress_cfg c = egress_fixture_usual(pool);
    struct egress *e = egress_fixture_make(&c);
    int64_t now = 0, free_ps = 0, last = 0;
    struct rte_mbuf *m[32];
    struct fault_rng rng;
    unsigned n = 0;

    (void)state;
    fault_seed(&rng, 26);
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint64_t rate = (1 + fault_draw(&rng) % 800) * Gb;
        int64_t latency = (int64_t)(fault_draw(&rng) % (20 * PS_PER_US));
        uint16_t k;

        egress_set_link(e, rate, latency);
        push(e, EACH, EACH * i, now);
        for (unsigned j = 0; j < EACH; j++) {
            free_ps = RTE_MAX(free_ps, now) + link_time_ps(BYTES + 24, rate);
            last = want[EACH * i + j] = RTE_MAX(free_ps + latency, last);
        }
        now = free_ps + (int64_t)(fault_draw(&rng) % PS_PER_US); /* all have started */
        while ((k = egress_pop(e, m, 32, now)))
            for (uint16_t j = 0; j < k; j++, n++) {
                tag[n] = egress_fixture_tag(m[j]);
                at[n] = frame_meta(m[j])->due_ps;
                rte_pktmbuf_free(m[j]);
            }
    }
    n += egress_fixture_drain(e, tag + n, at + n, ROUNDS * EACH - n);
    assert_int_equal(n, ROUNDS * EACH);
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(tag[i], i);
        assert_int_equal(at[i], want[i]);
    }
    egress_destroy(e);
}

#define T(f) cmocka_unit_test_prestate_setup_teardown(f, NULL, egress_fixture_no_leak, pool)

int main(void)
{
    test_eal_init();
    pool = test_pool(16383);
    const struct CMUnitTest tests[] = {
        T(the_frame_on_the_link_ends_as_it_began_and_the_next_has_the_new_rate),
        T(a_frame_time_that_was_kept_is_not_that_of_the_old_rate),
        T(a_shorter_latency_delivers_nothing_before_what_was_sent_earlier),
        T(a_longer_latency_holds_as_many_frames_as_it_takes),
        T(a_header_that_goes_ahead_has_the_time_of_the_new_rate),
        T(any_changes_keep_order_and_every_frame_has_the_terms_of_its_start),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
