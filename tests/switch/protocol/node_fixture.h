/* SPDX-License-Identifier: BSD-3-Clause */
/* One switch with its protocols' node, a protocol that echoes, and the frames that come out. For the
 * tests of this folder, each of which is one program. */
#ifndef TRIB_TESTS_SWITCH_PROTOCOL_NODE_FIXTURE_H
#define TRIB_TESTS_SWITCH_PROTOCOL_NODE_FIXTURE_H

#include "protocols/host/registry.h"
#include "protocols/host/protocol_wire.h"
#include "roce/wire.h"
#include "switch/protocol/protocol_node.h"
#include "switch/reduce/join_check.h"
#include "tests/support/eal.h"
#include "tests/support/sink_endpoint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

/* ---- a protocol that sends what it gets to all children, and keeps a slot where asked to ---- */

static int echo_job_open(struct trib_switch *s, struct trib_job *job)
{
    job->self = s->api->array(s, job, "slots", 4, 64);
    return job->self ? 0 : -1;
}

static void echo_job_close(struct trib_switch *s, struct trib_job *job)
{
    (void)s, (void)job;
}

static struct trib_packet last;
static void echo_packet(struct trib_switch *s, struct trib_job *job, const struct trib_packet *p)
{
    last = *p;
    if (p->data_bytes && *(const char *)p->data == 'k')
        s->api->take(s, job, job->self, 1);
    if (p->data_bytes && *(const char *)p->data == 'b')
        s->api->at(s, job->self, 4);
    if (p->data_bytes && *(const char *)p->data == 'f')
        s->api->forward(s, job, NULL, 0, NULL, 0);
    else if (!job->root && p->from != TRIB_PARENT)
        s->api->send(s, job, TRIB_PARENT, p->head, p->head_bytes, p->data, p->data_bytes);
    else
        s->api->send(s, job, TRIB_CHILDREN, p->head, p->head_bytes, p->data, p->data_bytes);
}

static bool all(enum trib_type type, enum trib_sum op)
{
    (void)type, (void)op;
    return true;
}
static int begin(struct trib_rank *r, const struct trib_op *op)
{
    (void)r, (void)op;
    return 0;
}
static void got(struct trib_rank *r, const struct trib_packet *p)
{
    (void)r, (void)p;
}
static void room(struct trib_rank *r)
{
    (void)r;
}

static const struct trib_switch_half echo_switch = {.max_bytes = 64,
                                                    .max_ops = 16,
                                                    .job_open = echo_job_open,
                                                    .job_close = echo_job_close,
                                                    .packet = echo_packet};
static const struct trib_rank_half echo_rank = {.start = begin, .packet = got, .room = room};
static const struct trib_protocol echo = {.version = TRIB_PROTOCOL_VERSION,
                                          .name = "echo",
                                          .supports = all,
                                          .sw = &echo_switch,
                                          .rank = &echo_rank};

/* ---- fixture: one switch, and the frames that come out of it ---- */

#define SLOT_QPN 0x010005u
#define KEY      0x1234567890abcdefull

static struct fabric *fab;
static struct rte_mempool *pool;

struct fixture {
    struct protocol_node *p;
    struct endpoint ep;
    uint16_t node;
    int64_t now;
    unsigned behind; /* frames that reached the aggregation node */
    unsigned n;      /* frames that came out */
    struct out {
        uint32_t ip, qpn, len;
        uint8_t bytes[512];
    } out[64];
};

static uint16_t node_named(const char *name)
{
    for (uint16_t i = 0; i < fab->n_nodes; i++)
        if (!strcmp(fab->nodes[i].name, name))
            return i;
    fail_msg("no node %s", name);
    return 0;
}

static bool links_down;
static bool links_up(void *ctx, uint16_t node)
{
    (void)ctx, (void)node;
    return !links_down;
}

static struct fixture *at(const char *name)
{
    static struct fixture f;
    struct protocol_node_cfg cfg = {.fab = fab,
                                    .node = node_named(name),
                                    .pool = pool,
                                    .behind = sink_endpoint(&f.behind),
                                    .linked = links_up};

    memset(&f, 0, sizeof(f));
    f.node = cfg.node;
    f.now = PS_PER_MS;
    assert_int_equal(protocol_node_create(&f.p, &cfg), 0);
    f.ep = protocol_node_endpoint(f.p);
    return &f;
}

static void drain(struct fixture *f)
{
    struct rte_mbuf *m[8];
    uint16_t n;

    while ((n = f->ep.output(f->ep.ctx, ENDPOINT_DATA, m, 8, f->now)))
        for (uint16_t i = 0; i < n; i++) {
            struct out *o = &f->out[f->n++ % LEN(f->out)];
            struct roce_pkt k;

            assert_int_equal(roce_parse(m[i], &k), ROCE_OK);
            assert_true(roce_icrc_ok(m[i], &k));
            assert_int_equal(k.src_ip, fab->nodes[f->node].ip);
            assert_int_equal(k.sqpn, PROTO_QPN);
            *o = (struct out){.ip = k.dst_ip, .qpn = k.dqpn, .len = k.len};
            memcpy(o->bytes, k.payload, k.len < sizeof(o->bytes) ? k.len : sizeof(o->bytes));
            rte_pktmbuf_free(m[i]);
        }
}

