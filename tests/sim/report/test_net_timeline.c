/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fabric's part of a time line, from frames that the test hands to its tap: of 1250 bytes on a link,
 * 25 ns at 400 Gb/s, behind 300 ns of latency. Two leaves under a spine, a host each.
 */
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

static int64_t now_ps(void *ctx)
{
    return world_now(((struct bed *)ctx)->w);
}

static void bed_up(struct bed *b)
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

static void bed_down(struct bed *b)
{
    net_timeline_destroy(b->n);
    timeline_destroy(b->t);
    world_destroy(b->w);
    fabric_free(b->f);
}

static void go_to(struct bed *b, int64_t ps)
{
    while (world_step(b->w, ps))
        ;
    assert_int_equal(world_now(b->w), ps);
}

/* ---- frames ---- */

static uint32_t ip_of(const struct bed *b, unsigned node)
{
    const struct fab_node *n = &b->f->nodes[node];

    return n->ip_of_port ? n->ip_of_port[0] : n->ip;
}

static struct rte_mbuf *packet_of(uint32_t src_ip, uint32_t dst_ip, uint32_t dqpn, uint8_t tos)
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
    return m;
}

static struct rte_mbuf *packet(uint32_t src_ip, uint32_t dst_ip, uint32_t dqpn)
{
    return packet_of(src_ip, dst_ip, dqpn, 0);
}

/* That a queue marks where more waits than it should. */
static struct rte_mbuf *marked(const struct bed *b)
{
    return packet_of(ip_of(b, H0), ip_of(b, H1), 1, 2);
}

static void arrive(struct bed *b, unsigned dirlink, struct rte_mbuf *m, int64_t ps)
{
    net_timeline_frame(b->n, dirlink, m, ps);
    rte_pktmbuf_free(m);
}

/* Of the flow from one node to another. */
static void frame(struct bed *b, unsigned dirlink, unsigned from, unsigned to, int64_t ps)
{
    arrive(b, dirlink, packet(ip_of(b, from), ip_of(b, to), 1u << 16), ps);
}

/* Something that is not RoCE, 84 bytes on a link. */
static struct rte_mbuf *other(void)
{
    struct rte_mbuf *m = frame_alloc(pool);

    memset(rte_pktmbuf_append(m, FRAME_MIN_BYTES), 0, FRAME_MIN_BYTES);
    return m;
}

static void pause_frame(struct bed *b, unsigned dirlink, uint16_t quanta, int64_t ps)
{
    static const uint8_t mac[6] = {2};
    struct rte_mbuf *m = pfc_frame(pool, mac, quanta);

    frame_meta(m)->cls = FRAME_CONTROL;
    arrive(b, dirlink, m, ps);
}

/* ---- what is in the file ---- */

static void print_event(const json_t *j, FILE *out)
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
static const char *events(struct bed *b, const char *cat)
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

/* ---- runs of frames ---- */

/* Frames follow each other within a nanosecond, or a new run begins. */
static void runs(void **state)
{
    struct bed b;

    (void)state;
    bed_up(&b);
    frame(&b, H0_LEAF0, H0, H1, 325000); /* nothing is recorded yet */
    net_timeline_begin(b.n, b.w, 0, 0);
    frame(&b, H0_LEAF0, H0, H1, 325000);
    frame(&b, H0_LEAF0, H0, H1, 350000);
    frame(&b, H0_LEAF0, H0, H1, 376000); /* 1 ns behind */
    frame(&b, H0_LEAF0, H0, H1, 402001); /* 1 ns and a bit */
    frame(&b, H0_LEAF0, H0, H1, 410000); /* earlier than it can be: it follows */
    frame(&b, LEAF0_H0, H1, H0, 700000);
    net_timeline_end(b.n);
    frame(&b, H0_LEAF0, H0, H1, 900000); /* nothing any more */
    net_timeline_end(b.n);
    assert_string_equal(events(&b, "link"),
                        "X 3.1 0.000000+0.076000 h0>h1 "
                        "{\"frames\":3,\"bytes\":3750,\"flows\":{\"h0>h1\":3750}}\n"
                        "X 3.1 0.077001+0.050000 h0>h1 "
                        "{\"frames\":2,\"bytes\":2500,\"flows\":{\"h0>h1\":2500}}\n"
                        "X 5.1 0.375000+0.025000 h1>h0 "
                        "{\"frames\":1,\"bytes\":1250,\"flows\":{\"h1>h0\":1250}}\n");
    assert_string_equal(events(&b, NULL),
                        "M 3.0 0.000000 process_name {\"name\":\"h0\"}\n"
                        "M 3.1 0.000000 thread_name {\"name\":\"port 0 to leaf0\"}\n"
                        "M 3.10001 0.000000 thread_name {\"name\":\"port 0 to "
                        "leaf0: pauses\"}\n"
                        "M 5.0 0.000000 process_name {\"name\":\"leaf0\"}\n"
                        "M 5.1 0.000000 thread_name {\"name\":\"port 0 to h0\"}\n"
                        "M 5.10001 0.000000 thread_name {\"name\":\"port 0 to h0: "
                        "pauses\"}\n");
    bed_down(&b);
}

