/* SPDX-License-Identifier: BSD-3-Clause */
/* The cost model on GPU nodes and between them, against the closed forms (Fxx of cost.h). */
#include "collective/sched.h"
#include "model/predict.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

/* H100 nodes (F2), NIC i of each at leaf i (F11). */
#define H100(nodes, leaves)                                                                        \
    "name = \"t\"; mtu = 4096; ecmp = \"balanced\";"                                               \
    "gpu_nodes = { nodes = " nodes "; gpus = 8; planes = ( 5, 4, 4, 5 );"                          \
    "  nvlink = { rate = \"25GB/s\"; latency = \"300ns\"; };"                                      \
    "  nic = { rate = \"400Gb/s\"; latency = \"300ns\"; }; };"                                     \
    "rails = { leaves = " leaves "; spines = 2;"                                                   \
    "  spine_link = { rate = \"400Gb/s\"; latency = \"300ns\"; }; };"                              \
    "reduce = { groups = 64; slots = 16384; window = 256; };"

/* Share of payload in full frames: 58 bytes of headers and 24 of the link; ACKs besides. */
#define SHARE (4096.0 / (4096 + 82))
#define NODE  450e9
#define NIC   50e9

static struct fabric *load(const char *text)
{
    static struct fab_errors errs;
    struct fabric *f = fabric_load_string(text, "test.conf", &errs);

    if (!f)
        fab_errors_print(&errs, stderr);
    assert_non_null(f);
    return f;
}

/* Seconds; B: bytes of the whole vector, over ranks where the collective counts so. */
static double seconds(const struct fabric *f, enum coll_kind kind, enum coll_algo algo, unsigned n,
                      uint64_t b)
{
    struct coll_args a = {.kind = kind, .algo = algo, .type = DT_FP32, .count = b / 4};
    struct coll_prediction p;
    uint16_t hosts[128];

    if (kind == COLL_ALLGATHER || kind == COLL_REDUCE_SCATTER)
        a.count /= n;
    if (kind == COLL_ALLTOALL)
        a.count /= n * n;
    for (unsigned r = 0; r < n; r++)
        hosts[r] = (uint16_t)r;
    assert_int_equal(coll_predict(f, &a, n, hosts, 0, 0, &p), 0);
    return (double)p.time_ps * 1e-12;
}

static void assert_near(double got, double want, double tolerance)
{
    if (got < want * (1 - tolerance) || got > want * (1 + tolerance))
        fail_msg("%g, expected %g within %g %%", got, want, 100 * tolerance);
}

/* F21, F20 and F26 on the 450 GB/s of a node's planes. */
static void a_node_runs_at_all_its_planes(void **state)
{
    struct fabric *f = load(H100("1", "8"));

    (void)state;
    for (uint64_t b = 1 << 26; b <= 1 << 30; b *= 4) {
        double one = (double)b / NODE / SHARE;

        assert_near(seconds(f, COLL_ALLREDUCE, ALGO_RING, 8, b), 2 * 7 / 8.0 * one, 0.02);
        assert_near(seconds(f, COLL_ALLREDUCE, ALGO_DIRECT, 8, b), 2 * 7 / 8.0 * one, 0.03);
        assert_near(seconds(f, COLL_ALLGATHER, ALGO_RING, 8, b), 7 / 8.0 * one, 0.02);
        assert_near(seconds(f, COLL_ALLGATHER, ALGO_NVLS, 8, b), 7 / 8.0 * one, 0.05);
        /* two barriers, a load and a store: 12 hops; 2 loads of 16 KiB of each of 8 ranks come
         * before the first store; packets are as near (tests/sim/world/test_nodes.c) */
        assert_near(seconds(f, COLL_ALLREDUCE, ALGO_NVLS, 8, b),
                    one + 12 * 300e-9 + 2 * 8 * 16384 / 125e9, 0.02);
        /* 64 slices and more, and 6 of them on the way to the last rank */
        assert_near(seconds(f, COLL_BROADCAST, ALGO_CHAIN, 8, b), one, 0.10);
    }
    fabric_free(f);
}

