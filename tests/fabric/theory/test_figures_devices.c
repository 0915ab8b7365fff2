/* SPDX-License-Identifier: BSD-3-Clause */
/* F1 to F17: devices, topologies, and what so many GPUs need. */
#include "fabric/theory/bom.h"
#include "tests/fabric/theory/figures.h"

/* F1, F2, F3: the table of devices and the presets say the same. */
static void gpus_have_the_links_of_their_generation(void **state)
{
    static const struct {
        const char *device, *conf;
        double link_gb, gpu_gb;
        unsigned links, gpus, switches;
    } rows[] = {
        {"a100", "a100-node", 25, 300, 12, 8, 6},      /* F1 */
        {"h100", "h100-node", 25, 450, 18, 8, 4},      /* F2 */
        {"b200", "b200-node", 50, 900, 18, 8, 2},      /* F3 */
        {"gb200", "gb200-nvl72", 50, 900, 18, 72, 18}, /* F3 */
    };

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        const struct gpu_device *d = device(rows[i].device);
        struct fabric *f = preset(rows[i].conf);
        struct fab_level lv[FAB_MAX_LEVELS];

        assert_true(fabric_levels(f, lv, FAB_MAX_LEVELS) >= 1);
        assert_true(d->link_Bps == rows[i].link_gb * 1e9);
        assert_true(device_nvlink_Bps(d) == rows[i].gpu_gb * 1e9);
        assert_true((double)lv[0].member_bps == 8 * device_nvlink_Bps(d));
        assert_int_equal(lv[0].cables, rows[i].links * rows[i].gpus);
        assert_int_equal(lv[0].switches, rows[i].switches);
        assert_int_equal(d->links, rows[i].links);
        assert_int_equal(d->gpus, rows[i].gpus);
        assert_int_equal(d->nvswitches, rows[i].switches);
        assert_int_equal(f->n_hosts, rows[i].gpus);
        fabric_free(f);
    }
    /* F2: 64 ports a switch, 1.6 TB/s, 6.4 TB/s for the four. */
    assert_true(DEV_SWITCH_PORTS * device("h100")->link_Bps == 1.6e12);
    assert_true(4 * DEV_SWITCH_PORTS * device("h100")->link_Bps == 6.4e12);
}

static void nodes_have_the_egress_of_their_ports(void **state)
{
    static const struct {
        const char *device, *conf;
        double egress;
    } rows[] = {
        {"h100", "h100-superpod-1024", 400e9},   /* F5 */
        {"gb200", "gb200-superpod-576", 3.6e12}, /* F5, F15 */
    };

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        struct cost_levels l = levels_of(rows[i].conf);

        assert_true(device_node_Bps(device(rows[i].device)) == rows[i].egress);
        assert_true(l.lv[1].child_Bps == rows[i].egress);
    }
    assert_true(device_node_Bps(device("b200")) == 400e9); /* F5 */
    assert_true(levels_of("b200-node").n > 0);
    assert_true(DEV_PORT_BPS == 50e9); /* F4: 64 ports of 50 GB/s, 3.2 TB/s */
    assert_true(DEV_SWITCH_PORTS * DEV_PORT_BPS == 3.2e12);
    assert_true(4 * 18 * DEV_PORT_BPS == device_node_Bps(device("gb200")));
    /* F8: both directions together, against NVLink 4 */
    assert_true(2 * 16 * DEV_PCIE5_LANE_BPS == 128e9);
    assert_true(2 * device_nvlink_Bps(device("h100")) == 900e9);
    assert_true(device("tpu-v5p")->link_Bps == 90e9); /* F9 */
    assert_true(device_nvlink_Bps(device("tpu-v5p")) == 540e9);
}

static void flops_and_memory_are_those_of_data_sheets(void **state)
{
    static const struct {
        const char *device;
        double flops, hbm_Bps, hbm_gb;
    } rows[] = {{"a100", 3.1e14, 2.0e12, 80}, /* F6 */
                {"h100", 9.9e14, 3.35e12, 80},
                {"h200", 9.9e14, 4.8e12, 141},
                {"b200", 2.25e15, 8.0e12, 192}};

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        const struct gpu_device *d = device(rows[i].device);

        assert_true(device_flops(d, DEV_BF16) == rows[i].flops);
        assert_true(d->hbm_Bps == rows[i].hbm_Bps);
        assert_true(d->hbm_bytes == rows[i].hbm_gb * 1e9);
        if (i) /* F7; an A100 has no fp8 */
            assert_true(device_flops(d, DEV_FP8) == 2 * rows[i].flops);
    }
    assert_true(device_flops(device("a100"), DEV_FP8) == 0);
    assert_true(device_flops(device("b200"), DEV_FP4) == 9.0e15); /* F7 */
    assert_int_equal(device("h100")->fp32_cores, 16896);          /* F44 */
    assert_int_equal(device("b200")->fp32_cores, 18944);
}

/* F10 to F15: levels of the presets, and the bill of materials has the same counts by another
 * way. */
