/* SPDX-License-Identifier: BSD-3-Clause */
/* trib model: every supported algorithm is listed, with its formula and the bottleneck level. */
#include "fabric/theory/theory.h"
#include "tests/fabric/theory/figures.h"

static const struct model_row *find(const struct model_row *rows, unsigned n, const char *algo)
{
    for (unsigned i = 0; i < n; i++)
        if (!strcmp(rows[i].algo, algo))
            return &rows[i];
    return NULL;
}

#define NONE -1
static void algorithms_are_those_that_the_levels_allow(void **state)
{
    /* Bus bandwidths in GB/s. */
    static const struct {
        const char *conf, *coll, *algo;
        uint64_t inner, degree;
        double busbw;
        unsigned steps;
        enum fab_role binds;
    } rows[] = {
        {"h100-node", "all_reduce", "ring", 1, 8, 450, 14, FAB_ROLE_NVSWITCH},
        {"h100-node", "all_reduce", "halving", 1, 8, 450, 6, FAB_ROLE_NVSWITCH},
        {"h100-node", "all_reduce", "nvls", 1, 8, 787.5, 2, FAB_ROLE_NVSWITCH},
        {"h100-node", "all_reduce", "hier", 1, 8, NONE, 0, 0},
        {"h100-node", "all_reduce", "nvls_sharp", 1, 8, NONE, 0, 0},
        {"leaf-spine-8", "all_reduce", "ring", 1, 8, 50, 14, FAB_ROLE_LEAF},
        {"leaf-spine-8", "all_reduce", "sharp", 1, 8, 87.5, 4, FAB_ROLE_LEAF},
        {"leaf-spine-8", "all_reduce", "nvls", 1, 8, NONE, 0, 0},
        {"leaf-spine-8", "all_reduce", "hier", 1, 8, NONE, 0, 0},
        {"h100-node", "all_reduce", "sharp", 1, 8, 87.5, 2, FAB_ROLE_LEAF},
        {"leaf-spine-8", "all_reduce", "halving", 1, 8, 50 * 7 / 11., 6, FAB_ROLE_SPINE},
        {"npu-mesh-8", "all_reduce", "ring", 1, 4, 168, 6, FAB_ROLE_HOST},
        {"npu-mesh-8", "all_reduce", "sharp", 1, 4, NONE, 0, 0},
        {"h100-superpod-1024", "all_reduce", "ring", 1, 1024, 50, 2046, FAB_ROLE_LEAF},
        {"h100-superpod-1024", "all_reduce", "rings", 1, 1024, 400, 2046, FAB_ROLE_LEAF},
        {"h100-superpod-1024", "all_reduce", "hier", 1, 1024, 402.8, 14 + 254, FAB_ROLE_LEAF},
        {"h100-superpod-1024", "all_reduce", "hier_sharp", 1, 1024, 513.8, 18, FAB_ROLE_NVSWITCH},
        {"h100-superpod-1024", "all_reduce", "nvls_sharp", 1, 1024, 799.2, 6, FAB_ROLE_LEAF},
        {"h100-superpod-1024", "all_reduce", "sharp", 1, 1024, 99.9, 4, FAB_ROLE_LEAF},
        {"h100-superpod-1024", "all_reduce", "nvls", 1, 8, 787.5, 2, FAB_ROLE_NVSWITCH},
        {"h100-superpod-1024", "all_reduce", "sharp", 16, 64, NONE, 0, 0},
        {"h100-superpod-1024", "all_reduce", "halving", 1, 768, NONE, 0, 0},
        {"h100-superpod-1024", "all_gather", "hier", 1, 16, 482.1, 8, FAB_ROLE_NVSWITCH}, /* F32 */
        {"h100-superpod-1024", "reduce_scatter", "rings", 1, 16, 400, 15, FAB_ROLE_LEAF},
        {"h100-superpod-1024", "alltoall", "direct", 1, 16, 93.75, 15, FAB_ROLE_LEAF}, /* F30 */
    };

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        struct cost_levels l = levels_of(rows[i].conf);
        struct model_ask ask = {{rows[i].inner, rows[i].degree}, 0, NULL};
        struct model_row out[MODEL_MAX_ROWS];
        unsigned n = model_rows(&l, rows[i].coll, &ask, 1 << 20, out);
        const struct model_row *r = find(out, n, rows[i].algo);

        if (!r != (rows[i].busbw < 0))
            fail_msg("%s of %lu on %s: %s", rows[i].algo, rows[i].degree, rows[i].conf,
                     r ? "there" : "missing");
        if (!r)
            continue;
        near_figure(rows[i].algo, r->busbw, rows[i].busbw * 1e9, 0.001);
        assert_int_equal(r->steps, rows[i].steps);
        assert_int_equal(l.lv[r->cost.binds].role, rows[i].binds);
    }
}

/* F24 as rows: evenly chosen shards and drawn ones. */
static void a_sparse_alltoall_has_both_factors(void **state)
{
    struct cost_levels l = levels_of("h100-node");
    struct model_ask ask = {{1, 8}, 3, NULL};
    struct model_row out[MODEL_MAX_ROWS];
    const struct model_row *dense, *sparse, *drawn;
    unsigned n = model_rows(&l, "alltoall", &ask, 1 << 20, out);

    (void)state;
    assert_int_equal(n, 3);
    dense = find(out, n, "direct"), sparse = find(out, n, "sparse"), drawn = find(out, n, "drawn");
    NEAR(sparse->cost.s / dense->cost.s, 3 / 8.);
    NEAR(drawn->cost.s / dense->cost.s, 1 - 7 * 7 * 7 / 512.);
    assert_int_equal(sparse->steps, 3);
}