/* What began before the operation is cut at its start; what ended by then is not there. */
static void runs_before_the_start(void **state)
{
    struct bed b;

    (void)state;
    bed_up(&b);
    go_to(&b, 40000);
    net_timeline_begin(b.n, b.w, 0, 0);
    frame(&b, H0_LEAF0, H0, H1, 340000);     /* from 15 to 40 */
    frame(&b, H1_LEAF1, H1, H0, 341000);     /* from 16 to 41 */
    frame(&b, LEAF0_SPINE0, H1, H0, 365000); /* from 40 */
    net_timeline_end(b.n);
    assert_string_equal(events(&b, "link"),
                        "X 4.1 0.000000+0.001000 h1>h0 "
                        "{\"frames\":1,\"bytes\":1250,\"flows\":{\"h1>h0\":1250}}\n"
                        "X 5.2 0.000000+0.025000 h1>h0 "
                        "{\"frames\":1,\"bytes\":1250,\"flows\":{\"h1>h0\":1250}}\n");
    bed_down(&b);
}

/* A node that cuts through has a frame with its first 64 bytes, of 1.28 ns. */
static void cut_through(void **state)
{
    struct bed b;

    (void)state;
    bed_up(&b);
    b.f->nodes[LEAF0].cut_through = true;
    b.f->nodes[H1].ports[0].rate_bps = 0;
    net_timeline_begin(b.n, b.w, 0, 0);
    frame(&b, H0_LEAF0, H0, H1, 301280);
    frame(&b, H1_LEAF1, H0, H1, 400000); /* no time on a link without a rate: no run */
    net_timeline_end(b.n);
    assert_string_equal(events(&b, "link"),
                        "X 3.1 0.000000+0.025000 h0>h1 "
                        "{\"frames\":1,\"bytes\":1250,\"flows\":{\"h0>h1\":1250}}\n");
    bed_down(&b);
}

/* ---- flows ---- */

