/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file of a chaos case: each key is read into its field, a case that is read and printed is the same
 * text, and every mistake is named with its line and what is expected instead.
 */
#include "sim/chaos/case.h"
#include "tests/fabric/load.h"
#include "tests/support/captured.h"

#include <errno.h>

static const struct chaos_cfg cfg = {.conf_dir = "conf"};

static void free_case(struct chaos_case *k)
{
    fault_plan_free(&k->plan);
    fabric_free(k->own);
    free(k->conf_text);
    memset(k, 0, sizeof(*k));
}

/* All that a case can have. */
static const char whole[] =
    "# SPDX-License-Identifier: BSD-3-Clause\n"
    "# leaf-spine-8\n"
    "# Verdict: elements are wrong\n"
    "found = \"a \\\"lost\\\" sum\\\\\";\n"
    "conf = \"leaf-spine-8.conf\";\n"
    "seed = \"0xfedcba9876543210\"; # of the links' draws\n"
    "hosts = [1, 3, 6]; # of ranks\n"
    "bytes = 65536;\n"
    "group = 2147483647;\n"
    "key = \"0x0000000000000017\";\n"
    "first_tree = 1;\n"
    "trees = 1;\n"
    "window = 64;\n"
    "algorithms = [\"ring\", \"sharp\", \"direct\"];\n"
    "policy = [\"sharp\", \"ring\"];\n"
    "operations = (\n"
    "    { collective = \"alltoall\"; algorithm = \"direct\"; type = \"bfloat16\"; op = \"max\"; "
    "count = 100; root = 2;\n"
    "      sparse = 3; in_place = true; mm_self = true; skew_ps = 49000000; seed = "
    "\"0x00000000000000ff\"; },\n"
    "    { collective = \"all_reduce\"; algorithm = \"ring\"; type = \"float\"; op = \"sum\"; "
    "count = 16384; root = 0;\n"
    "      seed = \"0x8000000000000000\"; } );\n"
    "jobs = (\n"
    "{ start = \"during\";\n"
    "processes = [0, 2];\n"
    "stops_ps = 5000;\n"
    "bytes = 8192;\n"
    "group = 7;\n"
    "key = \"0x0000000000000018\";\n"
    "first_tree = 0;\n"
    "trees = 2;\n"
    "window = 0;\n"
    "algorithms = [\"sharp\"];\n"
    "policy = [\"sharp\"];\n"
    "operations = (\n"
    "    { collective = \"all_reduce\"; algorithm = \"sharp\"; type = \"int32\"; op = \"min\"; "
    "count = 5; root = 1;\n"
    "      seed = \"0x0000000000000001\"; } );\n"
    "},\n"
    "{ start = \"after\";\n"
    "hosts = [7, 0];\n"
    "bytes = 262144;\n"
    "group = 8;\n"
    "key = \"0x0000000000000019\";\n"
    "first_tree = 0;\n"
    "trees = 0;\n"
    "window = 8;\n"
    "algorithms = [\"ring\"];\n"
    "policy = [];\n"
    "operations = ( );\n"
    "} );\n"
    "multicast = \"0x0000000000000021\";\n"
    "slices = \"0x0000000000000022\";\n"
    "faults = (\n"
    "           { at = \"5us\"; link = \"h0:0-leaf0:0\"; down = true; },\n"
    "           { at = \"7us\"; rank = 4; die = true; } );\n";

static void same_ops(const struct chaos_case *k)
{
    const struct job_op *a = &k->job[0].op[0], *b = &k->job[0].op[1], *c = &k->job[1].op[0];

    assert_true(a->kind == COLL_ALLTOALL && a->algo == ALGO_DIRECT && a->type == DT_BF16 &&
                a->op == OP_MAX && a->count == 100 && a->root == 2 && a->sparse == 3);
    assert_true(a->in_place && a->mm_self && a->skew_ps == 49000000 && a->seed == 0xff);
    assert_true(b->kind == COLL_ALLREDUCE && b->algo == ALGO_RING && b->type == DT_FP32 &&
                b->op == OP_SUM && b->count == 16384 && b->root == 0 && b->sparse == 0);
    assert_true(!b->in_place && !b->mm_self && b->skew_ps == 0 && b->seed == 1ull << 63);
    assert_true(c->kind == COLL_ALLREDUCE && c->algo == ALGO_SHARP && c->type == DT_INT32 &&
                c->op == OP_MIN && c->count == 5 && c->root == 1 && c->seed == 1);
}

