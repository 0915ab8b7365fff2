/* SPDX-License-Identifier: BSD-3-Clause */
/* Links of a running net go down, come up, and get faults. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <rte_mempool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/events.h"
#include "roce/wire.h"
#include "switch/mcast.h"
#include "tests/support/eal.h"
#include "tests/support/switch_fixture.h"

#define GROUP 0xe1010203u /* 225.1.2.3 */
#define LEN   4096
#define FABRIC(spines)                                                                             \
    "mtu = 4096; leaf_spine = { leaves = 2; spines = " #spines "; hosts_per_leaf = 2; "            \
    "host_link = " SWITCH_FIXTURE_LINK "; spine_link = " SWITCH_FIXTURE_LINK "; };"

static struct rte_mempool *pool;

static void set_link(struct switch_fixture *l, const char *name, bool up)
{
    int i = fabric_link_by_name(l->f, name);

    assert_true(i >= 0);
    assert_int_equal(net_set_link(l->net, (unsigned)i, up, net_now(l->net)), 0);
    assert_true(net_link_up(l->net, (unsigned)i) == up);
    switch_fixture_run(l, net_now(l->net) + PS_PER_MS);
}

/* Frames of many flows from one host to another; returns how many came. */
static uint64_t send_flows(struct switch_fixture *l, struct prog *from, const char *a,
                           struct prog *to, const char *b)
{
    uint64_t before = to->got;

    for (unsigned i = 0; i < 100; i++) {
        struct frame_spec s = {.src_ip = switch_fixture_ip(l, a),
                               .dst_ip = switch_fixture_ip(l, b),
                               .dqpn = 1 << 16,
                               .udp_src = (uint16_t)(0xc000 + i),
                               .len = LEN};

        prog_send(from, ENDPOINT_DATA, switch_fixture_frame(pool, &s));
    }
    net_kick(l->net, switch_fixture_node(l, a), 0, 0, net_now(l->net));
    switch_fixture_run(l, net_now(l->net) + PS_PER_MS);
    return to->got - before;
}

static void flows_take_the_other_spine_at_both_leaves_and_come_back(void **state)
{
    struct prog *a, *b;
    struct egress *dead;
    uint64_t before;
    struct switch_fixture l;
    int link;

    (void)state;
    switch_fixture_open(&l, pool, FABRIC(2));
    a = prog_new(&l, "h0", 0);
    b = prog_new(&l, "h2", 0);
    link = fabric_link_by_name(l.f, "leaf0-spine0");
    dead = net_egress(l.net, l.f->links[link].a, l.f->links[link].a_port);
    assert_int_equal(send_flows(&l, a, "h0", b, "h2"), 100);
    before = egress_stats(dead).frames;
    assert_in_range(before, 20, 80);
    set_link(&l, "leaf0-spine0", false);
    assert_int_equal(send_flows(&l, a, "h0", b, "h2"), 100);
    assert_int_equal(send_flows(&l, b, "h2", a, "h0"), 100); /* leaf1 has no dead port itself */
    assert_int_equal(egress_stats(dead).frames, before);
    assert_int_equal(switch_fixture_all_drops(&l), 0);
    set_link(&l, "leaf0-spine0", true);
    assert_int_equal(send_flows(&l, a, "h0", b, "h2"), 100);
    assert_true(egress_stats(dead).frames > before);
    assert_int_equal(net_set_link(l.net, l.f->n_links, true, net_now(l.net)), -EINVAL);
    prog_free(a), prog_free(b);
    switch_fixture_close(&l);
}

static void without_another_way_nothing_passes_until_the_link_is_up(void **state)
{
    static const char *const links[] = {"leaf0-spine0", "h0-leaf0", "h2-leaf1"};
    struct prog *a, *b;
    struct switch_fixture l;

    (void)state;
    switch_fixture_open(&l, pool, FABRIC(1));
    a = prog_new(&l, "h0", 0);
    b = prog_new(&l, "h2", 0);
    for (unsigned i = 0; i < 3; i++) {
        set_link(&l, links[i], false);
        assert_int_equal(send_flows(&l, a, "h0", b, "h2"), 0);
        set_link(&l, links[i], true);
        assert_int_equal(send_flows(&l, a, "h0", b, "h2"), 100);
    }
    prog_free(a), prog_free(b);
    switch_fixture_close(&l);
}

