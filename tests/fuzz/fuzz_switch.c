/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arbitrary frames into a switch and a NIC: nothing crashes, every event ends within a bound, and
 * every frame comes back to the pool. The input is a list of records: where, what it is built on,
 * how many bytes, then the bytes.
 */
#include "roce/wire.h"
#include "switch/mcast.h"
#include "tests/support/eal.h"
#include "tests/support/switch_fixture.h"
#include "tests/fuzz/fuzz.h"

#include <rte_mempool.h>
#include <stdlib.h>
#include <string.h>

#define MAX_EVENTS 200000
#define MAX_FRAME  1600

static const char conf[] = "mtu = 1024; dilation = 1; slots_per_host = 2; link_defaults = { rate = "
                           "\"400Gb/s\"; latency = \"300ns\"; "
                           "buffer = \"16KiB\"; buffer_frames = 16; ecn = \"4KiB\"; }; reduce = { "
                           "groups = 2; slots = 32; window = 8; };"
                           "nodes = ( { name = (\"h0\", \"h1\", \"h2\"); kind = \"host\"; }, { "
                           "name = (\"s0\", \"s1\"); kind = \"switch\"; } );"
                           "links = ( { a = (\"h0\", \"h1\"); b = \"s0\"; }, { a = \"h2\"; b = "
                           "\"s1\"; }, { a = \"s0\"; b = \"s1\"; cables = 2; }, "
                           "{ a = \"s1\"; port = \"net_tap0\"; } );";

static struct rte_mempool *pool;
static struct fabric *fab;

static void init(void)
{
    if (pool)
        return;
    test_eal_init();
    pool = test_pool(2047);
    fab = fabric_load_string(conf, "fuzz.conf", NULL);
    check(fab != NULL, "the fabric of this test");
}

/* What gets past the first checks: a frame of some kind for some node of the fabric. */
static struct rte_mbuf *base(uint8_t kind, uint8_t who)
{
    const struct fab_dest *to = &fab->dests[who % fab->n_dests];
    const struct fab_dest *from = &fab->dests[(who >> 4) % fab->n_dests];
    struct frame_spec s = {
        .src_ip = from->ip, .dst_ip = to->ip, .dqpn = (uint32_t)(kind & 3) << 16 | 1, .len = kind};
    uint8_t mac[6];

    roce_mac_of_ip(from->ip, mac);
    switch (kind % 6) {
    case 0:
        return frame_alloc(pool);
    case 1:
        return pfc_frame(pool, mac, (uint16_t)(who << 8));
    case 2:
        return igmp_build(pool, who & 1 ? IGMP_JOIN : IGMP_LEAVE, 0xe1000000u | who >> 4, from->ip,
                          mac);
    case 3:
        s.dst_ip = 0xe1000000u | who >> 4;
        memcpy(s.dst_mac, (uint8_t[6]){1, 0, 0x5e, 0, 0, who >> 4}, 6);
        return switch_fixture_frame(pool, &s);
    default:
        return switch_fixture_frame(pool, &s);
    }
}

/* Bytes of the input over those of the base, or behind them. */
static struct rte_mbuf *frame(uint8_t kind, uint8_t who, uint8_t at, const uint8_t *p, size_t n)
{
    struct rte_mbuf *m = base(kind, who);
    uint32_t off = at < 200 ? at : m ? m->data_len : 0;

    if (!m)
        return NULL;
    if (off + n > MAX_FRAME)
        n = off < MAX_FRAME ? MAX_FRAME - off : 0;
    if (off + n > m->data_len) {
        uint32_t grow = (uint32_t)(off + n) - m->data_len;

        memset(rte_pktmbuf_append(m, (uint16_t)grow), 0, grow);
    }
    memcpy(rte_pktmbuf_mtod_offset(m, uint8_t *, off), p, n);
    if (at >= 250 && m->data_len > at - 250u)
        rte_pktmbuf_trim(m, (uint16_t)(at - 250));
    return m;
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
    while (size >= 6) {
        uint16_t node = data[0] % fab->n_nodes;
        uint16_t port = data[1] % fab->nodes[node].n_ports;
        size_t n = data[5];
        struct rte_mbuf *m;

        if (n > size - 6)
            n = size - 6;
        m = frame(data[2], data[3], data[4], data + 6, n);
        if (m)
            net_input(net, node, port, &m, 1, net_now(net));
        if (data[0] >= 0xf0)
            net_port_state(net, node, port, data[0] & 1, net_now(net));
        if (data[1] & 0x80)
            run(net);
        data += 6 + n;
        size -= 6 + n;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct prog prog[3];
    struct net_cfg cfg;
    struct net *net;

    init();
    cfg = (struct net_cfg){.fab = fab, .pool = pool, .seed = 1};
    check(net_create(&net, &cfg) == 0, "net_create");
    for (uint16_t h = 0; h < fab->n_hosts; h++) {
        struct endpoint ep = prog_endpoint(&prog[h]);

        prog[h] = (struct prog){.take = h == 1 ? 1 : -1, .timer_ps = PS_NEVER};
        check(net_attach(net, fab->hosts[h], 0, h & 1, &ep) == 0, "net_attach");
    }
    feed(net, data, size);
    run(net);
    net_detach(net, fab->hosts[0], 0, 0, net_now(net));
    run(net);
    net_destroy(net);
    check(rte_mempool_avail_count(pool) == pool->size, "a frame is missing");
    return 0;
}
