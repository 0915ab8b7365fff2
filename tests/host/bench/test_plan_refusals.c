/* SPDX-License-Identifier: BSD-3-Clause */
/* What a plan refuses, word by word, and what at its limits it takes. */
#include "host/bench/sweep.h"

#include "tests/fabric/load.h"

#include <errno.h>
#include <stdlib.h>

#define LEAFSPINE "conf/leaf-spine-8.conf"
#define RAILS     "conf/rail-2x4.conf"
#define MESH      "conf/npu-mesh-8.conf"

static struct sweep *s;
static char err[OPT_ERR];

/* By the fabric of a file, or that of a text in a file's place. */
static int plan_on(const char *conf, struct fabric *f, const char *args, const char *forced)
{
    static struct perf_opts o;
    static char line[256];
    char *argv[16] = {(char *)(uintptr_t) "trib-perf"}, *save = NULL;
    int argc = 1, rc;

    snprintf(line, sizeof(line), "%s %s", conf, args);
    for (char *t = strtok_r(line, " ", &save); t && argc < 16; t = strtok_r(NULL, " ", &save))
        argv[argc++] = t;
    if (perf_options_parse(&o, argc, argv, err))
        fail_msg("%s: %s", args, err);
    if (options_force_algo(&o, forced, err))
        fail_msg("%s", err);
    memset(s, 0, sizeof(*s));
    *err = '\0';
    s->o = &o;
    s->fab = f ? f : load_file(conf);
    rc = sweep_plan(s, err);
    if (!f)
        fabric_free((struct fabric *)(uintptr_t)s->fab);
    return rc;
}

static const struct {
    const char *conf, *args, *says; /* "": it is planned */
} refusals[] = {
    {LEAFSPINE, "-g 513",
     "-g: found 513, which is 65 ranks a host, expected at most 512 (8 hosts, slots_per_host "
     "64)"},
    {LEAFSPINE, "-g 512", ""},
    {RAILS, "-g 513",
     "-g: found 513, which is 65 ranks a host, expected at most 512 (8 hosts, slots_per_host "
     "64)"},
    {LEAFSPINE, "reduce -r 8", "-r: found 8, expected a rank below 8"},
    {LEAFSPINE, "reduce -r 7", ""},
    {LEAFSPINE, "alltoall -k 9", "-k: found 9, expected at most the 8 ranks"},
    {LEAFSPINE, "alltoall -k 8", ""},
    {LEAFSPINE, "--tree 2", "--tree: found 2, expected a tree below 2"},
    {LEAFSPINE, "--algo schedule", "--algo: found schedule, expected --schedule FILE with it"},
    {LEAFSPINE, "all_gather --algo chain",
     "--algo: found chain, which all_gather does not have, expected ring, sharp, halving, "
     "pairwise, direct, auto"},
    {LEAFSPINE, "all_gather --policy chain",
     "--policy: found chain, which all_gather does not have, expected ring, sharp, halving, "
     "pairwise, direct"},
    {LEAFSPINE, "--algo nvls",
     "--algo: found nvls, which these 8 ranks of conf/leaf-spine-8.conf cannot run, expected "
     "ring, sharp, tree, halving, direct, switchml, ps, atp, auto"},
    {LEAFSPINE, "--algo ring,nvls",
     "--algo: found nvls, which these 8 ranks of conf/leaf-spine-8.conf cannot run, expected "
     "ring, sharp, tree, halving, direct, switchml, ps, atp, auto"},
    {LEAFSPINE, "--policy hier,ring",
     "--policy: found hier, which these 8 ranks of conf/leaf-spine-8.conf cannot run, expected "
     "ring, sharp, tree, halving, direct"},
    {MESH, "--algo sharp",
     "--algo: found sharp, expected ring, tree, halving, direct, auto: no switch of "
     "conf/npu-mesh-8.conf reduces"},
    {MESH, "--policy sharp,ring",
     "--policy: found sharp, expected ring, tree, halving, direct: no switch of "
     "conf/npu-mesh-8.conf reduces"},
    {RAILS, "--algo nvls --mem cuda",
     "--algo: found nvls, expected ring, sharp, tree, halving, direct, hier, hier_sharp, "
     "rings, auto with --mem cuda: NVSwitches do not reach memory that is staged"},
    {RAILS, "--algo nvls_sharp --mem cuda:1",
     "--algo: found nvls_sharp, expected ring, sharp, tree, halving, direct, hier, hier_sharp, "
     "rings, auto with --mem cuda:1: NVSwitches do not reach memory that is staged"},
    {RAILS, "--algo switchml --mem cuda",
     "--algo: found switchml, expected ring, sharp, tree, halving, direct, hier, hier_sharp, "
     "rings, auto with --mem cuda: protocols do not reach memory that is staged"},
    {RAILS, "--algo nvls-hw reduce", "--algo: nvls-hw: found reduce, expected all_reduce"},
    {RAILS, "--algo nvls-hw -o prod",
     "--algo: nvls-hw: found no type and operation that multimem has, expected sum of a float "
     "of 16 bits or more or of an integer of 32 or 64, or min or max of such, not of float or "
     "double"},
    {LEAFSPINE, "-d float,int8 -o band", ""},
    {LEAFSPINE, "-d float -o band",
     "-o: found no reduction that the types of -d have, expected one of sum prod min max avg"},
    {LEAFSPINE, "-d float,bfloat16 -o band,bxor",
     "-o: found no reduction that the types of -d have, expected one of sum prod min max avg"},
    {LEAFSPINE, "-b 1 -e 3", "-b: found 1, expected at least 4 bytes, one element of float"},
    {LEAFSPINE, "-b 1 -e 4", ""},
    {LEAFSPINE, "-b 1 -e 3 -d float,bfloat16",
     "-b: found 1, expected at least 2 bytes, one element of bfloat16"},
    {LEAFSPINE, "-b 1 -e 1 -d double,bfloat16",
     "-b: found 1, expected at least 2 bytes, one element of bfloat16"},
    {LEAFSPINE, "all_gather -b 1 -e 31",
     "-b: found 16, expected at least 32 bytes, one element of float for each of 8 ranks"},
    {LEAFSPINE, "all_gather -b 1 -e 32 -f 32", ""},
    {LEAFSPINE, "alltoall -k 2 -b 1 -e 7",
     "-b: found 4, expected at least 8 bytes, one element of float for each of 2 ranks"},
    {LEAFSPINE, "--algo switchml -d double",
     "--algo: found switchml for sum of double, expected sum of int32 uint32 float, avg of "
     "int32 uint32 float"},
    {LEAFSPINE, "--algo switchml -o max",
     "--algo: found switchml for max of float, expected sum of int32 uint32 float, avg of "
     "int32 uint32 float"},
    {LEAFSPINE, "--algo atp -o max",
     "--algo: found atp for max of float, expected sum of int32 uint32 float, avg of int32 "
     "uint32 float"},
    {LEAFSPINE, "--algo ps -d int8", ""},
    {LEAFSPINE, "--algo ps -o band -d int32",
     "--algo: found ps for band of int32, expected sum of int8 uint8 int32 uint32 int64 uint64 "
     "half float double bfloat16, prod of int8 uint8 int32 uint32 int64 uint64 half float "
     "double bfloat16, min of int8 ui"},
    {LEAFSPINE, "--algo switchml,ring -d int32,float -o avg", ""},
    {LEAFSPINE, "broadcast --algo switchml",
     "--algo: found switchml, which broadcast does not have, expected ring, sharp, tree, "
     "chain, auto"},
    {LEAFSPINE, "--algo switchml reduce",
     "--algo: found switchml, which reduce does not have, expected ring, sharp, tree, chain, "
     "auto"},
    {LEAFSPINE, "--algo pxn",
     "--algo: found pxn, which all_reduce does not have, expected ring, sharp, tree, halving, "
     "direct, switchml, ps, atp, auto"},
    {LEAFSPINE, "alltoall --algo pxn",
     "--algo: found pxn, which these 8 ranks of conf/leaf-spine-8.conf cannot run, expected "
     "pairwise, direct, auto"},
    {LEAFSPINE, "--algo rings",
     "--algo: found rings, which these 8 ranks of conf/leaf-spine-8.conf cannot run, expected "
     "ring, sharp, tree, halving, direct, switchml, ps, atp, auto"},
};

