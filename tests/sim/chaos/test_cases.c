/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chaos cases as files: those of tests/chaos/cases failed once and must not fail again; a saved
 * seed replays to the same run; mistakes of a file are named with their line.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/chaos/case.h"
#include "tests/support/eal.h"

static struct rte_mempool *pool;

static void run(const char *file, uint64_t seed, const char *save, struct chaos_report *rep)
{
    struct chaos_cfg cfg = {
        .seed = seed, .conf_dir = "conf", .case_file = file, .save_file = save, .pool = pool};

    chaos_run(&cfg, rep);
}

static void every_case_that_failed_once_passes(void **state)
{
    unsigned failed = 0;
    glob_t g;

    (void)state;
    assert_int_equal(glob("tests/chaos/cases/*.case", 0, NULL, &g), 0);
    assert_true(g.gl_pathc >= 19);
    for (size_t i = 0; i < g.gl_pathc; i++) {
        struct chaos_report rep;

        run(g.gl_pathv[i], 0, NULL, &rep);
        if (rep.ok)
            continue;
        print_message("%s: %s: %s\n  replay: trib sim --chaos-case %s\n", g.gl_pathv[i], rep.what,
                      rep.verdict, g.gl_pathv[i]);
        failed++;
    }
    globfree(&g);
    assert_int_equal(failed, 0);
}

static char *temporary_file(void)
{
    static char path[64];
    int fd;

    snprintf(path, sizeof(path), "/tmp/trib-case.XXXXXX");
    fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    return path;
}

static void a_saved_seed_replays_to_the_same_run(void **state)
{
    char *path = temporary_file();

    (void)state;
    for (uint64_t seed = 1; seed <= 120; seed++) {
        struct chaos_report a, b;
        char *ops_a, *ops_b;

        run(NULL, seed, path, &a);
        run(path, 0, NULL, &b);
        assert_int_equal(a.ok, b.ok);
        assert_string_equal(a.verdict, b.verdict);
        if (a.trace_hash != b.trace_hash || a.frames != b.frames || a.fabric_ps != b.fabric_ps)
            fail_msg("seed %lu: %s\n  and its case: %s", seed, a.what, b.what);
        ops_a = strchr(a.what, ';'), ops_b = strchr(b.what, ';');
        assert_string_equal(ops_a ? ops_a : "", ops_b ? ops_b : "");
    }
    unlink(path);
}

#define FABRIC                                                                                     \
    "found = \"\";\nconf = \"two-hosts.conf\";\nseed = \"1\";\nkey = \"1\";\ngroup = 1;\n"         \
    "algorithms = [ \"ring\" ];\n"
#define HOSTS "hosts = [0, 1];\n"
#define OP                                                                                         \
    "operations = ( { collective = \"all_reduce\"; algorithm = \"ring\"; type = \"float\"; op = "  \
    "\"sum\"; count = 4; seed = \"1\"; } );\n"

#define JOB "algorithms = [ \"ring\" ];\n" OP

static void mistakes_are_named_with_their_line(void **state)
{
    static const struct {
        const char *text, *why; /* NULL: none */
    } rows[] = {
        {FABRIC HOSTS OP "faults = ( );\n", NULL},
        {FABRIC HOSTS OP, NULL},
        {"conf = ", "1: syntax error"},
        {"found = \"\";\nconf = \"none.conf\";\n", "none.conf:0: found no readable file"},
        {FABRIC "hosts = [0, 2];\n" OP, "7: hosts: found 2, expected less than 2"},
        {FABRIC OP, "0: hosts: found 0 ranks, expected 1 to 16"},
        {FABRIC HOSTS, "0: operations: found none, expected a list"},
        {FABRIC HOSTS "trees = 2;\n" OP, "trees: found 2 from 0 on, expected 1 in all"},
        {FABRIC HOSTS "policy = [ \"rng\" ];\n" OP, "8: policy: found \"rng\", expected a name"},
        {FABRIC HOSTS "operations = ( { collective = \"all\"; } );\n",
         "8: collective: found \"all\", expected a name such as \"all_reduce\""},
        {FABRIC HOSTS "operations = ( { collective = \"all_reduce\"; algorithm = \"ring\"; type = "
                      "\"float\"; op = \"sum\"; count = 65537; seed = \"1\"; } );\n",
         "8: count: expected a whole number up to 65536"},
        {FABRIC HOSTS OP "jobs = ( { start = \"later\"; } );\n",
         "9: start: found \"later\", expected a name such as \"before\""},
        {FABRIC HOSTS OP "jobs = ( { start = \"after\"; processes = [0, 2]; } );\n",
         "9: processes: found 2, expected less than 2"},
        {FABRIC HOSTS OP
         "jobs = ( { start = \"after\"; hosts = [0, 1]; key = \"2\"; group = 1;\n" JOB "} );\n",
         NULL},
        {FABRIC HOSTS OP "faults = (\n  { rank = 2; die = true; } );\n",
         "10: rank: found 2, expected one of 2"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *path = temporary_file();
        FILE *out = fopen(path, "w");
        struct chaos_report rep;

        assert_non_null(out);
        fputs(rows[i].text, out);
        fclose(out);
        run(path, 0, NULL, &rep);
        unlink(path);
        if (rep.ok == !rows[i].why && (rep.ok || strstr(rep.verdict, rows[i].why)))
            continue;
        fail_msg("row %zu: %s", i, rep.verdict);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case_that_failed_once_passes),
        cmocka_unit_test(a_saved_seed_replays_to_the_same_run),
        cmocka_unit_test(mistakes_are_named_with_their_line),
    };

    test_eal_init();
    pool = test_pool(CHAOS_FRAMES);
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