static void flows(void **state)
{
    struct bed b;

    (void)state;
    bed_up(&b);
    net_timeline_begin(b.n, b.w, 0, 0);
    frame(&b, H0_LEAF0, H0, H1, 325000);
    arrive(&b, H0_LEAF0, other(), 326680); /* of 1.68 ns */
    arrive(&b, H0_LEAF0, other(), 501680);
    /* Queue pairs of the second process of a host are not of its rank; switches have none. */
    arrive(&b, H0_LEAF0, packet(ip_of(&b, H0), ip_of(&b, H1), 2u << 16), 725000);
    arrive(&b, H0_LEAF0, packet(ip_of(&b, H0), ip_of(&b, H1), 0x1ffff), 925000);
    arrive(&b, H0_LEAF0, packet(ip_of(&b, H0), ip_of(&b, H1), 2u << 16), 950000);
    arrive(&b, H0_LEAF0, packet(ip_of(&b, H0), ip_of(&b, LEAF1), 9u << 16), 1125000);
    arrive(&b, H0_LEAF0, packet(ip_of(&b, H0), 1, 1), 1325000);
    arrive(&b, H0_LEAF0, packet(1, ip_of(&b, H0), 1), 1525000);
    net_timeline_end(b.n);
    assert_string_equal(
        events(&b, "link"),
        "X 3.1 0.000000+0.026680 2 flows "
        "{\"frames\":2,\"bytes\":1334,\"flows\":{\"h0>h1\":1250,\"others\":84}}\n"
        "X 3.1 0.200000+0.001680 1 flows {\"frames\":1,\"bytes\":84,\"flows\":{\"others\":84}}\n"
        "X 3.1 0.400000+0.025000 h0>h1 "
        "{\"frames\":1,\"bytes\":1250,\"flows\":{\"h0>h1 (background)\":1250}}\n"
        "X 3.1 0.600000+0.050000 2 flows {\"frames\":2,\"bytes\":2500,\"flows\":{\"h0>h1\":1250,"
        "\"h0>h1 (background)\":1250}}\n"
        "X 3.1 0.800000+0.025000 h0>leaf1 "
        "{\"frames\":1,\"bytes\":1250,\"flows\":{\"h0>leaf1\":1250}}\n"
        "X 3.1 1.000000+0.025000 1 flows "
        "{\"frames\":1,\"bytes\":1250,\"flows\":{\"others\":1250}}\n"
        "X 3.1 1.200000+0.025000 1 flows "
        "{\"frames\":1,\"bytes\":1250,\"flows\":{\"others\":1250}}\n");
    bed_down(&b);
}

/* 24 flows are told apart; what is of another is of the others, also when one of the 24 comes again. */
static void many_flows(void **state)
{
    int64_t ps = 325000;
    const char *text;
    struct bed b;

    (void)state;
    bed_up(&b);
    net_timeline_begin(b.n, b.w, 0, 0);
    for (unsigned i = 0; i < NODES * NODES; i++, ps += 25000)
        frame(&b, H0_LEAF0, i / NODES, i % NODES, ps);
    frame(&b, H0_LEAF0, H0, H0, ps);
    frame(&b, H0_LEAF0, SPINE0, SPINE0, ps + 25000);
    net_timeline_end(b.n);
    text = events(&b, "link");
    assert_non_null(
        strstr(text, "X 3.1 0.000000+0.675000 25 flows {\"frames\":27,\"bytes\":33750,"));
    assert_non_null(strstr(text, "{\"h0>h0\":2500,\"h0>h1\":1250,"));
    assert_non_null(strstr(text, "\"spine0>leaf1\":1250,\"others\":2500}"));
    assert_null(strstr(text, "spine0>spine0"));
    bed_down(&b);
}

/* ---- pauses ---- */

/* 100 quanta are 51200 bits, 128 ns: the pause is of the other direction, and until the last frame that
 * extends it says so. */
static void pauses(void **state)
{
    struct rte_mbuf *m;
    struct bed b;

    (void)state;
    bed_up(&b);
    net_timeline_begin(b.n, b.w, 0, 0);
    pause_frame(&b, LEAF0_H0, 0, 50000); /* none is there to end */
    pause_frame(&b, LEAF0_H0, 100, 100000);
    pause_frame(&b, LEAF0_H0, 100, 200000);
    pause_frame(&b, LEAF0_H0, 0, 300000);
    pause_frame(&b, LEAF0_H0, 100, 400000);
    pause_frame(&b, LEAF0_H0, 100, 528000); /* when the one before is over */
    pause_frame(&b, LEAF0_H0, 100, 655999); /* just before */
    m = other();                            /* no pause, though of the class that has them */
    frame_meta(m)->cls = FRAME_CONTROL;
    arrive(&b, LEAF0_H0, m, 700000);
    m = pfc_frame(pool, (const uint8_t[6]){2}, 0); /* of another class */
    frame_meta(m)->cls = FRAME_LOSSY;
    arrive(&b, LEAF0_H0, m, 700000);
    pause_frame(&b, LEAF0_SPINE0 ^ 1, 200, 700000);
    go_to(&b, 783999);
    net_timeline_step(b.n); /* ends the first at its time, 783.999, and not the second */
    assert_string_equal(events(&b, "pause"),
                        "X 3.10001 0.100000+0.200000 paused {\"by\":\"leaf0\"}\n"
                        "X 3.10001 0.400000+0.128000 paused {\"by\":\"leaf0\"}\n"
                        "X 3.10001 0.528000+0.255999 paused {\"by\":\"leaf0\"}\n");
    go_to(&b, 800000);
    net_timeline_end(b.n);
    assert_non_null(
        strstr(events(&b, "pause"), "X 5.10002 0.700000+0.100000 paused {\"by\":\"spine0\"}\n"));
    bed_down(&b);
}

