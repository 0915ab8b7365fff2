/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <rte_mempool.h>
#include <stdio.h>
#include <string.h>

#include "roce/wire.h"
#include "switch/fib.h"
#include "tests/support/eal.h"
#include "tests/support/switch_fixture.h"

#define LEAF_SPINE(ecmp, more)                                                                     \
    "ecmp = \"" ecmp "\"; mtu = 4096; " more " leaf_spine = { leaves = 2; spines = 2; "            \
    "hosts_per_leaf = 4; host_link = " SWITCH_FIXTURE_LINK "; spine_link = " SWITCH_FIXTURE_LINK   \
    "; };"
#define SINGLE(n) "single_switch = { hosts = " #n "; host_link = " SWITCH_FIXTURE_LINK "; };"

static struct rte_mempool *pool;

static void host_name(char *s, unsigned i)
{
    snprintf(s, 8, "h%u", i);
}

static void every_host_reaches_every_other(void **state)
{
    static const char *const ecmp[] = {LEAF_SPINE("hash", ""), LEAF_SPINE("balanced", "")};

    (void)state;
    for (int v = 0; v < 2; v++) {
        struct prog *p[8];
        char name[8];
        struct switch_fixture l;

        switch_fixture_open(&l, pool, ecmp[v]);
        for (unsigned i = 0; i < 8; i++) {
            host_name(name, i);
            p[i] = prog_new(&l, name, 0);
        }
        for (unsigned i = 0; i < 8; i++) {
            host_name(name, i);
            for (unsigned j = 0; j < 8; j++) {
                struct frame_spec s = {
                    .src_ip = switch_fixture_ip(&l, name), .dqpn = 1 << 16 | j, .len = 256};
                char to[8];

                host_name(to, j);
                s.dst_ip = switch_fixture_ip(&l, to);
                if (i != j)
                    prog_send(p[i], ENDPOINT_DATA, switch_fixture_frame(pool, &s));
            }
            net_kick(l.net, switch_fixture_node(&l, name), 0, 0, 0);
        }
        switch_fixture_run(&l, PS_PER_S);
        for (unsigned i = 0; i < 8; i++) {
            assert_int_equal(p[i]->got, 7);
            prog_free(p[i]);
        }
        assert_int_equal(switch_fixture_all_drops(&l), 0);
        switch_fixture_close(&l);
    }
}

static void a_path_takes_store_and_forward_time_of_each_hop_exactly(void **state)
{
    struct prog *a, *b;
    struct switch_fixture l;
    int64_t hop = (54 + 4096 + 4 + 24) * 20ll + 300 * PS_PER_NS;

    (void)state;
    switch_fixture_open(&l, pool, LEAF_SPINE("balanced", ""));
    a = prog_new(&l, "h0", 0);
    b = prog_new(&l, "h7", 0);
    prog_stream(&l, a, "h0", "h7", 100, 4096);
    switch_fixture_run(&l, PS_PER_S);
    assert_int_equal(b->got, 100);
    assert_int_equal(b->first_ps, 4 * hop); /* host, leaf, spine, leaf */
    assert_int_equal(b->last_ps - b->first_ps, 99 * (54 + 4096 + 4 + 24) * 20ll);
    prog_free(a);
    prog_free(b);
    switch_fixture_close(&l);
}

/* ---- equal-cost paths ---- */

struct uses {
    const struct fabric *f;
    unsigned n[256];
};

static void count_uses(void *ctx, unsigned dirlink, struct rte_mbuf *m, int64_t now)
{
    (void)m, (void)now;
    ((struct uses *)ctx)->n[dirlink]++;
}

