/* SPDX-License-Identifier: BSD-3-Clause */
/* What a switch admits from the host g0 behind a port to the outside, and from a port to anybody. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <rte_mempool.h>
#include <string.h>

#include "roce/wire.h"
#include "switch/outside_guard.h"
#include "tests/support/eal.h"
#include "tests/support/switch_fixture.h"

static struct rte_mempool *pool;

#define CONF                                                                                       \
    "dilation = 1; nodes = ( { name = (\"h0\", \"h1\", \"g0\"); kind = \"host\"; }, "              \
    "{ name = \"leaf0\"; role = \"leaf\"; } ); link_defaults = " SWITCH_FIXTURE_LINK ";"           \
    "links = ( { a = (\"h0\", \"h1\"); b = \"leaf0\"; },"                                          \
    "{ a = \"g0\"; b = \"leaf0\"; port = \"vhost:g0.sock\"; },"                                    \
    "{ a = \"leaf0\"; port = \"net_tap0\"; } );"

/* Addresses: names of nodes, or NULL: one that is nobody's. */
struct row {
    const char *name;
    bool arp, v6;
    const char *ip, *mac;
    enum drop from_g0, from_any;
};
#define OK SOURCE_ADMITTED

static const struct row rows[] = {
    {"g0's", false, false, "g0", NULL, OK, DROP_FOREIGN_IP},
    {"g0's, by the fabric's MAC", false, false, "g0", "g0", OK, DROP_FOREIGN_MAC},
    {"nobody's", false, false, NULL, NULL, DROP_FOREIGN_IP, OK},
    {"h1's", false, false, "h1", NULL, DROP_FOREIGN_IP, DROP_FOREIGN_IP},
    {"the switch's", false, false, "leaf0", NULL, DROP_FOREIGN_IP, DROP_FOREIGN_IP},
    {"by h1's MAC", false, false, "g0", "h1", DROP_FOREIGN_MAC, DROP_FOREIGN_MAC},
    {"ARP of g0", true, false, "g0", NULL, OK, DROP_FOREIGN_ARP},
    {"ARP of h1", true, false, "h1", NULL, DROP_FOREIGN_ARP, DROP_FOREIGN_ARP},
    {"ARP of nobody", true, false, NULL, NULL, DROP_FOREIGN_ARP, OK},
    {"h1's link-local address", false, true, "h1", NULL, DROP_FOREIGN_IP, DROP_FOREIGN_IP},
    {"a link-local address of no host", false, true, NULL, NULL, OK, OK},
};

static void put32(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 24), p[1] = (uint8_t)(v >> 16), p[2] = (uint8_t)(v >> 8),
    p[3] = (uint8_t)v;
}

static struct rte_mbuf *frame_of(struct switch_fixture *l, const struct row *r)
{
    static const uint8_t own[6] = {0x52, 0x54, 0, 1, 2, 3};
    uint32_t ip = r->ip ? switch_fixture_ip(l, r->ip) : 0xc0a80001;
    struct frame_spec s = {.src_ip = ip, .dst_ip = switch_fixture_ip(l, "h0"), .dqpn = 1 << 16};
    struct rte_mbuf *m;
    uint8_t *p;

    s.len = 64;
    m = switch_fixture_frame(pool, &s);
    assert_non_null(m);
    p = rte_pktmbuf_mtod(m, uint8_t *);
    memcpy(p + 6, own, 6);
    if (r->mac)
        roce_mac_of_ip(switch_fixture_ip(l, r->mac), p + 6);
    if (r->arp) {
        memcpy(p + 12, (const uint8_t[]){8, 6, 0, 1, 8, 0, 6, 4, 0, 1}, 10);
        memcpy(p + 22, p + 6, 6);
        put32(p + 28, ip);
    }
    if (r->v6) { /* ICMPv6 */
        memcpy(p + 12, (const uint8_t[]){0x86, 0xdd, 0x60, 0, 0, 0, 0, 32, 58, 255}, 10);
        roce_link_local_of_ip(ip, p + 22);
    }
    return m;
}

static uint16_t port_of(const struct switch_fixture *l, bool declared)
{
    const struct fab_node *leaf = fabric_node(l->f, "leaf0");

    for (uint16_t p = 0; p < leaf->n_ports; p++)
        if (leaf->ports[p].external[0] && (leaf->ports[p].link != FAB_NONE) == declared)
            return p;
    fail_msg("no such port");
    return 0;
}

static void frames_from_outside_carry_no_others_address(void **state)
{
    struct switch_fixture l;
    struct prog *h0;

    (void)state;
    switch_fixture_open(&l, pool, CONF);
    h0 = prog_new(&l, "h0", 0);
    for (unsigned i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *r = &rows[i / 2];
        enum drop want = i % 2 ? r->from_any : r->from_g0;
        uint16_t leaf = switch_fixture_node(&l, "leaf0"), port = port_of(&l, i % 2 == 0);
        struct node_port_counters *c = &net_node(l.net, leaf)->cnt[port];
        uint64_t before[DROP_REASONS], dropped = 0;
        struct rte_mbuf *m = frame_of(&l, r);

        memcpy(before, c->drops, sizeof(before));
        net_input(l.net, leaf, port, &m, 1, net_now(l.net));
        switch_fixture_run(&l, net_now(l.net) + PS_PER_MS);
        for (unsigned d = DROP_FOREIGN_MAC; d <= DROP_FOREIGN_PROTOCOL; d++)
            dropped += c->drops[d] - before[d];
        if (dropped != (want != OK) || (want != OK && c->drops[want] != before[want] + 1))
            fail_msg("%s, %s", r->name, i % 2 ? "from anybody" : "from g0");
    }
    assert_int_equal(h0->got, 5); /* RoCE of g0, twice, and of nobody; ARP of both */
    prog_free(h0);
    switch_fixture_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_from_outside_carry_no_others_address),
    };

    test_eal_init();
    pool = test_pool(2047);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