/* ---- samples ---- */

static struct roce_counters *counters(struct bed *b, unsigned rank)
{
    return (struct roce_counters *)(uintptr_t)rnic_counters(hca_rnic(world_hca(b->w, rank, 0)));
}

static struct an_counters *slots(struct bed *b, unsigned node)
{
    return (struct an_counters *)(uintptr_t)an_counters(net_an(world_net(b->w), (uint16_t)node));
}

static struct egress *queue(struct bed *b, unsigned node, uint16_t port)
{
    return net_egress(world_net(b->w), (uint16_t)node, port);
}

static void push(struct bed *b, unsigned node, uint16_t port, enum frame_class cls, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct rte_mbuf *m = other();

        frame_meta(m)->cls = (uint8_t)cls;
        assert_int_equal(egress_push(queue(b, node, port), m, world_now(b->w)), 0);
    }
}

/* Until a frame finds no room. */
static void refused(struct bed *b, unsigned node, uint16_t port, enum frame_class cls)
{
    struct rte_mbuf *m;

    do {
        m = other();
        frame_meta(m)->cls = (uint8_t)cls;
    } while (!egress_push(queue(b, node, port), m, world_now(b->w)));
    rte_pktmbuf_free(m);
}

/* At the next time that it looks. */
static void look(struct bed *b, int64_t ps)
{
    go_to(b, ps);
    net_timeline_step(b->n);
}

/* Each change since the last look, once; of a queue all classes together. */
static void samples(void **state)
{
    static const int64_t t = PS_PER_US;
    struct bed b;

    (void)state;
    bed_up(&b);
    counters(&b, 1)->retransmits = 100; /* before */
    counters(&b, 1)->timeouts = 7;
    go_to(&b, t);
    net_timeline_begin(b.n, b.w, 0, 0);
    net_timeline_step(b.n);
    assert_int_equal(trace_events_count(timeline_events(b.t)), 0);
    egress_pause(queue(&b, LEAF1, 1), FRAME_LOSSLESS, PS_PER_S, t);
    egress_pause(queue(&b, LEAF1, 1), FRAME_LOSSY, PS_PER_S, t);
    push(&b, LEAF1, 1, FRAME_LOSSLESS, 3);
    push(&b, LEAF1, 1, FRAME_LOSSY, 2);
    slots(&b, SPINE0)->slots_used = 9;
    slots(&b, LEAF0)->slots_used = 4;
    counters(&b, 1)->retransmits = 103;
    counters(&b, 0)->timeouts = 2;
    look(&b, t + 9999); /* too early: every 10 ns, however short it is expected to be */
    assert_int_equal(trace_events_count(timeline_events(b.t)), 0);
    look(&b, t + 10000);
    look(&b, t + 20000);
    assert_int_equal(trace_events_count(timeline_events(b.t)), 5);
    counters(&b, 1)->retransmits = 104;
    counters(&b, 1)->timeouts = 8;
    slots(&b, SPINE0)->slots_used = 2;
    push(&b, LEAF1, 1, FRAME_LOSSLESS, 1);
    look(&b, t + 30000);
    egress_pause(queue(&b, LEAF1, 1), FRAME_LOSSLESS, 0, t + 30000);
    go_to(&b, t + 35000);
    slots(&b, LEAF0)->slots_used = 1;
    net_timeline_end(b.n); /* looks, too */
    assert_string_equal(events(&b, "queue"), "C 6.0 0.010000 queue of port 1 {\"bytes\":300}\n"
                                             "C 6.0 0.030000 queue of port 1 {\"bytes\":360}\n"
                                             "C 6.0 0.035000 queue of port 1 {\"bytes\":180}\n");
    assert_string_equal(events(&b, "slots"), "C 5.0 0.010000 slots in use {\"slots\":4}\n"
                                             "C 7.0 0.010000 slots in use {\"slots\":9}\n"
                                             "C 7.0 0.030000 slots in use {\"slots\":2}\n"
                                             "C 5.0 0.035000 slots in use {\"slots\":1}\n");
    assert_string_equal(events(&b, "retransmit"),
                        "i 1.0 0.010000 packets sent again {\"packets\":0,\"timeouts\":2}\n"
                        "i 2.0 0.010000 packets sent again {\"packets\":3,\"timeouts\":0}\n"
                        "i 2.0 0.030000 packets sent again {\"packets\":1,\"timeouts\":1}\n");
    assert_non_null(strstr(events(&b, NULL), "{\"name\":\"port 1 to spine0\"}"));
    bed_down(&b);
}

