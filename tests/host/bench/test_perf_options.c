/* SPDX-License-Identifier: BSD-3-Clause */
/* trib-perf's command line: accepted options, refused ones, and messages. */
#include "host/bench/buffer.h"
#include "host/bench/perf_options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define MAX_ARGS 16

static int parse(const char *line, struct perf_opts *o, char *err)
{
    static char buf[256];
    char *argv[MAX_ARGS] = {(char *)(uintptr_t) "trib-perf"}, *save = NULL;
    int argc = 1;

    snprintf(buf, sizeof(buf), "%s", line);
    for (char *s = strtok_r(buf, " ", &save); s && argc < MAX_ARGS; s = strtok_r(NULL, " ", &save))
        argv[argc++] = s;
    return perf_options_parse(o, argc, argv, err);
}

static void options_take_all_forms_of_a_value(void **state)
{
    static const char *const rows[] = {"c.conf -b 8K -n 7", "c.conf -b8K -n7",
                                       "c.conf --minbytes 8K --iters 7",
                                       "-n 7 --minbytes=8K c.conf all_reduce"};
    struct perf_opts o;
    char err[OPT_ERR];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(parse(rows[i], &o, err), OPT_OK);
        assert_string_equal(o.conf, "c.conf");
        assert_int_equal(o.min_bytes, 8192);
        assert_int_equal(o.iters, 7);
    }
}

static void memory_is_the_hosts_or_a_gpus(void **state)
{
    static const struct {
        const char *line;
        int gpu;
    } rows[] = {{"c.conf", BUFFER_HOST},
                {"c.conf --mem host", BUFFER_HOST},
                {"c.conf --mem cuda", 0},
                {"c.conf --mem=cuda:0", 0},
                {"c.conf --mem cuda:17", 17}};
    static const char *const bad[] = {"c.conf --mem gpu",
                                      "c.conf --mem cuda:",
                                      "c.conf --mem cuda:-1",
                                      "c.conf --mem cuda:1x",
                                      "c.conf --mem cuda:99999999999",
                                      "c.conf --mem cuda --error"};
    struct perf_opts o;
    char err[OPT_ERR];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(parse(rows[i].line, &o, err), OPT_OK);
        assert_int_equal(o.gpu, rows[i].gpu);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(parse(bad[i], &o, err), OPT_BAD);
        assert_non_null(strstr(err, "expected host"));
    }
}

static void defaults_are_those_of_the_manual(void **state)
{
    struct perf_opts o;
    char err[OPT_ERR];

    (void)state;
    assert_int_equal(parse("c.conf", &o, err), OPT_OK);
    assert_int_equal(o.ranks, 0);
    assert_int_equal(o.iters, 20);
    assert_int_equal(o.warmup, 1);
    assert_int_equal(o.check, 1);
    assert_int_equal(o.types, 1u << DT_FP32);
    assert_int_equal(o.ops, 1u << OP_SUM);
    assert_int_equal(o.algos, 0); /* the plan finds out what there is */
    assert_int_equal(o.tree, PERF_TREES);
    assert_int_equal(o.coll, COLL_ALLREDUCE);
    assert_int_equal(o.min_bytes, 4096);
    assert_int_equal(o.max_bytes, 16 << 20);
}

static void lists_and_all_become_masks(void **state)
{
    struct perf_opts o;
    char err[OPT_ERR];

    (void)state;
    assert_int_equal(parse("c.conf -d all -o sum,max --algo sharp", &o, err), OPT_OK);
    assert_int_equal(o.types, (1u << DT_COUNT) - 1);
    assert_int_equal(o.ops, (1u << OP_SUM) | (1u << OP_MAX));
    assert_int_equal(o.algos, 1u << ALGO_SHARP);
    assert_int_equal(parse("c.conf --algo auto,hier_sharp,ring", &o, err), OPT_OK);
    assert_int_equal(o.algos, 1u << ALGO_AUTO | 1u << ALGO_HIER_SHARP | 1u << ALGO_RING);
    assert_int_equal(parse("c.conf --algo nvls-hw,nvls", &o, err), OPT_OK);
    assert_int_equal(o.algos, 1u << PERF_NVLS_HW | 1u << ALGO_NVLS);
    assert_int_equal(parse("c.conf --algo all", &o, err), OPT_OK);
    assert_int_equal(o.algos, ALGOS_ALL);
    assert_int_equal(parse("c.conf -d bfloat16,fp16 -o all", &o, err), OPT_OK);
    assert_int_equal(o.types, (1u << DT_BF16) | (1u << DT_FP16));
    assert_int_equal(o.ops, (1u << OP_COUNT) - 1);
}

