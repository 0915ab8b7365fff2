/* SPDX-License-Identifier: BSD-3-Clause */
/* What a conf file says of its links arrives, and what it leaves open is chosen by their rate and length. */
#include "tests/fabric/load.h"

static void every_setting_of_a_link_arrives(void **state)
{
    const struct fab_link *l;
    struct fabric *f;

    (void)state;
    f = load_text(
        "name = \"n.1\"; dilation = 1000; mtu = 1024; ecmp = \"balanced\"; slots_per_host = 16;\n"
        "link_defaults = { loss = 0.5; rate = \"10Gb/s\"; };\n"
        "single_switch = { hosts = 3; host_link = { rate = \"50GB/s\"; latency = \"1.5us\"; buffer "
        "= \"64KiB\";\n"
        "  buffer_frames = 99; ecn = \"32KiB\"; ecn_max = \"48KiB\"; ecn_prob = 0.125; pfc = "
        "false; efficiency = 0.5; dup = 0.25; reorder = 1; corrupt = 0; "
        "jitter = \"2ns\"; }; };\n"
        "dcqcn = { rpg_ai_rate = \"40Mb/s\"; dce_tcp_g = 1015; }; pfc_watchdog = \"2ms\";\n"
        "reduce = { groups = 3; slots = 40; window = 7; rounding = \"down\"; seed = 9; order = "
        "\"arrival\"; };\n"
        "costs = { gpu = \"5us\"; hca = \"100ns\"; switch = \"150ns\"; };");
    l = &f->links[2];
    assert_string_equal(f->name, "n.1");
    assert_int_equal(f->dilation, 1000);
    assert_int_equal(f->mtu, 1024);
    assert_int_equal(f->ecmp, FAB_ECMP_BALANCED);
    assert_int_equal(f->slots_per_host, 16);
    assert_int_equal(l->rate_bps, 200000000000); /* half of 50 GB/s */
    assert_int_equal(l->latency_ps, 1500000);
    assert_int_equal(l->buffer_bytes, 65536);
    assert_int_equal(l->buffer_pkts, 99);
    assert_int_equal(l->ecn_bytes, 32768);
    assert_int_equal(l->ecn_max_bytes, 49152);
    assert_true(l->ecn_prob == 0.125);
    assert_true(f->dcqcn.on);
    assert_int_equal(f->dcqcn.rpg_ai_bps, 40000000);
    assert_int_equal(f->dcqcn.dce_tcp_g, 1015);
    assert_int_equal(f->dcqcn.rpg_time_reset_ps, 300000000);
    assert_int_equal(f->pfc_watchdog_ps, 2000000000);
    assert_false(l->pfc);
    assert_true(l->loss == 0.5 && l->dup == 0.25 && l->reorder == 1 && l->corrupt == 0);
    assert_int_equal(l->jitter_ps, 2000);
    assert_int_equal(f->nodes[3].reduce.max_groups, 3);
    assert_int_equal(f->nodes[3].reduce.max_slots, 40);
    assert_int_equal(f->nodes[3].reduce.window, 7);
    assert_int_equal(f->nodes[3].reduce.rounding, FAB_ROUND_DOWN);
    assert_int_equal(f->nodes[3].reduce.seed, 9);
    assert_true(f->nodes[3].reduce.arrival);
    assert_int_equal(f->nodes[3].ports[2].rate_bps, l->rate_bps);
    assert_int_equal(f->nodes[2].ports[0].latency_ps, l->latency_ps);
    assert_int_equal(f->nodes[3].ports[2].latency_ps, l->latency_ps + 150000);
    assert_int_equal(fabric_latency(f, 0) + fabric_latency(f, 1), 2 * l->latency_ps + 150000);
    assert_int_equal(f->costs.gpu_ps, 5000000);
    assert_int_equal(f->costs.hca_ps, 100000);
    fabric_free(f);
}

static void one_link_of_a_template_is_changed(void **state)
{
    struct fabric *f;
    unsigned changed = 0;

    (void)state;
    f = load_text(
        "link_defaults = { rate = \"400Gb/s\"; latency = \"1us\"; efficiency = 0.5; };\n"
        "leaf_spine = { leaves = 2; spines = 2; hosts_per_leaf = 2; spine_link = { cables "
        "= 2; }; };\n"
        "links = ( { of = \"spine1-leaf0\"; rate = \"100Gb/s\"; latency = \"1ms\"; loss = "
        "0.25; } );");
    for (unsigned i = 0; i < f->n_links; i++) {
        const struct fab_link *l = &f->links[i];
        bool is = l->loss > 0;

        changed += is;
        assert_true(!is || (!strncmp(l->name, "leaf0:", 6) && strstr(l->name, "-spine1:")));
        assert_int_equal(l->rate_bps, is ? 50000000000ull : 200000000000ull); /* half of it */
        assert_int_equal(l->latency_ps, is ? 1000000000 : 1000000);
        assert_int_equal(l->buffer_bytes, is ? 8 * 6250000ull : 1u << 20);
    }
    assert_int_equal(changed, 2); /* cables */
    fabric_free(f);
}

static void a_long_link_has_a_buffer_of_four_round_trips(void **state)
{
    struct fabric *f;

    (void)state;
    f = load_text(
        "single_switch = { hosts = 2; host_link = { rate = \"400Gb/s\"; latency = \"1ms\"; }; };");
    assert_int_equal(f->links[0].buffer_bytes, 4 * 2 * 50000000ull);
    assert_int_equal(f->links[0].buffer_pkts, f->links[0].buffer_bytes / 4096);
    fabric_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_setting_of_a_link_arrives),
        cmocka_unit_test(one_link_of_a_template_is_changed),
        cmocka_unit_test(a_long_link_has_a_buffer_of_four_round_trips),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
