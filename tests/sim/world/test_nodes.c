/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GPU nodes, and nodes on rails, out of packets in virtual time: the executor itself, on payloads
 * that are lengths only, against the closed forms (F of cost.h). Times are of payload, so what full
 * frames leave of a link (SHARE) is allowed for; the rest is stated where it is checked.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "aggregation/proto.h"
#include "collective/sched.h"
#include "model/predict.h"
#include "roce/wire.h"
#include "tests/sim/one_job.h"
#include "tests/support/eal.h"

/* Payload per link byte of a full packet at MTU 4096: Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4,
 * link 24. */
#define SHARE (4096.0 / (4096 + 82))
#define NODE  450e9 /* F2 */
#define NIC   50e9  /* F4 */
#define MIB   (1ULL << 20)

static struct rte_mempool *pool;

struct fixture {
    struct one_job at;
    unsigned n;
    uint16_t hosts[64];
    uint64_t *wire; /* payload by direction of a link: link * 2 + direction */
    struct coll_args op;
};

/* Credits are words that a receiver writes, and no data. */
static bool is_credit(const struct roce_pkt *k)
{
    return k->opcode == ROCE_OP_RC_WRITE_ONLY && k->len <= 8;
}

static bool is_switch(const struct fixture *b, uint32_t ip)
{
    int d = fabric_dest_of_ip(b->at.f, ip);

    return d >= 0 && b->at.f->nodes[b->at.f->dests[d].node].kind == FAB_SWITCH;
}

/* Messages to and from aggregation nodes begin with a header, which is no data either. */
static uint32_t elements(const struct fixture *b, const struct roce_pkt *k)
{
    bool first = k->opcode == ROCE_OP_RC_SEND_FIRST || k->opcode == ROCE_OP_RC_SEND_ONLY;

    return k->len -
           (first && (is_switch(b, k->src_ip) || is_switch(b, k->dst_ip)) ? AGG_HDR_BYTES : 0);
}

static void tap(void *ctx, unsigned dirlink, struct rte_mbuf *m, int64_t now_ps)
{
    struct fixture *b = ctx;
    struct roce_pkt k;

    (void)now_ps;
    if (roce_parse(m, &k) == ROCE_OK && (k.opcode & ROCE_TRANSPORT_MASK) == ROCE_RC &&
        !is_credit(&k))
        b->wire[dirlink] += elements(b, &k);
}

static void fixture_up(struct fixture *b, const char *conf, unsigned n, unsigned algos,
                       uint64_t bytes)
{
    struct job_cfg jc = {.nranks = n,
                         .host_of_rank = b->hosts,
                         .algos = algos,
                         .lengths = true,
                         .limit_ps = PS_PER_S};

    memset(b, 0, sizeof(*b));
    b->n = n;
    for (unsigned r = 0; r < n; r++)
        b->hosts[r] = (uint16_t)r;
    one_job_up(&b->at, conf, pool, jc);
    assert_int_equal(job_buffers(b->at.j, bytes), 0);
    b->wire = calloc(2u * b->at.f->n_links, sizeof(*b->wire));
    assert_non_null(b->wire);
    net_tap(world_net(b->at.w), tap, b);
}

static void fixture_down(struct fixture *b)
{
    one_job_down(&b->at);
    free(b->wire);
}

static void args(void *ctx, unsigned rank, struct coll_args *a)
{
    struct fixture *b = ctx;

    *a = b->op;
    a->send = job_buffer(b->at.j, rank, 0);
    a->recv = job_buffer(b->at.j, rank, 1);
}

static void assert_clean(struct fixture *b)
{
    struct hca *h;

    for (unsigned r = 0; r < b->n; r++)
        for (unsigned p = 0; (h = world_hca(b->at.w, r, p)); p++) {
            const struct roce_counters *k = rnic_counters(hca_rnic(h));

            assert_int_equal(k->retransmits + k->timeouts + k->rnr_naks_received, 0);
        }
}

