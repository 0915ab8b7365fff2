/* SPDX-License-Identifier: BSD-3-Clause */
/* Routes and the spanning tree around links that are down. */
#include "tests/fabric/load.h"

#include "fabric/routing/reroute.h"

#include <stdio.h>
#include <stdlib.h>

static unsigned link_of(const struct fabric *f, const char *name)
{
    int i = fabric_link_by_name(f, name);

    assert_true(i >= 0);
    return (unsigned)i;
}

static unsigned hops(const struct fabric *f, const char *at, const char *to)
{
    return fabric_hops(f, node(f, at), fabric_node(f, to)->dest, NULL, 0);
}

static bool goes_by(const struct fabric *f, const char *at, const char *to, const char *next)
{
    uint16_t port[8];
    unsigned n = fabric_hops(f, node(f, at), fabric_node(f, to)->dest, port, LEN(port));

    for (unsigned i = 0; i < n && i < LEN(port); i++)
        if (fabric_node(f, at)->ports[port[i]].peer_node == node(f, next))
            return true;
    return false;
}

/* Switches that a frame flooded by `from` reaches. */
static unsigned flooded(const struct fabric *f, uint16_t from, uint16_t by)
{
    unsigned n = 1;

    for (unsigned p = 0; p < f->nodes[from].n_ports; p++) {
        const struct fab_port *q = &f->nodes[from].ports[p];

        if (q->flood && q->link != FAB_NONE && q->peer_node != by &&
            f->nodes[q->peer_node].kind == FAB_SWITCH)
            n += flooded(f, q->peer_node, from);
    }
    return n;
}

static void both_ends_lead_around_a_dead_link_and_the_old_fabric_stays(void **state)
{
    struct fabric *f = load_leaf_spine(2, 2, 2, 1, ""), *g;
    bool *down = calloc(f->n_links, sizeof(*down));

    (void)state;
    down[link_of(f, "leaf0-spine0")] = true;
    g = fabric_without(f, down);
    assert_non_null(g);
    /* the end that sees it, and the far leaf, which does not */
    assert_int_equal(hops(g, "leaf0", "h2"), 1);
    assert_true(goes_by(g, "leaf0", "h2", "spine1"));
    assert_int_equal(hops(g, "leaf1", "h0"), 1);
    assert_true(goes_by(g, "leaf1", "h0", "spine1"));
    /* up, down, and never up again: spine0 has no way to leaf0's hosts */
    assert_int_equal(hops(g, "spine0", "h0"), 0);
    assert_int_equal(hops(g, "spine0", "h2"), 1);
    assert_int_equal(hops(g, "leaf0", "h1"), 1);
    assert_int_equal(flooded(g, node(g, "leaf0"), FAB_NONE), 4);
    for (unsigned i = 0; i < f->n_links; i++) /* the link is there, though no route takes it */
        assert_int_equal(g->nodes[f->links[i].a].ports[f->links[i].a_port].link, i);
    assert_int_equal(hops(f, "leaf0", "h2"), 2);
    assert_int_equal(hops(f, "leaf1", "h0"), 2);
    fabric_free(g);
    fabric_free(f);
    free(down);
}

static void a_parallel_cable_carries_on_alone(void **state)
{
    struct fabric *f = load_leaf_spine(2, 1, 1, 2, ""), *g;
    bool *down = calloc(f->n_links, sizeof(*down));
    uint16_t spine = node(f, "spine0");
    unsigned cut = f->n_links;

    (void)state;
    for (unsigned i = 0; i < f->n_links && cut == f->n_links; i++)
        if (f->links[i].a == spine || f->links[i].b == spine)
            cut = i;
    down[cut] = true;
    g = fabric_without(f, down);
    assert_non_null(g);
    assert_int_equal(hops(g, "spine0", "h0") + hops(g, "spine0", "h1"), 3);
    assert_int_equal(flooded(g, node(g, "leaf0"), FAB_NONE), 3);
    fabric_free(g);
    fabric_free(f);
    free(down);
}

static void what_is_cut_off_has_no_route_and_hosts_links_change_nothing(void **state)
{
    struct fabric *f = load_leaf_spine(2, 1, 2, 1, ""), *g;
    bool *down = calloc(f->n_links, sizeof(*down));

    (void)state;
    down[link_of(f, "leaf0-spine0")] = down[link_of(f, "h0-leaf0")] = true;
    g = fabric_without(f, down);
    assert_non_null(g);
    assert_int_equal(hops(g, "leaf1", "h0"), 0);
    assert_int_equal(hops(g, "spine0", "h1"), 0);
    assert_int_equal(hops(g, "h2", "h1"), 0);
    assert_int_equal(hops(g, "leaf0", "h0"), 1);
    assert_int_equal(flooded(g, node(g, "leaf0"), FAB_NONE), 1);
    assert_int_equal(flooded(g, node(g, "leaf1"), FAB_NONE), 2);
    fabric_free(g);
    fabric_free(f);
    free(down);
}

static bool same_hops(const struct fabric *f, const struct fabric *g, uint16_t at, uint16_t dest)
{
    uint16_t a[16], b[16];
    unsigned n = fabric_hops(f, at, dest, a, LEN(a));

    assert_true(n <= LEN(a));
    return fabric_hops(g, at, dest, b, LEN(b)) == n && !memcmp(a, b, n * sizeof(*a));
}

/* The link comes up again soon, or its switch tells whoever asks; a missing route would make ports
 * flood. */
static void a_hosts_link_that_is_down_changes_no_route_of_anybody(void **state)
{
    struct fabric *f = load_leaf_spine(2, 2, 2, 1, ""), *g;
    bool *down = calloc(f->n_links, sizeof(*down));

    (void)state;
    down[link_of(f, "h0-leaf0")] = true;
    g = fabric_without(f, down);
    assert_non_null(g);
    for (uint16_t n = 0; n < f->n_nodes; n++) {
        for (uint16_t d = 0; d < f->n_dests; d++)
            assert_true(same_hops(f, g, n, d));
        for (unsigned p = 0; p < f->nodes[n].n_ports; p++) {
            assert_int_equal(g->nodes[n].ports[p].link, f->nodes[n].ports[p].link);
            assert_int_equal(g->nodes[n].ports[p].flood, f->nodes[n].ports[p].flood);
        }
    }
    fabric_free(g);
    fabric_free(f);
    free(down);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ends_lead_around_a_dead_link_and_the_old_fabric_stays),
        cmocka_unit_test(a_parallel_cable_carries_on_alone),
        cmocka_unit_test(what_is_cut_off_has_no_route_and_hosts_links_change_nothing),
        cmocka_unit_test(a_hosts_link_that_is_down_changes_no_route_of_anybody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
