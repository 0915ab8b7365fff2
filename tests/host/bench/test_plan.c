/* SPDX-License-Identifier: BSD-3-Clause */
/* Planning before a rank starts: hosts, trees, algorithms; and refusals. */
#include "host/bench/sweep.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct fabric *load(const char *conf, unsigned max_groups)
{
    struct fabric *f = fabric_load(conf, NULL);

    assert_non_null(f);
    for (unsigned i = 0; max_groups && i < f->n_nodes; i++)
        f->nodes[i].reduce.max_groups = max_groups;
    return f;
}

static bool cut_off; /* no host reaches a tree of the scale-out network */

static unsigned quota; /* groups of every aggregation node; 0: as the conf says */

static int plan(struct sweep *s, const char *conf, const char *args, char *err)
{
    static struct perf_opts o;
    static char line[256];
    char *argv[16] = {(char *)(uintptr_t) "trib-perf"}, *save = NULL;
    int argc = 1;

    snprintf(line, sizeof(line), "%s %s", conf, args);
    for (char *t = strtok_r(line, " ", &save); t && argc < 16; t = strtok_r(NULL, " ", &save))
        argv[argc++] = t;
    if (perf_options_parse(&o, argc, argv, err))
        fail_msg("%s: %s", args, err);
    memset(s, 0, sizeof(*s));
    s->o = &o;
    s->fab = load(conf, quota);
    for (unsigned i = 0; cut_off && i < s->fab->n_trees; i++)
        for (unsigned h = 0; s->fab->trees[i].domain == FAB_NONE && h < s->fab->n_hosts; h++)
            s->fab->trees[i].parent[s->fab->hosts[h]] = FAB_NONE;
    int rc = sweep_plan(s, err);
    fabric_free((struct fabric *)(uintptr_t)s->fab);
    return rc;
}

#define BIT(a)    (1u << ALGO_##a)
#define LEAFSPINE "conf/leaf-spine-8.conf"

static void algorithms_follow_collective_and_fabric(void **state)
{
    static const struct {
        const char *conf, *args;
        unsigned algos;
    } rows[] = {
        {LEAFSPINE, "", BIT(RING) | BIT(SHARP)},
        {"conf/npu-mesh-8.conf", "", BIT(RING)},
        {LEAFSPINE, "alltoall", BIT(PAIRWISE) | BIT(DIRECT)},
        {LEAFSPINE, "gather", BIT(DIRECT)},
        {LEAFSPINE, "barrier", BIT(SHARP) | BIT(HALVING) | BIT(DIRECT)},
        {LEAFSPINE, "broadcast --algo all", BIT(RING) | BIT(CHAIN) | BIT(TREE) | BIT(SHARP)},
        {LEAFSPINE, "all_gather --algo auto,ring", BIT(RING) | BIT(AUTO)},
        {"conf/rail-2x4.conf", "--algo hier,hier_sharp", BIT(HIER) | BIT(HIER_SHARP)},
        {"conf/rail-2x4.conf", "--policy nvls_sharp,hier_sharp,ring", BIT(NVLS_SHARP)},
        {"conf/rail-2x4.conf", "--policy hier_sharp,ring --algo nvls_sharp", BIT(NVLS_SHARP)},
    };
    struct sweep *s = malloc(sizeof(*s));
    char err[OPT_ERR] = "";

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (plan(s, rows[i].conf, rows[i].args, err))
            fail_msg("%s: %s", rows[i].args, err);
        assert_int_equal(s->algos, rows[i].algos);
        assert_int_equal(s->algos & ~(s->exist | BIT(AUTO)), 0);
    }
    free(s);
}