static void hashed_flows_spread_and_one_flow_keeps_its_path(void **state)
{
    struct uses u = {0};
    struct prog *a, *b;
    unsigned used = 0, least = 1000, sum = 0;
    struct switch_fixture l;

    (void)state;
    /* Two spines with two cables each: four next hops at the leaf. */
    switch_fixture_open(
        &l, pool,
        "ecmp = \"hash\"; leaf_spine = { leaves = 2; spines = 2; hosts_per_leaf = 1; "
        "host_link = " SWITCH_FIXTURE_LINK
        "; spine_link = { rate = \"400Gb/s\"; latency = \"300ns\"; cables = 2; }; };");
    a = prog_new(&l, "h0", 0);
    b = prog_new(&l, "h1", 0);
    net_tap(l.net, count_uses, &u);
    for (unsigned i = 0; i < 400; i++) {
        struct frame_spec s = {.src_ip = switch_fixture_ip(&l, "h0"),
                               .dst_ip = switch_fixture_ip(&l, "h1"),
                               .dqpn = 1 << 16,
                               .udp_src = (uint16_t)(0xc000 + i),
                               .len = 64};

        prog_send(a, ENDPOINT_DATA, switch_fixture_frame(pool, &s));
    }
    net_kick(l.net, switch_fixture_node(&l, "h0"), 0, 0, 0);
    switch_fixture_run(&l, PS_PER_S);
    assert_int_equal(b->got, 400);
    for (unsigned i = 0; i < l.f->n_links; i++) {
        const struct fab_link *k = &l.f->links[i];
        unsigned up = 2 * i + (k->a != switch_fixture_node(&l, "leaf0"));

        if (k->a != switch_fixture_node(&l, "leaf0") && k->b != switch_fixture_node(&l, "leaf0"))
            continue;
        if (l.f->nodes[k->a].kind == FAB_HOST || l.f->nodes[k->b].kind == FAB_HOST)
            continue;
        used += u.n[up] > 0;
        sum += u.n[up];
        least = RTE_MIN(least, u.n[up]);
    }
    assert_int_equal(used, 4);
    assert_int_equal(sum, 400);
    assert_in_range(least, 60, 100);
    memset(u.n, 0, sizeof(u.n));
    prog_stream(&l, a, "h0", "h1", 100, 64);
    switch_fixture_run(&l, PS_PER_S);
    used = 0;
    for (unsigned i = 0; i < 2u * l.f->n_links; i++) {
        assert_true(u.n[i] == 0 || u.n[i] == 100);
        used += u.n[i] != 0;
    }
    assert_int_equal(used, 4);
    prog_free(a);
    prog_free(b);
    switch_fixture_close(&l);
}

static void balanced_paths_of_a_shift_do_not_collide(void **state)
{
    struct prog *p[8];
    char name[8], to[8];
    struct switch_fixture l;

    (void)state;
    /* As many spines as hosts a leaf: room for all. */
    switch_fixture_open(&l, pool,
                        "ecmp = \"balanced\"; mtu = 4096; leaf_spine = { leaves = 2; spines = 4; "
                        "hosts_per_leaf = 4; host_link = " SWITCH_FIXTURE_LINK
                        "; spine_link = " SWITCH_FIXTURE_LINK "; };");
    for (unsigned i = 0; i < 8; i++) {
        host_name(name, i);
        p[i] = prog_new(&l, name, 0);
    }
    for (unsigned i = 0; i < 8; i++) {
        host_name(name, i);
        host_name(to, (i + 4) % 8);
        prog_stream(&l, p[i], name, to, 200, 4096);
    }
    switch_fixture_run(&l, PS_PER_S);
    for (unsigned i = 0; i < 8; i++) {
        assert_int_equal(p[i]->got, 200);
        /* At the rate of its link from the first frame to the last. */
        assert_int_equal(p[i]->last_ps - p[i]->first_ps, 199 * (54 + 4096 + 4 + 24) * 20ll);
        prog_free(p[i]);
    }
    switch_fixture_close(&l);
}

/* ---- what is not forwarded ---- */

static uint64_t input_one(struct switch_fixture *l, const char *at, uint16_t port,
                          struct rte_mbuf *m, enum drop why)
{
    uint64_t before = switch_fixture_drops(l, why);

    assert_non_null(m);
    net_input(l->net, switch_fixture_node(l, at), port, &m, 1, net_now(l->net));
    switch_fixture_run(l, PS_PER_S);
    return switch_fixture_drops(l, why) - before;
}

