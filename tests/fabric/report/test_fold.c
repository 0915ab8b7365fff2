/* SPDX-License-Identifier: BSD-3-Clause */
/* How many boxes a picture has at each step, and who shares one. */
#include "fabric/report/fold.h"
#include "tests/fabric/load.h"

#define NODES_MAX 256u

static uint64_t key[NODES_MAX];

static unsigned boxes(const struct fabric *f, enum fold fold)
{
    unsigned n = 0;

    assert_true(f->n_nodes <= NODES_MAX);
    memset(key, 0xff, sizeof(key));
    assert_int_equal(fold_keys(f, fold, key), 0);
    for (unsigned i = 0; i < f->n_nodes; i++) {
        unsigned k = 0;

        while (k < i && (!key[i] || key[k] != key[i]))
            k++;
        n += k == i;
    }
    return n;
}

static bool together(const struct fabric *f, const char *a, const char *b)
{
    uint64_t k = key[node(f, a)];

    return k && k == key[node(f, b)];
}

static void check(const struct fabric *f, const unsigned *want)
{
    for (enum fold k = FOLD_NONE; k < FOLDS; k++)
        if (boxes(f, k) != want[k])
            fail_msg("step %u: found %u boxes, expected %u", k, boxes(f, k), want[k]);
}

static void two_tiers(void **state)
{
    static const unsigned want[FOLDS] = {12, 6, 5, 5, 3, 3};
    struct fabric *f = load_leaf_spine(2, 2, 4, 1, "");

    (void)state;
    check(f, want);
    boxes(f, FOLD_NODES);
    assert_true(together(f, "h0", "h3"));
    assert_false(together(f, "h3", "h4"));
    assert_false(together(f, "spine0", "spine1"));
    boxes(f, FOLD_TWINS);
    assert_true(together(f, "spine0", "spine1"));
    assert_false(together(f, "leaf0", "leaf1"));
    fabric_free(f);
}

/* Pods are what the cores join. */
static void three_tiers(void **state)
{
    static const unsigned want[FOLDS] = {18, 14, 11, 7, 4, 4};
    struct fabric *f = load_file(THREE_TIER);

    (void)state;
    check(f, want);
    boxes(f, FOLD_PODS);
    assert_true(together(f, "h0", "h3"));
    assert_false(together(f, "h3", "h4"));
    assert_true(together(f, "leaf0", "leaf1"));
    assert_false(together(f, "spine1", "spine2"));
    assert_true(together(f, "core0", "core1"));
    fabric_free(f);
}

/* A cable of another rate makes its ends, and what is behind them, unlike the rest. */
static void unlike(void **state)
{
    struct fabric *f = load_leaf_spine(2, 2, 4, 1, "");

    (void)state;
    f->links[0].rate_bps /= 2;
    assert_int_equal(boxes(f, FOLD_ALIKE), 6);
    assert_false(together(f, "h0", "h1"));
    assert_true(together(f, "h1", "h3"));
    assert_false(together(f, "h3", "h4"));
    assert_false(together(f, "leaf0", "leaf1"));
    assert_true(together(f, "spine0", "spine1"));
    assert_int_equal(boxes(f, FOLD_ROLES), 3);
    fabric_free(f);
}

static struct fabric *gpu_nodes(unsigned n)
{
    char text[512];

    snprintf(text, sizeof(text),
             "gpu_nodes = { nodes = %u; gpus = 2; planes = ( 9 );\n"
             "nvlink = { rate = \"25GB/s\"; latency = \"300ns\"; };\n"
             "nic = { rate = \"400Gb/s\"; latency = \"300ns\"; }; };\n"
             "rails = { leaves = 2; spines = 1; spine_link = { rate = \"400Gb/s\"; latency = "
             "\"300ns\"; }; };\n",
             n);
    return load_text(text);
}

/* A GPU node is one box with its NVSwitches, and more than twelve share one where they are attached alike. */
static void nodes_of_gpus(void **state)
{
    static const struct {
        unsigned nodes;
        unsigned want[FOLDS];
    } row[] = {{2, {9, 5, 4, 3, 3, 3}}, {12, {39, 15, 14, 3, 3, 3}}, {13, {42, 4, 3, 3, 3, 3}}};

    (void)state;
    for (unsigned i = 0; i < LEN(row); i++) {
        struct fabric *f = gpu_nodes(row[i].nodes);

        check(f, row[i].want);
        boxes(f, FOLD_NODES);
        assert_true(together(f, "n0g0", "n0g1"));
        assert_true(together(f, "n0g0", "n0s0"));
        assert_int_equal(together(f, "n0g0", "n1g0"), row[i].nodes > FOLD_DOMAINS);
        boxes(f, FOLD_ROLES);
        assert_true(together(f, "n0g0", "n1s0"));
        fabric_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_tiers),
        cmocka_unit_test(three_tiers),
        cmocka_unit_test(unlike),
        cmocka_unit_test(nodes_of_gpus),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
