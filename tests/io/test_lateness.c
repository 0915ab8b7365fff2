/* SPDX-License-Identifier: BSD-3-Clause */
/* The log of late loops (lateness.c), and its bounds on a page that another process has overwritten. */
#include "fabric/fabric.h"
#include "io/shared.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include <string.h>
#include <sys/mman.h>

#define MS 1000000LL
#define PS 1000 /* to a ns, at dilation 1 */

static struct shared *sh;
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
    sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(sh, MAP_FAILED);
    clock_set_dilation(sh, 1);
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
    munmap(sh, sizeof(*sh));
    return 0;
}

/* In ms, of the last `window` ms. */
static int64_t late_ms(int64_t window)
{
    return lateness_on_path(sh, fab, BELLS, peer_ip, PEER_QPN, window * MS * PS) / (MS * PS);
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
    lateness_record(&sh->late[peer_bell], now - 500 * MS, now - 400 * MS);
    assert_int_equal(late_ms(100), 0);
    assert_in_range(late_ms(450), 20, 55);
    assert_in_range(late_ms(1000), 90, 101);
    lateness_record(&sh->late[peer_bell], now - 10 * MS, now); /* short ones add up */
    assert_in_range(late_ms(1000), 100, 111);
    assert_int_equal(lateness_on_path(sh, fab, BELLS, peer_ip, 1u << 16, 1000 * MS * PS), 0);
}

/* It has not logged itself: its bell was rung, or it was due to run. */
static void who_is_late_now_is_seen(void **state)
{
    unsigned sw = bell_of_proc(fabric_node(fab, "leaf0") ? fabric_node(fab, "leaf0")->proc
                                                         : fab->nodes[fab->switches[0]].proc);
    int64_t now = clock_mono_ns();

    (void)state;
    sh->bell[peer_bell].rung_ns = now - 300 * MS;
    assert_int_equal(late_ms(67), 67);
    assert_in_range(late_ms(1000), 299, 400);
    lateness_forget(sh, peer_bell);
    assert_int_equal(late_ms(1000), 0);
    sh->late[sw].due_ns = now - 50 * MS;
    assert_in_range(late_ms(1000), 49, 150);
    sh->late[sw].due_ns = clock_mono_ns() + 50 * MS; /* it sleeps */
    assert_int_equal(late_ms(1000), 0);
}

static void who_was_late_for_longer_than_the_log_was_late_all_the_time(void **state)
{
    int64_t now = clock_mono_ns();

    (void)state;
    lateness_record(&sh->late[peer_bell], now - 100000 * MS, now);
    assert_in_range(late_ms(900), 850, 900);
    lateness_record(&sh->late[peer_bell], now - 50 * MS, now); /* no time counts twice */
    assert_in_range(late_ms(900), 850, 900);
}

static void nonsense_in_the_page_is_bounded(void **state)
{
    static const int64_t odd[] = {INT64_MIN, INT64_MAX, -1, 1, 0x7fffffff};

    (void)state;
    for (unsigned i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        for (unsigned b = 0; b < BELLS; b++) {
            sh->bell[b].rung_ns = odd[i];
            sh->bell[b].forward = (int32_t)odd[i];
            sh->late[b].due_ns = odd[(i + 1) % 5];
        }
        memset(sh->late[peer_bell].slice, 0xff, sizeof(sh->late[peer_bell].slice));
        assert_in_range(late_ms(67), 0, 67);
        lateness_forget(sh, bell_of_proc(0));
    }
    /* This many timeouts of 4.4 hours, in a fabric slowed down by 20,000. */
    clock_set_dilation(sh, 20000);
    assert_in_range(lateness_on_path(sh, fab, BELLS, peer_ip, PEER_QPN, 4096000LL << 31), 0,
                    4096000LL << 31);
    assert_int_equal(lateness_on_path(sh, fab, BELLS, 0xc0a80001, PEER_QPN, 0), 0);
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
        cmocka_unit_test_setup_teardown(who_is_late_now_is_seen, setup, teardown),
        cmocka_unit_test_setup_teardown(who_was_late_for_longer_than_the_log_was_late_all_the_time,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(nonsense_in_the_page_is_bounded, setup, teardown),
        cmocka_unit_test(ports_to_the_outside_end_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