static void same_jobs(const struct chaos_case *k)
{
    const struct chaos_job *a = &k->job[0], *b = &k->job[1], *c = &k->job[2];

    assert_true(a->nranks == 3 && a->host_of_rank[0] == 1 && a->host_of_rank[1] == 3 &&
                a->host_of_rank[2] == 6 && !a->shares);
    assert_true(a->bytes == 65536 && a->group == INT32_MAX && a->key == 0x17 && a->tree == 1 &&
                a->n_trees == 1 && a->window == 64 && a->stops_ps == 0);
    assert_int_equal(a->algos, 1u << ALGO_RING | 1u << ALGO_SHARP | 1u << ALGO_DIRECT);
    assert_true(a->n_policy == 2 && a->policy[0] == ALGO_SHARP && a->policy[1] == ALGO_RING);
    assert_true(a->goes_on && a->n_ops == 2 && a->ops == 2);
    assert_true(b->start == START_DURING && b->shares && b->nranks == 2 && b->process[0] == 0 &&
                b->process[1] == 2 && b->host_of_rank[0] == 1 && b->host_of_rank[1] == 6);
    assert_true(b->bytes == 8192 && b->group == 7 && b->key == 0x18 && b->tree == 0 &&
                b->n_trees == 2 && b->window == 0 && b->stops_ps == 5000);
    assert_true(b->algos == 1u << ALGO_SHARP && b->n_policy == 1 && !b->goes_on && b->n_ops == 1);
    assert_true(c->start == START_AFTER && !c->shares && c->nranks == 2 && c->process[0] == 3 &&
                c->process[1] == 4 && c->host_of_rank[0] == 7 && c->host_of_rank[1] == 0);
    assert_true(c->n_policy == 0 && c->goes_on && c->n_ops == 0 && c->ops == 0);
}

static void every_key_has_its_field(void **state)
{
    static const uint16_t procs[] = {1, 3, 6, 7, 0};
    struct chaos_case k = {.cfg = &cfg};
    char why[CHAOS_TEXT];

    (void)state;
    if (case_load_string(&k, whole, "x.case", why))
        fail_msg("%s", why);
    assert_string_equal(k.found, "a \"lost\" sum\\");
    assert_string_equal(k.conf, "leaf-spine-8.conf");
    assert_string_equal(k.shape, "leaf-spine-8");
    assert_ptr_equal(k.fab, k.own);
    assert_true(k.seed == 0xfedcba9876543210 && k.mcast == 0x21 && k.slices == 0x22);
    assert_int_equal(k.n_jobs, 3);
    same_jobs(&k);
    same_ops(&k);
    assert_int_equal(k.nprocs, 5);
    assert_memory_equal(k.host_of_proc, procs, sizeof(procs));
    assert_true(k.plan.n == 2 && k.plan.e[0].down && k.plan.e[1].which == 4);
    free_case(&k);
}

static const char *printed(const struct chaos_case *k, const char *verdict)
{
    FILE *out = captured_file();

    case_print(k, out, verdict);
    return captured_text(out);
}

/* Shows the first difference. */
static void same_text(const char *is, const char *expected)
{
    size_t at = 0;

    while (is[at] && is[at] == expected[at])
        at++;
    if (is[at] != expected[at])
        fail_msg("byte %zu: found ...%.60s, expected ...%.60s", at, is + at, expected + at);
}