/* Each with a part of the sentence that a user must see. */
static void mistakes_say_what_was_found_and_expected(void **state)
{
    static const struct {
        const char *line, *says;
    } rows[] = {
        {"", "expected the fabric's conf file"},
        {"c.conf -b 4Q", "-b: found \"4Q\", expected a size"},
        {"c.conf -n 0", "-n: found \"0\", expected a whole number from 1"},
        {"c.conf -n -3", "-n: found \"-3\""},
        {"c.conf -n 99999999999", "-n: found"},
        {"c.conf -g 0", "-g: found \"0\""},
        {"c.conf -c 2", "-c: found \"2\", expected a whole number from 0 to 1"},
        {"c.conf -d float99", "-d: found \"float99\", expected all or a list of int8"},
        {"c.conf -d float,bogus", "-d: found \"float,bogus\""},
        {"c.conf -o xor", "-o: found \"xor\", expected all or a list of sum"},
        {"c.conf --algo nccl",
         "--algo: found \"nccl\", expected all or a list of ring, sharp, tree"},
        {"c.conf --algo ,", "--algo: found \",\""},
        {"c.conf --policy nccl", "--policy: found \"nccl\", expected a list without repetition of"},
        {"c.conf --policy sharp,auto", "expected a list without repetition of ring, sharp, tree"},
        {"c.conf --policy nvls-hw", "--policy: found \"nvls-hw\", expected a list without"},
        {"c.conf --policy ring,ring", "--policy: found \"ring,ring\", expected a list without"},
        {"c.conf --policy", "--policy: found nothing, expected LIST"},
        {"c.conf -b", "-b: found nothing, expected SIZE"},
        {"c.conf -z 1", "found -z, expected an option of trib-perf"},
        {"c.conf --minbytesx 1",
         "found --minbytesx, expected an option of trib-perf; did you mean --minbytes?"},
        {"c.conf all_gatherx", "COLLECTIVE: found \"all_gatherx\", expected one of all_reduce, "
                               "reduce, broadcast, all_gather"},
        {"c.conf all_reduce -k 2", "-k: found all_reduce, expected alltoall"},
        {"c.conf alltoall -k 0", "-k: found \"0\", expected a whole number from 1"},
        {"c.conf all_gather --error", "--error: found nothing to measure"},
        {"c.conf --error -d int32", "--error: found nothing to measure"},
        {"c.conf --error -o max", "--error: found nothing to measure"},
        {"c.conf all_reduce extra", "found \"extra\" after COLLECTIVE, expected an option"},
        {"c.conf -b 8K -e 4K", "-b: found 8192, expected at most the 4096 of -e"},
        {"c.conf -i 4 -f 2", "found both -i and -f"},
        {"c.conf -b 1 -e 1G -i 1", "-i: found more than"},
        {"c.conf --algo rong", "did you mean ring?"},
        {"c.conf --max-wall never", "--max-wall: found \"never\", expected seconds"},
    };
    struct perf_opts o;
    char err[OPT_ERR];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(parse(rows[i].line, &o, err), OPT_BAD);
        if (!strstr(err, rows[i].says))
            fail_msg("\"%s\" said \"%s\", expected \"%s\"", rows[i].line, err, rows[i].says);
    }
}