static void a_node_takes_all_its_links_with_it(void **state)
{
    struct prog *p[3];
    struct switch_fixture l;

    (void)state;
    switch_fixture_open(&l, pool, FABRIC(2));
    p[0] = prog_new(&l, "h0", 0);
    p[1] = prog_new(&l, "h1", 0);
    p[2] = prog_new(&l, "h2", 0);
    for (unsigned up = 0; up < 2; up++) {
        assert_int_equal(net_set_node(l.net, switch_fixture_node(&l, "leaf1"), up, net_now(l.net)),
                         0);
        assert_true(net_link_up(l.net, (unsigned)fabric_link_by_name(l.f, "h3-leaf1")) == up);
        assert_int_equal(send_flows(&l, p[0], "h0", p[2], "h2"), up ? 100 : 0);
        assert_int_equal(send_flows(&l, p[0], "h0", p[1], "h1"), 100);
    }
    /* A link that was down before stays down when the others come back. */
    set_link(&l, "h2-leaf1", false);
    assert_int_equal(net_set_node(l.net, switch_fixture_node(&l, "spine0"), false, net_now(l.net)),
                     0);
    assert_int_equal(net_set_node(l.net, switch_fixture_node(&l, "spine0"), true, net_now(l.net)),
                     0);
    assert_int_equal(send_flows(&l, p[0], "h0", p[2], "h2"), 0);
    assert_int_equal(net_set_node(l.net, l.f->n_nodes, true, net_now(l.net)), -EINVAL);
    for (unsigned i = 0; i < 3; i++)
        prog_free(p[i]);
    switch_fixture_close(&l);
}

/* A peer that comes back does not bring up a link that was taken down, nor the reverse. */
static void a_port_is_up_when_nothing_speaks_against_it(void **state)
{
    struct prog *a, *b;
    struct switch_fixture l;

    (void)state;
    switch_fixture_open(&l, pool, FABRIC(1));
    a = prog_new(&l, "h0", 0);
    b = prog_new(&l, "h1", 0);
    net_port_state(l.net, switch_fixture_node(&l, "h0"), 0, false, net_now(l.net));
    set_link(&l, "h0-leaf0", false);
    net_port_state(l.net, switch_fixture_node(&l, "h0"), 0, true, net_now(l.net));
    assert_int_equal(send_flows(&l, a, "h0", b, "h1"), 0);
    net_port_state(l.net, switch_fixture_node(&l, "h0"), 0, false, net_now(l.net));
    set_link(&l, "h0-leaf0", true);
    assert_int_equal(send_flows(&l, a, "h0", b, "h1"), 0);
    net_port_state(l.net, switch_fixture_node(&l, "h0"), 0, true, net_now(l.net));
    assert_int_equal(send_flows(&l, a, "h0", b, "h1"), 100);
    prog_free(a), prog_free(b);
    switch_fixture_close(&l);
}

/* ---- groups ---- */

static void join(struct switch_fixture *l, struct prog *p, const char *host)
{
    uint32_t ip = switch_fixture_ip(l, host);
    uint8_t mac[6];

    roce_mac_of_ip(ip, mac);
    prog_send(p, ENDPOINT_DATA, igmp_build(pool, IGMP_JOIN, GROUP, ip, mac));
    net_kick(l->net, switch_fixture_node(l, host), 0, 0, net_now(l->net));
    switch_fixture_run(l, net_now(l->net) + PS_PER_MS);
}

/* One frame to the group from h0; h1 and h2 are members. */
static void expect_one_copy(struct switch_fixture *l, struct prog *p[3])
{
    struct frame_spec s = {.src_ip = switch_fixture_ip(l, "h0"),
                           .dst_ip = GROUP,
                           .dqpn = ROCE_MCAST_QPN,
                           .len = LEN,
                           .dst_mac = {1, 0, 0x5e, 1, 2, 3}};
    uint64_t got[3] = {p[0]->got, p[1]->got, p[2]->got};

    prog_send(p[0], ENDPOINT_DATA, switch_fixture_frame(pool, &s));
    net_kick(l->net, switch_fixture_node(l, "h0"), 0, 0, net_now(l->net));
    switch_fixture_run(l, net_now(l->net) + PS_PER_MS);
    assert_int_equal(p[0]->got - got[0], 0);
    assert_int_equal(p[1]->got - got[1], 1);
    assert_int_equal(p[2]->got - got[2], 1);
}