static void what_cannot_work_is_named(void **state)
{
    static const struct {
        const char *conf, *args, *says;
    } rows[] = {
        {LEAFSPINE, "reduce -r 8", "-r: found 8, expected a rank below 8"},
        {LEAFSPINE, "-g 4 reduce -r 4", "-r: found 4, expected a rank below 4"},
        {LEAFSPINE, "alltoall -k 9", "-k: found 9, expected at most the 8 ranks"},
        {LEAFSPINE, "-g 1000", "-g: found 1000"},
        {LEAFSPINE, "--tree 2", "--tree: found 2, expected a tree below 2"},
        {LEAFSPINE, "all_gather --algo chain",
         "found chain, which all_gather does not have, expected ring, sharp, halving"},
        {LEAFSPINE, "alltoall --policy sharp,pairwise",
         "--policy: found sharp, which alltoall does not have, expected pairwise"},
        {LEAFSPINE, "--policy hier,ring", "--policy: found hier, which these 8 ranks of conf/leaf"},
        {LEAFSPINE, "--algo ring,nvls",
         "found nvls, which these 8 ranks of conf/leaf-spine-8.conf"},
        {"conf/rail-2x4.conf", "--algo nvls-hw reduce",
         "--algo: nvls-hw: found reduce, expected all_reduce"},
        {"conf/rail-2x4.conf", "--algo nvls-hw -d int8",
         "nvls-hw: found no type and operation that multimem has, expected sum of a float"},
        {"conf/rail-2x4.conf", "--algo nvls-hw -o max", "nvls-hw: found no type and operation"},
        {LEAFSPINE, "-o band",
         "-o: found no reduction that the types of -d have, expected one of sum"},
        {LEAFSPINE, "-b 1 -e 3", "-b: found 1, expected at least 4 bytes, one element of float"},
        {LEAFSPINE, "all_gather -b 16 -e 16",
         "expected at least 32 bytes, one element of float for each of 8 ranks"},
        {"conf/npu-mesh-8.conf", "--algo sharp", "no switch of conf/npu-mesh-8.conf reduces"},
    };
    struct sweep *s = malloc(sizeof(*s));

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char err[OPT_ERR] = "";
        assert_true(plan(s, rows[i].conf, rows[i].args, err) < 0);
        if (!strstr(err, rows[i].says))
            fail_msg("\"%s\" said \"%s\", expected \"%s\"", rows[i].args, err, rows[i].says);
    }
    free(s);
}

static void a_single_row_is_enough(void **state)
{
    static const char *const args[] = {"-b 1 -e 1 -d all", "-d float,int8 -o band", "barrier -e 1",
                                       "all_gather -o band", "-b 1 -e 4"};
    struct sweep *s = malloc(sizeof(*s));

    (void)state;
    for (size_t i = 0; i < sizeof(args) / sizeof(args[0]); i++) {
        char err[OPT_ERR] = "";

        if (plan(s, LEAFSPINE, args[i], err))
            fail_msg("\"%s\": %s", args[i], err);
    }
    free(s);
}

/* Whether this machine has such GPUs or not. */
static void others_run_without_what_only_gpus_can(void **state)
{
    struct sweep *s = malloc(sizeof(*s));
    char err[OPT_ERR];

    (void)state;
    assert_int_equal(plan(s, "conf/rail-2x4.conf", "-g 4 --algo nvls,nvls-hw -o prod", err), 0);
    assert_int_equal(s->algos, BIT(NVLS));
    assert_non_null(strstr(s->no_hw, "expected sum of a float of 16 bits or more"));
    assert_false(s->by_hw);
    assert_int_equal(plan(s, "conf/rail-2x4.conf", "-g 4 --algo all", err), 0);
    assert_false(s->by_hw);
    assert_int_equal(*s->no_hw, 0);
    free(s);
}

static void all_trees_that_reach_the_ranks_are_used(void **state)
{
    struct sweep *s = malloc(sizeof(*s));
    char err[OPT_ERR];

    (void)state;
    assert_int_equal(plan(s, LEAFSPINE, "", err), 0);
    assert_int_equal(s->n_trees, 2); /* two spines */
    assert_int_not_equal(s->tree[0], s->tree[1]);
    assert_int_equal(plan(s, LEAFSPINE, "--tree 1", err), 0);
    assert_int_equal(s->n_trees, 1);
    assert_int_equal(s->tree[0], 1);
    quota = 1;
    assert_int_equal(plan(s, LEAFSPINE, "", err), 0);
    assert_int_equal(s->n_trees, 1);
    quota = 0;
    assert_int_equal(plan(s, "conf/h100-node.conf", "", err), 0);
    assert_int_equal(s->n_trees, 1);
    cut_off = true; /* then the planes of the node */
    assert_int_equal(plan(s, "conf/h100-node.conf", "", err), 0);
    assert_int_equal(s->n_trees, 4);
    cut_off = false;
    free(s);
}

static void ranks_fill_one_node_before_the_next(void **state)
{
    struct sweep *s = malloc(sizeof(*s));
    char err[OPT_ERR];

    (void)state;
    assert_int_equal(plan(s, "conf/rail-2x4.conf", "-g 4", err), 0);
    for (unsigned r = 0; r < 4; r++)
        assert_int_equal(s->host_of_rank[r], r);
    assert_int_equal(plan(s, "conf/rail-2x4.conf", "-g 16", err), 0);
    for (unsigned r = 0; r < 16; r++)
        assert_int_equal(s->host_of_rank[r], r / 2);
    free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(algorithms_follow_collective_and_fabric),
        cmocka_unit_test(what_cannot_work_is_named),
        cmocka_unit_test(a_single_row_is_enough),
        cmocka_unit_test(others_run_without_what_only_gpus_can),
        cmocka_unit_test(all_trees_that_reach_the_ranks_are_used),
        cmocka_unit_test(ranks_fill_one_node_before_the_next),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
