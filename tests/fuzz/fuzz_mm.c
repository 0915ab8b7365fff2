/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Multimem against arbitrary requests of members: control messages, READs and WRITEs with fields
 * patched at will. Records: kind, peer, argument, number of patches, then that many (offset, byte).
 * Nothing may be granted beyond the quotas, and nothing may be left when the switch is destroyed.
 */
#include "aggregation/mm_proto.h"
#include "roce/wire.h"
#include "switch/reduce/an.h"
#include "tests/support/eal.h"

#include <rte_mempool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MBUFS   1024u
#define MTU     256u
#define PEERS   3u
#define PATCHES 8u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char conf[] = "mtu = 256; single_switch = { hosts = 3; host_link = { rate = "
                           "\"100Gb/s\"; latency = \"100ns\"; }; };";
static struct fabric *fab;
static struct rte_mempool *pool;
static struct an *an;
static struct endpoint ep;
static int64_t now;
static struct {
    uint32_t qpn, rkey, psn;
} edges[PEERS];

static void check(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "fuzz_mm: %s\n", what);
    abort();
}

static uint32_t ip_of(unsigned peer)
{
    return fab->nodes[fab->hosts[peer]].ip_of_port[0];
}

static void give(struct roce_pkt *k, unsigned peer, const void *payload)
{
    struct rte_mbuf *m = frame_alloc(pool);

    if (!m)
        return;
    k->src_ip = ip_of(peer);
    k->dst_ip = fab->nodes[fab->switches[0]].ip;
    roce_mac_of_ip(k->src_ip, k->src_mac);
    roce_mac_of_ip(k->dst_ip, k->dst_mac);
    k->ttl = 64, k->tos = 26 << 2, k->pkey = ROCE_DEFAULT_PKEY, k->udp_src = 50000;
    roce_build(m, k);
    memcpy(rte_pktmbuf_mtod_offset(m, uint8_t *, k->hdr_len), payload, k->len);
    roce_seal(m, k);
    check(ep.input(ep.ctx, &m, 1, now) == 1, "every frame is taken");
}

