/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast through a fabric: snooped memberships, replication along the tree (sw_group.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <rte_mempool.h>

#include "roce/wire.h"
#include "switch/mcast.h"
#include "tests/support/eal.h"
#include "tests/support/switch_fixture.h"

#define GROUP 0xe1010203u /* 225.1.2.3 */
#define LEN   4096

static struct rte_mempool *pool;

static struct rte_mbuf *report(struct switch_fixture *l, const char *host, enum igmp_what what)
{
    uint8_t mac[6];

    roce_mac_of_ip(switch_fixture_ip(l, host), mac);
    return igmp_build(pool, what, GROUP, switch_fixture_ip(l, host), mac);
}

static void say(struct switch_fixture *l, struct prog *p, const char *host, unsigned slot,
                enum igmp_what what)
{
    prog_send(p, ENDPOINT_DATA, report(l, host, what));
    net_kick(l->net, switch_fixture_node(l, host), 0, slot, net_now(l->net));
    switch_fixture_run(l, net_now(l->net) + PS_PER_MS);
}

static void send_group(struct switch_fixture *l, struct prog *p, const char *host, uint32_t group,
                       unsigned n)
{
    struct frame_spec s = {
        .src_ip = switch_fixture_ip(l, host),
        .dst_ip = group,
        .dqpn = ROCE_MCAST_QPN,
        .len = LEN,
        .dst_mac = {1, 0, 0x5e, group >> 16 & 0x7f, group >> 8 & 0xff, group & 0xff}};

    for (unsigned i = 0; i < n; i++)
        prog_send(p, ENDPOINT_DATA, switch_fixture_frame(pool, &s));
    net_kick(l->net, switch_fixture_node(l, host), 0, 0, net_now(l->net));
    switch_fixture_run(l, net_now(l->net) + PS_PER_MS);
}

struct copies {
    unsigned n[256];
};

static void count_copies(void *ctx, unsigned dirlink, struct rte_mbuf *m, int64_t now)
{
    (void)m, (void)now;
    ((struct copies *)ctx)->n[dirlink]++;
}

static void a_group_gets_one_copy_on_each_link_of_the_tree_by_reference(void **state)
{
    struct copies u = {0};
    struct prog *p[16];
    const void *payload = NULL;
    unsigned held, links = 0;
    char name[8];
    struct switch_fixture l;

    (void)state;
    /* Loops everywhere: three leaves, three spines, two cables each. */
    switch_fixture_open(
        &l, pool,
        "mtu = 4096; leaf_spine = { leaves = 3; spines = 3; hosts_per_leaf = 4; host_link "
        "= " SWITCH_FIXTURE_LINK
        "; spine_link = { rate = \"400Gb/s\"; latency = \"300ns\"; cables = 2; }; };");
    for (unsigned i = 0; i < 12; i++) {
        snprintf(name, sizeof(name), "h%u", i);
        p[i] = prog_new(&l, name, 0);
        p[i]->keep = true;
        if (i % 4 < 2)
            say(&l, p[i], name, 0, IGMP_JOIN);
    }
    assert_int_equal(rte_mempool_avail_count(pool), l.pool_full); /* no report loops */
    assert_int_equal(switch_fixture_all_drops(&l), 0);
    net_tap(l.net, count_copies, &u);
    send_group(&l, p[11], "h11", GROUP, 1); /* not a member */
    for (unsigned i = 0; i < 12; i++) {
        assert_int_equal(p[i]->n_rx, i % 4 < 2);
        if (i % 4 < 2) {
            payload = payload ? payload : rte_pktmbuf_mtod(p[i]->rx[0], void *);
            assert_ptr_equal(rte_pktmbuf_mtod(p[i]->rx[0], void *), payload);
            assert_int_equal(p[i]->rx[0]->pkt_len, 54 + LEN + 4);
        }
    }
    /* Six members, one buffer: at most an mbuf header each beside it. */
    held = l.pool_full - rte_mempool_avail_count(pool);
    assert_in_range(held, 6, 7);
    for (unsigned i = 0; i < 2u * l.f->n_links; i++) {
        assert_true(u.n[i] <= 1);
        links += u.n[i];
    }
    /* From h11 up, to a spine or three on the way, to each other leaf, to six hosts. */
    assert_in_range(links, 1 + 3 + 6, 1 + 4 + 6);
    for (unsigned i = 0; i < 12; i++)
        prog_free(p[i]);
    switch_fixture_close(&l);
}

static void groups_without_members_are_dropped_and_those_who_leave_hear_no_more(void **state)
{
    struct prog *a, *b, *c;
    struct copies u = {0};
    struct switch_fixture l;
    unsigned up;

    (void)state;
    switch_fixture_open(
        &l, pool,
        "mtu = 4096; leaf_spine = { leaves = 2; spines = 2; hosts_per_leaf = 2; host_link "
        "= " SWITCH_FIXTURE_LINK "; spine_link = " SWITCH_FIXTURE_LINK "; };");
    a = prog_new(&l, "h0", 0);
    b = prog_new(&l, "h2", 0);
    c = prog_new(&l, "h3", 0);
    send_group(&l, a, "h0", GROUP, 1);
    assert_int_equal(switch_fixture_drops(&l, DROP_UNKNOWN_GROUP), 1);
    say(&l, b, "h2", 0, IGMP_JOIN);
    say(&l, c, "h3", 0, IGMP_JOIN);
    send_group(&l, a, "h0", GROUP, 1);
    assert_int_equal(b->got, 1);
    assert_int_equal(c->got, 1);
    say(&l, b, "h2", 0, IGMP_LEAVE); /* h3 stays: its leaf must not announce a leave */
    send_group(&l, a, "h0", GROUP, 1);
    assert_int_equal(b->got, 1);
    assert_int_equal(c->got, 2);
    say(&l, c, "h3", 0, IGMP_LEAVE);
    net_tap(l.net, count_copies, &u);
    send_group(&l, a, "h0", GROUP, 1);
    assert_int_equal(c->got, 2);
    up = 0;
    for (unsigned i = 0; i < 2u * l.f->n_links; i++)
        up += u.n[i];
    assert_int_equal(up, 1); /* no further than the first switch */
    assert_int_equal(switch_fixture_drops(&l, DROP_UNKNOWN_GROUP), 2);
    prog_free(a), prog_free(b), prog_free(c);
    switch_fixture_close(&l);
}

static void processes_of_a_host_are_members_each_for_itself(void **state)
{
    struct prog *a, *b, *src;
    struct switch_fixture l;

    (void)state;
    switch_fixture_open(&l, pool,
                        "mtu = 4096; single_switch = { hosts = 2; host_link = " SWITCH_FIXTURE_LINK
                        "; };");
    a = prog_new(&l, "h0", 0);
    b = prog_new(&l, "h0", 1);
    src = prog_new(&l, "h1", 0);
    say(&l, a, "h0", 0, IGMP_JOIN);
    say(&l, b, "h0", 1, IGMP_JOIN);
    send_group(&l, src, "h1", GROUP, 1);
    assert_true(a->got == 1 && b->got == 1);
    /* A member on the sender's own host gets it too, by the loop. */
    send_group(&l, a, "h0", GROUP, 1);
    assert_true(a->got == 2 && b->got == 2 && src->got == 0);
    say(&l, a, "h0", 0, IGMP_LEAVE);
    send_group(&l, src, "h1", GROUP, 1);
    assert_true(a->got == 2 && b->got == 3);
    net_detach(l.net, switch_fixture_node(&l, "h0"), 0, 1, net_now(l.net)); /* it leaves */
    switch_fixture_run(&l, net_now(l.net) + PS_PER_MS);
    send_group(&l, src, "h1", GROUP, 1);
    assert_int_equal(switch_fixture_drops(&l, DROP_UNKNOWN_GROUP), 1);
    prog_free(a), prog_free(b), prog_free(src);
    switch_fixture_close(&l);
}

static void
a_port_that_goes_down_takes_its_memberships_and_brings_them_back_over_bridges(void **state)
{
    struct prog *a, *b;
    struct switch_fixture l;
    uint16_t leaf1, spine, port = 0, sport;

    (void)state;
    switch_fixture_open(
        &l, pool,
        "mtu = 4096; leaf_spine = { leaves = 2; spines = 1; hosts_per_leaf = 1; host_link "
        "= " SWITCH_FIXTURE_LINK "; spine_link = " SWITCH_FIXTURE_LINK "; };");
    a = prog_new(&l, "h0", 0);
    b = prog_new(&l, "h1", 0);
    say(&l, b, "h1", 0, IGMP_JOIN);
    leaf1 = switch_fixture_node(&l, "leaf1"), spine = switch_fixture_node(&l, "spine0");
    while (l.f->nodes[leaf1].ports[port].peer_node != spine)
        port++;
    sport = l.f->nodes[leaf1].ports[port].peer_port;
    net_port_state(l.net, leaf1, port, false, net_now(l.net));
    net_port_state(l.net, spine, sport, false, net_now(l.net));
    switch_fixture_run(&l, net_now(l.net) + PS_PER_MS);
    send_group(&l, a, "h0", GROUP, 1);
    assert_int_equal(b->got, 0);
    assert_int_equal(switch_fixture_drops(&l, DROP_UNKNOWN_GROUP), 1); /* leaf0 heard of it */
    net_port_state(l.net, spine, sport, true, net_now(l.net));
    net_port_state(l.net, leaf1, port, true, net_now(l.net));
    switch_fixture_run(&l, net_now(l.net) + PS_PER_MS);
    send_group(&l, a, "h0", GROUP, 1);
    assert_int_equal(b->got, 1);
    prog_free(a), prog_free(b);
    switch_fixture_close(&l);
}

/* ---- shares of hosts and processes ---- */

#define SHARES "multicast_per_host = 8; "

static struct rte_mbuf *report_of(struct switch_fixture *l, const char *host, enum igmp_what what,
                                  uint32_t group)
{
    uint8_t mac[6];

    roce_mac_of_ip(switch_fixture_ip(l, host), mac);
    return igmp_build(pool, what, group, switch_fixture_ip(l, host), mac);
}

static void say_groups(struct switch_fixture *l, struct prog *p, const char *host, unsigned slot,
                       enum igmp_what what, uint32_t first, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        prog_send(p, ENDPOINT_DATA, report_of(l, host, what, first + i));
        net_kick(l->net, switch_fixture_node(l, host), 0, slot, net_now(l->net));
        switch_fixture_run(l, net_now(l->net) + PS_PER_US * 100);
    }
}

