/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib model by the busiest link: where balanced ECMP does not divide flows evenly, and above the
 * spines. Expected values are counted by hand from the routes that docs/confs.md describes.
 */
#include "fabric/theory/cost_links.h"
#include "fabric/theory/theory.h"
#include "tests/fabric/theory/figures.h"

#define LINK(name, rate) name " = { rate = \"" rate "Gb/s\"; latency = \"300ns\"; };"
#define NODES(n, gpus)                                                                             \
    "gpu_nodes = { nodes = " n "; gpus = " gpus "; planes = ( 5, 4, 4, 5 );"                       \
    "  nvlink = { rate = \"25GB/s\"; latency = \"300ns\"; };" LINK("nic", "400") "};"
#define AN "reduce = { groups = 64; slots = 16384; window = 256; };"
/* Units of two nodes, two in each of two pods, GPU i at leaf i; 400 Gb/s everywhere */
#define TIERS(spines, cores)                                                                       \
    NODES("8", "4")                                                                                \
    "rails = { leaves = 4; spines = " spines "; unit = 2; pods = 2; cores = " cores                \
    ";" LINK("spine_link", "400") LINK("core_link", "400") "};" AN
/* Two pods of a leaf with four hosts and half of the spines */
#define PODS(spines, cores)                                                                        \
    "leaf_spine = { leaves = 2; spines = " spines "; hosts_per_leaf = 4; pods = 2; cores = " cores \
    ";" LINK("host_link", "400") LINK("spine_link", "100") LINK("core_link", "400") "};" AN
#define HOSTS(leaves, spines, hosts)                                                               \
    "leaf_spine = { leaves = " leaves "; spines = " spines "; hosts_per_leaf = " hosts             \
    ";" LINK("host_link", "400") LINK("spine_link", "400") "};"

static struct fabric *load(const char *text, bool balanced)
{
    static struct fab_errors errs;
    char all[2048];
    struct fabric *f;

    snprintf(all, sizeof(all), "mtu = 4096; ecmp = \"%s\";%s", balanced ? "balanced" : "hash",
             text);
    f = fabric_load_string(all, "links.conf", &errs);
    if (!f)
        fab_errors_print(&errs, stderr);
    assert_non_null(f);
    return f;
}

/* A row of 1 MiB; by links: as trib model has it, else by levels alone. */
static struct model_row row_of(const char *text, const char *coll, const char *algo,
                               struct cost_axis a, bool balanced, bool by_links,
                               enum fab_role *binds)
{
    struct fabric *f = load(text, balanced);
    struct model_row rows[MODEL_MAX_ROWS], r = {0};
    struct cost_levels l;
    struct cost_links k;
    struct model_ask ask = {a, 0, by_links ? &k : NULL};
    unsigned n;

    cost_levels(f, &l);
    assert_int_equal(cost_links(f, &l, a, &k), 0);
    n = model_rows(&l, coll, &ask, 1 << 20, rows);
    for (unsigned i = 0; i < n; i++)
        if (!strcmp(rows[i].algo, algo))
            r = rows[i];
    if (!r.algo)
        fail_msg("%s %s: no such row", coll, algo);
    *binds = l.lv[r.cost.binds].role;
    fabric_free(f);
    return r;
}

