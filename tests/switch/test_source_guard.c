/* SPDX-License-Identifier: BSD-3-Clause */
/* What a NIC admits from the process in slot 1 of h0, whose address is that of h0's port. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <rte_mempool.h>
#include <string.h>

#include "roce/wire.h"
#include "switch/mcast.h"
#include "switch/nic.h"
#include "tests/support/eal.h"
#include "tests/support/switch_fixture.h"

#define CONF                                                                                       \
    "mtu = 4096; slots_per_host = 4; single_switch = { hosts = 3; host_link "                      \
    "= " SWITCH_FIXTURE_LINK "; };"
#define ADMITTED DROP_REASONS
#define SLOT     1u
#define GROUP    0xe1000005u
#define ROWS(t)  (sizeof(t) / sizeof((t)[0]))

static struct rte_mempool *pool;

/* Addresses are names of hosts; NULL: h0. */
struct row {
    const char *name;
    enum drop want;
    uint8_t opcode;
    const char *ip, *mac, *to; /* source address, source MAC; destination, h1 where NULL */
    uint32_t sqpn;             /* 0: of the slot */
    uint16_t mark;             /* 0: of the slot */
    bool v6;
};

static const struct row roce[] = {
    {"an RC packet of its own", ADMITTED, .opcode = ROCE_OP_RC_SEND_ONLY},
    {"a datagram of its own", ADMITTED, .opcode = ROCE_OP_UD_SEND_ONLY},
    {"one from another queue pair of its own", ADMITTED, .opcode = ROCE_OP_UD_SEND_ONLY_IMM,
     .sqpn = 0x02ffff},
    {"a notification of congestion", ADMITTED, .opcode = ROCE_OP_CNP_PACKET},
    {"an acknowledgement", ADMITTED, .opcode = ROCE_OP_RC_ACKNOWLEDGE},
    {"one by link-local addresses", ADMITTED, .opcode = ROCE_OP_RC_SEND_ONLY, .v6 = true},
    {"one to its own host", ADMITTED, .opcode = ROCE_OP_UD_SEND_ONLY, .to = "h0"},
    {"another host's address", DROP_FOREIGN_IP, .opcode = ROCE_OP_RC_SEND_ONLY, .ip = "h2",
     .mac = "h0"},
    {"another host's MAC", DROP_FOREIGN_MAC, .opcode = ROCE_OP_RC_SEND_ONLY, .mac = "h2"},
    {"another host's MAC and address", DROP_FOREIGN_MAC, .opcode = ROCE_OP_RC_SEND_ONLY, .ip = "h2",
     .mac = "h2"},
    {"the switch's address", DROP_FOREIGN_IP, .opcode = ROCE_OP_UD_SEND_ONLY, .ip = "switch0",
     .mac = "h0"},
    {"another host's link-local address", DROP_FOREIGN_IP, .opcode = ROCE_OP_RC_SEND_ONLY,
     .ip = "h2", .mac = "h0", .v6 = true},
    {"a notification in another's name", DROP_FOREIGN_IP, .opcode = ROCE_OP_CNP_PACKET, .ip = "h2",
     .mac = "h0"},
    {"another's address, to its own host", DROP_FOREIGN_IP, .opcode = ROCE_OP_UD_SEND_ONLY,
     .ip = "h2", .mac = "h0", .to = "h0"},
    {"a connection of the slot below", DROP_FOREIGN_QPN, .opcode = ROCE_OP_RC_SEND_ONLY, .mark = 1},
    {"a connection of the slot above", DROP_FOREIGN_QPN, .opcode = ROCE_OP_RC_ACKNOWLEDGE,
     .mark = 3},
    {"a connection of no slot", DROP_FOREIGN_QPN, .opcode = ROCE_OP_RC_WRITE_ONLY, .mark = 0x0202},
    {"a notification of another slot's", DROP_FOREIGN_QPN, .opcode = ROCE_OP_CNP_PACKET, .mark = 1},
    {"another slot's connection by link-local", DROP_FOREIGN_QPN, .opcode = ROCE_OP_RC_SEND_ONLY,
     .mark = 3, .v6 = true},
    {"a datagram of the slot below", DROP_FOREIGN_QPN, .opcode = ROCE_OP_UD_SEND_ONLY,
     .sqpn = 0x010001},
    {"a datagram of the slot above", DROP_FOREIGN_QPN, .opcode = ROCE_OP_UD_SEND_ONLY,
     .sqpn = 0x030001},
    {"a datagram of an aggregation node", DROP_FOREIGN_QPN, .opcode = ROCE_OP_UD_SEND_ONLY,
     .sqpn = 0x00a991},
    {"a datagram of the NIC", DROP_FOREIGN_QPN, .opcode = ROCE_OP_UD_SEND_ONLY, .sqpn = 0x00a992},
    {"a datagram of another's link-local", DROP_FOREIGN_QPN, .opcode = ROCE_OP_UD_SEND_ONLY,
     .sqpn = 0x030001, .v6 = true},
};

