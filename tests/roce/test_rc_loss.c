/* SPDX-License-Identifier: BSD-3-Clause */
/* Losses of retransmissions: no wait for a timeout if the peer can detect them. */
#include "tests/roce/rc_fixture.h"

/* Drops a response of READ data, so many times in a row. */
struct again {
    uint32_t psn;
    unsigned times, seen;
};

static enum wire_verdict drop_response(struct pair *p, unsigned from, const struct roce_pkt *k)
{
    struct again *a = p->arg;

    if (from != 1 || k->len == 0 || k->psn != a->psn)
        return WIRE_PASS;
    return ++a->seen <= a->times ? WIRE_DROP : WIRE_PASS;
}

static void read_data_that_is_lost_twice_and_more_is_asked_for_at_once(void **state)
{
    static const uint32_t psn[] = {10, 11, 60};

    (void)state;
    for (unsigned times = 1; times < 5; times++)
        for (unsigned i = 0; i < 3; i++) {
            struct qp_attr attr = {.mtu = 256, .sq_psn = 10, .timeout = 20, .retry_cnt = 7};
            struct fixture e = fixture_make(&attr, false);
            struct again a = {psn[i], times, 0};
            struct wqe w = request(&e, WR_READ, 1, 100 * 256);

            e.p->fault = drop_response, e.p->arg = &a;
            for (unsigned b = 0; b < BUF; b++)
                e.buf[1][b] = (uint8_t)(b * 7 + b / 256);
            assert_int_equal(qp_post_send(e.qp[0], &w), 0);
            pair_run(e.p, pair_never, PS_PER_S);
            assert_int_equal(e.p->s[0].n_cqes, 1);
            assert_int_equal(e.p->s[0].cqe[0].status, WC_SUCCESS);
            assert_memory_equal(e.buf[0], e.buf[1], 100 * 256);
            assert_int_equal(rnic_counters(e.p->s[0].r)->timeouts, 0);
            assert_int_equal(rnic_counters(e.p->s[0].r)->read_gaps, times);
            fixture_free(&e);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_data_that_is_lost_twice_and_more_is_asked_for_at_once),
    };

    test_eal_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