static void groups_that_are_filled_in_part_are_found(void **state)
{
    struct cost_levels l = levels_of("h100-superpod-1024");

    (void)state;
    assert_int_equal(model_uneven(&l, all(1024)), -1);
    assert_int_equal(model_uneven(&l, all(8)), -1);
    assert_int_equal(model_uneven(&l, all(5)), -1);
    assert_int_equal(model_uneven(&l, all(12)), 1);
    assert_int_equal(model_uneven(&l, all(264)), 2);
    assert_int_equal(model_uneven(&l, (struct cost_axis){16, 64}), -1);
}

#define RAILS(nodes, gpus, leaves, spines, unit)                                                   \
    "mtu = 4096; ecmp = \"balanced\";"                                                             \
    "gpu_nodes = { nodes = " nodes "; gpus = " gpus "; planes = ( 5, 4, 4, 5 );"                   \
    "  nvlink = { rate = \"25GB/s\"; latency = \"300ns\"; };"                                      \
    "  nic = { rate = \"400Gb/s\"; latency = \"300ns\"; }; };"                                     \
    "rails = { leaves = " leaves "; spines = " spines ";" unit                                     \
    "  spine_link = { rate = \"400Gb/s\"; latency = \"300ns\"; }; };"

/* Traffic from rail to rail crosses the spines, even within a unit. Bus bandwidths in GB/s, of all
 * groups: each of n GPUs sends b / n to every other. */
static void rails_are_joined_by_their_spines_alone(void **state)
{
    static const struct {
        const char *conf, *coll, *algo;
        uint64_t inner, degree;
        double busbw;
        enum fab_role binds;
    } rows[] = {
#define EIGHT(spines) RAILS("8", "8", "8", spines, "")
        /* 8 GPUs of a rail send to 64 - 8 of it - 7 of the node, over its links of 50 GB/s */
        {EIGHT("8"), "alltoall", "direct", 1, 64, 63. * 50 / 56, FAB_ROLE_LEAF},
        {EIGHT("2"), "alltoall", "direct", 1, 64, 63. * 100 / (8 * 49), FAB_ROLE_SPINE},
        {EIGHT("1"), "alltoall", "direct", 1, 64, 63. * 50 / (8 * 49), FAB_ROLE_SPINE},
        /* 4 of 8 nodes; the groups of 8 rails have one each, those of two GPUs half of the rails */
        {EIGHT("1"), "alltoall", "direct", 1, 32, 31. * 50 / (4 * 21), FAB_ROLE_SPINE},
        {EIGHT("1"), "alltoall", "direct", 8, 8, 8 * 50, FAB_ROLE_LEAF},
        {EIGHT("1"), "alltoall", "direct", 2, 32, 2 * 31. * 50 / (8 * 21), FAB_ROLE_SPINE},
        {EIGHT("1"), "alltoall", "direct", 16, 4, 16 * 50, FAB_ROLE_LEAF},
        {EIGHT("1"), "alltoall", "direct", 1, 8, 450, FAB_ROLE_NVSWITCH},
        /* two GPUs of a node on each leaf */
        {RAILS("4", "8", "4", "1", ""), "alltoall", "direct", 1, 32, 31. * 50 / (8 * 18),
         FAB_ROLE_SPINE},
        /* a leaf of 4 of 8 nodes: 64 - 4 - 7 */
        {RAILS("8", "8", "8", "2", "unit = 4;"), "alltoall", "direct", 1, 64, 63. * 100 / (4 * 53),
         FAB_ROLE_SPINE},
        /* each node's ring leaves rail 7 for rail 0 */
        {EIGHT("1"), "all_reduce", "ring", 1, 64, 50 / 8., FAB_ROLE_SPINE},
        {EIGHT("8"), "all_reduce", "ring", 1, 64, 50, FAB_ROLE_LEAF},
        {EIGHT("1"), "all_reduce", "ring", 8, 8, 8 * 50, FAB_ROLE_LEAF},
        {EIGHT("1"), "all_reduce", "ring", 2, 32, 2 * 50 / 8., FAB_ROLE_SPINE},
        /* of 5 GPUs on two leaves the last and the first share one; of 5 on three and on four not */
        {RAILS("4", "5", "2", "1", ""), "all_reduce", "ring", 1, 20, 50, FAB_ROLE_LEAF},
        {RAILS("4", "5", "3", "1", ""), "all_reduce", "ring", 1, 20, 50 / 4., FAB_ROLE_SPINE},
        {RAILS("4", "5", "4", "1", ""), "all_reduce", "ring", 1, 20, 50, FAB_ROLE_LEAF},
    };

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        static struct fab_errors errs;
        struct fabric *f = fabric_load_string(rows[i].conf, "rails.conf", &errs);
        struct model_ask ask = {{rows[i].inner, rows[i].degree}, 0, NULL};
        struct model_row out[MODEL_MAX_ROWS];
        const struct model_row *r;
        struct cost_levels l;
        unsigned n;

        if (!f)
            fab_errors_print(&errs, stderr);
        assert_non_null(f);
        cost_levels(f, &l);
        n = model_rows(&l, rows[i].coll, &ask, 1 << 20, out);
        r = find(out, n, rows[i].algo);
        assert_non_null(r);
        near_figure(rows[i].algo, r->busbw, rows[i].busbw * 1e9, 0.001);
        assert_int_equal(l.lv[r->cost.binds].role, rows[i].binds);
        fabric_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(algorithms_are_those_that_the_levels_allow),
        cmocka_unit_test(a_sparse_alltoall_has_both_factors),
        cmocka_unit_test(rails_are_joined_by_their_spines_alone),
        cmocka_unit_test(groups_that_are_filled_in_part_are_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