/* Three processes of half a share each: the switch holds their host to its own. */
static void the_processes_of_a_host_get_no_more_than_its_share(void **state)
{
    struct prog *p[3];
    struct switch_fixture l;

    (void)state;
    switch_fixture_open(
        &l, pool,
        SHARES "mtu = 4096; single_switch = { hosts = 2; host_link = " SWITCH_FIXTURE_LINK "; };");
    for (unsigned i = 0; i < 3; i++) {
        p[i] = prog_new(&l, "h0", i);
        say_groups(&l, p[i], "h0", i, IGMP_JOIN, 0xe2000000 + (i << 8), 4);
        assert_int_equal(p[i]->granted, i < 2 ? 4 : 0);
    }
    assert_int_equal(p[2]->refused, 4);
    for (unsigned i = 0; i < 3; i++)
        prog_free(p[i]);
    switch_fixture_close(&l);
}

static void a_process_gets_its_share_of_groups_and_is_told_of_each_refusal(void **state)
{
    struct prog *a, *b, *other;
    struct switch_fixture l;

    (void)state;
    switch_fixture_open(
        &l, pool,
        SHARES "mtu = 4096; single_switch = { hosts = 2; host_link = " SWITCH_FIXTURE_LINK "; };");
    a = prog_new(&l, "h0", 0);
    b = prog_new(&l, "h0", 1);
    other = prog_new(&l, "h1", 0);
    say_groups(&l, a, "h0", 0, IGMP_JOIN, 0xe2000000, 30);
    assert_int_equal(a->granted, 4); /* half of the host's */
    assert_int_equal(a->refused, 26);
    assert_int_equal(switch_fixture_drops(&l, DROP_GROUP_QUOTA), 26);
    say_groups(&l, a, "h0", 0, IGMP_JOIN, 0xe2000000, 4); /* a member already: granted again */
    assert_int_equal(a->granted, 8);
    say_groups(&l, b, "h0", 1, IGMP_JOIN, 0xe3000000, 30);
    assert_int_equal(b->granted, 4);
    say_groups(&l, b, "h0", 1, IGMP_LEAVE, 0xe3000000, 2); /* room for two others */
    say_groups(&l, b, "h0", 1, IGMP_JOIN, 0xe4000000, 4);
    assert_int_equal(b->granted, 6);
    say_groups(&l, other, "h1", 0, IGMP_JOIN, GROUP, 1); /* another host does not notice */
    send_group(&l, a, "h0", GROUP, 1);
    assert_int_equal(other->got, 1);
    send_group(&l, other, "h1", 0xe2000004, 1); /* of a refused group comes nothing */
    assert_int_equal(a->got, 0);
    net_detach(l.net, switch_fixture_node(&l, "h0"), 0, 0, net_now(l.net));
    net_detach(l.net, switch_fixture_node(&l, "h0"), 0, 1, net_now(l.net));
    switch_fixture_run(&l, net_now(l.net) + PS_PER_MS);
    prog_free(a), prog_free(b);
    a = prog_new(&l, "h0", 2); /* all of them went with their slots */
    say_groups(&l, a, "h0", 2, IGMP_JOIN, 0xe5000000, 5);
    assert_int_equal(a->granted, 4);
    prog_free(a), prog_free(other);
    switch_fixture_close(&l);
}