/* A 400th of the time that the operation is expected to take. */
static void every(void **state)
{
    struct bed b;

    (void)state;
    bed_up(&b);
    net_timeline_begin(b.n, b.w, 0, 8 * PS_PER_US);
    for (int64_t ps = 0; ps < 20000; ps += 19999) {
        look(&b, ps);
        slots(&b, LEAF0)->slots_used++;
    }
    assert_int_equal(trace_events_count(timeline_events(b.t)), 0);
    look(&b, 20000);
    slots(&b, LEAF0)->slots_used++;
    look(&b, 39999);
    assert_string_equal(events(&b, "slots"), "C 5.0 0.020000 slots in use {\"slots\":2}\n");
    slots(&b, LEAF0)->slots_used = 0;
    bed_down(&b);
}

static void drops(void **state)
{
    static const struct egress_faults loss = {.loss = 1}, corrupt = {.corrupt = 1}, none;
    struct egress *q;
    struct bed b;

    (void)state;
    bed_up(&b);
    q = queue(&b, LEAF0, 1);
    net_timeline_begin(b.n, b.w, 0, 0);
    net_timeline_step(b.n);
    egress_set_faults(q, &loss);
    push(&b, LEAF0, 1, FRAME_LOSSLESS, 2);
    look(&b, 10000);
    egress_set_faults(q, &corrupt);
    push(&b, LEAF0, 1, FRAME_LOSSLESS, 1);
    look(&b, 20000);
    look(&b, 30000);
    egress_set_faults(q, &none);
    egress_set_down(q, true, 30000);
    push(&b, LEAF0, 1, FRAME_LOSSLESS, 3);
    look(&b, 40000);
    egress_set_down(q, false, 40000);
    egress_discard(q, true, 40000);
    refused(&b, LEAF0, 1, FRAME_LOSSLESS);
    look(&b, 50000);
    egress_discard(q, false, 50000);
    egress_pause(q, FRAME_LOSSY, PS_PER_S, 50000);
    refused(&b, LEAF0, 1, FRAME_LOSSY);
    look(&b, 60000);
    egress_set_down(q, true, 60000);
    go_to(&b, 65000);
    net_timeline_end(b.n);
    assert_string_equal(
        events(&b, "drop"),
        "i 5.2 0.010000 frames lost {\"lost\":2,\"corrupted\":0,\"queue_full\":0,\"link_down\":0}\n"
        "i 5.2 0.020000 frames lost {\"lost\":0,\"corrupted\":1,\"queue_full\":0,\"link_down\":0}\n"
        "i 5.2 0.040000 frames lost {\"lost\":0,\"corrupted\":0,\"queue_full\":0,\"link_down\":3}\n"
        "i 5.2 0.050000 frames lost {\"lost\":0,\"corrupted\":0,\"queue_full\":0,\"link_down\":1}\n"
        "i 5.2 0.060000 frames lost {\"lost\":0,\"corrupted\":0,\"queue_full\":1,\"link_down\":0}\n"
        "i 5.2 0.065000 frames lost "
        "{\"lost\":0,\"corrupted\":0,\"queue_full\":0,\"link_down\":4}\n");
    bed_down(&b);
}

