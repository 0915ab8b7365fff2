/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What so many GPUs take, in nodes of 8 with 4 NVSwitches: leaves with 32 ports down, so 32 nodes a unit
 * and a rail for each GPU of a node, and as few tiers above as carry them.
 */
#include "fabric/theory/bom.h"
#include "tests/fabric/load.h"

static const struct gpu_device node8 = {.gpus = 8, .nvswitches = 4, .links = 18};

static void tiers(void **state)
{
    static const struct {
        uint64_t gpus, nodes, units;
        unsigned tiers;
        uint64_t switches[4], cables[4];
    } row[] = {
        {1, 1, 1, 0, {0}, {0}},
        {8, 1, 1, 0, {0}, {0}},
        /* Of few nodes several rails share a leaf: 16 of two nodes, 2 of sixteen, 1 of seventeen. */
        {9, 2, 1, 1, {1}, {9}},
        {32, 4, 1, 1, {1}, {32}},
        {40, 5, 1, 2, {2, 1}, {40, 64}},
        {128, 16, 1, 2, {4, 2}, {128, 128}},
        {129, 17, 1, 2, {8, 4}, {129, 256}},
        {248, 31, 1, 2, {8, 4}, {248, 256}},
        {256, 32, 1, 2, {8, 4}, {256, 256}},
        {257, 33, 2, 2, {16, 8}, {257, 512}},
        /* 64 leaves fill two tiers, 2048 three. */
        {2048, 256, 8, 2, {64, 32}, {2048, 2048}},
        {2049, 257, 9, 3, {72, 72, 36}, {2049, 2304, 2304}},
        {65536, 8192, 256, 3, {2048, 2048, 1024}, {65536, 65536, 65536}},
        {65537, 8193, 257, 4, {2056, 2056, 2056, 1028}, {65537, 65792, 65792, 65792}},
    };

    (void)state;
    for (unsigned i = 0; i < LEN(row); i++) {
        struct bom b = bom_of(row[i].gpus, &node8);
        uint64_t switches = 4 * row[i].nodes, cables = 0;

        assert_int_equal(b.gpus, row[i].gpus);
        assert_int_equal(b.nodes, row[i].nodes);
        assert_int_equal(b.units, row[i].units);
        assert_int_equal(b.nvswitches, 4 * row[i].nodes);
        assert_int_equal(b.nvlinks, 18 * row[i].gpus);
        assert_int_equal(b.tiers, row[i].tiers);
        for (unsigned t = 0; t < 4; t++) {
            assert_int_equal(b.switches[t], row[i].switches[t]);
            assert_int_equal(b.cables[t], row[i].cables[t]);
            switches += row[i].switches[t];
            cables += row[i].cables[t];
        }
        assert_int_equal(b.all_switches, switches);
        assert_int_equal(b.all_cables, cables);
    }
}

/* A cable between every two, or one from each to a single switch. */
static void alternatives(void **state)
{
    static const struct {
        uint64_t gpus, ports, cables;
    } row[] = {{1, 0, 0}, {2, 1, 1}, {3, 2, 3}, {1024, 1023, 523776}};

    (void)state;
    for (unsigned i = 0; i < LEN(row); i++) {
        struct bom b = bom_of(row[i].gpus, &node8);

        assert_int_equal(b.mesh_ports, row[i].ports);
        assert_int_equal(b.mesh_cables, row[i].cables);
        assert_int_equal(b.star_cables, row[i].gpus);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tiers), cmocka_unit_test(alternatives)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