static void garbage_is_dropped_under_its_name_and_nothing_leaks(void **state)
{
    struct switch_fixture l;
    struct frame_spec s;
    struct rte_mbuf *m;
    uint8_t *p;

    (void)state;
    switch_fixture_open(&l, pool, SINGLE(4));
    s = (struct frame_spec){.src_ip = switch_fixture_ip(&l, "h0"),
                            .dst_ip = switch_fixture_ip(&l, "h1"),
                            .dqpn = 1 << 16,
                            .len = 64};
#define BAD(edit, why)                                                                             \
    do {                                                                                           \
        m = switch_fixture_frame(pool, &s);                                                        \
        p = rte_pktmbuf_mtod(m, uint8_t *);                                                        \
        (void)p;                                                                                   \
        edit;                                                                                      \
        assert_int_equal(input_one(&l, "switch0", 0, m, why), 1);                                  \
    } while (0)
    BAD(rte_pktmbuf_trim(m, (uint16_t)(m->pkt_len - 13)), DROP_RUNT);
    BAD(rte_pktmbuf_trim(m, (uint16_t)m->pkt_len), DROP_RUNT);
    BAD(rte_pktmbuf_trim(m, (uint16_t)(m->pkt_len - 33)), DROP_RUNT);
    BAD(rte_pktmbuf_trim(m, 1), DROP_BAD_LENGTH);
    BAD(p[14] = 0x44, DROP_BAD_LENGTH);            /* header length 16 */
    BAD(p[14] = 0x65, DROP_BAD_LENGTH);            /* version 6 */
    BAD(p[14] = 0x4f, DROP_BAD_LENGTH);            /* options over the end of UDP */
    BAD(p[16] = 0xff, DROP_BAD_LENGTH);            /* total length */
    BAD(p[38] = 0xff, DROP_BAD_LENGTH);            /* UDP length */
    BAD((p[38] = 0, p[39] = 7), DROP_BAD_LENGTH);  /* shorter than UDP's header */
    BAD((p[38] = 0, p[39] = 23), DROP_BAD_LENGTH); /* no room for a BTH */
    BAD(p[5] ^= 0x80, DROP_UNKNOWN_DEST);
    BAD(p[0] = 0x06, DROP_UNKNOWN_DEST);
    BAD((p[12] = 0x88, p[13] = 0x08, p[14] = 1, p[15] = 2), DROP_BAD_PAUSE);
    BAD((p[0] = 1, p[1] = 0x80, p[2] = 0xc2, p[3] = p[4] = 0, p[5] = 0x0e), DROP_LINK_LOCAL);
    BAD(roce_mac_of_ip(switch_fixture_ip(&l, "h0"), p), DROP_REFLECTED);
    BAD(roce_mac_of_ip(switch_fixture_ip(&l, "switch0"), p), DROP_NO_AN);
    BAD((roce_mac_of_ip(switch_fixture_ip(&l, "switch0"), p), p[37] ^= 1), DROP_NOT_ROCE);
    /* At a host's NIC too. */
    m = switch_fixture_frame(pool, &s);
    assert_int_equal(input_one(&l, "h0", 0, m, DROP_NOT_MINE), 1);
    m = switch_fixture_frame(pool, &s);
    assert_int_equal(input_one(&l, "h1", 0, m, DROP_NO_SLOT), 1);
    m = switch_fixture_frame(pool, &s);
    rte_pktmbuf_mtod(m, uint8_t *)[37] ^= 1;
    assert_int_equal(input_one(&l, "h1", 0, m, DROP_NOT_ROCE), 1);
    switch_fixture_close(&l);
}

static void random_bytes_leave_every_frame_accounted_for(void **state)
{
    uint64_t x = 88172645463325252ull;
    struct prog *p[4];
    char name[8];
    struct switch_fixture l;

    (void)state;
    switch_fixture_open(&l, pool, SINGLE(4));
    for (unsigned i = 0; i < 4; i++) {
        host_name(name, i);
        p[i] = prog_new(&l, name, 0);
    }
    for (unsigned i = 0; i < 3000; i++) {
        uint8_t b[200];
        struct rte_mbuf *m;
        unsigned n;

        for (unsigned j = 0; j < sizeof(b); j++) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            b[j] = (uint8_t)x;
        }
        n = (unsigned)(x >> 8) % sizeof(b);
        if (n > 44 && (x & 1)) { /* get past the first checks */
            roce_mac_of_ip(switch_fixture_ip(&l, "h2"), b);
            b[12] = 8, b[13] = 0, b[14] = 0x45, b[16] = 0, b[17] = (uint8_t)(n - 14);
        }
        m = switch_fixture_bytes(pool, b, n);
        net_input(l.net, switch_fixture_node(&l, i & 2 ? "switch0" : "h1"), i & 2 ? i % 4 : 0, &m,
                  1, net_now(l.net));
        switch_fixture_run(&l, PS_PER_S);
    }
    assert_true(switch_fixture_all_drops(&l) > 1500);
    for (unsigned i = 0; i < 4; i++)
        prog_free(p[i]);
    switch_fixture_close(&l);
}