/* Seconds until the last rank has ended; bytes: of the whole vector, as cost.h counts. */
static double seconds(struct fixture *b, enum coll_kind kind, enum coll_algo algo, uint64_t bytes)
{
    struct job_loop l = {.n = 1, .args = args, .ctx = b, .limit_ps = PS_PER_S};
    bool self = b->op.mm_self;

    b->op = (struct coll_args){
        .kind = kind, .algo = algo, .count = bytes / 4, .type = DT_FP32, .mm_self = self};
    if (kind == COLL_ALLGATHER || kind == COLL_REDUCE_SCATTER)
        b->op.count /= b->n;
    if (kind == COLL_ALLTOALL)
        b->op.count /= b->n * b->n;
    memset(b->wire, 0, 2u * b->at.f->n_links * sizeof(*b->wire));
    if (job_loop_run(b->at.j, &l))
        fail_msg("%s: %s", sched_algo_name(algo), l.text);
    return (double)l.time_ps * 1e-12;
}

/* The same once more: memory is bound and connections exist. */
static double again(struct fixture *b, enum coll_kind kind, enum coll_algo algo, uint64_t bytes)
{
    seconds(b, kind, algo, 64 * b->n * b->n * 4);
    return seconds(b, kind, algo, bytes);
}

static void show(const char *what, double got, double want)
{
    print_message("%-58s %9.4g, by theory %9.4g: %.4f\n", what, got, want, got / want);
}

static void assert_near(const char *what, double got, double want, double below, double above)
{
    show(what, got, want);
    if (got < want * (1 - below) || got > want * (1 + above))
        fail_msg("%s: %g, expected %g (-%g %%, +%g %%)", what, got, want, 100 * below, 100 * above);
}

/* The model's prediction of an all-reduce equals the simulated time. */
static void assert_model(const struct fixture *b, enum coll_kind kind, enum coll_algo algo,
                         uint64_t bytes, double got, double within)
{
    struct coll_args a = {
        .kind = kind, .algo = algo, .count = bytes / 4, .type = DT_FP32, .mm_self = b->op.mm_self};
    struct coll_prediction p;
    char what[64];

    assert_int_equal(coll_predict(b->at.f, &a, b->n, b->hosts, 0, 0, &p), 0);
    snprintf(what, sizeof(what), "%s of %llu KiB over its model (s)", sched_algo_name(algo),
             (unsigned long long)bytes / 1024);
    assert_near(what, got, (double)p.time_ps * 1e-12, within, within);
}

/* Payload out of a rank (or into it) by its links to switches of a role. */
static uint64_t bytes_of(const struct fixture *b, unsigned rank, enum fab_role role, bool out)
{
    const struct fab_node *h = &b->at.f->nodes[b->at.f->hosts[b->hosts[rank]]];
    uint64_t sum = 0;

    for (unsigned p = 0; p < h->n_ports; p++) {
        unsigned l = h->ports[p].link;
        bool a = b->at.f->links[l].a == b->at.f->hosts[b->hosts[rank]];

        if (b->at.f->nodes[h->ports[p].peer_node].role == role)
            sum += b->wire[2 * l + (a != out)];
    }
    return sum;
}

static void assert_bytes(const struct fixture *b, enum fab_role role, uint64_t out, uint64_t in)
{
    for (unsigned r = 0; r < b->n; r++) {
        assert_int_equal(bytes_of(b, r, role, true), out);
        assert_int_equal(bytes_of(b, r, role, false), in);
    }
}

#define NVLS_ALGOS (1u << ALGO_RING | 1u << ALGO_NVLS)