/* F28: the slower of both levels; B (D - 1) / (D W), twice for all-reduce. F32: of exactly two
 * nodes the node's level binds. */
static void levels_bind_as_f28_and_f32(void **state)
{
    struct fabric *two = load(H100("2", "8")), *four = load(H100("4", "8"));
    double b = 1 << 28;
    double node = b * 7 / 8 / NODE / SHARE, across = b * 3 / 4 / (8 * NIC) / SHARE;

    (void)state;
    assert_true(node > across);
    assert_near(seconds(two, COLL_ALLREDUCE, ALGO_HIER, 16, 1 << 28), 2 * node, 0.05);
    assert_near(seconds(four, COLL_ALLREDUCE, ALGO_HIER, 32, 1 << 28), 2 * node, 0.05);
    assert_near(seconds(four, COLL_ALLREDUCE, ALGO_HIER_SHARP, 32, 1 << 28), 2 * node, 0.05);
    /* F25 on the rails: B / 8 over a NIC */
    assert_near(seconds(four, COLL_ALLREDUCE, ALGO_NVLS_SHARP, 32, 1 << 28), b / (8 * NIC) / SHARE,
                0.10);
    assert_near(seconds(two, COLL_ALLGATHER, ALGO_HIER, 16, 1 << 28), node, 0.05);
    assert_near(seconds(two, COLL_REDUCE_SCATTER, ALGO_HIER, 16, 1 << 28), node, 0.05);
    fabric_free(two);
    fabric_free(four);
}

/* F30: from one node to two the all-to-all's time grows 2.57 times. */
static void alltoall_falls_as_f30(void **state)
{
    struct fabric *f = load(H100("2", "8"));
    double one = seconds(f, COLL_ALLTOALL, ALGO_DIRECT, 8, 1ULL << 30);
    double both = seconds(f, COLL_ALLTOALL, ALGO_DIRECT, 16, 1ULL << 30);

    (void)state;
    assert_near(one, (double)(1ULL << 30) / 4.11e12 / SHARE, 0.03);
    assert_near(both / one, 2.57, 0.05);
    fabric_free(f);
}

/* Steps that grow with the ranks are extrapolated: for any root, any number of blocks, and without
 * a jump where it begins. */
static void many_ranks_are_on_the_line_of_few(void **state)
{
    struct fabric *f = load("name = \"t\"; mtu = 4096; single_switch = { hosts = 256;"
                            "  host_link = { rate = \"400Gb/s\"; latency = \"300ns\"; }; };");
    struct coll_args a = {
        .kind = COLL_ALLTOALL, .algo = ALGO_DIRECT, .type = DT_FP32, .count = 1 << 14};
    struct coll_prediction p;
    uint16_t hosts[256];

    (void)state;
    for (unsigned r = 0; r < 256; r++)
        hosts[r] = (uint16_t)r;
    for (a.sparse = 4; a.sparse <= 256; a.sparse *= 4) {
        assert_int_equal(coll_predict(f, &a, 256, hosts, 0, 0, &p), 0);
        assert_near(
            (double)p.time_ps * 1e-12, (a.sparse - 1) * 65536.0 / NIC / SHARE + 1.5e-6,
            0.15); /* latency of two links and of the ACK; messages that meet at a receiver */
    }
    a = (struct coll_args){
        .kind = COLL_BROADCAST, .algo = ALGO_CHAIN, .type = DT_FP32, .count = 1 << 24, .root = 200};
    assert_int_equal(coll_predict(f, &a, 256, hosts, 0, 0, &p), 0);
    assert_near((double)p.time_ps * 1e-12, (double)(1 << 26) / NIC / SHARE, 0.40);
    fabric_free(f);
}

