/* SPDX-License-Identifier: BSD-3-Clause */
/* How long a process that does not take its frames may hold up others (switch/nic_stall.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <rte_mempool.h>

#include "switch/nic.h"
#include "tests/support/eal.h"
#include "tests/support/switch_fixture.h"

#define LEN 4096

static struct rte_mempool *pool;

static struct rte_mbuf *to(struct switch_fixture *l, const char *from, const char *host,
                           unsigned slot, uint32_t len)
{
    struct frame_spec s = {.src_ip = switch_fixture_ip(l, from),
                           .dst_ip = switch_fixture_ip(l, host),
                           .dqpn = (slot + 1) << 16 | 5,
                           .len = len};

    return switch_fixture_frame(pool, &s);
}

static void kick(struct switch_fixture *l, const char *host, unsigned slot)
{
    net_kick(l->net, switch_fixture_node(l, host), 0, slot, net_now(l->net));
}

/* A process that is stopped costs its host NIC_STALL_PS, not its life; what the others get is
 * theirs all along, and the process itself goes on when it takes frames again. */
static void a_stopped_process_does_not_pause_its_host_for_ever(void **state)
{
    struct prog *stopped, *other, *far;
    struct switch_fixture l;

    (void)state;
    switch_fixture_open(
        &l, pool,
        "mtu = 4096; single_switch = { hosts = 2; host_link = { rate = \"400Gb/s\"; latency = "
        "\"300ns\"; buffer = \"64KiB\"; }; };");
    stopped = prog_new(&l, "h0", 0);
    other = prog_new(&l, "h0", 1);
    far = prog_new(&l, "h1", 0);
    stopped->take = 0;
    prog_stream(&l, far, "h1", "h0", 500, LEN);
    kick(&l, "h1", 0);
    net_advance(l.net, NIC_STALL_PS * 9 / 10);
    assert_int_equal(switch_fixture_all_drops(&l), 0); /* held back all this time */
    assert_true(far->endless > 400);
    net_advance(l.net, NIC_STALL_PS * 12 / 10);
    assert_int_equal(switch_fixture_drops(&l, DROP_SLOT_STALLED), 500);
    assert_int_equal(switch_fixture_all_drops(&l), 500);
    assert_int_equal(nic_stall_drops(net_node(l.net, switch_fixture_node(&l, "h0")), 0, 0), 500);
    assert_int_equal(nic_stall_drops(net_node(l.net, switch_fixture_node(&l, "h0")), 0, 1), 0);
    for (unsigned i = 0; i < 100; i++)
        prog_send(far, ENDPOINT_DATA, to(&l, "h1", "h0", 1, LEN));
    kick(&l, "h1", 0);
    net_advance(l.net, NIC_STALL_PS * 12 / 10 + PS_PER_MS);
    assert_int_equal(other->got, 100);
    stopped->take = -1;
    for (unsigned i = 0; i < 100; i++)
        prog_send(far, ENDPOINT_DATA, to(&l, "h1", "h0", 0, LEN));
    kick(&l, "h1", 0);
    net_advance(l.net, NIC_STALL_PS * 12 / 10 + 2 * PS_PER_MS);
    assert_int_equal(stopped->got, 100);
    assert_int_equal(switch_fixture_all_drops(&l), 500);
    prog_free(stopped), prog_free(other), prog_free(far);
    switch_fixture_close(&l);
}

/* Whatever its pattern: it takes `take` frames, then none until `every` is over. `own`: who sends
 * to it is on the same host, and sends to another process there besides. */