static void f21_f26_f27_a_node(void **state)
{
    uint64_t b = 144 * MIB; /* every plane's part of a share is whole packets */
    double w = NODE * SHARE, ring, nvls, self;
    struct fixture d;

    (void)state;
    fixture_up(&d, "conf/h100-node.conf", 8, NVLS_ALGOS, b);
    ring = again(&d, COLL_ALLREDUCE, ALGO_RING, b);
    assert_near("F21 ring all-reduce, bus bandwidth (B/s)", 2 * 7 / 8.0 * (double)b / ring, w, 0.02,
                0);
    assert_bytes(&d, FAB_ROLE_NVSWITCH, b * 7 / 4, b * 7 / 4);
    nvls = again(&d, COLL_ALLREDUCE, ALGO_NVLS, b);
    assert_bytes(&d, FAB_ROLE_NVSWITCH, b, b);
    assert_model(&d, COLL_ALLREDUCE, ALGO_NVLS, b, nvls, 0.02);
    d.op.mm_self = true;
    self = again(&d, COLL_ALLREDUCE, ALGO_NVLS, b);
    assert_bytes(&d, FAB_ROLE_NVSWITCH, b + b / 8, b + b / 8);
    assert_model(&d, COLL_ALLREDUCE, ALGO_NVLS, b, self, 0.02);
    /* Requests for loads are 0.6 % of the links. About 7 us of 350 go by at both ends: two barriers
     * of 2 hops, a load and a store of 4 each are 3.6 of them, and links that only load or store.
     */
    assert_near("F26 NVLS, bytes of F26 over time (B/s)", (double)b / nvls, w, 0.035, 0);
    assert_near("F27 NVLS, bytes of F27 over time (B/s)", (double)(b + b / 8) / self, w, 0.03, 0);
    assert_near("F26 NVLS over ring", ring / nvls, 1.75, 0.03, 0);
    assert_near("F27 NVLS over ring", ring / self, 1.5556, 0.025, 0);
    assert_clean(&d);
    fixture_down(&d);
}

/* Planes of 450 GB/s: what a queue pair may read at once still lasts a round trip, of few members
 * that each get much and of many that share. About 4 us of 80 go by at both ends. */
static void f26_wide_planes(void **state)
{
    static const unsigned sizes[] = {2, 3, 6, 8};
    uint64_t b = 64 * MIB;
    struct fixture d;

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        unsigned n = sizes[i];
        double part = (double)b * (n - 1) / n, nvls;

        fixture_up(&d, "conf/b200-node.conf", n, 1u << ALGO_NVLS, b);
        print_message("%u GPUs\n", n);
        seconds(&d, COLL_ALLREDUCE, ALGO_NVLS, b); /* binds all of the memory */
        nvls = seconds(&d, COLL_ALLREDUCE, ALGO_NVLS, b);
        assert_near("F26 NVLS, bytes of F26 over time (B/s)", (double)b / nvls, 900e9 * SHARE,
                    0.065, 0);
        assert_model(&d, COLL_ALLREDUCE, ALGO_NVLS, b, nvls, 0.01);
        assert_near("F20 NVLS reduce-scatter (B/s)",
                    part / seconds(&d, COLL_REDUCE_SCATTER, ALGO_NVLS, b), 900e9 * SHARE, 0.08, 0);
        assert_near("F20 NVLS all-gather (B/s)", part / seconds(&d, COLL_ALLGATHER, ALGO_NVLS, b),
                    900e9 * SHARE, 0.08, 0);
        assert_clean(&d);
        fixture_down(&d);
    }
}

static void f20_f33_gathering_in_a_node(void **state)
{
    uint64_t b = 72 * MIB;
    double want = (double)b * 7 / 8 / NODE / SHARE;
    struct fixture d;

    (void)state;
    fixture_up(&d, "conf/h100-node.conf", 8, NVLS_ALGOS, b);
    assert_near("F20 ring all-gather (s)", again(&d, COLL_ALLGATHER, ALGO_RING, b), want, 0, 0.03);
    assert_bytes(&d, FAB_ROLE_NVSWITCH, b * 7 / 8, b * 7 / 8);
    assert_near("F20 ring reduce-scatter (s)", again(&d, COLL_REDUCE_SCATTER, ALGO_RING, b), want,
                0, 0.03);
    assert_bytes(&d, FAB_ROLE_NVSWITCH, b * 7 / 8, b * 7 / 8);
    assert_near("F20 NVLS all-gather (s)", again(&d, COLL_ALLGATHER, ALGO_NVLS, b), want, 0, 0.05);
    /* F33: the node's switches take in B and give out B (N - 1) */
    assert_bytes(&d, FAB_ROLE_NVSWITCH, b / 8, b * 7 / 8);
    assert_near("F20 NVLS reduce-scatter (s)", again(&d, COLL_REDUCE_SCATTER, ALGO_NVLS, b), want,
                0, 0.05);
    assert_bytes(&d, FAB_ROLE_NVSWITCH, b * 7 / 8, b / 8);
    fixture_down(&d);
}

