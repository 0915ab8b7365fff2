/* SPDX-License-Identifier: BSD-3-Clause */
/* What trib plan and trib model take beyond what runs: numbers of 32 bits, routes and parents that are
 * computed when asked for. */
#include "fabric/report/drawing.h"
#include "fabric/routing/routes.h"
#include "fabric/theory/cost.h"
#include "tests/fabric/load.h"

#include <errno.h>
#include <string.h>

static void three_tiers_of_65536_hosts(void **state)
{
    struct fabric *f = load_text(
        REDUCE LINKS "leaf_spine = { leaves = 2048; spines = 1024; hosts_per_leaf = 32; pods = 64; "
                     "cores = 512; core_groups = 16; };");
    struct fab_level lv[FAB_MAX_LEVELS];
    struct drawing *d = drawing_new(f);
    const fab_id *parent;
    unsigned hosts = 0;
    fab_id port[4], last = f->hosts[65535];

    (void)state;
    assert_int_equal(f->n_hosts, 65536);
    assert_int_equal(f->n_switches, 2048 + 1024 + 512);
    assert_int_equal(fabric_levels(f, lv, FAB_MAX_LEVELS), 3);
    assert_int_equal(lv[2].hosts, 65536);
    assert_true(lv[2].bisection_bps == 32768 * 400000000000);
    assert_int_equal(f->n_trees, 512);
    for (unsigned t = 0; t < 512; t += 511) {
        parent = fabric_tree_parents(f, &f->trees[t]);
        hosts = 0;
        for (unsigned i = 0; i < f->n_hosts; i++)
            hosts += parent[f->hosts[i]] != FAB_NONE;
        assert_int_equal(hosts, 65536);
        assert_int_equal(f->trees[t].depth, 3);
        assert_string_equal(f->nodes[parent[last]].name, "leaf2047");
        assert_int_equal(parent[parent[parent[last]]], f->trees[t].root);
    }
    /* A leaf goes up by its 16 spines to another pod, a core comes down by one. */
    assert_int_equal(
        fabric_hops(f, fabric_node_index(f, fabric_node(f, "leaf0")), f->nodes[last].dest, port, 4),
        16);
    assert_int_equal(
        fabric_hops(f, fabric_node_index(f, fabric_node(f, "core0")), f->nodes[last].dest, port, 4),
        1);
    assert_int_equal(fabric_hops(f, f->hosts[0], f->nodes[last].dest, port, 4), 1);
    assert_true(d->width <= DRAWING_WIDTH && d->n_boxes == 4);
    for (unsigned k = 0; k < 40; k++) {
        fab_id u = f->hosts[k * 1609], to = f->hosts[65535 - k * 1201];

        for (unsigned steps = 0; u != to; steps++) {
            assert_true(steps < 6 && fabric_hops(f, u, f->nodes[to].dest, port, 4) > 0);
            u = f->nodes[u].ports[port[0]].peer_node;
        }
    }
    drawing_free(d);
    fabric_free(f);
}

static void every_address_leads_back(void **state)
{
    struct fabric *f = load_text(
        REDUCE LINKS "leaf_spine = { leaves = 1000; spines = 1; hosts_per_leaf = 130; };");

    (void)state;
    assert_int_equal(f->n_hosts, 130000);
    for (unsigned d = 0; d < f->n_dests; d++)
        assert_int_equal(fabric_dest_of_ip(f, f->dests[d].ip), d);
    assert_int_equal(fabric_dest_of_ip(f, 10u << 24 | 2u << 16 | 1), -ENOENT);
    fabric_free(f);
}

static void refused(const char *text, const char *why)
{
    static struct fab_errors errs;

    assert_null(fabric_load_string(text, "wide", &errs));
    if (!strstr(errs.e[0].text, why))
        fail_msg("found \"%s\", expected \"%s\"", errs.e[0].text, why);
}

static void limits_are_those_of_plans(void **state)
{
    (void)state;
    fabric_free(load_text(REDUCE LINKS
                          "leaf_spine = { leaves = 512; spines = 1; hosts_per_leaf = 256; };"));
    refused(LINKS "leaf_spine = { leaves = 1; spines = 1; hosts_per_leaf = 131073; };",
            "found 131073, expected an integer from 1 to 131072");
    refused(LINKS "leaf_spine = { leaves = 3; spines = 1; hosts_per_leaf = 43691; };",
            "found 131073 hosts, expected at most 131072");
    refused(LINKS "leaf_spine = { leaves = 250000; spines = 1; hosts_per_leaf = 131072; };",
            "found 32768000000 hosts, expected at most 131072");
    refused(LINKS "gpu_nodes = { nodes = 16385; gpus = 8; planes = ( 1 ); };",
            "found 131080 hosts, expected at most 131072");
    refused(LINKS "gpu_nodes = { nodes = 65536; gpus = 2; planes = ( 1, 1 ); };",
            "found more nodes, expected at most 256000");
    refused(LINKS "leaf_spine = { leaves = 1024; spines = 1024; hosts_per_leaf = 1; spine_link = { "
                  "cables = 2; }; };",
            "found more links, expected at most 2097152");
}

/* In a fabric that is not large, by tables, as in programs that run it. */
static void ways_lead_to_the_root_and_to_each_switch(void **state)
{
    struct fabric *f = load_file(THREE_TIER);

    (void)state;
    for (unsigned t = 0; t < f->n_trees; t++) {
        const fab_id *parent = fabric_tree_parents(f, &f->trees[t]);

        for (unsigned i = 0; i < f->n_hosts; i++) {
            fab_id u = parent[f->hosts[i]];

            while (u != f->trees[t].root) {
                assert_int_not_equal(u, FAB_NONE);
                u = parent[u];
            }
        }
    }
    for (unsigned s = 0; s < f->n_switches; s++)
        for (unsigned z = 0; z < f->n_switches; z++) {
            fab_id port[FAB_MAX_HOST_PORTS], u = f->switches[s];
            unsigned n = fabric_hops(f, u, f->nodes[f->switches[z]].dest, port, FAB_MAX_HOST_PORTS);

            for (unsigned steps = 0; n && u != f->switches[z]; steps++) {
                assert_true(steps < 6);
                u = f->nodes[u].ports[port[0]].peer_node;
                fabric_hops(f, u, f->nodes[f->switches[z]].dest, port, FAB_MAX_HOST_PORTS);
            }
        }
    fabric_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_tiers_of_65536_hosts),
        cmocka_unit_test(every_address_leads_back),
        cmocka_unit_test(limits_are_those_of_plans),
        cmocka_unit_test(ways_lead_to_the_root_and_to_each_switch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
