/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * IGMP of hosts: reports, leaves and queries of all versions, malformed ones included. No byte behind
 * a frame is read, the table of groups is what a plain list says, and a port that goes leaves nothing
 * in it. Every frame goes into two switches, too: every event ends within a bound, and every frame
 * comes back to the pool.
 *
 * Input: records { port, how, n, n bytes of an IGMP message }.
 */
#include "switch/mcast.h"
#include "switch/net/net.h"
#include "tests/support/eal.h"
#include "tests/support/switch_fixture.h"
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <rte_mempool.h>
#include <sanitizer/asan_interface.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MBUFS      2047u
#define PORTS      3u
#define MAX_EVENTS 200000
#define FRAMES     256u /* of an input, at most */

enum { RAW_SUM = 1, TAGGED = 2, OPTIONS = 4, NO_FABRIC = 8, DOWN = 16, TRAILER = 32 };

static const char conf[] =
    "mtu = 1024; link_defaults = { rate = \"400Gb/s\"; latency = \"300ns\"; };"
    "nodes = ( { name = (\"h0\", \"h1\", \"h2\"); kind = \"host\"; },"
    " { name = (\"s0\", \"s1\"); kind = \"switch\"; } );"
    "links = ( { a = (\"h0\", \"h1\"); b = \"s0\"; }, { a = \"h2\"; b = \"s1\"; },"
    " { a = \"s0\"; b = \"s1\"; cables = 2; } );";

static struct rte_mempool *pool;
static struct fabric *fab;
static struct mcast *table;
static uint16_t port; /* that the memberships of a frame are for */
static struct {
    uint32_t group;
    uint8_t ports;
} list[MCAST_MAX_GROUPS + 1];
static unsigned n_list;

static void init(void)
{
    if (pool)
        return;
    test_eal_init();
    pool = test_pool(MBUFS);
    fab = fabric_load_string(conf, "fuzz.conf", NULL);
    check(fab != NULL, "the fabric of this test");
}

/* ---- the list ---- */

static uint8_t *ports_of(uint32_t group)
{
    for (unsigned i = 0; i < n_list; i++)
        if (list[i].group == group)
            return &list[i].ports;
    list[n_list].group = group;
    list[n_list].ports = 0;
    return &list[n_list++].ports;
}

static void forget(uint32_t group)
{
    for (unsigned i = 0; i < n_list; i++)
        if (list[i].group == group && !list[i].ports)
            list[i] = list[--n_list];
}

static void member(void *ctx, enum igmp_what what, uint32_t group)
{
    const uint64_t *have;
    uint8_t *ports;
    bool was;
    int rc;

    (void)ctx;
    if (what == IGMP_QUERY)
        return;
    check(group >> 28 == 14, "a group that is no multicast address");
    ports = ports_of(group);
    was = *ports >> port & 1;
    if (what == IGMP_JOIN) {
        rc = mcast_join(table, group, port);
        check(rc == (was                          ? 0
                     : n_list <= MCAST_MAX_GROUPS ? 1
                                                  : -ENOSPC),
              "another answer to a join");
        *ports |= (uint8_t)(rc >= 0 ? 1u << port : 0);
    } else {
        check(mcast_leave(table, group, port) == was, "another answer to a leave");
        *ports &= (uint8_t) ~(1u << port);
    }
    have = mcast_members(table, group);
    check((have ? *have : 0) == *ports, "other members than those of the list");
    forget(group);
}

static void left(void *ctx, uint32_t group)
{
    (void)ctx;
    *ports_of(group) &= (uint8_t) ~(1u << port);
    forget(group);
}

/* ---- frames ---- */

/* Ethernet, a tag, IPv4 with options, the message, and what pads a frame. */
static struct rte_mbuf *frame(uint8_t how, const uint8_t *msg, uint16_t n)
{
    static const uint8_t types[] = {0x11, 0x12, 0x16, 0x17, 0x22};
    unsigned tag = how & TAGGED ? 4 : 0, ihl = how & OPTIONS ? 24 : 20, l4 = 14 + tag + ihl;
    struct rte_mbuf *m = frame_alloc(pool);
    uint16_t sum;
    uint8_t *p, *ip;