static void members_are_reached_on_the_tree_that_is_left_once_each(void **state)
{
    static const char *const cut[] = {"leaf0-spine0", "leaf1-spine0", "leaf0-spine1",
                                      "leaf1-spine1", "h1-leaf0",     "h2-leaf1"};
    struct prog *p[3];
    struct switch_fixture l;

    (void)state;
    switch_fixture_open(&l, pool, FABRIC(2));
    p[0] = prog_new(&l, "h0", 0);
    p[1] = prog_new(&l, "h1", 0);
    p[2] = prog_new(&l, "h2", 0);
    join(&l, p[1], "h1");
    join(&l, p[2], "h2");
    expect_one_copy(&l, p);
    for (unsigned i = 0; i < 6; i++) {
        set_link(&l, cut[i], false);
        if (i < 4)
            expect_one_copy(&l, p);
        set_link(&l, cut[i], true);
        expect_one_copy(&l, p);
    }
    /* queries that reach the end of the tree are no loss */
    assert_int_equal(switch_fixture_drops(&l, DROP_UNKNOWN_GROUP), 0);
    for (unsigned i = 0; i < 3; i++)
        prog_free(p[i]);
    switch_fixture_close(&l);
}

/* Two processes learn of a change one after the other: the earlier one queries again. */
static void a_switch_answers_a_query_for_what_is_behind_it(void **state)
{
    static const uint8_t mac[6] = {2, 0x54, 10, 0, 0, 1};
    uint16_t up, spine_port, spine, leaf;
    const struct fab_link *k;
    struct prog *p[3];
    struct rte_mbuf *q;
    struct switch_fixture l;

    (void)state;
    switch_fixture_open(&l, pool, FABRIC(1));
    p[0] = prog_new(&l, "h0", 0);
    p[1] = prog_new(&l, "h1", 0);
    p[2] = prog_new(&l, "h2", 0);
    join(&l, p[1], "h1");
    join(&l, p[2], "h2");
    leaf = switch_fixture_node(&l, "leaf1"), spine = switch_fixture_node(&l, "spine0");
    k = &l.f->links[fabric_link_by_name(l.f, "leaf1-spine0")];
    up = k->a == leaf ? k->a_port : k->b_port;
    spine_port = k->a == leaf ? k->b_port : k->a_port;
    /* the spine forgets h2, and leaf1 does not know */
    net_port_state(l.net, spine, spine_port, false, net_now(l.net));
    net_port_state(l.net, spine, spine_port, true, net_now(l.net));
    q = igmp_build(pool, IGMP_QUERY, 0, 0x0a000001, mac);
    net_input(l.net, leaf, up, &q, 1, net_now(l.net));
    switch_fixture_run(&l, net_now(l.net) + PS_PER_MS);
    expect_one_copy(&l, p);
    for (unsigned i = 0; i < 3; i++)
        prog_free(p[i]);
    switch_fixture_close(&l);
}

/* ---- faults ---- */

static void faults_begin_and_end_on_a_running_link(void **state)
{
    struct egress_faults bad = {.loss = 0.5, .seed = 3}, none = {0};
    struct prog *a, *b;
    struct egress *e;
    uint64_t first;
    struct switch_fixture l;

    (void)state;
    switch_fixture_open(&l, pool, FABRIC(1));
    a = prog_new(&l, "h0", 0);
    b = prog_new(&l, "h1", 0);
    e = net_egress(l.net, switch_fixture_node(&l, "h0"), 0);
    egress_set_faults(e, &bad);
    assert_true(egress_faults(e)->loss == 0.5);
    first = send_flows(&l, a, "h0", b, "h1");
    assert_in_range(first, 25, 75);
    assert_int_equal(egress_stats(e).lost, 100 - first);
    egress_set_faults(e, &bad); /* the same draws from the start */
    assert_int_equal(send_flows(&l, a, "h0", b, "h1"), first);
    egress_set_faults(e, &none);
    assert_int_equal(send_flows(&l, a, "h0", b, "h1"), 100);
    prog_free(a), prog_free(b);
    switch_fixture_close(&l);
}