static void what_is_printed_is_what_was_read(void **state)
{
    struct chaos_case k = {.cfg = &cfg};
    char why[CHAOS_TEXT];

    (void)state;
    assert_int_equal(case_load_string(&k, whole, "x.case", why), 0);
    same_text(printed(&k, "elements are wrong"), whole);
    free_case(&k);
}

/* A case that did not end, on a fabric of its own, of one job. */
static void a_case_with_its_own_fabric(void **state)
{
    static const char text[] =
        "# SPDX-License-Identifier: BSD-3-Clause\n"
        "# own\n"
        "# It did not end: these operations had begun.\n"
        "found = \"\";\n"
        "conf_text = \"name = \\\"own\\\";\\n\"\n"
        "    \"single_switch = { hosts = 3; host_link = { rate = \\\"400Gb/s\\\"; latency = "
        "\\\"300ns\\\"; }; };\\n\";\n"
        "seed = \"0x0000000000000001\"; # of the links' draws\n"
        "hosts = [2]; # of ranks\n"
        "bytes = 1048576;\n"
        "group = 0;\n"
        "key = \"0x0000000000000002\";\n"
        "first_tree = 0;\n"
        "trees = 0;\n"
        "window = 0;\n"
        "algorithms = [\"ring\"];\n"
        "policy = [\"tree\"];\n"
        "operations = ( );\n"
        "faults = ( );\n";
    struct chaos_case k = {.cfg = &cfg};
    char why[CHAOS_TEXT];

    (void)state;
    if (case_load_string(&k, text, "x.case", why))
        fail_msg("%s", why);
    assert_true(k.n_jobs == 1 && k.job[0].goes_on && k.mcast == 0 && k.slices == 0);
    assert_int_equal(k.fab->n_hosts, 3);
    assert_string_equal(k.shape, "own");
    same_text(printed(&k, NULL), text);
    free_case(&k);
}

/* A key that is not there has a value too. */
static void what_is_left_out(void **state)
{
    struct chaos_case k = {.cfg = &cfg};
    char why[CHAOS_TEXT];

    (void)state;
    assert_int_equal(
        case_load_string(&k,
                         "found = \"\"; conf = \"conf/two-hosts.conf\"; seed = \"9\"; key = \"3\"; "
                         "hosts = [0, 1]; algorithms = [ \"ring\" ]; operations = ( );",
                         "x.case", why),
        0);
    assert_string_equal(k.conf, "conf/two-hosts.conf"); /* with a folder: as it is */
    assert_true(k.job[0].bytes == CHAOS_BUFFER && k.job[0].group == 0 && k.job[0].window == 0);
    assert_true(k.plan.n == 0 && k.n_jobs == 1 && k.seed == 9 && k.job[0].key == 3);
    free_case(&k);
}

/* ---- mistakes ---- */

#define HEAD  "found = \"\";\nconf = \"two-hosts.conf\";\nseed = \"1\";\nkey = \"1\";\n"
#define RING  "algorithms = [ \"ring\" ];\n"
#define OPS   "operations = ( );\n"
#define HOSTS "hosts = [0, 1];\n"
#define OP(more)                                                                                   \
    "operations = ( {\n" more                                                                      \
    "collective = \"all_gather\"; algorithm = \"ring\"; type = \"float\"; op = \"sum\"; } );\n"