static void presets_and_bills_of_materials_agree(void **state)
{
    static const struct {
        const char *conf, *device;
        unsigned gpus, tiers;
        uint64_t nvswitches, leaves, spines, cores, all;
        double top_Bps;
    } rows[] = {
        {"h100-su", "h100", 256, 2, 128, 8, 4, 0, 0, 12.8e12},                    /* F11 */
        {"h100-superpod-1024", "h100", 1024, 2, 512, 32, 16, 0, 560, 51.2e12},    /* F12 */
        {"h100-superpod-2048", "h100", 2048, 2, 1024, 64, 32, 0, 0, 102.4e12},    /* F13 */
        {"h100-superpod-4096", "h100", 4096, 3, 2048, 128, 128, 64, 0, 204.8e12}, /* F14 */
    };

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        struct bom b = bom_of(rows[i].gpus, device(rows[i].device));
        struct fabric *f = preset(rows[i].conf);
        struct fab_level lv[FAB_MAX_LEVELS];
        unsigned n = fabric_levels(f, lv, FAB_MAX_LEVELS);

        assert_int_equal(n, rows[i].tiers + 1);
        assert_int_equal(b.tiers, rows[i].tiers);
        assert_int_equal(b.nvswitches, rows[i].nvswitches);
        assert_int_equal(b.nvswitches, lv[0].switches);
        assert_int_equal(b.nvlinks, lv[0].cables);
        assert_int_equal(b.switches[0], rows[i].leaves);
        assert_int_equal(b.switches[1], rows[i].spines);
        assert_int_equal(b.switches[2], rows[i].cores);
        for (unsigned t = 0; t < b.tiers; t++) {
            assert_int_equal(b.switches[t], lv[t + 1].switches);
            assert_int_equal(b.cables[t], lv[t + 1].cables);
        }
        assert_int_equal(b.all_switches, f->n_switches);
        if (rows[i].all)
            assert_int_equal(b.all_switches, rows[i].all);
        assert_int_equal(b.units * 32, b.nodes);
        assert_true((double)lv[1].member_bps == 8 * 400e9);
        assert_true((double)lv[n - 1].total_bps == 8 * rows[i].top_Bps);
        fabric_free(f);
    }
}

/* F13: one 400G link from each leaf to each spine instead of two; F15: 8 racks on 18 leaves. */
static void cables_of_leaves_are_spread_over_spines(void **state)
{
    const struct gpu_device *h100 = device("h100");
    struct bom pod = bom_of(1024, h100), two = bom_of(2048, h100),
               gb = bom_of(576, device("gb200")), node = bom_of(8, h100);

    (void)state;
    assert_int_equal(pod.cables[1], 2 * pod.switches[0] * pod.switches[1]);
    assert_int_equal(two.cables[1], two.switches[0] * two.switches[1]);
    assert_int_equal(gb.nodes, 8);
    assert_int_equal(gb.nvswitches, 144);
    assert_int_equal(gb.switches[0], 18);
    assert_int_equal(node.tiers, 0); /* F10 */
    assert_int_equal(node.nvswitches, 4);
    assert_int_equal(bom_of(9, h100).nodes, 2);
}

static void a_full_mesh_of_200000_gpus_has_20_billion_cables(void **state)
{
    struct bom b = bom_of(200000, device("h100"));

    (void)state;
    assert_int_equal(b.mesh_ports, 199999); /* F16 */
    NEAR((double)b.mesh_cables, 2.0e10);
    assert_int_equal(b.star_cables, 200000);
    assert_int_equal(b.tiers, 4); /* 65,536 ports are the most that three tiers of 64 have */
    assert_int_equal(bom_of(65536, device("h100")).tiers, 3);
}

/* F10: bisection 3.6 TB/s, both directions. */
static void half_a_node_reaches_the_other_half(void **state)
{
    struct fabric *f = preset("h100-node");
    struct fab_level lv[FAB_MAX_LEVELS];

    (void)state;
    assert_true(fabric_levels(f, lv, FAB_MAX_LEVELS) >= 1);
    assert_true((double)lv[0].total_bps == 8 * 3.6e12);
    assert_true((double)lv[0].bisection_bps == 8 * 3.6e12);
    fabric_free(f);
}

/* F17: 3 of 7 links for a group of 4 in a mesh, the whole egress in a star. */
static void groups_in_a_mesh_use_the_cables_among_themselves(void **state)
{
    struct cost_levels mesh = levels_of("npu-mesh-8"), star = levels_of("npu-star-8");

    (void)state;
    for (unsigned n = 2; n <= 8; n *= 2) {
        NEAR(cost_gpu_Bps(&mesh, 0, all(n)), 392e9 * (n - 1) / 7);
        NEAR(cost_gpu_Bps(&star, 0, all(n)), 392e9);
    }
    NEAR(cost_gpu_Bps(&mesh, 0, all(4)) / cost_gpu_Bps(&star, 0, all(4)), 3.0 / 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpus_have_the_links_of_their_generation),
        cmocka_unit_test(nodes_have_the_egress_of_their_ports),
        cmocka_unit_test(flops_and_memory_are_those_of_data_sheets),
        cmocka_unit_test(presets_and_bills_of_materials_agree),
        cmocka_unit_test(cables_of_leaves_are_spread_over_spines),
        cmocka_unit_test(a_full_mesh_of_200000_gpus_has_20_billion_cables),
        cmocka_unit_test(half_a_node_reaches_the_other_half),
        cmocka_unit_test(groups_in_a_mesh_use_the_cables_among_themselves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
