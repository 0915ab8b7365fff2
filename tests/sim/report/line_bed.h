/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A time line of links for tests, which hand frames to its tap: of 1250 bytes on a link, 25 ns at
 * 400 Gb/s, behind 300 ns of latency. Two leaves under a spine, a host each.
 */
#ifndef TRIB_TESTS_SIM_REPORT_LINE_BED_H
#define TRIB_TESTS_SIM_REPORT_LINE_BED_H

#include "roce/wire.h"
#include "sim/report/net_timeline.h"
#include "switch/queue/pfc.h"
#include "switch/reduce/an.h"
#include "switch/reduce/an_counters.h"
#include "tests/fabric/load.h"
#include "tests/support/eal.h"

#include <jansson.h>
#include <stdlib.h>

#define WIRE        1250u
#define LEN_OF_WIRE (WIRE - FRAME_LINK_OVERHEAD - ROCE_BASE_BYTES - ROCE_ICRC_BYTES)
#define ROOM        65536u
#define NRANKS      2u

enum { H0, H1, LEAF0, LEAF1, SPINE0, NODES };
enum { H0_LEAF0 = 0, LEAF0_H0 = 1, H1_LEAF1 = 2, LEAF0_SPINE0 = 4 };

static struct rte_mempool *pool;
static const uint16_t hosts[NRANKS] = {0, 1};

struct bed {
    struct fabric *f;
    struct world *w;
    struct timeline *t;
    struct net_timeline *n;
};

static inline int64_t now_ps(void *ctx)
{
    return world_now(((struct bed *)ctx)->w);
}

static inline void bed_up(struct bed *b)
{
    struct world_cfg wc = {.nranks = NRANKS, .host_of_rank = hosts, .pool = pool, .seed = 1};
    struct timeline_cfg tc = {.nranks = NRANKS, .host_of_rank = hosts, .now_ps = now_ps, .ctx = b};
    struct net_timeline_cfg nc = {.nranks = NRANKS, .host_of_rank = hosts};

    b->f = load_leaf_spine(2, 1, 1, 1, "");
    wc.fab = tc.fab = nc.fab = b->f;
    assert_int_equal(b->f->n_nodes, NODES);
    assert_string_equal(b->f->nodes[LEAF1].name, "leaf1");
    for (unsigned i = LEAF0; i < NODES; i++)
        b->f->nodes[i].cut_through = false;
    b->f->links[LEAF0_SPINE0 / 2].buffer_pkts = 4;
    b->f->links[LEAF0_SPINE0 / 2].ecn_bytes = b->f->links[LEAF0_SPINE0 / 2].ecn_max_bytes = 150;
    assert_int_equal(world_create(&b->w, &wc), 0);
    assert_int_equal(timeline_create(&b->t, &tc), 0);
    nc.t = b->t;
    assert_int_equal(net_timeline_create(&b->n, &nc), 0);
    assert_ptr_equal(net_timeline_ranks(b->n), b->t);
}

static inline void bed_down(struct bed *b)
{
    net_timeline_destroy(b->n);
    timeline_destroy(b->t);
    world_destroy(b->w);
    fabric_free(b->f);
}

static inline void go_to(struct bed *b, int64_t ps)
{
    while (world_step(b->w, ps))
        ;
    assert_int_equal(world_now(b->w), ps);
}

/* ---- frames ---- */

static inline uint32_t ip_of(const struct bed *b, unsigned node)
{
    const struct fab_node *n = &b->f->nodes[node];

    return n->ip_of_port ? n->ip_of_port[0] : n->ip;
}

static inline struct rte_mbuf *packet_of(uint32_t src_ip, uint32_t dst_ip, uint32_t dqpn,
                                         uint8_t tos)
{
    struct rte_mbuf *m = frame_alloc(pool);
    struct roce_pkt k = {.opcode = ROCE_OP_RC_SEND_ONLY,
                         .pkey = ROCE_DEFAULT_PKEY,
                         .ttl = 64,
                         .tos = tos,
                         .src_ip = src_ip,
                         .dst_ip = dst_ip,
                         .dqpn = dqpn,
                         .len = LEN_OF_WIRE};

    roce_build(m, &k);
    memset(rte_pktmbuf_append(m, LEN_OF_WIRE), 0, LEN_OF_WIRE);
    m->pkt_len -= LEN_OF_WIRE, m->data_len -= LEN_OF_WIRE;
    roce_seal(m, &k);
    assert_int_equal(frame_wire_bytes(m), WIRE);
    frame_meta(m)->in_port = NODE_NO_PORT;
    return m;
}

