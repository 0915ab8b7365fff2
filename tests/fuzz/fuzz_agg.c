/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arbitrary messages of members, parents and strangers to an aggregation node: nothing crashes,
 * nothing exceeds its quota, and every frame comes back to the pool. The input is a list of
 * records: kind of message, sender, and bytes that patch a valid message.
 */
#include "aggregation/proto.h"
#include "roce/wire.h"
#include "switch/reduce/an.h"
#include "switch/reduce/an_counters.h"
#include "tests/support/eal.h"
#include "tests/fuzz/fuzz.h"

#include <rte_mempool.h>
#include <stdlib.h>
#include <string.h>

#define MBUFS   1023u
#define PEERS   5u /* h0..h3, and the spine */
#define MTU     256u
#define PATCHES 6u

static const char conf[] =
    "mtu = 1024; link_defaults = { rate = \"400Gb/s\"; latency = \"300ns\"; };\n"
    "reduce = { groups = 2; slots = 12; window = 8; };\n"
    "leaf_spine = { leaves = 2; spines = 1; hosts_per_leaf = 3; };\n";

/* A peer's end of an edge, as known from the AN's messages. */
struct edge {
    uint32_t qpn, psn;
    uint64_t offset;
    uint32_t opseq;
};

static struct rte_mempool *pool;
static struct fabric *fab;
static struct an *an;
static struct endpoint ep;
static int64_t now;
static uint32_t xid;
static struct edge edges[PEERS];

static uint16_t node_of(const char *name)
{
    const struct fab_node *n = fabric_node(fab, name);

    check(n != NULL, name);
    return fabric_node_index(fab, n);
}

static void init(void)
{
    if (pool)
        return;
    test_eal_init();
    pool = test_pool(MBUFS);
    fab = fabric_load_string(conf, "fuzz.conf", NULL);
    check(fab != NULL, "the fabric of this test");
}

static uint32_t ip_of(unsigned peer)
{
    return peer == PEERS - 1 ? fab->nodes[node_of("spine0")].ip
                             : fab->nodes[fab->hosts[peer]].ip_of_port[0];
}

static int peer_of(uint32_t ip)
{
    for (unsigned i = 0; i < PEERS; i++)
        if (ip_of(i) == ip)
            return (int)i;
    return -1;
}

/* Handles the AN's answers: records grants, so that data can follow, and the xid of its own
 * JOIN. */
static void listen(struct rte_mbuf *m)
{
    struct roce_pkt k;
    struct agg_ctl c;
    int peer;

    check(roce_parse(m, &k) == ROCE_OK, "the AN sends what cannot be parsed");
    peer = peer_of(k.dst_ip);
    if (peer < 0 || k.opcode != ROCE_OP_UD_SEND_ONLY || k.len != sizeof(c))
        return;
    memcpy(&c, k.payload, sizeof(c));
    if ((c.type == AGG_JOIN_REPLY && c.status == RTE_BE16(AGG_OK)) || c.type == AGG_JOIN) {
        edges[peer] = (struct edge){.qpn = rte_be_to_cpu_32(c.qpn), .psn = 100u + (unsigned)peer};
        xid = rte_be_to_cpu_32(c.xid);
    }
}

static void drain(void)
{
    struct rte_mbuf *m[16];

    for (unsigned round = 0; round < 64 && ep.next(ep.ctx) <= now; round++)
        for (int q = 0; q < ENDPOINT_QUEUES; q++) {
            uint16_t n = ep.output(ep.ctx, q, m, 16, now);

            for (unsigned i = 0; i < n; i++) {
                listen(m[i]);
                rte_pktmbuf_free(m[i]);
            }
        }
}

static void give(struct roce_pkt *k, unsigned peer, const void *payload)
{
    struct rte_mbuf *m = frame_alloc(pool);

    if (!m)
        return;
    k->src_ip = ip_of(peer);
    k->dst_ip = fab->nodes[node_of("leaf0")].ip;
    roce_mac_of_ip(k->src_ip, k->src_mac);
    roce_mac_of_ip(k->dst_ip, k->dst_mac);
    k->ttl = 64, k->tos = 26 << 2, k->pkey = ROCE_DEFAULT_PKEY, k->udp_src = 50000;
    roce_build(m, k);
    memcpy(rte_pktmbuf_mtod_offset(m, uint8_t *, k->hdr_len), payload, k->len);
    roce_seal(m, k);
    check(ep.input(ep.ctx, &m, 1, now) == 1, "the AN takes every frame");
}

static void patch(uint8_t *p, size_t size, const uint8_t *data, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        p[data[2 * i] % size] = data[2 * i + 1];
}