static const struct {
    const char *text, *why;
} mistakes[] = {
    {"conf = \"two-hosts.conf\";", "x.case:0: found no found, expected found = \"...\""},
    {"found = 3;\nconf = \"two-hosts.conf\";",
     "x.case:1: found no found, expected found = \"...\""},
    {"found = \"\";", "x.case:0: found no conf, expected conf = \"...\""},
    {"found = \"\";\nconf_text = 1;", "x.case:2: found no conf_text, expected conf_text = \"...\""},
    {"found = \"\"; conf_text = \"mtu = 1;\";", "x.case:0: conf_text:0: found no hosts"},
    {"found = \"\"; conf = \"conf/none.conf\";", "x.case:0: conf/none.conf:0: found no readable"},
    {"found = \"\";\nconf = \"two-hosts.conf\";\nseed = \"12x\";",
     "x.case:0: seed: found \"12x\", expected a number such as \"0x2a\""},
    {"found = \"\";\nconf = \"two-hosts.conf\";\nseed = \"\";",
     "x.case:0: seed: found \"\", expected a number such as \"0x2a\""},
    {HEAD "multicast = \"q\";\n", "x.case:0: multicast: found \"q\", expected a number"},
    {HEAD "slices = \"q\";\n", "x.case:0: slices: found \"q\", expected a number"},
    {HEAD RING OPS, "x.case:0: hosts: found 0 ranks, expected 1 to 16"},
    {HEAD "hosts = [ ];\n" RING OPS, "x.case:5: hosts: found 0 ranks, expected 1 to 16"},
    {HEAD "hosts = [ 0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0 ];\n" RING OPS,
     "x.case:5: hosts: found 17 ranks, expected 1 to 16"},
    {HEAD "hosts = [ 0, 2 ];\n" RING OPS, "x.case:5: hosts: found 2, expected less than 2"},
    {HEAD "hosts = [ -1 ];\n" RING OPS, "x.case:5: hosts: found -1, expected less than 2"},
    {"found = \"\"; seed = \"1\"; key = \"1\";\nconf_text = \"name = \\\"x\\\"; slots_per_host = "
     "2; "
     "single_switch = { hosts = 2; host_link = { rate = \\\"400Gb/s\\\"; latency = \\\"300ns\\\"; "
     "}; };\";\nhosts = [ 0, 1, 0, 0 ];\n" RING OPS,
     "x.case:3: hosts: found more processes of a host than it has slots"},
    {HEAD HOSTS "bytes = 1048577;\n" RING OPS,
     "x.case:6: bytes: expected a whole number up to 1048576"},
    {HEAD HOSTS "bytes = -1;\n" RING OPS, "x.case:6: bytes: expected a whole number up to 1048576"},
    {HEAD HOSTS "bytes = 1.5;\n" RING OPS,
     "x.case:6: bytes: expected a whole number up to 1048576"},
    {HEAD HOSTS "group = 4294967296L;\n" RING OPS,
     "x.case:6: group: expected a whole number up to 4294967295"},
    {HEAD HOSTS "first_tree = 65536;\n" RING OPS,
     "x.case:6: first_tree: expected a whole number up to 65535"},
    {HEAD HOSTS "trees = 9;\n" RING OPS, "x.case:6: trees: expected a whole number up to 8"},
    {HEAD HOSTS "window = 4294967296L;\n" RING OPS,
     "x.case:6: window: expected a whole number up to 4294967295"},
    {HEAD HOSTS "first_tree = 1; trees = 1;\n" RING OPS,
     "x.case:0: trees: found 1 from 1 on, expected 1 in all"},
    {HEAD HOSTS OPS, "x.case:0: found no algorithms, expected algorithms = [ \"ring\", ... ]"},
    {HEAD HOSTS "algorithms = [ 3 ];\n" OPS,
     "x.case:6: algorithms: found \"\", expected a name such as \"ring\""},
    {HEAD HOSTS "algorithms = [ \"schedule\" ];\n" OPS,
     "x.case:6: algorithms: found \"schedule\", expected a name such as \"ring\""},
    {HEAD HOSTS RING "policy = [ \"ring\", \"rong\" ];\n" OPS,
     "x.case:7: policy: found \"rong\", expected a name such as \"ring\""},
    {HEAD HOSTS RING, "x.case:0: operations: found none, expected a list of at most 16"},
    {HEAD HOSTS RING "operations = ( 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1 );\n",
     "x.case:7: operations: found more, expected a list of at most 16"},
    {HEAD HOSTS RING OP(""), "x.case:7: found no seed, expected seed = \"...\""},
    {HEAD HOSTS RING OP("seed = \"1\"; root = 2;"),
     "x.case:8: root: expected a whole number up to 1"},
    {HEAD HOSTS RING OP("seed = \"1\"; sparse = 3;"),
     "x.case:8: sparse: expected a whole number up to 2"},
    {HEAD HOSTS RING OP("seed = \"1\"; skew_ps = 1000000000001L;"),
     "x.case:8: skew_ps: expected a whole number up to 1000000000000"},
    {HEAD HOSTS RING OP("seed = \"1\"; count = 32769;"),
     "x.case:8: count: expected a whole number up to 32768"},
    {HEAD HOSTS RING "operations = ( { collective = \"all_reduce\"; algorithm = \"ring\"; type = "
                     "\"float\"; op = \"sum\"; count = 65537; seed = \"1\"; } );",
     "x.case:7: count: expected a whole number up to 65536"},
    {HEAD HOSTS RING "operations = ( { collective = \"all_reduce\"; algorithm = \"ring\"; type = "
                     "\"float3\"; op = \"sum\"; seed = \"1\"; } );",
     "x.case:7: type: found \"float3\", expected a name such as \"int8\""},
    {HEAD HOSTS RING "operations = ( { collective = \"all_reduce\"; algorithm = \"ring\"; type = "
                     "\"float\"; op = \"sun\"; seed = \"1\"; } );",
     "x.case:7: op: found \"sun\", expected a name such as \"sum\""},
    {HEAD HOSTS RING OPS "jobs = ( 1, 1, 1, 1 );", "x.case:8: jobs: found 4, expected at most 3"},
    {HEAD HOSTS RING OPS "jobs = (\n{ stops_ps = 1; } );",
     "x.case:9: found no start, expected start = \"...\""},
    {HEAD HOSTS RING OPS "jobs = ( { start = \"after\"; stops_ps = 1000000000001L; } );",
     "x.case:8: stops_ps: expected a whole number up to 1000000000000"},
    {HEAD HOSTS RING OPS "jobs = ( { start = \"after\"; processes = [ 2 ]; } );",
     "x.case:8: processes: found 2, expected less than 2"},
    {HEAD HOSTS RING OPS "faults = (\n{ node = \"h0\"; } );\nmore = 1;", "x.case:9: "},
};