/* ---- ARP ---- */

static struct rte_mbuf *arp_request(struct switch_fixture *l, const char *from, uint32_t target)
{
    uint32_t ip = switch_fixture_ip(l, from);
    uint8_t b[60] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, [12] = 8, 6, 0, 1, 8, 0, 6, 4, 0, 1};

    roce_mac_of_ip(ip, b + 6);
    memcpy(b + 22, b + 6, 6);
    for (int i = 0; i < 4; i++)
        b[28 + i] = (uint8_t)(ip >> (24 - 8 * i)), b[38 + i] = (uint8_t)(target >> (24 - 8 * i));
    return switch_fixture_bytes(l->pool, b, 60);
}

static void switches_and_hosts_answer_for_their_own_addresses(void **state)
{
    static const char *const asked[] = {"leaf0", "leaf1", "spine0", "h1", "h7"};
    struct prog *p;
    struct switch_fixture l;

    (void)state;
    switch_fixture_open(&l, pool, LEAF_SPINE("hash", ""));
    p = prog_new(&l, "h0", 0);
    p->keep = true;
    for (unsigned i = 0; i < 5; i++) {
        uint32_t ip = switch_fixture_ip(&l, asked[i]);
        uint8_t mac[6];
        const uint8_t *b;

        prog_send(p, ENDPOINT_DATA, arp_request(&l, "h0", ip));
        net_kick(l.net, switch_fixture_node(&l, "h0"), 0, 0, net_now(l.net));
        switch_fixture_run(&l, PS_PER_S);
        assert_int_equal(p->n_rx, i + 1); /* exactly one answer: floods do not loop */
        b = rte_pktmbuf_mtod(p->rx[i], uint8_t *);
        roce_mac_of_ip(ip, mac);
        assert_memory_equal(b + 22, mac, 6);
        assert_memory_equal(b + 6, mac, 6);
        assert_int_equal(b[21], 2);
    }
    assert_int_equal(rte_mempool_avail_count(pool),
                     l.pool_full - 5); /* every copy of the floods has ended */
    prog_free(p);
    switch_fixture_close(&l);
}

