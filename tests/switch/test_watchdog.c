/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PFC deadlock: four switches in a ring whose routes all lead around it, which no conf file can
 * describe. Every host sends to the second next switch, every link gets twice its rate, and each
 * pause waits for the next. Without a watchdog the ring stops for ever; with one it recovers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <rte_mempool.h>
#include <stdio.h>

#include "switch/net/net_stats.h"
#include "switch/sw.h"
#include "tests/support/eal.h"
#include "tests/support/switch_fixture.h"

#define RING 4
#define N    3000
#define LEN  4096

#define LINK(more)                                                                                 \
    "link_defaults = { rate = \"400Gb/s\"; latency = \"300ns\"; buffer = \"64KiB\"; };" more
#define CONF(more)                                                                                 \
    LINK("mtu = 4096; " more                                                                       \
         "nodes = ( { name = ( \"h0\", \"h1\", \"h2\", \"h3\" ); kind = \"host\"; },"              \
         "  { name = ( \"s0\", \"s1\", \"s2\", \"s3\" ); role = \"leaf\"; },"                      \
         "  { name = \"top\"; role = \"spine\"; } );"                                              \
         "links = ( { a = \"h0\"; b = \"s0\"; }, { a = \"h1\"; b = \"s1\"; },"                     \
         "  { a = \"h2\"; b = \"s2\"; }, { a = \"h3\"; b = \"s3\"; },"                             \
         "  { a = ( \"s0\", \"s1\", \"s2\", \"s3\" ); b = \"top\"; },"                             \
         "  { a = \"s0\"; b = \"s1\"; }, { a = \"s1\"; b = \"s2\"; },"                             \
         "  { a = \"s2\"; b = \"s3\"; }, { a = \"s3\"; b = \"s0\"; } );")

static struct rte_mempool *pool;

struct told {
    unsigned stuck, restored;
};

static void told(void *ctx, uint16_t node, uint16_t port, bool stuck)
{
    struct told *t = ctx;

    (void)node, (void)port;
    t->stuck += stuck;
    t->restored += !stuck;
}

static uint16_t port_to(const struct switch_fixture *l, uint16_t from, uint16_t to)
{
    const struct fab_node *n = &l->f->nodes[from];

    for (uint16_t p = 0; p < n->n_ports; p++)
        if (n->ports[p].peer_node == to)
            return p;
    fail_msg("%s has no link to %s", n->name, l->f->nodes[to].name);
    return 0;
}

/* Frames for another switch of the ring go to the next one. */
static void send_all_round(struct switch_fixture *l)
{
    static uint16_t way[RING][2];
    uint16_t s[RING];

    for (unsigned i = 0; i < RING; i++) {
        char name[8];

        snprintf(name, sizeof(name), "s%u", i);
        s[i] = switch_fixture_node(l, name);
    }
    for (unsigned i = 0; i < RING; i++) {
        struct fab_node *n = &l->f->nodes[s[i]];

        way[i][0] = 1;
        way[i][1] = port_to(l, s[i], s[(i + 1) % RING]);
        for (unsigned k = 1; k < RING; k++)
            n->routes[l->f->nodes[s[(i + k) % RING]].network_index] = way[i];
        sw_reroute(net_node(l->net, s[i]), l->f, 0);
    }
}

struct ring {
    struct switch_fixture l;
    struct prog *p[RING];
    struct told told;
};

static void up(struct ring *r, const char *conf)
{
    struct net_cfg cfg = {.seed = 1, .stuck = told, .ctx = &r->told};

    *r = (struct ring){0};
    switch_fixture_open_cfg(&r->l, pool, conf, &cfg);
    send_all_round(&r->l);
    for (unsigned i = 0; i < RING; i++) {
        char from[8];

        snprintf(from, sizeof(from), "h%u", i);
        r->p[i] = prog_new(&r->l, from, 0);
    }
    for (unsigned i = 0; i < RING; i++) {
        char from[8], to[8];

        snprintf(from, sizeof(from), "h%u", i);
        snprintf(to, sizeof(to), "h%u", (i + 2) % RING);
        prog_stream(&r->l, r->p[i], from, to, N, LEN);
    }
}

static void down(struct ring *r)
{
    for (unsigned i = 0; i < RING; i++)
        prog_free(r->p[i]);
    switch_fixture_close(&r->l);
}

static uint64_t arrived(const struct ring *r)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < RING; i++)
        n += r->p[i]->got;
    return n;
}

static void a_cycle_of_pauses_never_ends_by_itself(void **state)
{
    struct ring r;
    uint64_t early;

    (void)state;
    up(&r, CONF(""));
    switch_fixture_run(&r.l, PS_PER_MS);
    early = arrived(&r);
    assert_true(early < RING * N / 2);
    switch_fixture_run(&r.l, 50 * PS_PER_MS);
    assert_int_equal(arrived(&r), early); /* not one frame in 49 ms */
    assert_int_equal(switch_fixture_all_drops(&r.l), 0);
    assert_int_equal(r.told.stuck, 0);
    down(&r);
}