/* Members 0, 1 and 2 at leaf0 alone; with member 3 the spine is above it. */
static void say(unsigned peer, uint8_t type, uint8_t group, const uint8_t *patches, unsigned n)
{
    struct roce_pkt k = {.opcode = ROCE_OP_UD_SEND_ONLY,
                         .dqpn = AGG_QPN,
                         .qkey = AGG_QKEY,
                         .sqpn = peer == PEERS - 1 ? AGG_QPN : 0x10001,
                         .len = sizeof(struct agg_ctl)};
    struct agg_ctl c = {.magic = RTE_BE32(AGG_MAGIC),
                        .version = AGG_VERSION,
                        .type = type,
                        .xid = rte_cpu_to_be_32(xid),
                        .mtu = RTE_BE16(MTU),
                        .group = rte_cpu_to_be_32(group & 3u),
                        .window = RTE_BE32(4),
                        .qpn = rte_cpu_to_be_32(0x10002),
                        .psn = rte_cpu_to_be_32(100 + peer),
                        .member = rte_cpu_to_be_32(peer % (PEERS - 1)),
                        .node = RTE_BE16(0xffff),
                        .ranks_per_host = RTE_BE16(1)};

    c.bits[0] = rte_cpu_to_be_64(group & 1 ? 0xf : 0x7);
    if (peer == PEERS - 1)
        c.node = rte_cpu_to_be_16(node_of("spine0"));
    patch((uint8_t *)&c, sizeof(c), patches, n);
    give(&k, peer, &c);
}

/* The next packet of an edge: one message each, or the first, middle or last of a longer one. */
static void data_packet(unsigned peer, uint8_t how, const uint8_t *patches, unsigned n)
{
    static const uint8_t opcodes[] = {ROCE_OP_RC_SEND_ONLY, ROCE_OP_RC_SEND_FIRST,
                                      ROCE_OP_RC_SEND_MIDDLE, ROCE_OP_RC_SEND_LAST};
    struct edge *e = &edges[peer];
    struct roce_pkt k = {.opcode = opcodes[how & 3], .dqpn = e->qpn, .psn = e->psn};
    uint8_t payload[MTU] = {0};
    struct agg_hdr h = {.version = AGG_VERSION,
                        .type = peer == PEERS - 1 ? AGG_RESULT : AGG_DATA,
                        .coll = AGG_ALLREDUCE,
                        .dtype = how >> 4 & 1,
                        .opseq = rte_cpu_to_be_32(e->opseq)};
    uint32_t total = (how & 3) == 0 ? how & 0xe0u : AGG_MSG_BYTES(MTU);

    h.msg_len = rte_cpu_to_be_32(total);
    h.total = rte_cpu_to_be_64(total);
    k.len = (how & 3) == 0 ? AGG_HDR_BYTES + total : MTU;
    if ((how & 3) < 2)
        memcpy(payload, &h, sizeof(h));
    patch(payload, AGG_HDR_BYTES, patches, n);
    if ((how & 3) == 0 || (how & 3) == 3)
        e->opseq++;
    e->psn = (e->psn + 1) & ROCE_PSN_MASK;
    give(&k, peer, payload);
}

static void record(const uint8_t *r, const uint8_t *patches, unsigned n)
{
    unsigned peer = (r[1] & 0x7f) % PEERS;

    switch (r[0] % 6) {
    case 0:
        say(peer, AGG_JOIN, r[2], patches, n);
        break;
    case 1:
        say(peer, (uint8_t)(1 + r[2] % 10), r[2] >> 6, patches, n);
        break;
    case 2:
    case 3:
        data_packet(peer, r[2], patches, n);
        break;
    case 4:
        now += PS_PER_US << (r[2] % 16);
        ep.tick(ep.ctx, now);
        break;
    default:
        an_peer_down(an, (uint16_t)(r[2] % fab->n_nodes), now);
    }
    if (r[1] & 0x80)
        drain();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct an_cfg cfg;

    init();
    cfg = (struct an_cfg){.fab = fab, .node = node_of("leaf0"), .pool = pool, .mbuf_budget = 150};
    check(an_create(&an, &cfg) == 0, "an_create");
    ep = an_endpoint(an);
    now = 0;
    xid = 1;
    memset(edges, 0, sizeof(edges));
    while (size >= 4) {
        unsigned n = data[3] % (PATCHES + 1);

        if (2 * n > size - 4)
            break;
        record(data, data + 4, n);
        check(an_counters(an)->groups <= 2 && an_counters(an)->slots_granted <= 12 &&
                  an_counters(an)->mbufs_promised <= 150,
              "more is granted than there is");
        data += 4 + 2 * n;
        size -= 4 + 2 * n;
    }
    drain();
    an_destroy(an);
    check(rte_mempool_avail_count(pool) == MBUFS, "a frame is missing");
    return 0;
}
