/* SPDX-License-Identifier: BSD-3-Clause */
/* The log of late loops (lateness.c), and its bounds on a page full of nonsense. */
#include "fabric/fabric.h"
#include "machine/page_server.h"
#include "machine/shared.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include <string.h>

#define MS 1000000LL
#define PS 1000 /* to a ns, at dilation 1 */

static struct shared view, *sh = &view;
static struct switch_page *sw;
static struct clock_page *fabric_clock;
static struct fabric *fab;
static unsigned peer_bell;
static uint32_t peer_ip;
#define PEER_QPN (2u << 16 | 5) /* slot 1 */

static int setup(void **state)
{
    static const char conf[] =
        "mtu = 4096; slots_per_host = 4; processes = \"per_node\";"
        "single_switch = { hosts = 2; host_link = { rate = \"400Gb/s\"; latency = \"300ns\"; }; };";
    struct fab_errors errs = {0};
    const struct fab_node *h1;

    (void)state;
    sw = calloc(1, sizeof(*sw));
    fabric_clock = calloc(1, sizeof(*fabric_clock));
    assert_true(sw && fabric_clock);
    view = (struct shared){.clock = fabric_clock};
    shared_add(&view, "sw", 1, sw, NULL);
    clock_set_dilation(fabric_clock, 1);
    fab = fabric_load_string(conf, "late.conf", &errs);
    assert_non_null(fab);
    h1 = fabric_node(fab, "h1");
    peer_bell = bell_of_slot(fab, h1, 0, 1);
    peer_ip = h1->ip_of_port[0];
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fabric_free(fab);
    free(sw);
    free(fabric_clock);
    return 0;
}

/* In ms, of the last `window` ms. */
static int64_t late_ms(int64_t window)
{
    return lateness_on_path(sh, fab, NULL, peer_ip, PEER_QPN, window * MS * PS) / (MS * PS);
}

static void nobody_is_late_at_first(void **state)
{
    (void)state;
    assert_int_equal(late_ms(1000), 0);
    assert_true(lateness_known(fab));
}

static void what_was_late_counts_where_it_was(void **state)
{
    int64_t now = clock_mono_ns();

    (void)state;
    lateness_record(&sw->slot[peer_bell], now - 500 * MS, now - 400 * MS);
    assert_int_equal(late_ms(100), 0);
    assert_in_range(late_ms(450), 20, 55);
    assert_in_range(late_ms(1000), 90, 101);
    lateness_record(&sw->slot[peer_bell], now - 10 * MS, now); /* short ones add up */
    assert_in_range(late_ms(1000), 100, 111);
    assert_int_equal(lateness_on_path(sh, fab, NULL, peer_ip, 1u << 16, 1000 * MS * PS), 0);
}

/* Of the processes of a host, whichever was the latest. */
static void what_a_host_was_late_is_known(void **state)
{
    const struct fab_node *h0 = fabric_node(fab, "h0"), *h1 = fabric_node(fab, "h1");
    int64_t now = clock_mono_ns(), ps = clock_fabric_ps(sh), of;

    (void)state;
    lateness_record(&sw->slot[bell_of_slot(fab, h1, 0, 0)], now - 300 * MS, now - 240 * MS);
    lateness_record(&sw->slot[peer_bell], now - 100 * MS, now - 60 * MS);
    assert_in_range(lateness_of_host(sh, fab, h1, ps - 400 * MS * PS, &of), 58 * MS * PS,
                    61 * MS * PS);
    assert_in_range(of, 399 * MS * PS, 500 * MS * PS);
    assert_in_range(lateness_of_host(sh, fab, h1, ps - 150 * MS * PS, &of), 38 * MS * PS,
                    41 * MS * PS);
    assert_int_equal(lateness_of_host(sh, fab, h0, ps - 400 * MS * PS, &of), 0);
    assert_int_equal(lateness_of_host(sh, fab, h1, ps + 400 * MS * PS, &of), 0);
    lateness_of_host(sh, fab, h1, ps - 5000 * MS * PS, &of); /* logs keep about a second */
    assert_in_range(of, 900 * MS * PS, 1200 * MS * PS);
    shared_forget(sh, &sh->sw[0]);
    assert_int_equal(lateness_of_host(sh, fab, h1, ps - 400 * MS * PS, &of), 0);
}