static void a_watchdog_drops_what_is_stuck_and_the_rest_goes_on(void **state)
{
    struct net_port_stats s;
    struct ring r;

    (void)state;
    up(&r, CONF("pfc_watchdog = \"200us\"; "));
    switch_fixture_run(&r.l, 190 * PS_PER_US);
    assert_int_equal(r.told.stuck, 0); /* not before its time */
    switch_fixture_run(&r.l, 50 * PS_PER_MS);
    net_total_stats(r.l.net, r.l.f, &s);
    print_message("%lu of %u frames arrived, %lu dropped; found stuck %u times\n", arrived(&r),
                  RING * N, s.discarded, r.told.stuck);
    assert_true(r.told.stuck > 0);
    assert_int_equal(r.told.restored, r.told.stuck);
    assert_int_equal(s.watchdog_trips, r.told.stuck);
    assert_int_equal(arrived(&r) + s.discarded, RING * N); /* nothing else is lost, nothing waits */
    assert_int_equal(s.drops, switch_fixture_drops(&r.l, DROP_PFC_WATCHDOG));
    assert_true(s.drops <= s.discarded && s.discarded > 0);
    assert_true(arrived(&r) > RING * N / 2);
    for (uint16_t i = 0; i < r.l.f->n_nodes; i++)
        for (uint16_t p = 0; p < r.l.f->nodes[i].n_ports; p++)
            assert_false(egress_discards(net_egress(r.l.net, i, p)));
    down(&r);
}

/* A host that takes no frames pauses its switch for ever: frames for it are dropped, those for
 * others are not, and once it takes frames again it gets all that are sent from then on. */
static void a_host_that_pauses_for_good_harms_only_itself(void **state)
{
    struct prog *slow, *src, *dst, *other;
    struct told t = {0};
    struct net_cfg cfg = {.seed = 1, .stuck = told, .ctx = &t};
    struct switch_fixture l;

    (void)state;
    switch_fixture_open_cfg(
        &l, pool,
        "mtu = 4096; pfc_watchdog = \"100us\"; single_switch = { hosts = 4; host_link = { "
        "rate = \"400Gb/s\"; latency = \"300ns\"; buffer = \"64KiB\"; }; };",
        &cfg);
    slow = prog_new(&l, "h1", 0);
    src = prog_new(&l, "h0", 0);
    other = prog_new(&l, "h2", 0);
    dst = prog_new(&l, "h3", 0);
    slow->take = 0;
    prog_stream(&l, src, "h0", "h1", 400, LEN);
    switch_fixture_run(&l, 400 * PS_PER_US);
    assert_int_equal(t.stuck, 1);
    assert_int_equal(t.restored, 0);
    assert_int_equal(src->endless, 0); /* no pause holds the sender back any more */
    prog_stream(&l, src, "h0", "h3", 400, LEN);
    prog_stream(&l, other, "h2", "h3", 400, LEN);
    switch_fixture_run(&l, 800 * PS_PER_US);
    assert_int_equal(dst->got, 800);
    slow->take = -1;
    switch_fixture_run(&l, 2 * PS_PER_MS);
    assert_int_equal(t.restored, 1);
    slow->got = 0;
    prog_stream(&l, other, "h2", "h1", 400, LEN);
    switch_fixture_run(&l, 4 * PS_PER_MS);
    assert_int_equal(slow->got, 400);
    assert_int_equal(t.stuck, 1);
    prog_free(slow);
    prog_free(src);
    prog_free(dst);
    prog_free(other);
    switch_fixture_close(&l);
}

/* Pauses that come and go, as in any congestion, do not trip it. */
static void congestion_alone_is_not_taken_for_a_deadlock(void **state)
{
    struct told t = {0};
    struct net_cfg cfg = {.seed = 1, .stuck = told, .ctx = &t};
    struct prog *src[8], *dst;
    char name[8];
    struct switch_fixture l;

    (void)state;
    switch_fixture_open_cfg(
        &l, pool,
        "mtu = 4096; pfc_watchdog = \"20us\"; single_switch = { hosts = 9; host_link = { "
        "rate = \"400Gb/s\"; latency = \"300ns\"; buffer = \"64KiB\"; }; };",
        &cfg);
    dst = prog_new(&l, "h0", 0);
    for (unsigned i = 0; i < 8; i++) {
        snprintf(name, sizeof(name), "h%u", i + 1);
        src[i] = prog_new(&l, name, 0);
        prog_stream(&l, src[i], name, "h0", 1000, LEN);
    }
    switch_fixture_run(&l, PS_PER_S);
    assert_true(switch_fixture_pauses(&l) > 0);
    assert_int_equal(t.stuck, 0);
    assert_int_equal(dst->got, 8000);
    for (unsigned i = 0; i < 8; i++)
        prog_free(src[i]);
    prog_free(dst);
    switch_fixture_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cycle_of_pauses_never_ends_by_itself),
        cmocka_unit_test(a_watchdog_drops_what_is_stuck_and_the_rest_goes_on),
        cmocka_unit_test(a_host_that_pauses_for_good_harms_only_itself),
        cmocka_unit_test(congestion_alone_is_not_taken_for_a_deadlock),
    };

    test_eal_init();
    pool = test_pool(16383);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