static void sweeps_multiply_or_add(void **state)
{
    struct perf_opts o;
    char err[OPT_ERR];
    uint64_t s[PERF_MAX_SIZES];

    (void)state;
    assert_int_equal(parse("c.conf -b 4K -e 16M -f 4", &o, err), OPT_OK);
    assert_int_equal(options_sizes(&o, s, PERF_MAX_SIZES), 7);
    assert_int_equal(s[0], 4096);
    assert_int_equal(s[6], 16 << 20);
    assert_int_equal(parse("c.conf -b 100 -e 350 -i 100", &o, err), OPT_OK);
    assert_int_equal(options_sizes(&o, s, PERF_MAX_SIZES), 3);
    assert_int_equal(s[2], 300);
}

static void one_end_of_the_range_alone_is_enough(void **state)
{
    struct perf_opts o;
    char err[OPT_ERR];

    (void)state;
    assert_int_equal(parse("c.conf -b 64M", &o, err), OPT_OK);
    assert_int_equal(o.max_bytes, 64 << 20);
    assert_int_equal(parse("c.conf -e 512", &o, err), OPT_OK);
    assert_int_equal(o.min_bytes, 512);
}

static void every_collective_has_its_name(void **state)
{
    static const struct {
        const char *line;
        enum coll_kind kind;
    } rows[] = {
        {"c.conf reduce -r 3", COLL_REDUCE},
        {"c.conf broadcast", COLL_BROADCAST},
        {"c.conf all_gather", COLL_ALLGATHER},
        {"c.conf reduce_scatter --error", COLL_REDUCE_SCATTER},
        {"c.conf alltoall --sparse 2", COLL_ALLTOALL},
        {"c.conf gather", COLL_GATHER},
        {"c.conf scatter", COLL_SCATTER},
        {"c.conf sendrecv", COLL_SENDRECV},
        {"c.conf barrier", COLL_BARRIER},
    };
    struct perf_opts o;
    char err[OPT_ERR];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(parse(rows[i].line, &o, err), OPT_OK);
        assert_int_equal(o.coll, rows[i].kind);
        assert_int_equal(o.sparse, rows[i].kind == COLL_ALLTOALL ? 2 : 0);
        assert_int_equal(o.root, rows[i].kind == COLL_REDUCE ? 3 : 0);
        assert_int_equal(o.error, rows[i].kind == COLL_REDUCE_SCATTER);
    }
}

static void the_environment_forces_one_algorithm(void **state)
{
    struct perf_opts o;
    char err[OPT_ERR];

    (void)state;
    assert_int_equal(parse("c.conf --algo ring,sharp", &o, err), OPT_OK);
    assert_int_equal(options_force_algo(&o, NULL, err), OPT_OK);
    assert_int_equal(options_force_algo(&o, "", err), OPT_OK);
    assert_int_equal(o.algos, 1u << ALGO_RING | 1u << ALGO_SHARP);
    assert_false(o.forced);
    assert_int_equal(options_force_algo(&o, "tree", err), OPT_OK);
    assert_int_equal(o.algos, 1u << ALGO_TREE);
    assert_true(o.forced);
    assert_int_equal(o.n_policy, 1); /* nothing comes after it */
    assert_int_equal(o.policy[0], ALGO_TREE);
    assert_int_equal(options_force_algo(&o, "nccl", err), OPT_BAD);
    assert_non_null(strstr(err, "TRIB_ALGO: found \"nccl\""));
    assert_int_equal(options_force_algo(&o, "ring,tree", err), OPT_BAD);
    assert_non_null(strstr(err, "expected one algorithm"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_take_all_forms_of_a_value),
        cmocka_unit_test(memory_is_the_hosts_or_a_gpus),
        cmocka_unit_test(defaults_are_those_of_the_manual),
        cmocka_unit_test(lists_and_all_become_masks),
        cmocka_unit_test(mistakes_say_what_was_found_and_expected),
        cmocka_unit_test(every_collective_has_its_name),
        cmocka_unit_test(the_environment_forces_one_algorithm),
        cmocka_unit_test(sweeps_multiply_or_add),
        cmocka_unit_test(one_end_of_the_range_alone_is_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