static struct rte_mbuf *build(struct switch_fixture *l, const struct row *r)
{
    struct roce_pkt k = {.opcode = r->opcode,
                         .ttl = 64,
                         .pkey = ROCE_DEFAULT_PKEY,
                         .udp_src = 0xc001,
                         .v6 = r->v6,
                         .mark = r->mark ? r->mark : SLOT + 1,
                         .src_ip = switch_fixture_ip(l, r->ip ? r->ip : "h0"),
                         .dst_ip = switch_fixture_ip(l, r->to ? r->to : "h1"),
                         .dqpn = 1 << 16 | 7,
                         .qkey = 1,
                         .sqpn = r->sqpn ? r->sqpn : (SLOT + 1) << 16 | 9};
    struct rte_mbuf *m = frame_alloc(pool);

    assert_non_null(m);
    k.len = roce_opinfo[k.opcode].rule == ROCE_LEN_NONE ? 0 : 64;
    roce_mac_of_ip(switch_fixture_ip(l, r->mac ? r->mac : "h0"), k.src_mac);
    roce_mac_of_ip(k.dst_ip, k.dst_mac);
    roce_build(m, &k);
    memset(rte_pktmbuf_mtod_offset(m, uint8_t *, k.hdr_len), 7, k.len);
    roce_seal(m, &k);
    return m;
}

struct scene {
    struct switch_fixture l;
    struct prog *src, *dst, *self;
};

static void open_scene(struct scene *s)
{
    switch_fixture_open(&s->l, pool, CONF);
    s->src = prog_new(&s->l, "h0", SLOT);
    s->src->mark = 0; /* frames are as they are built */
    s->dst = prog_new(&s->l, "h1", 0);
    s->self = prog_new(&s->l, "h0", 0);
}

static void close_scene(struct scene *s)
{
    prog_free(s->src), prog_free(s->dst), prog_free(s->self);
    switch_fixture_close(&s->l);
}

/* Sends a frame, and says whether somebody has received it. */
static bool arrives(struct scene *s, struct rte_mbuf *m)
{
    uint64_t got = s->dst->got + s->self->got;

    prog_send(s->src, ENDPOINT_DATA, m);
    net_kick(s->l.net, switch_fixture_node(&s->l, "h0"), 0, SLOT, net_now(s->l.net));
    switch_fixture_run(&s->l, net_now(s->l.net) + PS_PER_MS);
    return s->dst->got + s->self->got > got;
}

/* The frame is dropped as `why`, and counted at the port of its host. */
static void expect(struct scene *s, const char *name, struct rte_mbuf *m, enum drop why)
{
    const struct node *h0 = net_node(s->l.net, switch_fixture_node(&s->l, "h0"));
    uint64_t all = switch_fixture_all_drops(&s->l);
    uint64_t before = why == ADMITTED ? 0 : h0->cnt[0].drops[why];
    bool got = arrives(s, m);

    if (got != (why == ADMITTED))
        fail_msg("%s: %s", name, got ? "was received" : "was not received");
    if (switch_fixture_all_drops(&s->l) - all != (why != ADMITTED))
        fail_msg("%s: found %u drops, expected %u", name,
                 (unsigned)(switch_fixture_all_drops(&s->l) - all), why != ADMITTED);
    if (why != ADMITTED && h0->cnt[0].drops[why] != before + 1)
        fail_msg("%s: not counted as %s", name, drop_name(why));
}

