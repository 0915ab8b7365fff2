/* SPDX-License-Identifier: BSD-3-Clause */
/* F20 to F43: costs of collectives by levels. */
#include "tests/fabric/theory/figures.h"

#define B 1e9

/* F20, F21, F22, F23, F25 on one switch. */
static void one_level_costs_what_the_textbook_says(void **state)
{
    struct cost_levels l = levels_of("h100-node");
    double w = device_nvlink_Bps(device("h100"));

    (void)state;
    for (unsigned n = 2; n <= 8; n *= 2) {
        double ring = cost_ring(&l, all(n), B, true).s;

        NEAR(cost_ring(&l, all(n), B, false).s, B * (n - 1) / (n * w));        /* F20 */
        NEAR(collective(&l, all(n), B, COST_GATHER).s, B * (n - 1) / (n * w)); /* F20 */
        NEAR(ring, 2 * B * (n - 1) / (n * w));                                 /* F21 */
        NEAR(cost_rings(&l, all(n), B, true).s, ring);
        NEAR(collective(&l, all(n), B, COST_ALL_REDUCE).s, ring);
        NEAR(cost_halving(&l, all(n), B).s, ring); /* F22 */
        NEAR(cost_alltoall(&l, all(n), B, COST_DENSE, 0).s,
             B * (n - 1) / (1. * n * n * w));                                     /* F23 */
        NEAR(collective(&l, all(n), B, COST_REDUCED).s, B / w);                   /* F25 */
        NEAR(ring / collective(&l, all(n), B, COST_REDUCED).s, 2. * (n - 1) / n); /* F25 */
    }
    NEAR(cost_ring(&l, all(8), B, true).s / collective(&l, all(8), B, COST_REDUCED).s, 1.75);
    assert_int_equal(cost_steps_ring(8), 2 * 7); /* F22 */
    assert_int_equal(cost_steps_halving(8), 2 * 3);
    assert_int_equal(cost_steps_halving(1024), 2 * 10);
}

static void a_sparse_all_to_all_costs_its_share(void **state)
{
    struct cost_levels l = levels_of("h100-node");
    double dense = cost_alltoall(&l, all(8), B, COST_DENSE, 0).s;

    (void)state;
    for (unsigned k = 1; k <= 16; k++) { /* F24 */
        double drawn = cost_alltoall(&l, all(8), B, COST_DRAWN, k).s,
               w = device_nvlink_Bps(device("h100"));

        NEAR(cost_alltoall(&l, all(8), B, COST_SPARSE, k).s, dense * (k < 8 ? k / 8. : 1));
        NEAR(drawn, B / (8 * w) * (1 - pow(7. / 8, k)) * 7 / 8);
    }
}

/* The exact factor of F24 against counting: every draw of K among Z equally likely shards. */
static void the_exact_factor_is_what_draws_reach(void **state)
{
    (void)state;
    for (unsigned z = 2; z <= 5; z++)
        for (unsigned k = 1; k <= 4; k++) {
            unsigned draws = (unsigned)lround(pow(z, k)), reached = 0;

            for (unsigned d = 0; d < draws; d++) {
                unsigned seen = 0;

                for (unsigned i = 0, x = d; i < k; i++, x /= z)
                    seen |= 1u << x % z;
                reached += (unsigned)__builtin_popcount(seen & ~1u); /* shard 0 is one's own */
            }
            NEAR(cost_share(COST_DRAWN, k, z) * (z - 1) / z, 1. * reached / draws / z);
        }
}

static void bytes_of_an_all_reduce_in_one_switch(void **state)
{
    struct cost_bytes b = cost_bytes_reduced(8e6, 8, false), own = cost_bytes_reduced(8e6, 8, true);
    double ring = 2 * 8e6 * 7 / 8;

    (void)state;
    NEAR(b.gpu_out, 7e6 + 1e6); /* F26: B (N - 1) / N, then B / N */
    NEAR(b.gpu_in, 1e6 + 7e6);
    NEAR(b.switch_in, 8 * 8e6);
    NEAR(b.switch_out, 8 * 8e6);
    NEAR(own.gpu_out, 9e6); /* F27 */
    WITHIN(ring / own.gpu_out, 1.56, 0.005);
}