/* It has not logged itself: its bell was rung, or it was due to run. */
static void who_is_late_now_is_seen(void **state)
{
    int64_t now = clock_mono_ns();

    (void)state;
    sw->slot[peer_bell].due_ns = now - 300 * MS;
    assert_int_equal(late_ms(67), 67);
    assert_in_range(late_ms(1000), 299, 400);
    lateness_forget(&sw->slot[peer_bell]);
    assert_int_equal(late_ms(1000), 0);
    sw->loop.due_ns = now - 50 * MS;
    assert_in_range(late_ms(1000), 49, 150);
    sw->loop.due_ns = clock_mono_ns() + 50 * MS; /* it sleeps */
    assert_int_equal(late_ms(1000), 0);
}

/* A process that was killed leaves its page as it was. */
static void who_has_not_run_for_long_is_gone_and_not_late(void **state)
{
    (void)state;
    sw->loop.due_ns = clock_mono_ns() - LATENESS_GONE_NS - 1;
    assert_int_equal(late_ms(1000), 0);
    sw->loop.due_ns = clock_mono_ns() - 1000 * MS;
    assert_int_equal(late_ms(500), 500);
    shared_forget(sh, &sh->sw[0]);
    assert_int_equal(late_ms(500), 0);
}

static void the_callers_own_lateness_counts(void **state)
{
    static struct lateness_log log;
    struct lateness_own own = {&log, 0};
    int64_t now = clock_mono_ns();

    (void)state;
    lateness_record(&log, now - 100 * MS, now - 50 * MS);
    assert_in_range(lateness_on_path(sh, fab, &own, peer_ip, PEER_QPN, 1000 * MS * PS),
                    49 * MS * PS, 51 * MS * PS);
    own.rung_ns = now - 20 * MS;
    assert_true(lateness_on_path(sh, fab, &own, peer_ip, PEER_QPN, 1000 * MS * PS) >= 69 * MS * PS);
}

static void who_was_late_for_longer_than_the_log_was_late_all_the_time(void **state)
{
    int64_t now = clock_mono_ns();

    (void)state;
    lateness_record(&sw->slot[peer_bell], now - 100000 * MS, now);
    assert_in_range(late_ms(900), 850, 900);
    lateness_record(&sw->slot[peer_bell], now - 50 * MS, now); /* no time counts twice */
    assert_in_range(late_ms(900), 850, 900);
}

static void nonsense_in_the_page_is_bounded(void **state)
{
    static const int64_t odd[] = {INT64_MIN, INT64_MAX, -1, 1, 0x7fffffff};

    (void)state;
    for (unsigned i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        struct lateness_own own = {&sw->loop, odd[(i + 2) % 5]};

        sw->loop.due_ns = odd[i];
        sw->slot[peer_bell].due_ns = odd[(i + 1) % 5];
        memset(sw->slot[peer_bell].slice, 0xff, sizeof(sw->slot[peer_bell].slice));
        assert_in_range(late_ms(67), 0, 67);
        assert_in_range(lateness_on_path(sh, fab, &own, peer_ip, PEER_QPN, 67 * MS * PS), 0,
                        67 * MS * PS);
    }
    /* This many timeouts of 4.4 hours, in a fabric slowed down by 20,000. */
    clock_set_dilation(fabric_clock, 20000);
    assert_in_range(lateness_on_path(sh, fab, NULL, peer_ip, PEER_QPN, 4096000LL << 31), 0,
                    4096000LL << 31);
    assert_int_equal(lateness_on_path(sh, fab, NULL, 0xc0a80001, PEER_QPN, 0), 0);
}

static void ports_to_the_outside_end_it(void **state)
{
    static const char conf[] =
        "mtu = 4096; dilation = 1; link_defaults = { rate = \"400Gb/s\"; latency = \"300ns\"; };"
        "single_switch = { hosts = 2; }; links = ( { a = \"switch0\"; port = \"net_tap0\"; } );";
    struct fab_errors errs = {0};
    struct fabric *f;

    (void)state;
    f = fabric_load_string(conf, "outside.conf", &errs);
    if (!f)
        fab_errors_print(&errs, stderr);
    assert_non_null(f);
    assert_false(lateness_known(f));
    fabric_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nobody_is_late_at_first, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_late_counts_where_it_was, setup, teardown),
        cmocka_unit_test_setup_teardown(what_a_host_was_late_is_known, setup, teardown),
        cmocka_unit_test_setup_teardown(who_is_late_now_is_seen, setup, teardown),
        cmocka_unit_test_setup_teardown(who_was_late_for_longer_than_the_log_was_late_all_the_time,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(who_has_not_run_for_long_is_gone_and_not_late, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_callers_own_lateness_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(nonsense_in_the_page_is_bounded, setup, teardown),
        cmocka_unit_test(ports_to_the_outside_end_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