#define LEVEL_ALGOS (1u << ALGO_RING | 1u << ALGO_HIER | 1u << ALGO_NVLS_SHARP)

static void levels(const char *conf, unsigned nodes, uint64_t b)
{
    unsigned n = 8 * nodes;
    double node = 2 * (double)b * 7 / 8 / NODE / SHARE, flat, hier;
    double rail = 2 * (double)b * (nodes - 1) / nodes / (8 * NIC) / SHARE;
    struct fixture d;

    fixture_up(&d, conf, n, LEVEL_ALGOS, b);
    print_message("%s\n", conf);
    hier = again(&d, COLL_ALLREDUCE, ALGO_HIER, b);
    assert_near("F28 all-reduce by levels (s)", hier, node > rail ? node : rail, 0, 0.05);
    assert_bytes(&d, FAB_ROLE_LEAF, b / 8 * 2 * (nodes - 1) / nodes,
                 b / 8 * 2 * (nodes - 1) / nodes);
    /* F25 on the rails, of B / 8 each; four pieces of 64 are on the way when the last one leaves */
    assert_near("F25 nvls_sharp (s)", again(&d, COLL_ALLREDUCE, ALGO_NVLS_SHARP, b),
                (double)b / (8 * NIC) / SHARE, 0, 0.07);
    flat = again(&d, COLL_ALLREDUCE, ALGO_RING, b / 8) * 8; /* it is long enough for its rate */
    assert_near("F21 flat ring over one NIC (s)", flat, 2 * (double)b * (n - 1) / n / NIC / SHARE,
                0, 0.05);
    assert_near("flat ring over levels, F21 against F28", flat / hier,
                2 * (double)b * (n - 1) / n / NIC / SHARE / (node > rail ? node : rail), 0.05,
                0.05);
    assert_clean(&d);
    fixture_down(&d);
}

static void f28_two_nodes(void **state)
{
    (void)state;
    levels("conf/rail-2x8.conf", 2, 72 * MIB);
}

static void f28_four_nodes(void **state)
{
    (void)state;
    levels("conf/rail-4x8.conf", 4, 144 * MIB);
}

/* F32: over exactly two nodes the node binds. F33: the leaves take in B and give out B (M - 1). */
static void f32_f33_all_gather_over_two_nodes(void **state)
{
    uint64_t b = 72 * MIB;
    struct fixture d;

    (void)state;
    fixture_up(&d, "conf/rail-2x8.conf", 16, 1u << ALGO_HIER, b);
    assert_near("F32 all-gather over two nodes (s)", again(&d, COLL_ALLGATHER, ALGO_HIER, b),
                (double)b / 514e9 / SHARE, 0, 0.05);
    assert_bytes(&d, FAB_ROLE_LEAF, b / 16, b / 16);
    assert_bytes(&d, FAB_ROLE_NVSWITCH, b * 7 / 8, b * 7 / 8);
    fixture_down(&d);
}

/* F33 over four nodes, by multicast: an SU's leaves take in B and give out B (M - 1); a node's
 * switches take in B and give out B (N - 1). F28: the node binds, by little. */
