/* SPDX-License-Identifier: BSD-3-Clause */
/* The rate at which all edges of a group's tree can send at once. */
#include "fabric/tree_rate.h"

#include "tests/fabric/load.h"

#define GB 1000000000ull

static struct fab_members members(unsigned ranks_per_host, unsigned n, const unsigned *ids)
{
    struct fab_members m = {.ranks_per_host = (uint16_t)ranks_per_host};

    for (unsigned i = 0; i < n; i++)
        fab_members_add(&m, ids[i]);
    return m;
}

#define M(...) members(1, LEN(((const unsigned[]){__VA_ARGS__})), (const unsigned[]){__VA_ARGS__})

static void an_edge_has_the_slowest_link_of_those_in_use(void **state)
{
    struct fabric *f = load_leaf_spine(2, 1, 3, 1,
                                       "links = ( { of = \"h2-leaf0\"; rate = \"30Gb/s\"; },\n"
                                       "  { of = \"h5-leaf1\"; rate = \"20Gb/s\"; },\n"
                                       "  { of = \"leaf1-spine0\"; rate = \"100Gb/s\"; } );");
    const struct fab_tree *t = f->trees;
    const struct {
        struct fab_members m;
        uint64_t hosts, switches;
    } rows[] = {
        {M(0, 1), 400 * GB, 0}, /* one leaf: no edge between switches */
        {M(0, 2), 30 * GB, 0},         {M(0, 3), 100 * GB, 100 * GB},
        {M(2, 3), 30 * GB, 100 * GB},  {M(0, 1, 2, 3, 4, 5), 20 * GB, 100 * GB},
        {M(4), 400 * GB, 0},           {M(0, 6), 0, 0}, /* host 6 is not there */
        {{.ranks_per_host = 1}, 0, 0},
    };

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        assert_int_equal(fabric_tree_bps(f, t, &rows[i].m, true), rows[i].hosts);
        assert_int_equal(fabric_tree_bps(f, t, &rows[i].m, false), rows[i].switches);
    }
    fabric_free(f);
}

/* Ranks of a host share its port; a member each. */
static void edges_share_the_links_that_they_cross(void **state)
{
    struct fabric *f = load_leaf_spine(2, 1, 2, 1, "");
    struct fab_members m = members(4, 3, (const unsigned[]){0, 1, 2}),
                       both = members(4, 4, (const unsigned[]){0, 1, 2, 8});

    (void)state;
    assert_int_equal(fabric_tree_bps(f, f->trees, &m, true), 400 * GB / 3);
    assert_int_equal(fabric_tree_bps(f, f->trees, &m, false), 0);
    assert_int_equal(fabric_tree_bps(f, f->trees, &both, true), 400 * GB / 3);
    assert_int_equal(fabric_tree_bps(f, f->trees, &both, false), 400 * GB);
    fabric_free(f);
    /* Two leaves that do not reduce hang on one switch that does not: their hosts join the spine
     * behind it, each over the same link. */
    f = load_text(LINKS "nodes = ( { name = (\"a\", \"b\", \"c\"); kind = \"host\"; },\n"
                        "  { name = \"l\"; role = \"leaf\"; reduce = false; },\n"
                        "  { name = \"s\"; role = \"spine\"; reduce = { }; },\n"
                        "  { name = \"k\"; role = \"leaf\"; reduce = { }; } );\n"
                        "links = ( { a = (\"a\", \"b\"); b = \"l\"; }, { a = \"c\"; b = \"k\"; },\n"
                        "  { a = (\"l\", \"k\"); b = \"s\"; } );");
    m = M(0, 1, 2);
    assert_int_equal(fabric_tree_bps(f, f->trees, &m, true), 200 * GB);
    assert_int_equal(fabric_tree_bps(f, f->trees, &m, false), 400 * GB);
    fabric_free(f);
}

static void what_reaches_not_all_members_has_no_rates(void **state)
{
    struct fabric *f = load_leaf_spine(2, 2, 2, 1, "");
    struct fab_members all = M(0, 3), strange = M(0, 4);
    fab_id trees[FAB_TREES_AT_ONCE + 1] = {0, 1};
    uint64_t bps[FAB_TREES_AT_ONCE + 1];

    (void)state;
    assert_true(fabric_tree_rates(f, trees, 2, &all, bps));
    assert_int_equal(bps[0], 200 * GB); /* of the hosts' ports */
    assert_int_equal(bps[1], 200 * GB);
    assert_false(fabric_tree_rates(f, trees, 2, &strange, bps));
    assert_false(fabric_tree_rates(f, trees, 0, &all, bps));
    assert_false(fabric_tree_rates(f, trees, FAB_TREES_AT_ONCE + 1, &all, bps));
    for (unsigned i = 0; i < FAB_TREES_AT_ONCE; i++)
        trees[i] = (fab_id)(i % 2);
    assert_true(fabric_tree_rates(f, trees, FAB_TREES_AT_ONCE, &all, bps));
    assert_int_equal(bps[31], 400 * GB / FAB_TREES_AT_ONCE);
    trees[1] = 2;
    assert_false(fabric_tree_rates(f, trees, 2, &all, bps));
    fabric_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_edge_has_the_slowest_link_of_those_in_use),
        cmocka_unit_test(edges_share_the_links_that_they_cross),
        cmocka_unit_test(what_reaches_not_all_members_has_no_rates),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