static void roce_has_the_ports_addresses_and_the_slots_queue_pairs(void **state)
{
    struct scene s;

    (void)state;
    open_scene(&s);
    for (unsigned i = 0; i < ROWS(roce); i++)
        expect(&s, roce[i].name, build(&s.l, &roce[i]), roce[i].want);
    close_scene(&s);
}

/* With one tag, or options in the IP header, the fields are elsewhere, but the rule is the same. */
static void tagged_frames_and_options_are_read_as_well(void **state)
{
    static const struct row row[] = {
        {"tagged, its own", ADMITTED, .opcode = ROCE_OP_UD_SEND_ONLY},
        {"tagged, another's address", DROP_FOREIGN_IP, .opcode = ROCE_OP_UD_SEND_ONLY, .ip = "h2",
         .mac = "h0"},
        {"tagged, another's queue pair", DROP_FOREIGN_QPN, .opcode = ROCE_OP_UD_SEND_ONLY,
         .sqpn = 0x030001},
    };
    struct scene s;

    (void)state;
    open_scene(&s);
    for (unsigned i = 0; i < ROWS(row); i++) {
        struct rte_mbuf *m = build(&s.l, &row[i]);
        uint8_t tagged[512] = {[12] = 0x81};
        const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);
        uint32_t n = m->pkt_len;

        assert_true(n + 4 <= sizeof(tagged));
        memcpy(tagged, p, 12);
        memcpy(tagged + 16, p + 12, n - 12);
        rte_pktmbuf_free(m);
        m = switch_fixture_bytes(pool, tagged, n + 4);
        expect(&s, row[i].name, m, row[i].want);
    }
    close_scene(&s);
}

/* A datagram that ends before its source QPN reaches nobody, and is not read beyond its end. */
static void a_datagram_without_a_source_queue_pair_is_dropped(void **state)
{
    static const struct row row = {
        .name = "", .want = DROP_BAD_LENGTH, .opcode = ROCE_OP_UD_SEND_ONLY};
    struct scene s;

    (void)state;
    open_scene(&s);
    for (uint32_t n = 54; n < 62; n++) {
        struct rte_mbuf *m = build(&s.l, &row);
        uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);
        uint32_t len = n < 58 ? 58 : n; /* an ICRC is needed to count as RoCE */

        rte_pktmbuf_trim(m, (uint16_t)(m->pkt_len - len));
        p[16] = 0, p[17] = (uint8_t)(len - 14);
        p[38] = 0, p[39] = (uint8_t)(len - 34);
        expect(&s, "short", m, DROP_BAD_LENGTH);
    }
    close_scene(&s);
}

static struct rte_mbuf *arp(struct switch_fixture *l, const char *mac, const char *ip)
{
    static const uint8_t any[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, [12] = 8, 6,
                                  0,    1,    8,    0,    6,    4,    0,        1};
    uint8_t p[60] = {0};
    uint32_t a = switch_fixture_ip(l, ip), b = switch_fixture_ip(l, "h1");

    memcpy(p, any, sizeof(any));
    roce_mac_of_ip(switch_fixture_ip(l, "h0"), p + 6);
    roce_mac_of_ip(switch_fixture_ip(l, mac), p + 22);
    p[28] = (uint8_t)(a >> 24), p[29] = (uint8_t)(a >> 16), p[30] = (uint8_t)(a >> 8);
    p[31] = (uint8_t)a;
    p[38] = (uint8_t)(b >> 24), p[39] = (uint8_t)(b >> 16), p[40] = (uint8_t)(b >> 8);
    p[41] = (uint8_t)b;
    return switch_fixture_bytes(pool, p, sizeof(p));
}

