/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Limits of a jobs file: the last value that is taken and the first that is not, with the whole sentence; what
 * keys that are left out stand for; and what a job's data takes.
 */
#include "collective/sched.h"
#include "sim/jobs/jobs.h"
#include "tests/fabric/load.h"

#include <errno.h>
#include <stdlib.h>

static struct fabric *fab;
static struct fab_errors errs;

static int load(void **state)
{
    (void)state;
    fab = load_file("conf/leaf-spine-8.conf");
    return 0;
}

static int unload(void **state)
{
    (void)state;
    fabric_free(fab);
    return 0;
}

/* A file of one job with these keys. */
static int read_one(struct jobs_plan *p, const char *keys)
{
    char text[2048];

    snprintf(text, sizeof(text), "jobs = ( { %s } );", keys);
    return jobs_load_string(p, text, "x.conf", fab, &errs);
}

#define ALL "hosts = \"all\"; "
#define MIB "size = \"1MiB\"; "

static void what_is_left_out(void **state)
{
    struct jobs_plan p;
    const struct jobs_job *j = &p.job[0];

    (void)state;
    assert_int_equal(read_one(&p, ALL MIB), 0);
    assert_true(p.n == 1 && p.nranks == 8 && j->nranks == 8 && j->first_rank == 0);
    assert_string_equal(j->name, "job0");
    assert_true(j->repeat == 1 && j->start_ps == 0 && j->die_ps == JOBS_NEVER && j->window == 0 &&
                j->group == 1 && j->n_policy == 0 && j->n_ops == 1);
    assert_true(j->n_trees == 2 && j->tree[0] == 0 && j->tree[1] == 1);
    assert_true(j->op[0].kind == COLL_ALLREDUCE && j->op[0].asked == ALGO_AUTO &&
                j->op[0].algo < ALGO_COUNT && j->op[0].type == DT_FP32 && j->op[0].op == OP_SUM &&
                j->op[0].root == 0 && j->op[0].bytes == 1 << 20 && j->op[0].count == 1 << 18);
    assert_int_equal(j->algos, 1u << j->op[0].algo);
    assert_true(j->op[0].model_ps > 0 && j->op[0].bound == 0);
    jobs_free(&p);
    assert_true(p.n == 0 && !p.host_of_rank);
}

static void hosts_of_a_job(void **state)
{
    static const struct {
        const char *hosts;
        unsigned n;
        uint16_t host[8];
    } rows[] = {
        {"\"h2:h3\"", 2, {2, 3}},
        {"\"h0:h6:2\"", 4, {0, 2, 4, 6}},
        {"\"h1:h7:3\"", 3, {1, 4, 7}},
        {"\"h0:h6:6\"", 2, {0, 6}},
        {"\"h0:h7:1\"", 8, {0, 1, 2, 3, 4, 5, 6, 7}},
        {"[ \"h5:h5\", \"h4\" ]", 2, {5, 4}},
        {"[ \"h7\", \"h0:h4:4\", \"h1\" ]", 4, {7, 0, 4, 1}},
    };

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        struct jobs_plan p;
        char keys[128];

        snprintf(keys, sizeof(keys), "hosts = %s; size = \"1MiB\";", rows[i].hosts);
        if (read_one(&p, keys))
            fail_msg("%s: %s", keys, errs.e[0].text);
        assert_int_equal(p.job[0].nranks, rows[i].n);
        assert_memory_equal(p.job[0].host_of_rank, rows[i].host, rows[i].n * sizeof(uint16_t));
        jobs_free(&p);
    }
}

static void the_last_values_that_are_taken(void **state)
{
    static const char *const rows[] = {ALL MIB "repeat = 1;",
                                       ALL MIB "repeat = 1000000;",
                                       ALL "size = \"1GiB\";",
                                       ALL "size = \"4B\";",
                                       ALL MIB "window = 1;",
                                       ALL MIB "window = 65536;",
                                       ALL MIB "group = 1;",
                                       ALL MIB "group = 1048575;",
                                       ALL MIB "start = \"1s\";",
                                       ALL MIB "die_at = \"1s\";",
                                       ALL MIB "die_at = \"1ps\";",
                                       ALL MIB "trees = [ 1, 0 ];",
                                       ALL MIB "root = 7; collective = \"reduce\";",
                                       ALL "size = \"32B\"; collective = \"all_gather\";",
                                       ALL MIB "policy = [ \"ring\" ];"};

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        struct jobs_plan p;

        if (read_one(&p, rows[i]))
            fail_msg("%s: %s", rows[i], errs.e[0].text);
        jobs_free(&p);
    }
}

#define STEP  "expected FIRST:LAST:STEP with LAST not before FIRST and a whole STEP from 1"
#define HOST  "expected the name of a host, or FIRST:LAST of hosts"
#define HOSTS "expected names of hosts, as [ \"h0\", \"h1\" ], \"h0:h7\" or \"all\""