static void refusals_say_what_was_found_and_expected(void **state)
{
    (void)state;
    for (size_t i = 0; i < LEN(refusals); i++) {
        assert_int_equal(plan_on(refusals[i].conf, NULL, refusals[i].args, NULL),
                         *refusals[i].says ? -EINVAL : 0);
        assert_string_equal(err, refusals[i].says);
    }
}

static void the_environment_is_named_where_it_forces_what_cannot_be(void **state)
{
    (void)state;
    assert_int_equal(plan_on(LEAFSPINE, NULL, "--algo ring", "nvls"), -EINVAL);
    assert_string_equal(err, "TRIB_ALGO: found nvls, which these 8 ranks of conf/leaf-spine-8.conf "
                             "cannot run, expected ring, sharp, tree, halving, direct, switchml, "
                             "ps, atp, auto");
    assert_int_equal(plan_on(RAILS, NULL, "reduce", "nvls-hw"), -EINVAL);
    assert_string_equal(err, "TRIB_ALGO: nvls-hw: found reduce, expected all_reduce");
    assert_int_equal(plan_on(LEAFSPINE, NULL, "--algo ring", "tree"), 0);
    assert_int_equal(s->algos, 1u << ALGO_TREE);
}

/* ---- what is planned ---- */

#define BIT(a) (1u << ALGO_##a)
#define USUAL  (BIT(RING) | BIT(SHARP) | BIT(TREE) | BIT(HALVING) | BIT(DIRECT))