/* h1's NIC answers requests for its address, so an admitted one is one that gets an answer. */
static void arp_names_the_port_as_its_sender(void **state)
{
    struct scene s;

    (void)state;
    open_scene(&s);
    expect(&s, "its own request", arp(&s.l, "h0", "h0"), ADMITTED);
    expect(&s, "another's address", arp(&s.l, "h0", "h2"), DROP_FOREIGN_ARP);
    expect(&s, "another's MAC", arp(&s.l, "h2", "h0"), DROP_FOREIGN_ARP);
    expect(&s, "the switch's", arp(&s.l, "h0", "switch0"), DROP_FOREIGN_ARP);
    close_scene(&s);
}

static struct rte_mbuf *report(struct switch_fixture *l, const char *ip, const char *from)
{
    uint8_t mac[6];

    roce_mac_of_ip(switch_fixture_ip(l, from), mac);
    return igmp_build(pool, IGMP_JOIN, GROUP, switch_fixture_ip(l, ip), mac);
}

static void memberships_are_announced_by_the_port_alone(void **state)
{
    const struct node *h0;
    struct scene s;

    (void)state;
    open_scene(&s);
    h0 = net_node(s.l.net, switch_fixture_node(&s.l, "h0"));
    expect(&s, "another's report", report(&s.l, "h2", "h0"), DROP_FOREIGN_IP);
    expect(&s, "another's MAC", report(&s.l, "h0", "h2"), DROP_FOREIGN_MAC);
    assert_int_equal(egress_stats(net_egress(s.l.net, h0->id, 0)).frames, 0);
    prog_send(s.src, ENDPOINT_DATA, report(&s.l, "h0", "h0"));
    net_kick(s.l.net, h0->id, 0, SLOT, net_now(s.l.net));
    switch_fixture_run(&s.l, net_now(s.l.net) + PS_PER_MS);
    assert_int_equal(egress_stats(net_egress(s.l.net, h0->id, 0)).frames,
                     1); /* the NIC's own announcement */
    close_scene(&s);
}

/* An HCA speaks nothing else, and others may believe it: neighbour discovery, for example. */
static void other_protocols_are_not_a_processs(void **state)
{
    static const struct {
        const char *name;
        uint8_t type[2], ip[10];
    } row[] = {
        {"ICMP", {0x08, 0x00}, {0x45, 0, 0, 40, 0, 0, 0, 0, 64, 1}},
        {"UDP to another port", {0x08, 0x00}, {0x45, 0, 0, 40, 0, 0, 0, 0, 64, 17}},
        {"a fragment", {0x08, 0x00}, {0x45, 0, 0, 40, 0, 0, 0, 9, 64, 17}},
        {"ICMPv6", {0x86, 0xdd}, {0x60, 0, 0, 0, 0, 0, 58, 64}},
        {"a protocol of no name", {0x88, 0xb5}, {0}},
    };
    struct scene s;

    (void)state;
    open_scene(&s);
    for (unsigned i = 0; i < ROWS(row); i++) {
        uint8_t p[80] = {0};
        uint32_t ip = switch_fixture_ip(&s.l, "h0");

        roce_mac_of_ip(switch_fixture_ip(&s.l, "h1"), p);
        roce_mac_of_ip(ip, p + 6);
        memcpy(p + 12, row[i].type, 2);
        memcpy(p + 14, row[i].ip, 10);
        if (row[i].type[0] == 8) {
            p[26] = (uint8_t)(ip >> 24), p[27] = (uint8_t)(ip >> 16), p[28] = (uint8_t)(ip >> 8);
            p[29] = (uint8_t)ip;
            p[39] = 20; /* length of UDP */
        }
        expect(&s, row[i].name, switch_fixture_bytes(pool, p, sizeof(p)), DROP_FOREIGN_PROTOCOL);
    }
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(roce_has_the_ports_addresses_and_the_slots_queue_pairs),
        cmocka_unit_test(tagged_frames_and_options_are_read_as_well),
        cmocka_unit_test(a_datagram_without_a_source_queue_pair_is_dropped),
        cmocka_unit_test(arp_names_the_port_as_its_sender),
        cmocka_unit_test(memberships_are_announced_by_the_port_alone),
        cmocka_unit_test(other_protocols_are_not_a_processs),
    };

    test_eal_init();
    pool = test_pool(4095);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
