/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets and control messages to the protocols of a switch: two hosts have joined a job of SwitchML
 * and one of ATP at a leaf, and send, in their own names and in others', whatever the input says. What
 * comes out is addressed to hosts and switches of the fabric; no slot or frame is left at the end.
 *
 * Input: records { who, what, n, n bytes }.
 */
#include "protocols/host/registry.h"
#include "protocols/host/protocol_wire.h"
#include "roce/wire.h"
#include "switch/protocol/protocol_node.h"
#include "switch/reduce/join_check.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/eal.h"
#include "tests/support/sink_endpoint.h"

#include <rte_mempool.h>
#include <string.h>

#define MBUFS   8191u
#define RECORDS 256u
#define KEY     0x1234567890abcdefull

/* Of a record: a packet of the first or second job, with a target; a packet as it is; a control
 * message as the job's, changed by the bytes; PEER_DOWN; time. */
enum { FIRST, SECOND, TARGETED, RAW, CONTROL, DOWN, TIME, WHATS };

static struct rte_mempool *pool;
static struct fabric *fab;
static uint16_t leaf;
static struct protocol_node *node;
static struct endpoint ep;
static int64_t now;

static void init(void)
{
    if (pool)
        return;
    test_eal_init();
    pool = test_pool(MBUFS);
    fab = fabric_load("conf/leaf-spine-8.conf", NULL);
    check(fab != NULL, "the fabric of this test");
    while (strcmp(fab->nodes[leaf].name, "leaf0"))
        leaf++;
}

static void drain(void)
{
    struct rte_mbuf *m[32];
    struct roce_pkt k;
    uint16_t n;

    while ((n = ep.output(ep.ctx, ENDPOINT_DATA, m, 32, now)))
        for (uint16_t i = 0; i < n; i++) {
            check(roce_parse(m[i], &k) == ROCE_OK && roce_icrc_ok(m[i], &k), "a malformed frame");
            check(k.src_ip == fab->nodes[leaf].ip && k.sqpn == PROTO_QPN && k.qkey == PROTO_QKEY,
                  "a frame in another's name");
            rte_pktmbuf_free(m[i]);
        }
}

static uint32_t host_ip(unsigned h)
{
    return fab->nodes[fab->hosts[h]].ip_of_port[0];
}

static uint32_t qpn_of(unsigned job)
{
    return 0x010005u + job;
}

static void datagram(uint32_t ip, uint32_t sqpn, uint32_t dqpn, uint32_t qkey, const void *p,
                     uint32_t len)
{
    struct roce_pkt k = {.opcode = ROCE_OP_UD_SEND_ONLY,
                         .ttl = 64,
                         .pkey = ROCE_DEFAULT_PKEY,
                         .src_ip = ip,
                         .dst_ip = fab->nodes[leaf].ip,
                         .dqpn = dqpn,
                         .qkey = qkey,
                         .sqpn = sqpn,
                         .len = len};
    struct rte_mbuf *m = frame_alloc(pool);

    check(m != NULL, "the pool is empty");
    roce_build(m, &k);
    memcpy(rte_pktmbuf_mtod_offset(m, void *, k.hdr_len), p, len);
    roce_seal(m, &k);
    ep.input(ep.ctx, &m, 1, now);
    drain();
}

static const char *name_of(unsigned job)
{
    return job ? "atp" : "switchml";
}

static uint32_t tag_of(unsigned job)
{
    return proto_tag(9 + job, KEY, name_of(job), fab->trees[0].id, 0);
}

static struct agg_ctl control(unsigned job, unsigned rank, enum agg_type type)
{
    struct agg_ctl c = {.magic = RTE_BE32(PROTO_MAGIC),
                        .version = AGG_VERSION,
                        .type = (uint8_t)type,
                        .xid = RTE_BE32(1),
                        .tree = rte_cpu_to_be_16(fab->trees[0].id),
                        .mtu = rte_cpu_to_be_16((uint16_t)fab->mtu),
                        .group = rte_cpu_to_be_32(9 + job),
                        .window = RTE_BE32(2),
                        .key = RTE_BE64(KEY),
                        .qpn = rte_cpu_to_be_32(qpn_of(job)),
                        .psn = rte_cpu_to_be_32(rank),
                        .member = rte_cpu_to_be_32(rank),
                        .node = RTE_BE16(FAB_NONE),
                        .slot = rte_cpu_to_be_32(tag_of(job))};
    struct fab_members m = {.ranks_per_host = 1};