/* Each process is within its share, the host is not. */
static void a_host_gets_its_share_of_groups(void **state)
{
    struct prog *p[4];
    struct switch_fixture l;
    uint64_t granted = 0;

    (void)state;
    switch_fixture_open(
        &l, pool,
        SHARES "mtu = 4096; single_switch = { hosts = 2; host_link = " SWITCH_FIXTURE_LINK "; };");
    for (unsigned i = 0; i < 4; i++) {
        p[i] = prog_new(&l, "h0", i);
        say_groups(&l, p[i], "h0", i, IGMP_JOIN, 0xe2000000 + i * 100, 3);
        granted += p[i]->granted;
    }
    assert_int_equal(granted, 8);
    assert_int_equal(p[2]->refused, 1);
    assert_int_equal(p[3]->refused, 3);
    say_groups(&l, p[3], "h0", 3, IGMP_JOIN, 0xe2000000, 3); /* groups that the host is in anyway */
    assert_int_equal(p[3]->granted, 3);
    for (unsigned i = 0; i < 4; i++)
        prog_free(p[i]);
    switch_fixture_close(&l);
}

/* An announcement goes to every switch: reports at any rate announce 256 joins, then 10,000 a
 * second. */
static void reports_are_announced_at_a_limited_rate(void **state)
{
    struct prog *a;
    struct copies u = {0};
    struct switch_fixture l;
    uint64_t sent = 0;

    (void)state;
    switch_fixture_open(&l, pool,
                        "mtu = 4096; single_switch = { hosts = 2; host_link = " SWITCH_FIXTURE_LINK
                        "; };");
    a = prog_new(&l, "h0", 0);
    net_tap(l.net, count_copies, &u);
    for (unsigned i = 0; i < 2000; i++) {
        prog_send(a, ENDPOINT_DATA, report(&l, "h0", IGMP_JOIN));
        net_kick(l.net, switch_fixture_node(&l, "h0"), 0, 0, net_now(l.net));
        switch_fixture_run(&l, net_now(l.net) + PS_PER_US);
    }
    for (unsigned i = 0; i < 2u * l.f->n_links; i++)
        sent += u.n[i];
    assert_in_range(sent, 256, 300);
    assert_int_equal(a->granted, 2000);
    prog_free(a);
    switch_fixture_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_group_gets_one_copy_on_each_link_of_the_tree_by_reference),
        cmocka_unit_test(groups_without_members_are_dropped_and_those_who_leave_hear_no_more),
        cmocka_unit_test(processes_of_a_host_are_members_each_for_itself),
        cmocka_unit_test(
            a_port_that_goes_down_takes_its_memberships_and_brings_them_back_over_bridges),
        cmocka_unit_test(the_processes_of_a_host_get_no_more_than_its_share),
        cmocka_unit_test(a_process_gets_its_share_of_groups_and_is_told_of_each_refusal),
        cmocka_unit_test(a_host_gets_its_share_of_groups),
        cmocka_unit_test(reports_are_announced_at_a_limited_rate),
    };

    test_eal_init();
    pool = test_pool(2047);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