/* With as many events as there may be nothing is added; time goes on. */
static void no_more_events_than_there_may_be(void **state)
{
    FILE *lines = tmpfile();
    struct bed b;

    (void)state;
    bed_up(&b);
    net_timeline_begin(b.n, b.w, 0, 0);
    for (uint64_t i = 2; i < NET_TIMELINE_EVENTS; i++) /* lines are one more */
        fputc('\n', lines);
    assert_int_equal(trace_events_append(timeline_events(b.t), lines), 0);
    assert_int_equal(trace_events_count(timeline_events(b.t)), NET_TIMELINE_EVENTS - 1);
    frame(&b, H0_LEAF0, H0, H1, 325000);
    slots(&b, LEAF0)->slots_used = 4;
    net_timeline_step(b.n);
    assert_int_equal(trace_events_count(timeline_events(b.t)), NET_TIMELINE_EVENTS);
    slots(&b, LEAF0)->slots_used = 5;
    look(&b, PS_PER_US);
    assert_int_equal(trace_events_count(timeline_events(b.t)), NET_TIMELINE_EVENTS);
    slots(&b, LEAF0)->slots_used = 4;
    frame(&b, H0_LEAF0, H0, H1, 725000); /* not seen: it would begin a run */
    net_timeline_end(b.n);
    assert_int_equal(trace_events_count(timeline_events(b.t)), NET_TIMELINE_EVENTS + 1);
    slots(&b, LEAF0)->slots_used = 0;
    fclose(lines);
    bed_down(&b);
}

/* ---- what is said of links, switches and ranks ---- */

static void print_link(const json_t *j, FILE *out)
{
    const char *link, *from, *to;
    json_int_t buffer, frames, bytes, peak, marks, paused_n, lost, corrupted, full, down;
    int pid, tid, tier[2], inside;
    double rate, latency, busy, paused;
    json_t *all;
    char *text;

    assert_int_equal(
        json_unpack((json_t *)(uintptr_t)j,
                    "{s:s, s:s, s:s, s:i, s:i, s:[i, i !], s:b, s:f, s:f, s:I, s:I, s:I, s:f, s:I, "
                    "s:I, s:I, s:f, s:I, s:I, s:I, s:I, s:o !}",
                    "link", &link, "from", &from, "to", &to, "pid", &pid, "tid", &tid, "tiers",
                    &tier[0], &tier[1], "in_node", &inside, "rate_Gbps", &rate, "latency_us",
                    &latency, "buffer_bytes", &buffer, "frames", &frames, "bytes", &bytes,
                    "busy_us", &busy, "queue_peak_bytes", &peak, "ecn_marks", &marks, "pauses",
                    &paused_n, "paused_us", &paused, "lost", &lost, "corrupted", &corrupted,
                    "queue_full", &full, "link_down", &down, "flows", &all),
        0);
    text = json_dumps(all, JSON_COMPACT);
    fprintf(out, "%s %s>%s %d.%d %d-%d%s %g Gb/s %g us %lld B\n", link, from, to, pid, tid, tier[0],
            tier[1], inside ? " in node" : "", rate, latency, buffer);
    fprintf(
        out,
        "%lld %lld %.5f us peak %lld marks %lld paused %lld %.3f us lost %lld %lld %lld %lld %s\n",
        frames, bytes, busy, peak, marks, paused_n, paused, lost, corrupted, full, down, text);
    free(text);
}

static const char *link_text(struct bed *b, unsigned dirlink)
{
    static char text[ROOM];
    json_t *a = net_timeline_links(b->n);
    FILE *out = fmemopen(text, sizeof(text), "w");

    assert_int_equal(json_array_size(a), 2u * b->f->n_links);
    memset(text, 0, sizeof(text));
    print_link(json_array_get(a, dirlink), out);
    fclose(out);
    json_decref(a);
    return text;
}