static const struct {
    const char *keys, *text;
} refused[] = {
    {MIB "hosts = \"h1:h0\";", "hosts: found \"h1:h0\", " STEP},
    {MIB "hosts = \"h0:h4:0\";", "hosts: found \"h0:h4:0\", " STEP},
    {MIB "hosts = \"h0:h4:-1\";", "hosts: found \"h0:h4:-1\", " STEP},
    {MIB "hosts = \"h0:h4:\";", "hosts: found \"h0:h4:\", " STEP},
    {MIB "hosts = \"h0:h4:2x\";", "hosts: found \"h0:h4:2x\", " STEP},
    {MIB "hosts = \"h0:h4:99999\";", "hosts: found \"h0:h4:99999\", " STEP},
    {MIB "hosts = \"h0:h8\";", "hosts: found \"h8\", " HOST},
    {MIB "hosts = \"h9:h8\";", "hosts: found \"h9\", " HOST},
    {MIB "hosts = \"leaf0\";", "hosts: found \"leaf0\", " HOST},
    {MIB "hosts = [ 1, 2 ];", "hosts: found an array [ ], " HOSTS},
    {MIB "hosts = [ ];", "hosts: found an array [ ], " HOSTS},
    {MIB "hosts = 7;", "hosts: found 7, " HOSTS},
    {MIB "hosts = [ \"h3\" ];", "hosts: found 1 rank, expected at least 2"},
    {MIB "hosts = \"h0:h3:5\";", "hosts: found 1 rank, expected at least 2"},
    {MIB "hosts = [ \"h0:h3\", \"h3\" ];",
     "hosts: found h3 twice, expected one rank of a job on a host"},
    {MIB, "found no hosts, expected hosts = [ \"h0\", ... ]"},
    {ALL, "found no size, expected size = \"1MiB\" or the like"},
    {ALL "size = \"1025MiB\";", "size: found \"1025MiB\", expected a size from 1B to 1GiB: "
                                "bytes, or with a unit, as \"64KiB\""},
    {ALL "size = \"3B\";",
     "size: found 3 bytes, expected at least 4, one element of float for each of 1"},
    {ALL "size = \"31B\"; collective = \"all_gather\";",
     "size: found 31 bytes, expected at least 32, one element of float for each of 8"},
    {ALL MIB "repeat = 1000001;", "repeat: found 1000001, expected an integer from 1 to "
                                  "1000000, or \"others\": until they have ended"},
    {ALL MIB "repeat = \"other\";", "repeat: found \"other\", expected an integer from 1 to "
                                    "1000000, or \"others\": until they have ended"},
    {ALL MIB "window = 65537;", "window: found 65537, expected an integer from 1 to 65536"},
    {ALL MIB "group = 0;", "group: found 0, expected an integer from 1 to 1048575"},
    {ALL MIB "die_at = \"0s\";", "die_at: found 0us, expected a time after the start, 0us"},
    {ALL MIB "start = \"2us\"; die_at = \"1.5us\";",
     "die_at: found 1.5us, expected a time after the start, 2us"},
    {ALL MIB "trees = [ 2 ];", "trees: found 2, expected a tree below 2"},
    {ALL MIB "trees = [ -1 ];", "trees: found -1, expected a tree below 2"},
    {ALL MIB "trees = [ 0, 1, 0 ];", "trees: found 0 twice, expected each once"},
    {ALL MIB "trees = [ ];", "trees: found an array [ ], expected 1 to 8 numbers of trees that "
                             "trib plan shows, as [ 0, 1 ]"},
    {ALL MIB "trees = [ 0, 1, 0, 1, 0, 1, 0, 1, 0 ];",
     "trees: found an array [ ], expected 1 to 8 numbers of trees that trib plan shows, as [ "
     "0, "
     "1 "
     "]"},
    {ALL MIB "trees = [ \"0\" ];", "trees: found an array [ ], expected 1 to 8 numbers of trees "
                                   "that trib plan shows, as [ 0, 1 ]"},
    {ALL MIB "policy = [ ];", "policy: found an array [ ], expected algorithms to fail over to, "
                              "in order, as [ \"sharp\", \"ring\" ]"},
    {ALL MIB "policy = \"ring\";", "policy: found \"ring\", expected algorithms to fail over "
                                   "to, in order, as [ \"sharp\", \"ring\" ]"},
    {ALL MIB "policy = [ \"tree\", \"ring\", \"tree\" ];",
     "policy: found tree twice, expected each once"},
    {ALL MIB "root = 8; collective = \"reduce\";", "root: found 8, expected a rank below 8"},
    {ALL MIB "op = \"band\";", "op: found band, which float does not have"},
    {ALL "operations = ( 7 );", "found 7, expected a group { collective = \"all_reduce\"; ... }"},
    {ALL "type = \"float\"; operations = ( { size = \"1KiB\"; } );",
     "type: found it beside operations, expected it in their entries"},
};