static void hosts_outside_are_learned_and_reached_and_nobody_else_hears(void **state)
{
    static const uint8_t outside[6] = {0x52, 0x54, 0, 1, 2, 3};
    struct frame_spec s;
    struct rte_mbuf *m;
    struct prog *p;
    struct uses u = {0};
    uint8_t b[60];
    struct switch_fixture l;

    (void)state;
    switch_fixture_open(
        &l, pool,
        "dilation = 1; nodes = ( { name = (\"h0\", \"h1\"); kind = \"host\"; }, { name = "
        "(\"leaf0\", \"leaf1\"); role = \"leaf\"; }, "
        "{ name = (\"spine0\", \"spine1\"); role = \"spine\"; } ); link_defaults "
        "= " SWITCH_FIXTURE_LINK ";"
        "links = ( { a = \"h0\"; b = \"leaf0\"; }, { a = \"h1\"; b = \"leaf1\"; }, { a = "
        "(\"leaf0\", \"leaf1\"); b = (\"spine0\", \"spine1\"); },"
        "{ a = \"leaf1\"; port = \"net_tap0\"; } );");
    p = prog_new(&l, "h0", 0);
    net_tap(l.net, count_uses, &u);
    s = (struct frame_spec){
        .src_ip = switch_fixture_ip(&l, "h0"), .dst_ip = 0xc0a80001, .dqpn = 1, .len = 64};
    memcpy(s.dst_mac, outside, 6);
    /* Unknown: towards the outside only. */
    prog_send(p, ENDPOINT_DATA, switch_fixture_frame(pool, &s));
    net_kick(l.net, switch_fixture_node(&l, "h0"), 0, 0, 0);
    switch_fixture_run(&l, PS_PER_S);
    for (unsigned i = 0; i < l.f->n_links; i++)
        if (l.f->links[i].a == switch_fixture_node(&l, "h1") ||
            l.f->links[i].b == switch_fixture_node(&l, "h1"))
            assert_int_equal(u.n[2 * i] + u.n[2 * i + 1], 0);
    assert_int_equal(
        egress_stats(net_egress(l.net, switch_fixture_node(&l, "leaf1"),
                                l.f->nodes[switch_fixture_node(&l, "leaf1")].n_ports - 1))
            .frames,
        1);
    /* A frame of the outside host reaches h0 by its MAC. */
    m = arp_request(&l, "h1", switch_fixture_ip(&l, "h0"));
    memcpy(b, rte_pktmbuf_mtod(m, void *), 60);
    rte_pktmbuf_free(m);
    memcpy(b + 6, outside, 6);
    memcpy(b + 22, outside, 6);
    memcpy(b + 28, (const uint8_t[]){192, 168, 0, 1}, 4);
    m = switch_fixture_bytes(pool, b, 60);
    net_input(l.net, switch_fixture_node(&l, "leaf1"),
              l.f->nodes[switch_fixture_node(&l, "leaf1")].n_ports - 1, &m, 1, net_now(l.net));
    switch_fixture_run(&l, PS_PER_S);
    assert_int_equal(
        egress_stats(net_egress(l.net, switch_fixture_node(&l, "leaf1"),
                                l.f->nodes[switch_fixture_node(&l, "leaf1")].n_ports - 1))
            .frames,
        2);
    prog_free(p);
    switch_fixture_close(&l);
}

/* n0g0's plane 0 leads to no NIC: such a frame is dropped with a reason, and not flooded. */
static void addresses_of_another_network_are_no_way_out(void **state)
{
    struct uses u = {0};
    struct prog *a;
    struct switch_fixture l;
    uint16_t plane;

    (void)state;
    switch_fixture_open(&l, pool,
                        "gpu_nodes = { gpus = 2; planes = ( 1 ); nvlink = " SWITCH_FIXTURE_LINK
                        "; nic = " SWITCH_FIXTURE_LINK "; }; rails = { leaves = 1; };");
    a = prog_new(&l, "n0g0", 0);
    plane = switch_fixture_node(&l, "n0s0");
    net_tap(l.net, count_uses, &u);
    prog_send(a, ENDPOINT_DATA,
              switch_fixture_frame(
                  pool, &(struct frame_spec){.src_ip = switch_fixture_ip(&l, "n0g0"),
                                             .dst_ip = l.f->nodes[l.f->hosts[1]].ip_of_port[1],
                                             .dqpn = 1 << 16,
                                             .len = 64}));
    net_kick(l.net, switch_fixture_node(&l, "n0g0"), 0, 0, 0);
    switch_fixture_run(&l, PS_PER_S);
    assert_int_equal(net_node(l.net, plane)->cnt[0].drops[DROP_NO_ROUTE], 1);
    for (unsigned i = 0; i < 2u * l.f->n_links; i++)
        assert_int_equal(u.n[i], i == 0);
    prog_free(a);
    switch_fixture_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_host_reaches_every_other),
        cmocka_unit_test(a_path_takes_store_and_forward_time_of_each_hop_exactly),
        cmocka_unit_test(hashed_flows_spread_and_one_flow_keeps_its_path),
        cmocka_unit_test(balanced_paths_of_a_shift_do_not_collide),
        cmocka_unit_test(garbage_is_dropped_under_its_name_and_nothing_leaks),
        cmocka_unit_test(random_bytes_leave_every_frame_accounted_for),
        cmocka_unit_test(switches_and_hosts_answer_for_their_own_addresses),
        cmocka_unit_test(hosts_outside_are_learned_and_reached_and_nobody_else_hears),
        cmocka_unit_test(addresses_of_another_network_are_no_way_out),
    };

    test_eal_init();
    pool = test_pool(16383);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