/* Everything happens before the operation, and again within it. */
static void happen(struct bed *b)
{
    static const struct egress_faults loss = {.loss = 1}, corrupt = {.corrupt = 1}, none;
    struct egress *q = queue(b, LEAF0, 1);
    int64_t t = world_now(b->w);

    egress_set_faults(q, &loss);
    push(b, LEAF0, 1, FRAME_LOSSLESS, 2);
    go_to(b, t += 20000);
    egress_set_faults(q, &corrupt);
    push(b, LEAF0, 1, FRAME_LOSSLESS, 1);
    go_to(b, t += 20000);
    egress_set_faults(q, &none);
    egress_pause(q, FRAME_LOSSLESS, t + 5000, t);
    push(b, LEAF0, 1, FRAME_LOSSLESS, 3);
    assert_int_equal(egress_push(q, marked(b), t), 0);
    go_to(b, t += 1000);
    net_timeline_step(b->n);
    go_to(b, t += 20000);
    egress_discard(q, true, t);
    refused(b, LEAF0, 1, FRAME_LOSSLESS);
    egress_discard(q, false, t);
    egress_set_down(q, true, t);
    push(b, LEAF0, 1, FRAME_LOSSLESS, 2);
    go_to(b, t += 40000);
    egress_set_down(q, false, t);
    net_node(world_net(b->w), LEAF0)->cnt[1].pauses_received += 6;
}

static void what_an_operation_did(void **state)
{
    json_t *switches, *sw;
    struct bed b;

    (void)state;
    bed_up(&b);
    b.f->links[2].buffer_bytes = 12345;
    b.f->nodes[SPINE0].reduce.on = false;
    net_timeline_begin(b.n, b.w, 0, 0);
    happen(&b);
    slots(&b, LEAF0)->slots_used = 77;
    frame(&b, LEAF0_SPINE0, H1, H0, 325000);
    go_to(&b, PS_PER_US);
    net_timeline_step(b.n);
    slots(&b, LEAF0)->slots_used = 0;
    net_timeline_end(b.n);

    net_timeline_begin(b.n, b.w, 0, 0);
    happen(&b);
    slots(&b, LEAF1)->slots_used = 5;
    frame(&b, LEAF0_SPINE0, H0, H1, 1325000);
    arrive(&b, LEAF0_SPINE0, packet(ip_of(&b, H0), ip_of(&b, H1), 2u << 16), 1350000);
    frame(&b, LEAF0_SPINE0, H0, H1, 1375000);
    go_to(&b, 1500000);
    net_timeline_step(b.n);
    slots(&b, LEAF1)->slots_used = 3;
    net_timeline_end(b.n);
    assert_string_equal(link_text(&b, LEAF0_SPINE0),
                        "leaf0:1-spine0:0 leaf0>spine0 5.2 1-2 400 Gb/s 0.3 us 12345 B\n"
                        "7 1754 0.03508 us peak 1406 marks 1 paused 6 0.005 us lost 2 1 0 3 "
                        "[{\"from\":\"h0\",\"to\":\"h1\",\"background\":false,\"bytes\":2500},"
                        "{\"from\":\"h0\",\"to\":\"h1\",\"background\":true,\"bytes\":1250}]\n");
    switches = net_timeline_switches(b.n);
    assert_int_equal(json_array_size(switches), 3);
    for (unsigned i = 0; i < 3; i++) {
        static const int peak[] = {0, 5, 0};
        static const char *const name[] = {"leaf0", "leaf1", "spine0"};
        const char *of;
        int reduces, pid;
        json_int_t slots_peak;

        sw = json_array_get(switches, i);
        assert_int_equal(json_unpack(sw, "{s:s, s:i, s:b, s:I !}", "name", &of, "pid", &pid,
                                     "reduces", &reduces, "slots_peak", &slots_peak),
                         0);
        assert_string_equal(of, name[i]);
        assert_int_equal(pid, 5 + i);
        assert_int_equal(reduces, i < 2);
        assert_int_equal(slots_peak, peak[i]);
    }
    json_decref(switches);
    slots(&b, LEAF1)->slots_used = 0;
    bed_down(&b);
}