static void mistakes_are_named(void **state)
{
    unsigned failed = 0;

    (void)state;
    for (unsigned i = 0; i < LEN(mistakes); i++) {
        struct chaos_case k = {.cfg = &cfg};
        char why[CHAOS_TEXT] = "";
        int rc = case_load_string(&k, mistakes[i].text, "x.case", why);

        if (rc != -EINVAL || !strstr(why, mistakes[i].why))
            failed++, print_error("row %u: %d %s\nexpected %s\n", i, rc, why, mistakes[i].why);
        free_case(&k);
    }
    assert_int_equal(failed, 0);
}

static void files(void **state)
{
    char path[] = "/tmp/trib-case.XXXXXX", why[CHAOS_TEXT] = "";
    struct chaos_case k = {.cfg = &cfg};
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(case_load_string(&k, whole, "x.case", why), 0);
    assert_int_equal(case_save(&k, path, "elements are wrong"), 0);
    assert_int_equal(case_save(&k, "/nowhere/x.case", NULL), -ENOENT);
    free_case(&k);
    k.cfg = &cfg;
    assert_int_equal(case_load(&k, path, why), 0);
    same_text(printed(&k, "elements are wrong"), whole);
    free_case(&k);
    unlink(path);
    k.cfg = &cfg;
    assert_int_equal(case_load(&k, "nowhere.case", why), -EINVAL);
    assert_string_equal(
        why, "nowhere.case:0: found no readable file (No such file or directory), expected a "
             "chaos case");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_has_its_field),
        cmocka_unit_test(what_is_printed_is_what_was_read),
        cmocka_unit_test(a_case_with_its_own_fabric),
        cmocka_unit_test(what_is_left_out),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
