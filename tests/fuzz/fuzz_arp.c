/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ARP of hosts and of devices outside: no byte behind a frame is read; an answer goes to who asked
 * for this address, and to nobody else. Every frame goes into two switches and a NIC, too: every
 * event ends within a bound, and every frame comes back to the pool.
 *
 * Input: records { node and port, how, patches, that many (offset, byte) } over a valid request.
 */
#include "switch/arp.h"

#include "switch/net/net.h"
#include "tests/support/eal.h"
#include "tests/support/switch_fixture.h"
#include "tests/fuzz/fuzz.h"

#include <rte_mempool.h>
#include <sanitizer/asan_interface.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MBUFS      2047u
#define MAX_EVENTS 200000
#define FRAMES     256u /* of an input, at most */
#define ARP_BYTES  28u

enum { TAGGED = 1, SHORT = 2, PADDED = 4, REPLY = 8, DRAIN = 16 };

static const char conf[] =
    "mtu = 1024; dilation = 1; link_defaults = { rate = \"400Gb/s\"; latency = \"300ns\"; };"
    "nodes = ( { name = (\"h0\", \"h1\", \"h2\"); kind = \"host\"; },"
    " { name = (\"s0\", \"s1\"); kind = \"switch\"; } );"
    "links = ( { a = (\"h0\", \"h1\"); b = \"s0\"; }, { a = \"h2\"; b = \"s1\"; },"
    " { a = \"s0\"; b = \"s1\"; cables = 2; }, { a = \"s1\"; port = \"net_tap0\"; } );";

static struct rte_mempool *pool;
static struct fabric *fab;

static void init(void)
{
    if (pool)
        return;
    test_eal_init();
    pool = test_pool(MBUFS);
    fab = fabric_load_string(conf, "fuzz.conf", NULL);
    check(fab != NULL, "the fabric of this test");
}

static void put32(uint8_t *p, uint32_t v)
{
    p[0] = v >> 24, p[1] = v >> 16, p[2] = v >> 8, p[3] = v;
}

static struct rte_mbuf *frame(uint8_t how, uint32_t from, uint32_t to, const uint8_t *patches,
                              unsigned n)
{
    unsigned l3 = how & TAGGED ? 18 : 14;
    struct rte_mbuf *m = frame_alloc(pool);
    uint8_t *p, *a;

    if (!m)
        return NULL;
    p = (uint8_t *)rte_pktmbuf_append(m, FRAME_MIN_BYTES);
    memset(p, 0, m->data_len);
    memset(p, 0xff, 6);
    roce_mac_of_ip(from, p + 6);
    if (how & TAGGED)
        memcpy(p + 12, (uint8_t[]){0x81, 0, 0, 1}, 4);
    a = p + l3;
    memcpy(a - 2, (uint8_t[]){0x08, 0x06, 0, 1, 0x08, 0, 6, 4, 0, how & REPLY ? 2 : 1}, 10);
    roce_mac_of_ip(from, a + 8);
    put32(a + 14, from);
    put32(a + 24, to);
    for (unsigned i = 0; i < n; i++)
        p[patches[2 * i] % FRAME_MIN_BYTES] = patches[2 * i + 1];
    if (!(how & PADDED))
        rte_pktmbuf_trim(m, (uint16_t)(FRAME_MIN_BYTES - l3 - ARP_BYTES));
    if (how & SHORT && n)
        rte_pktmbuf_trim(m, patches[1] % m->data_len);
    frame_meta(m)->in_port = 0;
    return m;
}

/* The answer is a reply from `ip` to the sender of the request. */
static void check_answer(struct rte_mbuf *m, struct rte_mbuf *r, uint32_t ip)
{
    const uint8_t *q = rte_pktmbuf_mtod(m, const uint8_t *),
                  *p = rte_pktmbuf_mtod(r, const uint8_t *);
    struct packet_class k;

    classify_any(r, &k);
    check(k.kind == PACKET_ARP && r->data_len == FRAME_MIN_BYTES && !arp_asks_for(r, &k, ip),
          "an answer that is none");
    q += k.l3, p += k.l3;
    check(load_be32(q + 24) == ip && load_be32(p + 14) == ip, "an answer for another address");
    check(!memcmp(q + 8, p + 18, 10) && !memcmp(q + 8, p - k.l3, 6), "an answer to somebody else");
}

static void parse(struct rte_mbuf *m, uint32_t ip)
{
    uint8_t *behind = rte_pktmbuf_mtod_offset(m, uint8_t *, m->data_len), mac[6];
    struct packet_class k;
    struct rte_mbuf *r = NULL;

    roce_mac_of_ip(ip, mac);
    ASAN_POISON_MEMORY_REGION(behind, rte_pktmbuf_tailroom(m));
    classify_any(m, &k);
    if (k.kind == PACKET_ARP)
        r = arp_answer(m, &k, ip, mac, pool);
    if (r)
        check_answer(m, r, ip);
    ASAN_UNPOISON_MEMORY_REGION(behind, rte_pktmbuf_tailroom(m));
    rte_pktmbuf_free(r);
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
        uint16_t node = data[0] % fab->n_nodes, port = data[0] / 16 % fab->nodes[node].n_ports;
        const struct fab_dest *from = &fab->dests[(data[2] >> 4 & 7u) % fab->n_dests];
        const struct fab_dest *to = &fab->dests[(data[2] >> 1 & 7u) % fab->n_dests];
        unsigned n = data[2] & 1 ? RTE_MIN((unsigned)(size - 3) / 2, 4u) : 0;
        struct rte_mbuf *m = frame(data[1], from->ip, to->ip, data + 3, n);

        if (m) {
            parse(m, to->ip);
            net_input(net, node, port, &m, 1, net_now(net));
        }
        if (data[1] & DRAIN)
            run(net);
        data += 3 + 2 * n, size -= 3 + 2 * n;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct net_cfg cfg;
    struct net *net;

    init();
    cfg = (struct net_cfg){.fab = fab, .pool = pool, .seed = 1};
    check(net_create(&net, &cfg) == 0, "net_create");
    feed(net, data, size);
    run(net);
    net_destroy(net);
    check(rte_mempool_avail_count(pool) == MBUFS, "a frame is missing");
    return 0;
}