static void the_first_values_that_are_not(void **state)
{
    unsigned failed = 0;

    (void)state;
    for (unsigned i = 0; i < LEN(refused); i++) {
        struct jobs_plan p;
        int rc = read_one(&p, refused[i].keys);

        if (rc == -EINVAL && errs.n == 1 && !strcmp(errs.e[0].text, refused[i].text))
            continue;
        print_error("%s: %d, %u mistakes\n  %s\nexpected\n  %s\n", refused[i].keys, rc, errs.n,
                    errs.n ? errs.e[0].text : "", refused[i].text);
        failed++;
        if (!rc)
            jobs_free(&p);
    }
    assert_int_equal(failed, 0);
}

/* Lists of n jobs and of n operations. */
static void lists_have_lengths(void **state)
{
    (void)state;
    for (unsigned n = 31; n < 34; n++) {
        char text[4096] = "jobs = (";
        struct jobs_plan p;

        for (unsigned i = 0; i < n; i++)
            sprintf(text + strlen(text), "%s{ hosts = [ \"h0\", \"h1\" ]; size = \"1KiB\"; }",
                    i ? ", " : "");
        strcat(text, " );");
        assert_int_equal(jobs_load_string(&p, text, "x.conf", fab, &errs), n > 32 ? -EINVAL : 0);
        assert_int_equal(p.n, n > 32 ? 0 : n);
        if (n > 32)
            assert_string_equal(errs.e[0].text,
                                "jobs: found a list ( ), expected a list ( { ... }, ... ) of 1 to "
                                "32 jobs");
        else
            assert_true(p.job[n - 1].first_rank == 2 * (n - 1) && p.nranks == 2 * n);
        jobs_free(&p);
    }
    for (unsigned n = 7; n < 10; n++) {
        char text[1024] = ALL "operations = (";
        struct jobs_plan p;

        for (unsigned i = 0; i < n; i++)
            sprintf(text + strlen(text), "%s{ size = \"%uKiB\"; }", i ? ", " : "", i + 1);
        strcat(text, " );");
        assert_int_equal(read_one(&p, text), n > 8 ? -EINVAL : 0);
        if (n > 8)
            assert_string_equal(errs.e[0].text,
                                "operations: found a list ( ), expected a list ( { collective = "
                                "\"all_reduce\"; ... }, ... ) of 1 to 8");
        else
            assert_true(p.job[0].n_ops == n && p.job[0].op[n - 1].bytes == 1024 * n);
        jobs_free(&p);
    }
}

/* Each mistake of several jobs, in order of lines. */
static void several_mistakes(void **state)
{
    static const char text[] = "jobs = ( { hosts = \"all\"; size = \"0B\"; repeat = 0; },\n"
                               "{ hosts = \"h0:h9\"; size = \"1KiB\"; } );\nmore = 1;\n";
    struct jobs_plan p;

    (void)state;
    assert_int_equal(jobs_load_string(&p, text, "x.conf", fab, &errs), -EINVAL);
    assert_int_equal(errs.n, 4);
    assert_true(errs.e[0].line == 1 && errs.e[1].line == 1 && errs.e[2].line == 2 &&
                errs.e[3].line == 3);
    assert_string_equal(errs.e[3].text,
                        "found unknown key \"more\", expected jobs = ( ... ) alone");
}

/* Both buffers of each rank, in pages; one more where the last is full. */
static void data_of_a_job(void **state)
{
    static const struct {
        const char *keys;
        uint64_t bytes;
    } rows[] = {
        {ALL "size = \"4KiB\"; ", 16 * 8192},
        {ALL "size = \"4092B\"; ", 16 * 4096},
        {ALL "size = \"32KiB\"; collective = \"all_gather\"; ", 16 * (32768 + 4096)},
        {ALL "operations = ( { size = \"4KiB\"; }, { size = \"8B\"; } ); ", 16 * (8192 + 4096)},
    };

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        struct jobs_plan p;

        assert_int_equal(read_one(&p, rows[i].keys), 0);
        assert_int_equal(jobs_data_bytes(&p.job[0]), rows[i].bytes);
        jobs_free(&p);
    }
}

static void algorithms_by_name(void **state)
{
    (void)state;
    for (unsigned i = 0; i < ALGO_COUNT; i++)
        if (!coll_is_protocol((enum coll_algo)i) || coll_protocol((enum coll_algo)i))
            assert_int_equal(jobs_algo_by_name(sched_algo_name((enum coll_algo)i)), i);
    assert_int_equal(jobs_algo_by_name("auto"), ALGO_AUTO);
    assert_int_equal(jobs_algo_by_name(""), -EINVAL);
    assert_int_equal(jobs_algo_by_name("rin"), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_left_out),
        cmocka_unit_test(hosts_of_a_job),
        cmocka_unit_test(the_last_values_that_are_taken),
        cmocka_unit_test(the_first_values_that_are_not),
        cmocka_unit_test(lists_have_lengths),
        cmocka_unit_test(several_mistakes),
        cmocka_unit_test(data_of_a_job),
        cmocka_unit_test(algorithms_by_name),
    };

    return cmocka_run_group_tests(tests, load, unload);
}