/* What may run, and what the communicator has to set up for it. */
static void algorithms_are_set_up_that_may_run(void **state)
{
    static const struct {
        const char *args;
        unsigned algos, exist, set_up;
    } rows[] = {
        {"", BIT(RING) | BIT(SHARP), USUAL, BIT(RING) | BIT(SHARP)},
        {"--algo ring", BIT(RING), BIT(RING), BIT(RING)},
        {"--algo auto", BIT(AUTO), USUAL, USUAL},
        {"--algo auto,tree", BIT(AUTO) | BIT(TREE), USUAL, USUAL},
        {"--algo all", USUAL, USUAL, USUAL},
        {"--policy sharp,tree", BIT(SHARP), USUAL, BIT(SHARP) | BIT(TREE)},
        {"--policy sharp,tree --algo ring", BIT(RING), BIT(RING) | BIT(SHARP) | BIT(TREE),
         BIT(RING) | BIT(SHARP) | BIT(TREE)},
        {"--algo ps", BIT(PROTOCOL) << 1, BIT(PROTOCOL) << 1, BIT(PROTOCOL) << 1},
        {"--algo auto,ps", BIT(AUTO) | BIT(PROTOCOL) << 1, USUAL | BIT(PROTOCOL) << 1,
         USUAL | BIT(PROTOCOL) << 1},
        {"--policy ps,ring", BIT(PROTOCOL) << 1, USUAL | BIT(PROTOCOL) << 1,
         BIT(PROTOCOL) << 1 | BIT(RING)},
        {"alltoall", BIT(PAIRWISE) | BIT(DIRECT), BIT(PAIRWISE) | BIT(DIRECT),
         BIT(PAIRWISE) | BIT(DIRECT)},
    };

    (void)state;
    assert_int_equal(proto_seat("ps"), 1);
    for (size_t i = 0; i < LEN(rows); i++) {
        assert_int_equal(plan_on(LEAFSPINE, NULL, rows[i].args, NULL), 0);
        assert_int_equal(s->algos, rows[i].algos);
        assert_int_equal(s->exist, rows[i].exist);
        assert_int_equal(s->set_up, rows[i].set_up);
        assert_false(s->by_hw);
    }
}

/* Hosts have as many ranks as are needed; the last hosts have none if the ranks do not fill all. */
static void ranks_fill_hosts_evenly(void **state)
{
    static const struct {
        const char *args;
        unsigned nranks, per_host;
    } rows[] = {{"", 8, 1}, {"-g 8", 8, 1}, {"-g 9", 9, 2}, {"-g 17", 17, 3}, {"-g 24", 24, 3}};

    (void)state;
    for (size_t i = 0; i < LEN(rows); i++) {
        assert_int_equal(plan_on(LEAFSPINE, NULL, rows[i].args, NULL), 0);
        assert_int_equal(s->nranks, rows[i].nranks);
        for (unsigned r = 0; r < s->nranks; r++)
            assert_int_equal(s->host_of_rank[r], r / rows[i].per_host);
    }
}

static void hosts_outside_need_a_way_to_start_ranks(void **state)
{
    struct fabric *f = load_file(LEAFSPINE);

    (void)state;
    f->nodes[f->hosts[6]].outside = true;
    assert_int_equal(plan_on(LEAFSPINE, f, "", NULL), -EINVAL);
    assert_string_equal(err, "-g: found rank 6 on h6, which is outside, expected --rsh CMD that "
                             "starts it there, or fewer ranks");
    assert_int_equal(plan_on(LEAFSPINE, f, "-g 6", NULL), 0);
    assert_int_equal(plan_on(LEAFSPINE, f, "--rsh ssh", NULL), 0);
    assert_int_equal(s->nranks, 8);
    f->n_hosts = 0;
    assert_int_equal(plan_on(LEAFSPINE, f, "-g 6", NULL), -EINVAL);
    assert_string_equal(err, "conf/leaf-spine-8.conf: found no host, expected at least one");
    f->n_hosts = 8;
    fabric_free(f);
}

/* One aggregation tree, or all that there are. */
static void trees_are_those_that_exist(void **state)
{
    struct fabric *f = load_file(MESH);

    (void)state;
    assert_int_equal(f->n_trees, 0);
    assert_int_equal(plan_on(MESH, f, "", NULL), 0);
    assert_int_equal(s->n_trees, 0);
    assert_int_equal(plan_on(MESH, f, "--tree 0", NULL), -EINVAL);
    assert_string_equal(err, "--tree: found 0, expected a tree below 0");
    fabric_free(f);
    assert_int_equal(plan_on(LEAFSPINE, NULL, "--tree 1", NULL), 0);
    assert_int_equal(s->n_trees, 1);
    assert_int_equal(s->tree[0], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refusals_say_what_was_found_and_expected),
        cmocka_unit_test(the_environment_is_named_where_it_forces_what_cannot_be),
        cmocka_unit_test(algorithms_are_set_up_that_may_run),
        cmocka_unit_test(ranks_fill_hosts_evenly),
        cmocka_unit_test(hosts_outside_need_a_way_to_start_ranks),
        cmocka_unit_test(trees_are_those_that_exist),
    };
    int rc;

    s = calloc(1, sizeof(*s));
    rc = s ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
    free(s);
    return rc;
}