static inline struct rte_mbuf *packet(uint32_t src_ip, uint32_t dst_ip, uint32_t dqpn)
{
    return packet_of(src_ip, dst_ip, dqpn, 0);
}

/* That a queue marks where more waits than it should. */
static inline struct rte_mbuf *marked(const struct bed *b)
{
    return packet_of(ip_of(b, H0), ip_of(b, H1), 1, 2);
}

static inline void arrive(struct bed *b, unsigned dirlink, struct rte_mbuf *m, int64_t ps)
{
    net_timeline_frame(b->n, dirlink, m, ps);
    rte_pktmbuf_free(m);
}

/* Of the flow from one node to another. */
static inline void frame(struct bed *b, unsigned dirlink, unsigned from, unsigned to, int64_t ps)
{
    arrive(b, dirlink, packet(ip_of(b, from), ip_of(b, to), 1u << 16), ps);
}

/* Something that is not RoCE, 84 bytes on a link. */
static inline struct rte_mbuf *other(void)
{
    struct rte_mbuf *m = frame_alloc(pool);

    memset(rte_pktmbuf_append(m, FRAME_MIN_BYTES), 0, FRAME_MIN_BYTES);
    frame_meta(m)->in_port = NODE_NO_PORT; /* no port accounts for it */
    return m;
}

static inline void pause_frame(struct bed *b, unsigned dirlink, uint16_t quanta, int64_t ps)
{
    static const uint8_t mac[6] = {2};
    struct rte_mbuf *m = pfc_frame(pool, mac, quanta);

    frame_meta(m)->cls = FRAME_CONTROL;
    arrive(b, dirlink, m, ps);
}

/* ---- what is in the file ---- */

static inline void print_event(const json_t *j, FILE *out)
{
    char *args = json_dumps(json_object_get(j, "args"), JSON_COMPACT);
    const char *ph = json_string_value(json_object_get(j, "ph"));

    fprintf(out, "%s %lld.%lld %.6f", ph, json_integer_value(json_object_get(j, "pid")),
            json_integer_value(json_object_get(j, "tid")),
            json_number_value(json_object_get(j, "ts")));
    if (*ph == 'X')
        fprintf(out, "+%.6f", json_number_value(json_object_get(j, "dur")));
    fprintf(out, " %s %s\n", json_string_value(json_object_get(j, "name")), args);
    free(args);
}

/* The events of a category, a line each; NULL: the names. */
static inline const char *events(struct bed *b, const char *cat)
{
    static char text[ROOM], file[8 * ROOM];
    FILE *out = fmemopen(text, sizeof(text), "w"), *all = fmemopen(file, sizeof(file), "w");
    char *save = NULL;

    memset(text, 0, sizeof(text));
    memset(file, 0, sizeof(file));
    assert_int_equal(trace_events_copy_to(timeline_events(b->t), all), 0);
    fclose(all);
    for (char *s = strtok_r(file, "\n", &save); s; s = strtok_r(NULL, "\n", &save)) {
        json_t *j = json_loads(s, JSON_DISABLE_EOF_CHECK, NULL);
        const json_t *of = json_object_get(j, "cat");

        if (cat ? of && !strcmp(json_string_value(of), cat) : !of && !strstr(s, "sort_index"))
            print_event(j, out);
        json_decref(j);
    }
    fclose(out);
    return text;
}

/* ---- what it looks at ---- */

static inline struct roce_counters *counters(struct bed *b, unsigned rank)
{
    return (struct roce_counters *)(uintptr_t)rnic_counters(hca_rnic(world_hca(b->w, rank, 0)));
}

static inline struct an_counters *slots(struct bed *b, unsigned node)
{
    return (struct an_counters *)(uintptr_t)an_counters(net_an(world_net(b->w), (uint16_t)node));
}

static inline struct egress *queue(struct bed *b, unsigned node, uint16_t port)
{
    return net_egress(world_net(b->w), (uint16_t)node, port);
}

static inline void push(struct bed *b, unsigned node, uint16_t port, enum frame_class cls,
                        unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct rte_mbuf *m = other();

        frame_meta(m)->cls = (uint8_t)cls;
        assert_int_equal(egress_push(queue(b, node, port), m, world_now(b->w)), 0);
    }
}

/* Until a frame finds no room. */
static inline void refused(struct bed *b, unsigned node, uint16_t port, enum frame_class cls)
{
    struct rte_mbuf *m;

    do {
        m = other();
        frame_meta(m)->cls = (uint8_t)cls;
    } while (!egress_push(queue(b, node, port), m, world_now(b->w)));
    rte_pktmbuf_free(m);
}

#endif
