/* SPDX-License-Identifier: BSD-3-Clause */
/* Levels of small fabrics, counted by hand: groups, their links, and the islands that they join. */
#include "tests/fabric/load.h"

#define GB 1000000000ull

/* In the order of struct fab_level; rates in Gb/s. */
struct level {
    uint64_t role, tier, groups, switches, cables, hosts, members;
    uint64_t member, total, bisection;
    uint64_t island_hosts, island_local, island_stride, island;
};

static const struct {
    const char *conf;
    unsigned n;
    struct level level[4];
} rows[] = {
    /* hosts that are cabled to each other: both ends of a cable are members */
    {"full_mesh = { hosts = 3; };",
     1,
     {{FAB_ROLE_HOST, 0, 1, 0, 3, 3, 3, 800, 2400, 1600, 1, 1, 1, 800}}},
    {"single_switch = { hosts = 2; };",
     1,
     {{FAB_ROLE_SWITCH, 1, 1, 1, 2, 2, 2, 400, 800, 800, 1, 1, 1, 400}}},
    {"leaf_spine = { leaves = 2; spines = 2; hosts_per_leaf = 2; };",
     2,
     {{FAB_ROLE_LEAF, 1, 2, 2, 4, 2, 2, 400, 800, 800, 1, 1, 1, 400},
      {FAB_ROLE_SPINE, 2, 1, 2, 4, 4, 2, 800, 1600, 1600, 2, 1, 1, 800}}},
    {"leaf_spine = { leaves = 4; spines = 2; hosts_per_leaf = 1; pods = 2; cores = 1; };",
     3,
     {{FAB_ROLE_LEAF, 1, 4, 4, 4, 1, 1, 400, 400, 0, 1, 1, 1, 400},
      {FAB_ROLE_SPINE, 2, 2, 2, 4, 2, 2, 400, 800, 800, 1, 1, 1, 400},
      {FAB_ROLE_CORE, 3, 1, 1, 2, 4, 2, 400, 800, 800, 2, 1, 1, 400}}},
    /* GPUs of two nodes on two rails, GPU i on rail i mod 2 */
    {"gpu_nodes = { nodes = 2; gpus = 4; planes = ( 3, 1 ); nvlink = { rate = \"100Gb/s\"; }; };\n"
     "rails = { leaves = 2; spines = 1; };",
     3,
     {{FAB_ROLE_NVSWITCH, 0, 2, 4, 32, 4, 4, 400, 1600, 1600, 1, 1, 1, 400},
      {FAB_ROLE_LEAF, 1, 1, 2, 8, 8, 2, 1600, 3200, 3200, 1, 1, 1, 400},
      {FAB_ROLE_SPINE, 2, 1, 1, 2, 8, 1, 800, 800, 3200, 4, 2, 2, 400}}},
    /* leaves that a cable joins: it is along the level */
    {"nodes = ( { name = (\"a\", \"b\"); kind = \"host\"; }, { name = (\"l\", \"k\"); role = "
     "\"leaf\"; } );\n"
     "links = ( { a = \"a\"; b = \"l\"; }, { a = \"b\"; b = \"k\"; }, { a = \"l\"; b = \"k\"; } );",
     1,
     {{FAB_ROLE_LEAF, 1, 1, 2, 2, 2, 2, 400, 800, 800, 1, 1, 1, 400}}},
};

static void check(unsigned row, const struct level *w, const struct fab_level *lv)
{
    const struct level got = {lv->role,           lv->tier,
                              lv->groups,         lv->switches,
                              lv->cables,         lv->hosts,
                              lv->members,        lv->member_bps / GB,
                              lv->total_bps / GB, lv->bisection_bps / GB,
                              lv->island_hosts,   lv->island_local,
                              lv->island_stride,  lv->island_bps / GB};

    for (unsigned i = 0; i < sizeof(got) / sizeof(uint64_t); i++)
        if (((const uint64_t *)&got)[i] != ((const uint64_t *)w)[i])
            fail_msg("row %u, tier %u: number %u is %llu, expected %llu", row, lv->tier, i,
                     (unsigned long long)((const uint64_t *)&got)[i],
                     (unsigned long long)((const uint64_t *)w)[i]);
}

static void levels_are_as_counted_by_hand(void **state)
{
    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        struct fab_level lv[FAB_MAX_LEVELS];
        char text[1024];
        struct fabric *f;

        snprintf(text, sizeof(text), LINKS "%s", rows[i].conf);
        f = load_text(text);
        for (unsigned max = 0; max <= FAB_MAX_LEVELS; max++) {
            unsigned n = max < rows[i].n ? max : rows[i].n;

            assert_int_equal(fabric_levels(f, lv, max), n);
            for (unsigned k = 0; k < n; k++)
                check(i, &rows[i].level[k], &lv[k]);
        }
        fabric_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(levels_are_as_counted_by_hand)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