/* The queue was made for 300 ns. A longer delay needs room for more frames in flight, and one that
 * exceeds any room must not stop the clock. */
static void a_delay_far_beyond_the_latency_carries_every_frame(void **state)
{
    static const int64_t jitter[] = {PS_PER_MS, PS_PER_S};
    struct prog *a, *b;
    struct switch_fixture l;

    (void)state;
    switch_fixture_open(&l, pool, FABRIC(1));
    a = prog_new(&l, "h0", 0);
    b = prog_new(&l, "h1", 0);
    for (unsigned i = 0; i < 2; i++) {
        struct egress_faults f = {.jitter_ps = jitter[i], .seed = 9};
        struct egress *e = net_egress(l.net, switch_fixture_node(&l, "h0"), 0);
        int64_t start;

        b->got = 0;
        egress_set_faults(e, &f);
        start = net_now(l.net);
        prog_stream(&l, a, "h0", "h1", 4000, 64);
        switch_fixture_run(&l, start + 10 * PS_PER_S);
        assert_int_equal(b->got, 4000);
        assert_true(b->last_ps - start > jitter[i] / 2);
        /* none waited for the room of the first size */
        assert_true(b->last_ps - start < jitter[i] + jitter[i] / 2);
    }
    prog_free(a), prog_free(b);
    switch_fixture_close(&l);
}

/* How often routes were computed anew, of the events that the net still remembers. */
static unsigned routes_computed(void)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    unsigned n = 0;

    events_dump(f);
    assert_int_equal(fclose(f), 0);
    for (const char *p = text; (p = strstr(p, "routes lead around")); p++)
        n++;
    free(text);
    return n;
}

static void all_links_change_at_once_and_routes_are_computed_once(void **state)
{
    struct prog *a, *b;
    struct switch_fixture l;
    unsigned before;

    (void)state;
    switch_fixture_open(&l, pool, FABRIC(2));
    a = prog_new(&l, "h0", 0);
    b = prog_new(&l, "h1", 0);
    before = routes_computed();
    assert_int_equal(net_set_all_links(l.net, false, net_now(l.net)), 0);
    assert_int_equal(routes_computed(), before + 1);
    assert_int_equal(net_set_all_links(l.net, false, net_now(l.net)), 0); /* they are down */
    assert_int_equal(routes_computed(), before + 1);
    for (unsigned i = 0; i < l.f->n_links; i++)
        assert_false(net_link_up(l.net, i));
    assert_int_equal(send_flows(&l, a, "h0", b, "h1"), 0);
    set_link(&l, "leaf0-spine0", true); /* one of them is up before the others */
    before = routes_computed();
    assert_int_equal(net_set_all_links(l.net, true, net_now(l.net)), 0);
    assert_int_equal(routes_computed(), before + 1);
    for (unsigned i = 0; i < l.f->n_links; i++)
        assert_true(net_link_up(l.net, i));
    assert_int_equal(send_flows(&l, a, "h0", b, "h1"), 100);
    prog_free(a), prog_free(b);
    switch_fixture_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flows_take_the_other_spine_at_both_leaves_and_come_back),
        cmocka_unit_test(without_another_way_nothing_passes_until_the_link_is_up),
        cmocka_unit_test(a_node_takes_all_its_links_with_it),
        cmocka_unit_test(all_links_change_at_once_and_routes_are_computed_once),
        cmocka_unit_test(a_port_is_up_when_nothing_speaks_against_it),
        cmocka_unit_test(members_are_reached_on_the_tree_that_is_left_once_each),
        cmocka_unit_test(a_switch_answers_a_query_for_what_is_behind_it),
        cmocka_unit_test(faults_begin_and_end_on_a_running_link),
        cmocka_unit_test(a_delay_far_beyond_the_latency_carries_every_frame),
    };

    test_eal_init();
    pool = test_pool(16383);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