static void f33_all_gather_over_four_nodes(void **state)
{
    uint64_t b = 72 * MIB;
    double want = (double)b * 7 / 8 / NODE / SHARE;
    struct fixture d;

    (void)state;
    fixture_up(&d, "conf/rail-4x8.conf", 32, 1u << ALGO_HIER_SHARP | 1u << ALGO_NVLS_SHARP, b);
    /* rings go on for a quarter of the vector's way round when the rails have ended */
    assert_near("F28 hier_sharp all-gather over four nodes (s)",
                again(&d, COLL_ALLGATHER, ALGO_HIER_SHARP, b), want, 0, 0.15);
    assert_bytes(&d, FAB_ROLE_LEAF, b / 32, b / 32 * 3);
    assert_bytes(&d, FAB_ROLE_NVSWITCH, b / 8 * 7, b / 8 * 7);
    assert_near("F28 nvls_sharp all-gather over four nodes (s)",
                again(&d, COLL_ALLGATHER, ALGO_NVLS_SHARP, b), want, 0, 0.05);
    assert_bytes(&d, FAB_ROLE_LEAF, b / 32, b / 32 * 3);
    assert_bytes(&d, FAB_ROLE_NVSWITCH, b / 8, b / 8 * 7);
    assert_clean(&d);
    fixture_down(&d);
}

static void f30_all_to_all_from_one_node_to_two(void **state)
{
    uint64_t b = 256 * MIB;
    double one, two;
    struct fixture d;

    (void)state;
    fixture_up(&d, "conf/h100-node.conf", 8, 1u << ALGO_DIRECT, b / 8);
    one = again(&d, COLL_ALLTOALL, ALGO_DIRECT, b);
    assert_bytes(&d, FAB_ROLE_NVSWITCH, b / 64 * 7, b / 64 * 7);
    assert_clean(&d);
    fixture_down(&d);
    fixture_up(&d, "conf/rail-2x8.conf", 16, 1u << ALGO_DIRECT, b / 16);
    two = again(&d, COLL_ALLTOALL, ALGO_DIRECT, b);
    assert_bytes(&d, FAB_ROLE_LEAF, b / 256 * 8, b / 256 * 8);
    fixture_down(&d);
    assert_near("F23 all-to-all in a node (s)", one, (double)b / 4.11e12 / SHARE, 0.01, 0.05);
    assert_near("F30 all-to-all over two nodes (s)", two, (double)b / 1.6e12 / SHARE, 0.01, 0.05);
    assert_near("F30 two nodes against one", two / one, 2.57, 0.05, 0.05);
}

static void f17_meshes_and_stars(void **state)
{
    static const unsigned sizes[] = {2, 4, 8};
    uint64_t b = 64 * MIB;
    struct fixture d;

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        unsigned n = sizes[i];
        double want = 2 * (double)b * (n - 1) / n, star, mesh;

        fixture_up(&d, "conf/npu-star-8.conf", n, 1u << ALGO_DIRECT, b);
        star = want / again(&d, COLL_ALLREDUCE, ALGO_DIRECT, b) / SHARE;
        for (uint64_t k = MIB; n == 2 && k <= b; k *= 8)
            assert_model(&d, COLL_ALLREDUCE, ALGO_DIRECT, k,
                         again(&d, COLL_ALLREDUCE, ALGO_DIRECT, k), 0.005);
        fixture_down(&d);
        fixture_up(&d, "conf/npu-mesh-8.conf", n, 1u << ALGO_DIRECT, b);
        mesh = want / again(&d, COLL_ALLREDUCE, ALGO_DIRECT, b) / SHARE;
        fixture_down(&d);
        print_message("%u NPUs\n", n);
        /* of 2, one queue pair has all of a port; ACKs and a round trip are 0.8 % */
        assert_near("F17 star, bus bandwidth over headers (B/s)", star, 392e9, 0.012, 0.001);
        assert_near("F17 mesh, bus bandwidth over headers (B/s)", mesh, 392e9 * (n - 1) / 7, 0.03,
                    0.001);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f21_f26_f27_a_node),
        cmocka_unit_test(f26_wide_planes),
        cmocka_unit_test(f20_f33_gathering_in_a_node),
        cmocka_unit_test(f28_two_nodes),
        cmocka_unit_test(f28_four_nodes),
        cmocka_unit_test(f32_f33_all_gather_over_two_nodes),
        cmocka_unit_test(f33_all_gather_over_four_nodes),
        cmocka_unit_test(f30_all_to_all_from_one_node_to_two),
        cmocka_unit_test(f17_meshes_and_stars),
    };

    test_eal_init();
    pool = test_pool(200000);
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
