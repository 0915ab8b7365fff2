/* SPDX-License-Identifier: BSD-3-Clause */
/* Which trees a group's vectors are shared among. */
#include "host/bench/trees.h"
#include "tests/fabric/load.h"

#define HOSTS                                                                                      \
    "nodes = ( { name = (\"a\", \"b\"); kind = \"host\"; }, { name = \"one\"; kind = \"host\"; },"
#define PORTS                                                                                      \
    "{ name = (\"l0\", \"l1\"); role = \"leaf\"; }, { name = (%s); role = \"spine\"; } );\nlinks " \
    "= ( { a = (\"a\", \"b\"); b = \"l0\"; rate = \"100Gb/s\"; },"                                 \
    "{ a = (\"a\", \"b\"); b = \"l1\"; }, "

static unsigned chosen(const struct fabric *f, unsigned nranks, uint16_t tree[COLL_TREES])
{
    static const uint16_t host[] = {0, 1, 2};

    return trees_choose(f, nranks, host, tree);
}

static void a_second_tree_of_a_root_is_taken_where_more_gets_through(void **state)
{
    static const struct {
        const char *one, *spines;
        unsigned nranks, trees;
    } rows[] = {
        /* a and b have two ports, the third host one: at the rate of both together, or of one */
        {"500Gb/s", "\"s0\"", 2, 2},
        {"500Gb/s", "\"s0\"", 3, 2},
        {"400Gb/s", "\"s0\"", 3, 1},
        /* the first trees use all ports already */
        {"500Gb/s", "\"s0\", \"s1\"", 2, 2},
        {"500Gb/s", "\"s0\", \"s1\", \"s2\"", 2, 3},
    };
    uint16_t tree[COLL_TREES];

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        char text[1024];
        struct fabric *f;

        snprintf(text, sizeof(text),
                 LINKS REDUCE HOSTS PORTS "{ a = \"one\"; b = \"l1\"; rate = \"%s\"; },"
                                          "{ a = (\"l0\", \"l1\"); b = (%s); rate = "
                                          "\"800Gb/s\"; } );",
                 rows[i].spines, rows[i].one, rows[i].spines);
        f = load_text(text);
        assert_int_equal(chosen(f, rows[i].nranks, tree), rows[i].trees);
        for (unsigned k = 0; k < rows[i].trees; k++)
            assert_int_equal(tree[k], k);
        fabric_free(f);
    }
}

static void trees_of_equal_spines_are_all_taken(void **state)
{
    uint16_t tree[COLL_TREES];
    struct fabric *f = load_leaf_spine(2, 4, 2, 1, "");

    (void)state;
    assert_int_equal(chosen(f, 3, tree), 4);
    fabric_free(f);
    f = load_leaf_spine(2, 12, 2, 1, "");
    assert_int_equal(chosen(f, 3, tree), COLL_TREES);
    fabric_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_tree_of_a_root_is_taken_where_more_gets_through),
        cmocka_unit_test(trees_of_equal_spines_are_all_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