    if (!m)
        return NULL;
    p = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)(l4 + n + (how & TRAILER ? 18 : 0)));
    memset(p, 0, m->data_len);
    p[0] = 1, p[2] = 0x5e;
    if (tag)
        memcpy(p + 12, (uint8_t[]){0x81, 0, 0, 0}, 4);
    p[12 + tag] = 0x08;
    ip = p + 14 + tag;
    memcpy(ip,
           (uint8_t[]){(uint8_t)(0x40 | ihl / 4), 0xc0, (uint8_t)((ihl + n) >> 8),
                       (uint8_t)(ihl + n), 0, 0, 0x40, 0, 1, IPPROTO_NUM_IGMP},
           10);
    ip[12] = 10, ip[16] = 0xe0;
    if (ihl > 20)
        memcpy(ip + 20, (uint8_t[]){0x94, 4, 0, 0}, 4);
    sum = switch_fixture_ip_checksum(ip, ihl);
    ip[10] = sum >> 8, ip[11] = (uint8_t)sum;
    memcpy(p + l4, msg, n);
    if (n & 1) /* adds nothing to the sum */
        p[l4 + n - 1] = 0;
    if (n >= 8 && !(how & RAW_SUM)) {
        p[l4] = types[p[l4] % sizeof(types)];
        p[l4 + 2] = p[l4 + 3] = 0;
        sum = switch_fixture_ip_checksum(p + l4, n);
        p[l4 + 2] = sum >> 8, p[l4 + 3] = (uint8_t)sum;
    }
    frame_meta(m)->in_port = 0;
    return m;
}

static void parse(struct rte_mbuf *m)
{
    uint8_t *behind = rte_pktmbuf_mtod_offset(m, uint8_t *, m->data_len);
    struct packet_class k;

    ASAN_POISON_MEMORY_REGION(behind, rte_pktmbuf_tailroom(m));
    classify_any(m, &k);
    if (k.kind == PACKET_IGMP)
        (void)igmp_parse(m, &k, member, NULL);
    ASAN_UNPOISON_MEMORY_REGION(behind, rte_pktmbuf_tailroom(m));
}

static void run(struct net *net)
{
    unsigned events = 0;

    while (net_next(net) < net_now(net) + PS_PER_MS) {
        net_advance(net, net_next(net));
        check(++events < MAX_EVENTS, "events without end");
    }
}

static void feed(struct net *net, const uint8_t *data, size_t size)
{
    for (unsigned i = 0; size >= 3 && i < FRAMES; i++) {
        uint8_t how = data[1];
        uint16_t n = data[2] < size - 3 ? data[2] : (uint16_t)(size - 3);
        uint16_t sw = fab->switches[data[0] >> 4 & 1];
        struct rte_mbuf *m = frame(how, data + 3, n);

        port = data[0] % PORTS;
        if (m)
            parse(m);
        if (m && how & NO_FABRIC)
            rte_pktmbuf_free(m);
        else if (m)
            net_input(net, sw, data[0] % fab->nodes[sw].n_ports, &m, 1, net_now(net));
        if (how & DOWN) {
            mcast_forget_port(table, port, left, NULL);
            net_port_state(net, sw, data[0] % fab->nodes[sw].n_ports, how & RAW_SUM, net_now(net));
        }
        if (data[0] & 0x80)
            run(net);
        data += 3 + n, size -= 3 + (size_t)n;
    }
}

static void none(void *ctx, uint32_t group)
{
    (void)ctx, (void)group;
    check(false, "a group is left without members");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct net_cfg cfg;
    struct net *net;

    init();
    cfg = (struct net_cfg){.fab = fab, .pool = pool, .seed = 1};
    check(net_create(&net, &cfg) == 0 && mcast_create(&table, PORTS) == 0, "create");
    n_list = 0;
    feed(net, data, size);
    run(net);
    for (port = 0; port < PORTS; port++)
        mcast_forget_port(table, port, left, NULL);
    mcast_each(table, none, NULL);
    check(!n_list, "the list has members");
    mcast_destroy(table);
    net_destroy(net);
    check(rte_mempool_avail_count(pool) == MBUFS, "a frame is missing");
    return 0;
}