/* Bus bandwidths in GB/s: by levels, and by links. */
static void the_busiest_link_of_a_level_is_what_binds(void **state)
{
    static const struct {
        const char *conf, *coll, *algo;
        uint64_t inner, degree;
        double levels, links;
        enum fab_role binds;
    } rows[] = {
        /* 4 hosts, 3 ways up: two hosts share one. Each sends to 4 of 8 over it */
        {HOSTS("2", "3", "4"), "alltoall", "direct", 1, 8, 50, 7 / 8. * 50, FAB_ROLE_SPINE},
        {HOSTS("2", "4", "4"), "alltoall", "direct", 1, 8, 50, 50, FAB_ROLE_LEAF},
        /* only the ring of the last host of a leaf leaves it */
        {HOSTS("2", "3", "4"), "all_reduce", "ring", 1, 8, 50, 50, FAB_ROLE_LEAF},
        /* 4 rings leave a pod over 4 links, of which they use 2 */
        {TIERS("4", "2"), "all_reduce", "rings", 1, 32, 200, 100, FAB_ROLE_CORE},
        {TIERS("4", "2"), "all_reduce", "hier", 1, 32, 200 * 31 / 28., 100 * 31 / 28.,
         FAB_ROLE_CORE},
        {TIERS("4", "2"), "all_gather", "rings", 1, 32, 200, 100, FAB_ROLE_CORE},
        {TIERS("4", "2"), "all_reduce", "ring", 1, 32, 50, 50, FAB_ROLE_LEAF},
        /* a node in each pod: one flow each way, by its NIC and a link each */
        {NODES("2", "4") "rails = { leaves = 4; spines = 4; unit = 1; pods = 2; cores = 1;" LINK(
             "spine_link", "400") LINK("core_link", "400") "};",
         "all_reduce", "ring", 1, 8, 50, 50, FAB_ROLE_LEAF},
        /* rails' sums go up two trees, 2 quarters over one link to each core; or one up each of 4 */
        {TIERS("4", "2"), "all_reduce", "hier_sharp", 1, 32, 200 * 31 / 16., 100 * 31 / 16.,
         FAB_ROLE_CORE},
        {TIERS("4", "4"), "all_reduce", "hier_sharp", 1, 32, 200 * 31 / 16., 200 * 31 / 16.,
         FAB_ROLE_LEAF},
        /* hosts: one tree, whose sums leave a pod's only leaf by one of four links of 100 Gb/s; */
        {PODS("8", "1"), "all_reduce", "sharp", 1, 8, 50 * 14 / 8., 12.5 * 14 / 8., FAB_ROLE_SPINE},
        /* four trees: by one each */
        {PODS("8", "4"), "all_reduce", "sharp", 1, 8, 50 * 14 / 8., 50 * 14 / 8., FAB_ROLE_LEAF},
        /* 16 GPUs of a pod to 16 of the other, over 4 links that carry 4 each */
        {TIERS("4", "2"), "alltoall", "direct", 1, 32, 31 / 16. / 16 * 200, 31 / 16. / 16 * 200,
         FAB_ROLE_CORE},
        {TIERS("4", "2"), "alltoall", "pxn", 1, 32, 31 / 16. / 16 * 200, 31 / 16. / 16 * 200,
         FAB_ROLE_CORE},
        /* the only link of a pod to its core: the level's formula has it, but for the nodes' share */
        {TIERS("2", "1"), "all_reduce", "rings", 1, 32, 50, 50, FAB_ROLE_CORE},
        {TIERS("2", "1"), "all_reduce", "hier", 1, 32, 50 * 31 / 16., 50 * 31 / 28., FAB_ROLE_CORE},
        {TIERS("2", "1"), "all_reduce", "rings", 2, 16, 50, 50, FAB_ROLE_CORE},
    };
    enum fab_role binds;

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        struct cost_axis a = {rows[i].inner, rows[i].degree};
        struct model_row by_levels = row_of(rows[i].conf, rows[i].coll, rows[i].algo, a, true,
                                            false, &binds),
                         r = row_of(rows[i].conf, rows[i].coll, rows[i].algo, a, true, true,
                                    &binds);

        near_figure(rows[i].algo, by_levels.busbw, rows[i].levels * 1e9, 0.001);
        near_figure(rows[i].algo, r.busbw, rows[i].links * 1e9, 0.001);
        assert_int_equal(binds, rows[i].binds);
    }
}

/* A flow's hash decides its way: levels alone are known. */
static void hashed_flows_have_no_way_of_their_own(void **state)
{
    enum fab_role binds;
    struct cost_axis a = {1, 32};

    (void)state;
    near_figure("rings",
                row_of(TIERS("4", "2"), "all_reduce", "rings", a, false, true, &binds).busbw, 200e9,
                0.001);
}

/* Two hops take the planes besides, and no spine of a unit. */
static void rails_carry_no_more_in_two_hops(void **state)
{
    enum fab_role binds;
    struct cost_axis a = {1, 16};
    const char *one =
        NODES("4", "4") "rails = { leaves = 4; spines = 1;" LINK("spine_link", "400") "};";
    struct model_row direct = row_of(one, "alltoall", "direct", a, true, true, &binds), pxn;

    (void)state;
    assert_int_equal(binds, FAB_ROLE_SPINE);
    near_figure("direct", direct.busbw, 15 * 50e9 / (4 * 9), 0.001);
    pxn = row_of(one, "alltoall", "pxn", a, true, true, &binds);
    assert_int_equal(binds, FAB_ROLE_LEAF);
    near_figure("pxn", pxn.busbw, 15 * 50e9 / 12, 0.001);
    assert_true(direct.wire_s > direct.cost.s && pxn.wire_s > pxn.cost.s);
}

/* 1 MiB of eight hosts on two leaves. Ring: 14 steps of 8 slices of 16 KiB, which fill the link, then four
 * links of 300 ns with a frame on three of them, and the acknowledgement. Switches: 257 frames, and the
 * same way once. */
static void rings_and_switches_have_latency(void **state)
{
    static const double frame = 4178 * 8 / 400e9;
    double slice = (16384 + 4 * 82 + 4) * 8 / 400e9, ack = 1.2e-6 + 4 * 86 * 8 / 400e9;
    double frames = ((1 << 20) + 257 * (82 + (32 + 86) / 8.0)) * 8 / 400e9;
    enum fab_role binds;
    struct cost_axis a = {1, 8};
    struct model_row ring =
                         row_of(HOSTS("2", "2", "4"), "all_reduce", "ring", a, true, true, &binds),
                     sharp = row_of(HOSTS("2", "2", "4") AN, "all_reduce", "sharp", a, true, true,
                                    &binds);

    (void)state;
    near_figure("ring", ring.wire_s, 14 * 8 * slice + 1.2e-6 + 3 * frame + ack, 0.001);
    near_figure("sharp", sharp.wire_s, frames + 1.2e-6 + 3 * frame, 0.001);
    assert_true(ring.wire_s > ring.cost.s && sharp.wire_s > sharp.cost.s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_busiest_link_of_a_level_is_what_binds),
        cmocka_unit_test(hashed_flows_have_no_way_of_their_own),
        cmocka_unit_test(rails_carry_no_more_in_two_hops),
        cmocka_unit_test(rings_and_switches_have_latency),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