static void all_gather_bandwidth_of_a_superpod_by_level(void **state)
{
    struct cost_levels l = levels_of("h100-superpod-1024");
    struct cost c = collective(&l, all(1024), B, COST_GATHER);

    (void)state;
    NEAR(B / c.level_s[0], 514e9); /* F29 */
    NEAR(B / c.level_s[1], 413e9);
    NEAR(B / c.level_s[2], 17.1e12);
    NEAR(B / c.s, 413e9);
    assert_int_equal(c.binds, 1);
    assert_int_equal(l.lv[c.binds].role, FAB_ROLE_LEAF);
    /* F28 */
    NEAR(c.s, B * fmax(7 / (8 * 450e9), fmax(31 / (32 * 400e9), 3 / (4 * 12.8e12))));
    NEAR(collective(&l, all(1024), B, COST_ALL_REDUCE).s, 2 * c.s);
}

static void an_all_gather_over_two_nodes_is_bound_in_the_node(void **state)
{
    struct cost_levels l = levels_of("h100-superpod-1024");
    struct cost c = collective(&l, all(16), B, COST_GATHER);

    (void)state;
    NEAR(c.level_s[0], B / 514e9); /* F32 */
    NEAR(c.level_s[1], B / 800e9);
    assert_int_equal(c.binds, 0);
    assert_true(c.level_s[2] == 0);
}

static void an_all_to_all_loses_most_from_one_node_to_two(void **state)
{
    struct cost_levels l = levels_of("h100-superpod-1024");
    double one = cost_alltoall(&l, all(8), B, COST_DENSE, 0).s,
           two = cost_alltoall(&l, all(16), B, COST_DENSE, 0).s;

    (void)state;
    NEAR(one, B / 4.11e12); /* F30 */
    NEAR(two, B / 1.6e12);
    /* NVLinks carry the data that stays in the node */
    NEAR(cost_alltoall(&l, all(16), B, COST_DENSE, 0).level_s[0], B * 7 / (16 * 16 * 450e9));
    NEAR(two / one, 2.57);
    NEAR(B / 8 / one, 514e9);
    NEAR(B / 16 / two, 100e9);
    NEAR(two * 2 / one, 5.1);
    for (unsigned m = 2; m <= 32; m *= 2)
        NEAR(cost_alltoall(&l, all(8 * m), B, COST_DENSE, 0).s, B * (m - 1) / (1. * m * m * 400e9));
    assert_int_equal(cost_alltoall(&l, all(256), B, COST_DENSE, 0).binds, 1);
}

static void an_inner_axis_of_shards_uses_the_links_of_its_gpus(void **state)
{
    struct cost_levels l = levels_of("h100-su");

    (void)state;
    for (unsigned y = 1; y <= 8; y *= 2) { /* F31 */
        struct cost c = collective(&l, (struct cost_axis){y, 256 / y}, B, COST_GATHER);

        NEAR(c.s, B * 31 / (32 * 400e9));
    }
    for (unsigned y = 16; y <= 128; y *= 2) {
        struct cost c = collective(&l, (struct cost_axis){y, 256 / y}, B, COST_GATHER);
        double d = 256. / y;

        /* The table drops (D - 1) / D here: D nodes or groups of them are left of 32. */
        NEAR(c.s * d / (d - 1), B / (y * 50e9));
    }
}

static void bytes_at_the_switches_of_a_unit(void **state)
{
    struct cost_bytes leaf = cost_bytes_leaf(B, 32, 8), node = cost_bytes_node(B, 8);

    (void)state;
    NEAR(leaf.switch_in, B); /* F33 */
    NEAR(leaf.switch_out, B * 31);
    NEAR(leaf.gpu_out * 256, leaf.switch_in);
    NEAR(leaf.gpu_in * 256, leaf.switch_out);
    NEAR(node.switch_in, B);
    NEAR(node.switch_out, B * 7);
    NEAR(node.gpu_out * 8, node.switch_in);
    NEAR(node.gpu_in * 8, node.switch_out);
}