/* F17: a group of 4 of a full mesh has 3 of its 7 ports, one of 8 all; a star's has its whole
 * port. */
static void meshes_and_stars_are_f17(void **state)
{
    struct fabric *mesh = load("name = \"t\"; mtu = 4096; full_mesh = { hosts = 8;"
                               "  host_link = { rate = \"56GB/s\"; latency = \"300ns\"; }; };");
    struct fabric *star = load("name = \"t\"; mtu = 4096; single_switch = { hosts = 8;"
                               "  host_link = { rate = \"392GB/s\"; latency = \"300ns\"; }; };");
    static const enum coll_kind kind[] = {COLL_ALLREDUCE, COLL_ALLGATHER, COLL_REDUCE_SCATTER};
    uint64_t b = 1 << 28;

    (void)state;
    for (unsigned k = 0; k < 3; k++)
        for (unsigned n = 4; n <= 8; n += 4) {
            double want = (k ? 1 : 2) * (double)b * (n - 1) / n / 392e9 / SHARE;

            assert_near(seconds(star, kind[k], ALGO_DIRECT, n, b), want, 0.02);
            assert_near(seconds(mesh, kind[k], ALGO_DIRECT, n, b), want * 7 / (n - 1), 0.02);
        }
    fabric_free(mesh);
    fabric_free(star);
}

static void auto_takes_the_fastest_and_says_so(void **state)
{
    struct fabric *f = load(H100("4", "8"));
    struct coll_args a = {.kind = COLL_ALLREDUCE, .type = DT_FP32, .count = 1 << 24};
    struct coll_prediction p, q;
    enum coll_algo algo;
    char why[COLL_WHY];
    uint16_t hosts[32], tree = 0;

    (void)state;
    for (unsigned r = 0; r < 32; r++)
        hosts[r] = (uint16_t)r;
    assert_int_equal(coll_auto(f, &a, 32, hosts, &tree, 1, 0, ~0u, &algo, &p, why), 0);
    assert_int_equal(algo, ALGO_NVLS_SHARP);
    assert_non_null(strstr(why, "nvls_sharp: "));
    assert_non_null(strstr(why, "next best hier"));
    for (a.algo = 0; a.algo < ALGO_COUNT; a.algo++)
        if (!coll_predict(f, &a, 32, hosts, 0, 0, &q))
            assert_true(q.time_ps >= p.time_ps);
    assert_int_equal(coll_auto(f, &a, 32, hosts, &tree, 1, 0, 1u << ALGO_RING, &algo, &p, why), 0);
    assert_int_equal(algo, ALGO_RING);
    assert_int_equal(coll_auto(f, &a, 32, hosts, &tree, 1, 0, 1u << ALGO_CHAIN, &algo, &p, why),
                     -ENOTSUP);
    fabric_free(f);
}

#define LARGE(nodes, gpus)                                                                         \
    "mtu = 4096; ecmp = \"balanced\";"                                                             \
    "gpu_nodes = { nodes = " nodes "; gpus = " gpus "; planes = ( 9, 9 );"                         \
    "  nvlink = { rate = \"50GB/s\"; latency = \"300ns\"; };"                                      \
    "  nic = { rate = \"400Gb/s\"; latency = \"300ns\"; }; };"                                     \
    "rails = { leaves = 4; spines = 4;"                                                            \
    "  spine_link = { rate = \"800Gb/s\"; latency = \"300ns\"; cables = 4; }; };"                  \
    "reduce = { groups = 64; slots = 16384; window = 256; };"

static struct coll_prediction predict_all(const struct fabric *f, enum coll_kind kind,
                                          enum coll_algo algo, uint64_t count)
{
    struct coll_args a = {.kind = kind, .algo = algo, .type = DT_FP32, .count = count};
    struct coll_prediction p;
    uint16_t hosts[512];
    int rc;

