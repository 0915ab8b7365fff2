/* SPDX-License-Identifier: BSD-3-Clause */
/* Which trees the rails of a job take. GPU i of node n is host n * gpus + i, at leaf i. */
#include "fabric/tree_rails.h"
#include "tests/fabric/load.h"

#define LINK(name, rate) name " = { rate = \"" rate "Gb/s\"; latency = \"300ns\"; };"
#define CONF(nodes, gpus, rails)                                                                   \
    "ecmp = \"balanced\"; gpu_nodes = { nodes = " nodes "; gpus = " gpus "; planes = ( 5, 4 );"    \
    "nvlink = { rate = \"25GB/s\"; latency = \"300ns\"; };" LINK(                                  \
        "nic", "400") "};"                                                                         \
                      "rails = { leaves = " gpus "; " rails LINK("spine_link", "400") "};" REDUCE
#define TIERS(cores)                                                                               \
    CONF("4", "4", "spines = 4; unit = 1; pods = 2; cores = " cores ";" LINK("core_link", "400"))
#define UNITS CONF("2", "4", "spines = 2; unit = 1;")

/* The choice of rails whose trees are the first n of the fabric; ranks in the order of hosts. */
static void takes(const char *text, unsigned gpus, unsigned n, const unsigned *want)
{
    struct fabric *f = load_text(text);
    fab_id host[64], place[64], tree[FAB_JOB_TREES];
    const struct fab_rails r = {f->n_hosts, host, place};
    unsigned choice[8];

    assert_true(f->n_hosts <= LEN(host) && n <= f->n_trees);
    for (unsigned h = 0; h < f->n_hosts; h++)
        host[h] = (fab_id)h, place[h] = (fab_id)(h % gpus);
    for (unsigned i = 0; i < n; i++)
        tree[i] = (fab_id)i;
    assert_int_equal(fabric_rail_trees(f, tree, n, &r, gpus, choice), 0);
    for (unsigned p = 0; p < gpus; p++) {
        assert_int_equal(choice[p], want[p]);
        assert_int_equal(fabric_rail_tree(f, tree, n, &r, p), want[p]);
    }
    fabric_free(f);
}

#define TAKES(text, n, ...)                                                                        \
    takes(text, (unsigned)LEN(((unsigned[]){__VA_ARGS__})), n, (const unsigned[]){__VA_ARGS__})

static void rails_of_three_tiers_divide_the_links_to_cores(void **state)
{
    (void)state;
    TAKES(TIERS("4"), 4, 0, 1, 2, 3);
    TAKES(TIERS("4"), 3, 0, 1, 2, 0);
    TAKES(TIERS("2"), 2, 0, 1, 0, 1);
    TAKES(TIERS("1"), 1, 0, 0, 0, 0);
}

/* Each has a link of its own from its leaf to each spine, or needs no spine. */
static void rails_that_share_no_link_take_the_first_tree(void **state)
{
    (void)state;
    TAKES(UNITS, 2, 0, 0, 0, 0);
    TAKES(CONF("2", "4", "spines = 2;"), 2, 0, 0, 0, 0);
}

/* Two links to the slow core are as good as eight to a fast one. */
static void a_slow_root_is_left_to_few(void **state)
{
    (void)state;
    TAKES(TIERS("2") "links = ( { of = \"spine0-core1\"; rate = \"200Gb/s\"; },"
                     "{ of = \"spine2-core1\"; rate = \"200Gb/s\"; },"
                     "{ of = \"spine1-core1\"; rate = \"200Gb/s\"; },"
                     "{ of = \"spine3-core1\"; rate = \"200Gb/s\"; } );",
          2, 0, 0, 1, 0);
}

static void a_rail_that_no_tree_reaches_has_none(void **state)
{
    struct fabric *f = load_text(UNITS);
    const fab_id host[] = {0, 4, 1}, place[] = {0, 0, 1}, outside[] = {f->n_trees};
    const struct fab_rails r = {3, host, place};
    fab_id plane = 0;

    (void)state;
    while (f->trees[plane].domain == FAB_NONE)
        plane++;
    assert_int_equal(fabric_rail_tree(f, &plane, 1, &r, 0), 1); /* of two nodes */
    assert_int_equal(fabric_rail_tree(f, &plane, 1, &r, 1), 0);
    assert_int_equal(fabric_rail_tree(f, outside, 1, &r, 0), 1);
    assert_int_equal(fabric_rail_tree(f, &plane, 1, &r, 2), 1); /* no rank */
    fabric_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rails_of_three_tiers_divide_the_links_to_cores),
        cmocka_unit_test(rails_that_share_no_link_take_the_first_tree),
        cmocka_unit_test(a_slow_root_is_left_to_few),
        cmocka_unit_test(a_rail_that_no_tree_reaches_has_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