static void worked_all_gathers_of_a_node(void **state)
{
    struct cost_levels l = levels_of("h100-node");
    double small = 2. * 1024 * 16384, w = device_nvlink_Bps(device("h100"));

    (void)state;
    NEAR(collective(&l, all(8), 2. * 4096 * 65536, COST_GATHER).s, 1.04e-3); /* F40 */
    NEAR(collective(&l, all(8), small, COST_GATHER).s, 65e-6);               /* F41 */
    NEAR(small / w, 75e-6);
}

static void worked_all_reduces_in_the_network(void **state)
{
    struct cost_levels node = levels_of("h100-node"), pod = levels_of("h100-superpod-1024");
    double w = device_nvlink_Bps(device("h100"));

    (void)state;
    for (unsigned y = 1; y <= 4; y *= 2) { /* F42; B is 2DF */
        struct cost_axis x = {y, 8 / y};

        NEAR(collective(&node, x, B, COST_REDUCED).s, B / (y * w));
    }
    /* F43: by F12, F25 and F29, not by half of the spines' bandwidth. */
    NEAR(collective(&pod, (struct cost_axis){256, 4}, B, COST_REDUCED).s, B / 12.8e12);
    assert_int_equal(collective(&pod, (struct cost_axis){256, 4}, B, COST_REDUCED).binds, 2);
}

/* Beyond the table: the bytes on a host's only link count once, however many levels are above. */
static void what_passes_a_link_on_its_way_up_is_counted(void **state)
{
    struct cost_levels l = levels_of("leaf-spine-8"), pod = levels_of("h100-superpod-1024"),
                       two = levels_of("h100-su");
    static const enum cost_way gather[FAB_MAX_LEVELS] = {COST_GATHER};

    (void)state;
    NEAR(cost_through(&l, all(8), B, gather).s, B * 7 / (8 * 50e9));
    assert_true(cost_through(&l, all(8), B, gather).s == cost_ring(&l, all(8), B, false).s);
    NEAR(cost_through(&pod, all(1024), B, gather).s, B * 127 / (128 * 400e9));
    assert_true(cost_through(&two, all(256), B, gather).s ==
                cost_collective(&two, all(256), B, gather).s);
}

/* Beyond the table: without levels that join GPUs first, each sends its whole vector by its NIC. */
static void sharp_of_every_gpu_is_bound_by_its_nic(void **state)
{
    struct cost_levels l = levels_of("h100-superpod-1024"), flat = levels_of("leaf-spine-8");
    struct cost c = cost_flat_sharp(&l, all(1024), B);

    (void)state;
    NEAR(c.s, B / 50e9);
    assert_int_equal(c.binds, 1);
    NEAR(c.level_s[2], B * 8 / 12.8e12); /* a sum from each of the unit's leaves */
    NEAR(cost_flat_sharp(&flat, all(8), B).s, B / 50e9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_level_costs_what_the_textbook_says),
        cmocka_unit_test(a_sparse_all_to_all_costs_its_share),
        cmocka_unit_test(the_exact_factor_is_what_draws_reach),
        cmocka_unit_test(bytes_of_an_all_reduce_in_one_switch),
        cmocka_unit_test(all_gather_bandwidth_of_a_superpod_by_level),
        cmocka_unit_test(an_all_gather_over_two_nodes_is_bound_in_the_node),
        cmocka_unit_test(an_all_to_all_loses_most_from_one_node_to_two),
        cmocka_unit_test(an_inner_axis_of_shards_uses_the_links_of_its_gpus),
        cmocka_unit_test(bytes_at_the_switches_of_a_unit),
        cmocka_unit_test(worked_all_gathers_of_a_node),
        cmocka_unit_test(worked_all_reduces_in_the_network),
        cmocka_unit_test(what_passes_a_link_on_its_way_up_is_counted),
        cmocka_unit_test(sharp_of_every_gpu_is_bound_by_its_nic),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