static void datagram(struct fixture *f, uint32_t ip, uint32_t sqpn, uint32_t dqpn, uint32_t qkey,
                     const void *p, uint32_t len)
{
    struct roce_pkt k = {.opcode = ROCE_OP_UD_SEND_ONLY,
                         .ttl = 64,
                         .pkey = ROCE_DEFAULT_PKEY,
                         .udp_src = 0xc000,
                         .src_ip = ip,
                         .dst_ip = fab->nodes[f->node].ip,
                         .dqpn = dqpn,
                         .qkey = qkey,
                         .sqpn = sqpn,
                         .len = len};
    struct rte_mbuf *m = frame_alloc(pool);

    roce_mac_of_ip(k.src_ip, k.src_mac);
    roce_mac_of_ip(k.dst_ip, k.dst_mac);
    roce_build(m, &k);
    memcpy(rte_pktmbuf_mtod_offset(m, void *, k.hdr_len), p, len);
    roce_seal(m, &k);
    f->n = 0;
    assert_int_equal(f->ep.input(f->ep.ctx, &m, 1, f->now), 1);
    drain(f);
}

static uint32_t host_ip(unsigned h)
{
    return fab->nodes[fab->hosts[h]].ip_of_port[0];
}

/* A JOIN of the job of hosts first to first + n - 1, one rank each. */
static struct agg_ctl join_from(unsigned first, unsigned rank, unsigned n, uint64_t key)
{
    struct agg_ctl c = {.magic = RTE_BE32(PROTO_MAGIC),
                        .version = AGG_VERSION,
                        .type = AGG_JOIN,
                        .xid = rte_cpu_to_be_32(100 + rank),
                        .tree = rte_cpu_to_be_16(fab->trees[0].id),
                        .mtu = rte_cpu_to_be_16((uint16_t)fab->mtu),
                        .group = RTE_BE32(9),
                        .window = rte_cpu_to_be_32(n),
                        .key = rte_cpu_to_be_64(key),
                        .qpn = RTE_BE32(SLOT_QPN),
                        .psn = rte_cpu_to_be_32(rank),
                        .member = rte_cpu_to_be_32(first + rank),
                        .node = RTE_BE16(FAB_NONE),
                        .slot = rte_cpu_to_be_32(proto_tag(9, key, "echo", fab->trees[0].id, 0)),
                        .name = "echo"};
    struct fab_members m = {.ranks_per_host = 1};

    for (unsigned i = 0; i < n; i++)
        fab_members_add(&m, first + i);
    assert_int_equal(agg_members_write(&c, &m), 0);
    return c;
}

static struct agg_ctl join_of(unsigned rank, unsigned n, uint64_t key)
{
    return join_from(0, rank, n, key);
}

static void control(struct fixture *f, uint32_t ip, uint32_t qpn, const struct agg_ctl *c)
{
    datagram(f, ip, qpn, PROTO_QPN, PROTO_QKEY, c, sizeof(*c));
}

static void joins(struct fixture *f, unsigned from, unsigned to, unsigned n)
{
    for (unsigned r = from; r < to; r++) {
        struct agg_ctl c = join_of(r, n, KEY);

        control(f, host_ip(r), SLOT_QPN, &c);
    }
}

static const struct agg_ctl *answer(const struct fixture *f, unsigned i)
{
    assert_true(i < f->n);
    assert_int_equal(f->out[i].len, sizeof(struct agg_ctl));
    return (const struct agg_ctl *)(const void *)f->out[i].bytes;
}

static void expect_answer(const struct fixture *f, unsigned i, enum agg_type type,
                          enum agg_status status, const char *text)
{
    const struct agg_ctl *c = answer(f, i);

    assert_int_equal(c->type, type);
    assert_int_equal(rte_be_to_cpu_16(c->status), status);
    const char *found = type == AGG_JOIN ? c->name : c->text;

    if (!strstr(found, text))
        fail_msg("found \"%.64s\", expected \"%s\"", found, text);
}

static void data_from(struct fixture *f, uint32_t ip, uint32_t qpn, uint16_t from, uint16_t child,
                      uint64_t key, const char *text)
{
    struct {
        struct proto_head h;
        struct proto_target t;
        char head[4], data[60];
    } x = {.h = {.magic = PROTO_DATA,
                 .flags = PROTO_F_TARGET,
                 .head_bytes = 2,
                 .from = rte_cpu_to_be_16(from),
                 .child = rte_cpu_to_be_16(child),
                 .job = RTE_BE32(9),
                 .tag = rte_cpu_to_be_32(proto_tag(9, key, "echo", fab->trees[0].id, 0))},
           .t = {RTE_BE32(0x0a0a0a0a), RTE_BE32(0x050001)},
           .head = "hd"};

    snprintf(x.data, sizeof(x.data), "%s", text);
    memset(&last, 0, sizeof(last));
    datagram(f, ip, qpn, PROTO_QPN, PROTO_QKEY, &x, sizeof(x));
}

static void end(struct fixture *f)
{
    drain(f);
    assert_true(protocol_node_idle(f->p));
    protocol_node_destroy(f->p);
    assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

#endif