    fab_members_add(&m, 0);
    fab_members_add(&m, 1);
    check(!agg_members_write(&c, &m), "the list of two members");
    snprintf(c.name, sizeof(c.name), "%s", name_of(job));
    return c;
}

static void packet(unsigned job, bool target, unsigned from, const uint8_t *p, uint32_t n)
{
    uint8_t msg[16 + 8 + 256];
    struct proto_head h = {.magic = PROTO_DATA,
                           .flags = target ? PROTO_F_TARGET : 0,
                           .head_bytes = job ? 32 : 16,
                           .from = rte_cpu_to_be_16((uint16_t)from),
                           .child = rte_cpu_to_be_16((uint16_t)from),
                           .job = rte_cpu_to_be_32(9 + job),
                           .tag = rte_cpu_to_be_32(tag_of(job))};
    struct proto_target t = {rte_cpu_to_be_32(host_ip(5)), RTE_BE32(0x010006)};
    uint32_t at = sizeof(h);

    memcpy(msg, &h, sizeof(h));
    if (target)
        memcpy(msg + at, &t, sizeof(t)), at += sizeof(t);
    memcpy(msg + at, p, n);
    datagram(host_ip(from), qpn_of(job), PROTO_QPN, PROTO_QKEY, msg, at + n);
}

static void record(uint8_t who, uint8_t what, const uint8_t *p, uint32_t n)
{
    unsigned from = who % 3, job = who / 3 % 2;
    struct agg_ctl c;

    switch (what % WHATS) {
    case FIRST:
    case SECOND:
    case TARGETED:
        packet(what % WHATS == TARGETED ? job : what % WHATS, what % WHATS == TARGETED, from, p, n);
        break;
    case RAW:
        datagram(host_ip(from), qpn_of(job), PROTO_QPN, PROTO_QKEY, p, n);
        break;
    case CONTROL:
        c = control(job, from % 2, n ? p[0] : AGG_JOIN);
        for (uint32_t i = 2; i < n; i += 2)
            ((uint8_t *)&c)[p[i - 1] % sizeof(c)] ^= p[i];
        datagram(who & 64 ? fab->nodes[fab->trees[0].root].ip : host_ip(from),
                 who & 64 ? PROTO_QPN : qpn_of(job), PROTO_QPN, PROTO_QKEY, &c, sizeof(c));
        break;
    case DOWN:
        c = (struct agg_ctl){.magic = RTE_BE32(AGG_MAGIC),
                             .version = AGG_VERSION,
                             .type = AGG_PEER_DOWN,
                             .qpn = rte_cpu_to_be_32((1u + (n ? p[0] % 4 : 0)) << 16)};
        datagram(host_ip(from), AGG_NIC_QPN, AGG_QPN, AGG_QKEY, &c, sizeof(c));
        break;
    default:
        now += (int64_t)(1 + who) * PS_PER_MS << (n ? p[0] % 10 : 0);
        ep.tick(ep.ctx, now);
        drain();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct protocol_node_cfg cfg = {.behind = sink_endpoint(NULL)};
    unsigned records = 0;

    init();
    cfg.fab = fab;
    cfg.node = leaf;
    cfg.pool = pool;
    now = PS_PER_MS;
    check(!protocol_node_create(&node, &cfg), "out of memory");
    ep = protocol_node_endpoint(node);
    for (unsigned i = 0; i < 4; i++) {
        struct agg_ctl c = control(i / 2, i % 2, AGG_JOIN);

        datagram(host_ip(i % 2), qpn_of(i / 2), PROTO_QPN, PROTO_QKEY, &c, sizeof(c));
    }
    check(!protocol_node_idle(node), "two jobs have been joined");
    while (size >= 3 && records++ < RECORDS) {
        uint32_t n = data[2] < size - 3 ? data[2] : (uint32_t)(size - 3);

        record(data[0], data[1], data + 3, n);
        data += 3 + n;
        size -= 3 + n;
    }
    protocol_node_cut_off(node, now);
    drain();
    check(protocol_node_idle(node), "slots or jobs are left");
    protocol_node_destroy(node);
    check(!rte_mempool_in_use_count(pool), "frames are left");
    return 0;
}