    for (unsigned r = 0; r < f->n_hosts; r++)
        hosts[r] = (uint16_t)r;
    rc = coll_predict(f, &a, f->n_hosts, hosts, 0, 0, &p);
    if (rc)
        fail_msg("%s: %s", sched_algo_name(algo), strerror(-rc));
    return p;
}

/* Links between nodes decide the time of many ranks, and 64 ranks fill less than two nodes. */
static void large_nodes_are_seen_with_what_joins_them(void **state)
{
    static const enum coll_algo nodes_too[] = {ALGO_HIER, ALGO_HIER_SHARP, ALGO_NVLS_SHARP};
    struct fabric *two = load(LARGE("2", "64")), *four = load(LARGE("4", "36"));
    double nic;

    (void)state;
    /* a GPU's NIC sends 2 / 128 of the vector to each of 64 GPUs of the other node */
    nic = 4 * (1 << 20) * 2 * 64 / 128. / NIC;
    assert_near((double)predict_all(two, COLL_ALLREDUCE, ALGO_DIRECT, 1 << 20).time_ps * 1e-12,
                nic / SHARE, 0.15);
    for (unsigned i = 0; i < 3; i++)
        assert_true(predict_all(four, COLL_ALLREDUCE, nodes_too[i], 1 << 18).time_ps > 0);
    for (uint64_t count = 1; count <= 37; count += 36) /* one rank alone on a plane */
        assert_true(predict_all(four, COLL_ALLREDUCE, ALGO_NVLS_SHARP, count).time_ps > 0);
    fabric_free(two);
    fabric_free(four);
}

/* 64 ranks are on one leaf, and need no spine. */
static void links_that_bind_with_more_ranks_alone_are_seen(void **state)
{
    struct fabric *f = load("mtu = 4096; ecmp = \"balanced\";"
                            "leaf_spine = { leaves = 3; spines = 1; hosts_per_leaf = 64;"
                            "  host_link = { rate = \"400Gb/s\"; latency = \"300ns\"; };"
                            "  spine_link = { rate = \"400Gb/s\"; latency = \"300ns\"; }; };");
    struct coll_prediction p = predict_all(f, COLL_ALLTOALL, ALGO_DIRECT, 4096);

    (void)state;
    assert_near((double)p.time_ps * 1e-12, 64 * 128 * 16384. / NIC / SHARE, 0.1);
    assert_int_equal(p.from_ranks, 64);
    fabric_free(f);
}

/* 16 nodes in four units: as packets are (4.39 us), whose blocks all leave at once. Fewer ranks are
 * simulated, and that their rails leave a unit makes more ranks no slower. */
static void rails_of_more_units_are_no_longer(void **state)
{
    struct fabric *f = load("mtu = 4096; ecmp = \"balanced\";"
                            "gpu_nodes = { nodes = 16; gpus = 8; planes = ( 5, 4, 4, 5 );"
                            "  nvlink = { rate = \"25GB/s\"; latency = \"300ns\"; };"
                            "  nic = { rate = \"400Gb/s\"; latency = \"300ns\"; }; };"
                            "rails = { leaves = 8; spines = 4; unit = 4;"
                            "  spine_link = { rate = \"400Gb/s\"; latency = \"300ns\"; }; };");

    (void)state;
    assert_near(seconds(f, COLL_ALLTOALL, ALGO_PXN, 128, 128 << 16), 4.39e-6, 0.03);
    fabric_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_runs_at_all_its_planes),
        cmocka_unit_test(large_nodes_are_seen_with_what_joins_them),
        cmocka_unit_test(links_that_bind_with_more_ranks_alone_are_seen),
        cmocka_unit_test(levels_bind_as_f28_and_f32),
        cmocka_unit_test(alltoall_falls_as_f30),
        cmocka_unit_test(many_ranks_are_on_the_line_of_few),
        cmocka_unit_test(rails_of_more_units_are_no_longer),
        cmocka_unit_test(meshes_and_stars_are_f17),
        cmocka_unit_test(auto_takes_the_fastest_and_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