/* Links within a node of GPUs say so. */
static void links_within_a_node(void **state)
{
    struct bed b;

    (void)state;
    bed_up(&b);
    b.f->nodes[H0].domain = b.f->nodes[LEAF0].domain = 0;
    b.f->nodes[H1].domain = 1;
    net_timeline_begin(b.n, b.w, 0, 0);
    assert_non_null(strstr(link_text(&b, H0_LEAF0), " in node"));
    assert_null(strstr(link_text(&b, H1_LEAF1), " in node"));
    assert_null(strstr(link_text(&b, LEAF0_SPINE0), " in node"));
    b.f->nodes[LEAF1].domain = 0;
    assert_null(strstr(link_text(&b, H1_LEAF1), " in node"));
    bed_down(&b);
}

/* A later operation: it begins when the first rank does, with what the ranks had counted by then. */
static void later_operations(void **state)
{
    struct roce_counters c = {.retransmits = 1,
                              .timeouts = 20,
                              .rnr_naks_received = 300,
                              .seq_naks_received = 4000,
                              .duplicates = 50000,
                              .icrc_errors = 600000,
                              .rate_cuts = 7000000};
    struct row r = {.coll = COLL_ALLREDUCE};
    json_t *about, *rank;
    char *text;
    struct bed b;

    (void)state;
    bed_up(&b);
    *counters(&b, 0) = c;
    net_timeline_begin(b.n, b.w, 1, 0);
    net_timeline_step(b.n);
    frame(&b, H0_LEAF0, H0, H1, 325000);
    counters(&b, 0)->retransmits = 5;
    go_to(&b, PS_PER_US);
    timeline_begin_at(b.t, PS_PER_US);
    *counters(&b, 1) = c;
    net_timeline_step(b.n);
    counters(&b, 1)->retransmits = 3 * c.retransmits;
    counters(&b, 1)->timeouts = 3 * c.timeouts;
    counters(&b, 1)->rnr_naks_received = 3 * c.rnr_naks_received;
    counters(&b, 1)->seq_naks_received = 3 * c.seq_naks_received;
    counters(&b, 1)->duplicates = 3 * c.duplicates;
    counters(&b, 1)->icrc_errors = 3 * c.icrc_errors;
    counters(&b, 1)->rate_cuts = 3 * c.rate_cuts;
    frame(&b, H0_LEAF0, H0, H1, 1325000);
    net_timeline_end(b.n);
    assert_string_equal(events(&b, "link"),
                        "X 3.1 0.000000+0.025000 h0>h1 "
                        "{\"frames\":1,\"bytes\":1250,\"flows\":{\"h0>h1\":1250}}\n");
    about = timeline_about(b.t, &r, OUT_OF_PLACE);
    rank = json_array_get(json_object_get(about, "ranks"), 0);
    assert_int_equal(json_integer_value(json_object_get(rank, "retransmits")), 0);
    assert_int_equal(json_integer_value(json_object_get(rank, "rate_cuts")), 0);
    rank = json_array_get(json_object_get(about, "ranks"), 1);
    text = json_dumps(rank, JSON_COMPACT);
    assert_non_null(strstr(text,
                           "\"retransmits\":2,\"timeouts\":40,\"rnr_naks\":600,\"seq_naks\":8000,"
                           "\"duplicates\":100000,\"icrc_errors\":1200000,\"rate_cuts\":14000000"));
    free(text);
    json_decref(about);
    bed_down(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs),
        cmocka_unit_test(runs_before_the_start),
        cmocka_unit_test(cut_through),
        cmocka_unit_test(flows),
        cmocka_unit_test(many_flows),
        cmocka_unit_test(pauses),
        cmocka_unit_test(samples),
        cmocka_unit_test(every),
        cmocka_unit_test(drops),
        cmocka_unit_test(no_more_events_than_there_may_be),
        cmocka_unit_test(what_an_operation_did),
        cmocka_unit_test(links_within_a_node),
        cmocka_unit_test(later_operations),
    };

    test_eal_init();
    pool = test_pool(8192);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