static void one_who_takes_slowly_holds_up_others_for_a_small_share(void **state)
{
    static const struct {
        int take;
        int64_t every;
        bool own;
    } rows[] = {
        {0, PS_PER_S, false},         {1, PS_PER_S, false},   {1, 50 * PS_PER_MS, false},
        {16, 100 * PS_PER_MS, false}, {128, PS_PER_S, false}, {128, 300 * PS_PER_MS, false},
        {1000, 2 * PS_PER_S, false},  {1, PS_PER_S, true},    {128, 300 * PS_PER_MS, true},
    };
    const int64_t span = 5 * PS_PER_S, step = PS_PER_MS;

    (void)state;
    for (unsigned r = 0; r < RTE_DIM(rows); r++) {
        struct prog *slow, *other, *src;
        uint16_t at_slow;
        int64_t held = 0, may;
        uint64_t sent = 0;
        struct switch_fixture l;

        switch_fixture_open(
            &l, pool,
            "mtu = 4096; single_switch = { hosts = 2; host_link = { rate = \"1Gb/s\"; latency = "
            "\"300ns\"; buffer = \"256KiB\"; }; };");
        at_slow = switch_fixture_node(&l, "h0");
        slow = prog_new(&l, "h0", 0);
        other = prog_new(&l, "h0", 1);
        src = prog_new(&l, rows[r].own ? "h0" : "h1", 2);
        slow->take = 0;
        prog_stream(&l, src, rows[r].own ? "h0" : "h1", "h0", 0, LEN);
        src->endless = UINT64_MAX;
        net_kick(l.net, switch_fixture_node(&l, rows[r].own ? "h0" : "h1"), 0, 2, 0);
        for (int64_t t = step; t <= span; t += step) {
            uint64_t before = UINT64_MAX - src->endless;

            if (t % rows[r].every == 0) {
                for (int k = 0; k < rows[r].take; k++) {
                    slow->take = 1;
                    net_kick(l.net, at_slow, 0, 0, t - step);
                }
                slow->take = 0;
            }
            net_advance(l.net, t);
            sent = UINT64_MAX - src->endless;
            held += sent == before ? step : 0; /* a frame lasts 33 us */
        }
        may = NIC_STALL_PS + span / 16 + span / rows[r].every * rows[r].take * NIC_STALL_PS / 512;
        if (held > may + span / 100)
            fail_msg("row %u: held up for %ld ms of %ld, at most %ld", r, (long)(held / PS_PER_MS),
                     (long)(span / PS_PER_MS), (long)(may / PS_PER_MS));
        assert_int_equal(switch_fixture_drops(&l, DROP_SLOT_STALLED), switch_fixture_all_drops(&l));
        assert_int_equal(nic_stall_drops(net_node(l.net, at_slow), 0, 0),
                         switch_fixture_all_drops(&l));
        src->endless = 0;
        switch_fixture_run(&l, span + PS_PER_S);
        prog_free(slow), prog_free(other), prog_free(src);
        switch_fixture_close(&l);
    }
}

/* And who is slow all the time, or does not run for a while on a busy machine, loses nothing. */
static void one_who_goes_on_taking_loses_nothing(void **state)
{
    static const struct {
        int take;
        int64_t every;
    } rows[] = {
        {8, PS_PER_MS},
        {64, 10 * PS_PER_MS},
        {256, 40 * PS_PER_MS},
    };
    const int64_t span = 2 * PS_PER_S, step = PS_PER_MS;

    (void)state;
    for (unsigned r = 0; r < RTE_DIM(rows); r++) {
        struct prog *slow, *src;
        struct switch_fixture l;

        switch_fixture_open(
            &l, pool,
            "mtu = 4096; single_switch = { hosts = 2; host_link = { rate = \"1Gb/s\"; latency = "
            "\"300ns\"; buffer = \"1MiB\"; }; };");
        slow = prog_new(&l, "h0", 0);
        src = prog_new(&l, "h1", 0);
        slow->take = 0;
        prog_stream(&l, src, "h1", "h0", 0, LEN);
        src->endless = UINT64_MAX;
        kick(&l, "h1", 0);
        for (int64_t t = step; t <= span; t += step) {
            for (int k = 0; t % rows[r].every == 0 && k < rows[r].take; k++) {
                slow->take = 1;
                kick(&l, "h0", 0);
                slow->take = 0;
            }
            net_advance(l.net, t);
        }
        assert_int_equal(switch_fixture_all_drops(&l), 0);
        assert_true(slow->got > 1000);
        src->endless = 0;
        slow->take = -1;
        switch_fixture_run(&l, span + PS_PER_S);
        prog_free(slow), prog_free(src);
        switch_fixture_close(&l);
    }
}

/* A NIC that is late itself has not seen whether the process would have taken its frames. */
static void a_late_nic_does_not_blame_the_process(void **state)
{
    struct prog *slow, *far;
    struct switch_fixture l;

    (void)state;
    switch_fixture_open(
        &l, pool,
        "mtu = 4096; single_switch = { hosts = 2; host_link = { rate = \"400Gb/s\"; latency = "
        "\"300ns\"; buffer = \"64KiB\"; }; };");
    slow = prog_new(&l, "h0", 0);
    far = prog_new(&l, "h1", 0);
    slow->take = 0;
    prog_stream(&l, far, "h1", "h0", 200, LEN);
    kick(&l, "h1", 0);
    net_advance(l.net, PS_PER_MS);
    for (unsigned i = 1; i < 10; i++) {
        net_excuse(l.net, i * NIC_STALL_PS - PS_PER_MS);
        net_advance(l.net, i * NIC_STALL_PS);
    }
    assert_int_equal(switch_fixture_all_drops(&l), 0);
    slow->take = -1;
    net_kick(l.net, switch_fixture_node(&l, "h0"), 0, 0, 10 * NIC_STALL_PS);
    net_advance(l.net, 11 * NIC_STALL_PS);
    assert_int_equal(slow->got, 200);
    prog_free(slow), prog_free(far);
    switch_fixture_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stopped_process_does_not_pause_its_host_for_ever),
        cmocka_unit_test(one_who_takes_slowly_holds_up_others_for_a_small_share),
        cmocka_unit_test(one_who_goes_on_taking_loses_nothing),
        cmocka_unit_test(a_late_nic_does_not_blame_the_process),
    };

    test_eal_init();
    pool = test_pool(16383);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
