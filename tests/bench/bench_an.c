/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An aggregation node end to end, beside forwarding the same frames through the same switch: a net
 * of one switch, as trib-switch runs it, with eight hosts that are not in it. Frames of DATA, ACKs
 * and credits come from members that stand in for the hosts, 32 a port and turn, and everything
 * that goes out goes back to them; their own work is not in the time. Nothing is lost and nothing
 * waits: what is measured is what the switch's thread does for a frame, the port's copies in and
 * out (as a memif's) included or not. The median of the turns in which every host sent its 32
 * frames: others on the machine only ever lengthen some.
 *
 * One line a row, of fields between tabs: name, GB/s of input payload, GB/s of the reference.
 */
#include "switch/net/net.h"
#include "tests/support/agg_fixture.h"
#include "tests/support/eal.h"
#include "tests/support/switch_fixture.h"

#include <rte_memcpy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHILDREN 8u
#define BURST    32u
#define MTU      4096u
#define RING     2048u
#define TURNS    4096u
#define TURN_PS  (20 * PS_PER_US)
#define CONF                                                                                       \
    "link_defaults = { rate = \"400Gb/s\"; latency = \"300ns\"; };\n"                              \
    "reduce = { }; mtu = 4096; single_switch = { hosts = 8; };\n"

/* Frames between the switch and the hosts. */
struct ring {
    unsigned n;
    struct {
        uint16_t port;
        uint16_t len;
    } at[RING];
    uint8_t (*bytes)[FRAME_ROOM];
    struct rte_mbuf *m[RING]; /* copied already, or to be copied later */
};

/* How long turns were. */
struct times {
    unsigned n;
    double s[TURNS];
};

struct bench {
    struct agg_fixture fx; /* what members need of one */
    struct net *net;
    uint16_t sw, port_of[CHILDREN];
    struct ring in, out;
    bool copies;         /* are in the time */
    struct times *times; /* of what is being done; NULL: not looked at */
    uint32_t opseq;
};

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- ports ---- */

static struct rte_mbuf *copy_in(struct bench *b, unsigned i)
{
    struct rte_mbuf *m = frame_alloc(b->fx.pool);

    if (!m)
        abort();
    rte_memcpy(rte_pktmbuf_append(m, b->in.at[i].len), b->in.bytes[i], b->in.at[i].len);
    return m;
}

static void copy_out(struct ring *r, unsigned i, struct rte_mbuf *m)
{
    uint8_t *p = r->bytes[i];

    for (struct rte_mbuf *s = m; s; s = s->next) {
        rte_memcpy(p, rte_pktmbuf_mtod(s, void *), s->data_len);
        p += s->data_len;
    }
    rte_pktmbuf_free(m);
}

static void deliver(void *ctx, uint16_t node, uint16_t port, struct rte_mbuf **m, uint16_t n,
                    int64_t due_ps)
{
    struct bench *b = ctx;
    struct ring *r = &b->out;

    (void)node, (void)due_ps;
    for (uint16_t i = 0; i < n; i++) {
        if (r->n == RING)
            abort();
        r->at[r->n].port = port;
        r->at[r->n].len = (uint16_t)m[i]->pkt_len;
        r->m[r->n] = m[i];
        if (b->copies)
            copy_out(r, r->n, m[i]);
        r->n++;
    }
}

/* A frame of a member, flat. */
static void put(struct ring *r, uint16_t port, struct rte_mbuf *m)
{
    if (r->n == RING || m->pkt_len > FRAME_ROOM)
        abort();
    r->at[r->n].port = port;
    r->at[r->n].len = (uint16_t)m->pkt_len;
    copy_out(r, r->n++, m);
}

/* ---- the switch's turn: all frames of the ring, burst by burst, and what becomes of them ---- */

static void inputs(struct bench *b)
{
    struct rte_mbuf *m[BURST];

    for (unsigned i = 0; i < b->in.n;) {
        uint16_t port = b->in.at[i].port, n = 0;

        for (; i < b->in.n && n < BURST && b->in.at[i].port == port; i++)
            m[n++] = b->copies ? copy_in(b, i) : b->in.m[i];
        net_input(b->net, b->sw, port, m, n, b->fx.now);
    }
}

/* Evicts the hosts' work from the core's own caches, as if the hosts ran on other cores. */
static void cool(void)
{
    static uint8_t other[4 << 20];

    for (size_t i = 0; i < sizeof(other); i += 64)
        other[i]++;
    __asm__ volatile("" : : "r"(other) : "memory");
}

static bool full(const struct ring *r)
{
    unsigned n = 0;

    for (unsigned i = 0; i < r->n; i++)
        n += r->at[i].len >= MTU;
    return n == CHILDREN * BURST;
}

static void turn(struct bench *b)
{
    int64_t until = b->fx.now + TURN_PS, next;
    double start;

    b->out.n = 0;
    for (unsigned i = 0; i < b->in.n && !b->copies; i++)
        b->in.m[i] = copy_in(b, i);
    cool();
    start = seconds();
    inputs(b);
    while ((next = net_next(b->net)) <= until)
        net_advance(b->net, next);
    if (b->times && b->times->n < TURNS && full(&b->in))
        b->times->s[b->times->n++] = seconds() - start;
    for (unsigned i = 0; i < b->out.n && !b->copies; i++)
        copy_out(&b->out, i, b->out.m[i]);
    b->fx.now = until;
    b->in.n = 0;
}

/* ---- aggregation ---- */

static unsigned member_at(const struct bench *b, uint16_t port)
{
    for (unsigned i = 0; i < CHILDREN; i++)
        if (b->port_of[i] == port)
            return i;
    abort();
}

static void members_send(struct bench *b)
{
    for (unsigned i = 0; i < CHILDREN; i++) {
        struct member *m = &b->fx.member[i];
        struct rte_mbuf *f;
        unsigned n = 0;

        member_take_control(m);
        member_run(m);
        m->ep.tick(m->ep.ctx, b->fx.now);
        for (int q = 0; q < ENDPOINT_QUEUES; q++)
            while (n < 2 * BURST && m->ep.output(m->ep.ctx, q, &f, 1, b->fx.now)) {
                put(&b->in, b->port_of[i], f);
                n++;
            }
    }
}

static void members_receive(struct bench *b)
{
    for (unsigned i = 0; i < b->out.n; i++) {
        struct member *m = &b->fx.member[member_at(b, b->out.at[i].port)];
        struct rte_mbuf *f = frame_alloc(b->fx.pool);

        rte_memcpy(rte_pktmbuf_append(f, b->out.at[i].len), b->out.bytes[i], b->out.at[i].len);
        if (m->ep.input(m->ep.ctx, &f, 1, b->fx.now) != 1)
            abort();
    }
}

static void until(struct bench *b, bool (*done)(struct agg_fixture *b))
{
    for (unsigned turns = 0; !done(&b->fx); turns++) {
        if (turns == 20000)
            abort();
        members_send(b);
        turn(b);
        members_receive(b);
    }
}

/* Sums all members' vectors and checks the result. */
static void aggregate(struct bench *b, size_t count)
{
    b->opseq++;
    for (unsigned i = 0; i < CHILDREN; i++) {
        struct member *m = &b->fx.member[i];
        struct agg_fixture_op o = {.coll = AGG_ALLREDUCE,
                                   .dtype = DT_FP32,
                                   .op = OP_SUM,
                                   .opseq = b->opseq,
                                   .total = count * 4,
                                   .in = m->op.in,
                                   .out = m->op.out};

        memset(o.out, 0, count * 4);
        agg_fixture_start(m, &o);
    }
    until(b, agg_fixture_all_done);
    for (unsigned i = 0; i < CHILDREN; i++)
        for (size_t k = 0; k < count; k += 97)
            if (((const float *)(const void *)b->fx.member[i].op.out)[k] !=
                36.0f + 8 * (float)(k % 5))
                abort();
}

/* ---- forwarding: each host's frames to the next one ---- */

static void forward(struct bench *b, unsigned turns)
{
    uint64_t frames = 0, got = 0;

    for (unsigned t = 0; t < turns; t++) {
        for (unsigned i = 0; i < CHILDREN; i++) {
            struct frame_spec s = {.src_ip = b->fx.member[i].ip,
                                   .dst_ip = b->fx.member[(i + 1) % CHILDREN].ip,
                                   .dqpn = 1 << 16,
                                   .len = MTU};

            for (unsigned k = 0; k < BURST; k++)
                put(&b->in, b->port_of[i], switch_fixture_frame(b->fx.pool, &s));
        }
        frames += b->in.n;
        turn(b);
        for (unsigned i = 0; i < b->out.n; i++)
            got += b->out.at[i].len > MTU;
    }
    if (got != frames) {
        fprintf(stderr, "%llu of %llu frames were forwarded\n", (unsigned long long)got,
                (unsigned long long)frames);
        exit(1);
    }
}

/* ---- */

static void open_bench(struct bench *b, size_t count)
{
    static struct fab_errors errs;
    static const unsigned ids[CHILDREN] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct net_cfg nc = {.deliver = deliver, .ctx = b, .seed = 1};
    bool *mine;

    test_eal_init();
    b->fx.rng = 1;
    b->fx.f = fabric_load_string(CONF, "bench.conf", &errs);
    b->fx.pool = frame_pool_create("bench_an", 16383, 256);
    b->in.bytes = calloc(RING, FRAME_ROOM);
    b->out.bytes = calloc(RING, FRAME_ROOM);
    if (!b->fx.f || !b->fx.pool || !b->in.bytes || !b->out.bytes)
        abort();
    mine = calloc(b->fx.f->n_nodes, sizeof(*mine));
    for (uint16_t i = 0; i < b->fx.f->n_nodes; i++)
        if (b->fx.f->nodes[i].kind == FAB_SWITCH)
            mine[b->sw = i] = true;
    nc.parts = frame_parts_create("parts", NET_PARTS, 256);
    if (!nc.parts)
        abort();
    nc.fab = b->fx.f, nc.pool = b->fx.pool, nc.mine = mine;
    if (net_create(&b->net, &nc))
        abort();
    free(mine);
    agg_fixture_group(&b->fx, 0, 1, MTU, BURST, 1, ids, CHILDREN);
    for (unsigned i = 0; i < CHILDREN; i++) {
        struct member *m = &b->fx.member[i];

        b->port_of[i] = b->fx.f->nodes[m->host].ports[0].peer_port;
        net_port_state(b->net, b->sw, b->port_of[i], true, 0);
        m->op.in = agg_fixture_alloc(&b->fx, count * 4);
        m->op.out = agg_fixture_alloc(&b->fx, count * 4);
        for (size_t k = 0; k < count; k++)
            ((float *)(void *)m->op.in)[k] = (float)(i + 1) + (float)(k % 5);
        agg_fixture_join(m);
    }
    until(b, agg_fixture_all_in);
    for (unsigned i = 0; i < CHILDREN; i++)
        if (b->fx.member[i].state != MEMBER_IN)
            abort();
}

static int by_length(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* GB/s of payload in the median turn. */
static double rate(struct times *t)
{
    if (!t->n)
        abort();
    qsort(t->s, t->n, sizeof(t->s[0]), by_length);
    return (double)CHILDREN * BURST * MTU / t->s[t->n / 2] / 1e9;
}

int main(void)
{
    static struct bench b;
    static struct times an, fwd;
    const char *quick = getenv("BENCH_QUICK");
    unsigned rounds = quick && *quick ? 3 : 15;
    size_t count = 1 << 20;

    open_bench(&b, count);
    for (int copies = 1; copies >= 0; copies--) {
        b.copies = copies;
        an.n = fwd.n = 0;
        for (unsigned r = 0; r < rounds; r++) {
            b.times = &an;
            aggregate(&b, count);
            b.times = &fwd;
            forward(&b, 64);
        }
        printf("aggregation of 8 children, 4 KiB frames%s\t%.3f\t%.3f\n",
               copies ? "" : ", without ports' copies", rate(&an), rate(&fwd));
        fflush(stdout);
    }
    return 0;
}