/* Records grants, and answers the switch's requests to members' memory by acknowledgements. */
static void listen(struct rte_mbuf *m)
{
    static const uint8_t zeros[MTU];
    struct roce_pkt k, r;
    struct mm_ctl c;

    check(roce_parse(m, &k) == ROCE_OK, "the switch sends what cannot be parsed");
    for (unsigned i = 0; i < PEERS; i++) {
        if (ip_of(i) != k.dst_ip)
            continue;
        if (k.opcode == ROCE_OP_UD_SEND_ONLY) {
            memcpy(&c, k.payload, sizeof(c));
            if (c.type == AGG_MM_BIND_REPLY && !c.status) {
                edges[i].qpn = rte_be_to_cpu_32(c.qpn);
                edges[i].rkey = rte_be_to_cpu_32(c.rkey);
                edges[i].psn = 100 + i;
            }
        } else if (k.opcode == ROCE_OP_RC_READ_REQUEST && k.dma_len <= MTU) {
            r = (struct roce_pkt){.opcode = ROCE_OP_RC_READ_RESPONSE_ONLY,
                                  .dqpn = edges[i].qpn,
                                  .psn = k.psn,
                                  .len = k.dma_len};
            give(&r, i, zeros);
        } else if (k.ack_req) {
            r = (struct roce_pkt){.opcode = ROCE_OP_RC_ACKNOWLEDGE,
                                  .syndrome = AETH_ACK | AETH_NO_CREDITS,
                                  .dqpn = edges[i].qpn,
                                  .psn = k.psn};
            give(&r, i, zeros);
        }
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

static void patch(void *p, size_t size, const uint8_t *data, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        ((uint8_t *)p)[data[2 * i] % size] = data[2 * i + 1];
}

static void say(unsigned peer, uint8_t type, const uint8_t *patches, unsigned n)
{
    struct roce_pkt k = {.opcode = ROCE_OP_UD_SEND_ONLY,
                         .dqpn = AGG_QPN,
                         .qkey = AGG_QKEY,
                         .sqpn = 0x10001,
                         .len = sizeof(struct mm_ctl)};
    struct mm_ctl c = {.magic = RTE_BE32(AGG_MAGIC),
                       .version = AGG_VERSION,
                       .type = type,
                       .members = RTE_BE16(PEERS),
                       .member = rte_cpu_to_be_16((uint16_t)peer),
                       .mtu = RTE_BE16(MTU),
                       .qpn = RTE_BE32(0x10002),
                       .psn = rte_cpu_to_be_32(100 + peer),
                       .length = RTE_BE64(65536),
                       .reads = RTE_BE32(16)};

    patch(&c, sizeof(c), patches, n);
    give(&k, peer, &c);
}

/* READ or WRITE of up to 255 bytes or, `how` says so, of many slices. */
static void request(unsigned peer, uint8_t how, const uint8_t *patches, unsigned n)
{
    static const uint8_t zeros[MTU];
    struct {
        uint64_t va;
        uint32_t rkey, len;
    } a = {MM_BASE | (uint64_t)DT_UINT8 << 40, edges[peer].rkey, how & 0xfcu};
    struct roce_pkt k = {.dqpn = edges[peer].qpn, .psn = edges[peer].psn, .ack_req = true};

    if (how & 2)
        a.len <<= 8;
    patch(&a, sizeof(a), patches, n);
    k.va = a.va, k.rkey = a.rkey, k.dma_len = a.len;
    k.opcode = how & 1 ? ROCE_OP_RC_READ_REQUEST : ROCE_OP_RC_WRITE_ONLY;
    edges[peer].psn++;
    if (how & 1)
        edges[peer].psn += a.len ? (a.len - 1) / MTU : 0;
    else
        k.len = RTE_MIN(a.len, MTU);
    edges[peer].psn &= ROCE_PSN_MASK;
    give(&k, peer, zeros);
}

static void record(const uint8_t *r, const uint8_t *patches, unsigned n)
{
    unsigned peer = (r[1] & 0x7f) % PEERS;

    switch (r[0] % 6) {
    case 0:
        for (unsigned i = 0; i < PEERS; i++)
            say(i, r[2] & 1 ? AGG_MM_READY : AGG_MM_BIND, patches, n);
        break;
    case 1:
        say(peer, (uint8_t)(1 + r[2] % AGG_MM_MOVE_REPLY), patches, n);
        break;
    case 2:
    case 3:
        request(peer, r[2], patches, n);
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

    if (!pool) {
        test_eal_init();
        pool = test_pool(MBUFS);
        fab = fabric_load_string(conf, "fuzz.conf", NULL);
        check(fab != NULL, "the fabric of this test");
    }
    cfg = (struct an_cfg){.fab = fab,
                          .node = fab->switches[0],
                          .pool = pool,
                          .mbuf_budget = 20000,
                          .mm = {.on = true, .max_groups = 2, .max_bytes = 6 << 20}};
    check(an_create(&an, &cfg) == 0, "an_create");
    ep = an_endpoint(an);
    now = 0;
    memset(edges, 0, sizeof(edges));
    while (size >= 4) {
        const struct mm_counters *c = mm_counters(an_mm(an));
        unsigned n = data[3] % (PATCHES + 1);

        if (2 * n > size - 4)
            break;
        record(data, data + 4, n);
        check(c->mm_groups <= 2 && c->mm_bytes <= 6 << 20 && c->mm_mbufs <= 20000,
              "more is granted than there is");
        data += 4 + 2 * n;
        size -= 4 + 2 * n;
    }
    drain();
    an_destroy(an);
    check(rte_mempool_avail_count(pool) == MBUFS, "a frame is missing");
    return 0;
}
