/* SPDX-License-Identifier: BSD-3-Clause */
/* Text workloads: columns become operations of a rank with its groups; mistakes are named by line. */
#include "tests/trace/trace_test.h"

#define SIMAI                                                                                      \
    "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 2 pp: 2 vpp: 1 ga: 1 "        \
    "all_gpus: 16 checkpoints: 1 0 checkpoint_initiates: 1 1 pp_comm 12582912.0\n"

static void look(struct looked *l, const char *text)
{
    look_bytes(l, "x.txt", text, strlen(text), NULL);
}

static void check_group(const struct looked *l, uint32_t group, uint32_t n, uint32_t last)
{
    assert_int_equal(l->g.group[group].n, n);
    assert_int_equal(l->g.group[group].rank[0], 0);
    assert_int_equal(l->g.group[group].rank[n - 1], last);
}

/* 16 ranks: tensor groups of 2, data groups of 4, experts over 2 tensor groups. */
static void layers_are_operations_on_groups(void **state)
{
    struct looked l;

    (void)state;
    look(&l, SIMAI "2\na -1 100 ALLREDUCE 64 10 ALLTOALL_EP 32 5 REDUCESCATTER 128 3\n"
                   "b\t-1 200 NONE 0\n20 NONE 0 7 ALLGATHER_DP_EP 16 3\n");
    assert_string_equal(look_says(&l, -1), "");
    assert_int_equal(l.g.alike, 16);
    assert_int_equal(l.d.all.ns[APP_COMPUTE], 342 + 4 * 3);
    assert_int_equal(l.d.all.coll_bytes[APP_ALL_REDUCE], 64);
    assert_int_equal(l.d.all.coll_bytes[APP_ALL_GATHER], 16);
    assert_int_equal(l.d.colls, 4);
    check_group(&l, 0, 2, 1);
    check_group(&l, 1, 4, 12);
    check_group(&l, 2, 2, 2);
    check_group(&l, 3, 2, 4);
    /* forward with its update, backward without that of weights but for the last one */
    assert_int_equal(l.d.way.ns, 100 + 3 + 200 + 20 + 7 + 10 + 3 + 5 + 3);
    look_end(&l);
}

static void policies_without_options_are_of_all_ranks(void **state)
{
    struct looked l;

    (void)state;
    look(&l, "HYBRID_CUSTOMIZED\t\n1\na -1 1 ALLGATHER 8 1 NONE 0 1 ALLREDUCEALLTOALL 9 1 DATA\n");
    assert_string_equal(look_says(&l, -1), "");
    assert_int_equal(l.g.n_groups, 0);
    assert_int_equal(l.d.all.coll_bytes[APP_ALL_REDUCE], 9);
    look_end(&l);
    look(&l, "HYBRID_DLRM 4\n0\n");
    assert_string_equal(look_says(&l, -1), "");
    look_end(&l);
}

#define LAYER "a -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n"

static const struct {
    const char *text, *says;
} refused[] = {
    {"DATA\n", "x.txt: found the end of the file, expected a number of layers"},
    {"DATA\nmany\n", "x.txt:2: found \"many\", expected a number of layers"},
    {"DATA\n99999999999\n", "x.txt:2: found \"99999999999\", expected a number of layers"},
    {"DATA\n1 2\n", "x.txt:2: found \"2\", expected the end of the line"},
    {"DATA what\n1\n", "x.txt:1: found \"what\", expected an option of the policy"},
    {"DATA ep:\n1\n", "x.txt:1: found the end of the line, expected a number behind the option"},
    {"DATA checkpoints: 3 1 2\n1\n",
     "x.txt:1: found the end of the line, expected the number of a layer"},
    {"DATA model_parallel_NPU_group: 3 all_gpus: 16\n1\n",
     "x.txt: line 1: found 16 GPUs, expected a multiple"},
    {"DATA all_gpus: 16 ep: 3\n1\n", "x.txt: line 1: found 16 GPUs, expected a multiple"},
    {"DATA\n1\na -1 x NONE 0 1 NONE 0 1 NONE 0 1\n",
     "x.txt:3: found \"x\", expected a time of computation"},
    {"DATA\n1\na -1 1 NONE 1.5 1 NONE 0 1 NONE 0 1\n",
     "x.txt:3: found \"1.5\", expected a size of"},
    {"DATA\n1\na -1 1 NONE 0 1 NONE 0 1 NONE 0 -1\n",
     "x.txt:3: found \"-1\", expected the time of an update"},
    {"DATA\n1\na -1 1 NONE 0\n",
     "x.txt: line 3: found the end of the file inside of layer 0, expected 12"},
    {"HYBRID_CUSTOMIZED\n1\n" LAYER,
     "x.txt: line 3: found the end of the file inside of layer 0, expected 13"},
    {"DATA\n1\n" LAYER LAYER,
     "x.txt:4: found \"a\", expected no more layers than the second line says"},
    {"DATA\n3\n" LAYER, "x.txt:2: found 1 layers, expected the 3 that it says"},
    {"DATA\n1\na -1 1 GATHER 8 1 NONE 0 1 NONE 0 1\n",
     "x.txt:3: found \"GATHER\", expected NONE or a"},
    {"DATA\n1\na -1 1 ALLGATHER_TP 8 1 NONE 0 1 NONE 0 1\n",
     "x.txt:3: found \"ALLGATHER_TP\", expected NONE"},
};

static void a_byte_of_0_behind_the_layers_is_refused(void **state)
{
    static const char text[] = "DATA\n0\n\0\n";
    struct looked l;

    (void)state;
    look_bytes(&l, "x.txt", text, sizeof(text) - 1, NULL);
    assert_int_not_equal(l.rc, 0);
    assert_string_equal(l.err, "x.txt: line 3: found a byte of 0, expected text");
    look_end(&l);
}

static void mistakes_are_named_by_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        struct looked l;

        look(&l, refused[i].text);
        if (strncmp(look_says(&l, -1), refused[i].says, strlen(refused[i].says)) != 0)
            fail_msg("%s: found \"%s\", expected \"%s\"", refused[i].text, look_says(&l, -1),
                     refused[i].says);
        look_end(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_are_operations_on_groups),
        cmocka_unit_test(policies_without_options_are_of_all_ranks),
        cmocka_unit_test(a_byte_of_0_behind_the_layers_is_refused),
        cmocka_unit_test(mistakes_are_named_by_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
