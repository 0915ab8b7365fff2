/* SPDX-License-Identifier: BSD-3-Clause */
/* What the first half of some hosts can send to the second half at once, in Gb/s. */
#include "fabric/build.h"
#include "tests/fabric/load.h"

#define SPINE_LINK(rate, cables)                                                                   \
    "leaf_spine = { leaves = 2; spines = 1; hosts_per_leaf = 2; host_link = { rate = "             \
    "\"400Gb/s\"; "                                                                                \
    "latency = \"300ns\"; }; spine_link = { rate = \"" rate                                        \
    "\"; latency = \"300ns\"; cables = " cables "; }; };"
#define HOSTS(...)                                                                                 \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static void networks(void **state)
{
    static const struct {
        const char *conf;
        unsigned n;
        fab_id host[4];
        unsigned gbps;
    } row[] = {
        /* Of one leaf to the other by its link to the spine; within a leaf by their own links. */
        {SPINE_LINK("100Gb/s", "1"), 4, HOSTS(0, 1, 2, 3), 100},
        {SPINE_LINK("100Gb/s", "3"), 4, HOSTS(0, 1, 2, 3), 300},
        {SPINE_LINK("800Gb/s", "2"), 4, HOSTS(0, 1, 2, 3), 800},
        {SPINE_LINK("100Gb/s", "1"), 4, HOSTS(0, 2, 1, 3), 800},
        {SPINE_LINK("100Gb/s", "1"), 2, HOSTS(0, 1), 400},
        {SPINE_LINK("100Gb/s", "1"), 2, HOSTS(0, 3), 100},
        /* Of three the one sends to two. */
        {SPINE_LINK("100Gb/s", "1"), 3, HOSTS(0, 1, 2), 400},
        {SPINE_LINK("100Gb/s", "1"), 3, HOSTS(0, 2, 3), 100},
        {SPINE_LINK("100Gb/s", "1"), 1, HOSTS(0), 0},
        {SPINE_LINK("100Gb/s", "1"), 0, HOSTS(0), 0},
    };

    (void)state;
    for (unsigned i = 0; i < LEN(row); i++) {
        struct fabric *f = load_text(row[i].conf);
        uint64_t bps = fabric_bisection(f, row[i].host, row[i].n, false);

        if (bps != row[i].gbps * 1000000000ull)
            fail_msg("row %u: found %lu, expected %u Gb/s", i, bps, row[i].gbps);
        fabric_free(f);
    }
}

/* The flow from a to y takes the only fast way of b, so it must go to z instead. */
static void flow_is_taken_back(void **state)
{
    struct fabric *f = load_text(
        "nodes = ( { name = (\"a\", \"b\", \"y\", \"z\"); kind = \"host\"; },\n"
        "{ name = (\"s0\", \"s1\", \"s2\", \"s3\"); role = \"leaf\"; } );\n"
        "link_defaults = { rate = \"100Gb/s\"; latency = \"300ns\"; };\n"
        "links = ( { a = \"a\"; b = \"s0\"; }, { a = \"b\"; b = \"s1\"; }, { a = \"y\"; b = "
        "\"s2\"; },\n"
        "{ a = \"z\"; b = \"s3\"; }, { a = \"s0\"; b = \"s2\"; }, { a = \"s0\"; b = \"s3\"; },\n"
        "{ a = \"s1\"; b = \"s2\"; }, { a = \"s1\"; b = \"s3\"; rate = \"1Gb/s\"; } );");
    static const fab_id hosts[] = {0, 1, 2, 3};

    (void)state;
    assert_int_equal(fabric_bisection(f, hosts, 4, false), 200000000000);
    fabric_free(f);
}

/* Hosts that are linked to each other do not forward: each of one half has a link to each of the other. */
static void meshes(void **state)
{
    static const fab_id hosts[] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct fabric *f = load_file("conf/npu-mesh-8.conf");
    uint64_t rate = f->links[0].rate_bps;

    (void)state;
    assert_int_equal(f->n_links, 8 * 7 / 2);
    assert_int_equal(fabric_bisection(f, hosts, 8, false), 16 * rate);
    assert_int_equal(fabric_bisection(f, hosts, 4, false), 4 * rate);
    assert_int_equal(fabric_bisection(f, hosts, 5, false), 6 * rate);
    assert_int_equal(fabric_bisection(f, hosts, 8, true), 0);
    fabric_free(f);
}

/* Within a node by the planes, else by the network alone. */
static void planes(void **state)
{
    static const fab_id hosts[] = {0, 1, 2, 3};
    struct fabric *f = load_text("gpu_nodes = { nodes = 2; gpus = 2; planes = ( 9, 4 );\n"
                                 "nvlink = { rate = \"25GB/s\"; latency = \"300ns\"; };\n"
                                 "nic = { rate = \"400Gb/s\"; latency = \"300ns\"; }; };\n"
                                 "rails = { leaves = 1; spines = 1; spine_link = { rate = "
                                 "\"400Gb/s\"; latency = \"300ns\"; }; "
                                 "};\n");

    (void)state;
    assert_int_equal(fabric_bisection(f, hosts, 2, true), 13 * 200000000000);
    assert_int_equal(fabric_bisection(f, hosts, 4, false), 2 * 400000000000);
    assert_int_equal(fabric_bisection(f, hosts, 4, true), 0); /* no plane joins nodes */
    fabric_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks),
        cmocka_unit_test(flow_is_taken_back),
        cmocka_unit_test(meshes),
        cmocka_unit_test(planes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
