/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs files: every mistake is named with its line, and a right file is read as it says. */
#include "sim/jobs/jobs.h"
#include "tests/fabric/load.h"

#include <stdlib.h>

static struct fabric *load(void)
{
    struct fabric *f = fabric_load("conf/leaf-spine-8.conf", NULL);

    assert_non_null(f);
    return f;
}

static const struct {
    int line;
    const char *job, *what;
} mistakes[] = {
    {2, "7", "found 7, expected a group"},
    {3, "{ hosts = \"all\"; sizes = \"1MiB\"; }",
     "found unknown key \"sizes\", expected \"size\"?"},
    {4, "{ size = \"1MiB\"; }", "found no hosts, expected hosts = [ \"h0\", ... ]"},
    {5, "{ hosts = 3; size = \"1MiB\"; }", "hosts: found 3, expected names of hosts"},
    {6, "{ hosts = [ \"h0\", \"h9\" ]; size = \"1MiB\"; }",
     "hosts: found \"h9\", expected the name of"},
    {7, "{ hosts = [ \"h0\", \"leaf0\" ]; size = \"1MiB\"; }", "hosts: found \"leaf0\", expected"},
    {8, "{ hosts = [ \"h0\", \"h1\", \"h0\" ]; size = \"1MiB\"; }", "hosts: found h0 twice"},
    {9, "{ hosts = \"h1:h0\"; size = \"1MiB\"; }", "hosts: found \"h1:h0\", expected FIRST:LAST"},
    {10, "{ hosts = \"h0:h4:x\"; size = \"1MiB\"; }", "hosts: found \"h0:h4:x\", expected FIRST"},
    {11, "{ hosts = \"h0\"; size = \"1MiB\"; }", "hosts: found 1 rank, expected at least 2"},
    {12, "{ hosts = \"all\"; }", "found no size, expected size = \"1MiB\""},
    {13, "{ hosts = \"all\"; size = \"2GiB\"; }", "size: found \"2GiB\", expected a size from 1B"},
    {14, "{ hosts = \"all\"; size = \"16B\"; collective = \"all_gather\"; }",
     "size: found 16 bytes, expected at least 32, one element of float for each of 8"},
    {15, "{ hosts = \"all\"; size = \"1MiB\"; collective = \"allreduce\"; }",
     "collective: found \"allreduce\", expected one of: all_reduce, reduce,"},
    {16, "{ hosts = \"all\"; size = \"1MiB\"; algorithm = \"rong\"; }",
     "algorithm: found \"rong\", expected one of: ring, sharp,"},
    {17, "{ hosts = \"all\"; size = \"1MiB\"; algorithm = \"sharp\"; collective = \"alltoall\"; }",
     "algorithm: found sharp, which alltoall does not have, expected one of: "},
    {18, "{ hosts = \"all\"; size = \"1MiB\"; algorithm = \"nvls\"; }",
     "algorithm: found nvls, which these 8 ranks of leaf-spine-8 cannot run"},
    {19, "{ hosts = \"all\"; size = \"1MiB\"; type = \"float12\"; }", "type: found \"float12\""},
    {20, "{ hosts = \"all\"; size = \"1MiB\"; op = \"xor\"; type = \"float\"; }",
     "op: found \"xor\""},
    {21, "{ hosts = \"all\"; size = \"1MiB\"; collective = \"broadcast\"; root = 8; }",
     "root: found 8, expected a rank below 8"},
    {22, "{ hosts = \"all\"; size = \"1MiB\"; repeat = 0; }",
     "repeat: found 0, expected an integer"},
    {23, "{ hosts = \"all\"; size = \"1MiB\"; repeat = \"for ever\"; }",
     "repeat: found \"for ever\""},
    {24, "{ hosts = \"all\"; size = \"1MiB\"; start = \"2s\"; }",
     "start: found \"2s\", expected a time"},
    {25, "{ hosts = \"all\"; size = \"1MiB\"; start = \"2us\"; die_at = \"2us\"; }",
     "die_at: found 2us, expected a time after the start, 2us"},
    {26, "{ hosts = \"all\"; size = \"1MiB\"; policy = [ \"sharp\", \"auto\" ]; }",
     "found \"auto\", expected one of: ring, sharp,"},
    {27, "{ hosts = \"all\"; size = \"1MiB\"; policy = [ \"ring\", \"ring\" ]; }",
     "policy: found ring twice"},
    {28, "{ hosts = \"all\"; size = \"1MiB\"; trees = [ 0, 9 ]; }",
     "trees: found 9, expected a tree below"},
    {29, "{ hosts = \"all\"; size = \"1MiB\"; trees = [ 1, 1 ]; }", "trees: found 1 twice"},
    {30, "{ hosts = \"all\"; size = \"1MiB\"; trees = 0; }",
     "trees: found 0, expected 1 to 8 numbers"},
    {31, "{ hosts = \"all\"; size = \"1MiB\"; window = 0; }",
     "window: found 0, expected an integer from 1"},
    {32, "{ hosts = \"all\"; size = \"1MiB\"; group = 1048576; }",
     "group: found 1048576, expected"},
    {33, "{ hosts = \"all\"; size = \"1MiB\"; operations = ( { size = \"1MiB\"; } ); }",
     "size: found it beside operations"},
    {34, "{ hosts = \"all\"; operations = ( ); }", "operations: found a list ( ), expected a list"},
    {35, "{ hosts = \"all\"; operations = ( { size = \"1MiB\"; start = \"1us\"; } ); }",
     "found unknown key \"start\""},
    {36, "{ hosts = \"all\"; size = \"1MiB\"; algorithm = \"switchml\"; type = \"double\"; }",
     "algorithm: found switchml for sum of double, expected one that reduces that"},
    {37, "{ hosts = \"all\"; size = \"1MiB\"; algorithm = \"?\"; }",
     "algorithm: found \"?\", expected"},
    {38, "{ hosts = \"all\"; size = -1; }",
     "size: found -1, expected a size from 1B to 1GiB: bytes, or with a unit"},
};

static void every_mistake_is_named_with_its_line(void **state)
{
    struct fab_errors *e = calloc(1, sizeof(*e));
    struct fabric *f = load();
    struct jobs_plan p;

    (void)state;
    for (unsigned i = 0; i < LEN(mistakes); i++) {
        char text[512];
        size_t at = (size_t)snprintf(text, sizeof(text), "jobs = (");

        for (int line = 1; line < mistakes[i].line; line++)
            text[at++] = '\n';
        snprintf(text + at, sizeof(text) - at, "%s );", mistakes[i].job);
        if (!jobs_load_string(&p, text, "x.conf", f, e))
            fail_msg("%s: expected a mistake", mistakes[i].job);
        if (e->n != 1 || e->e[0].line != mistakes[i].line ||
            !strstr(e->e[0].text, mistakes[i].what))
            fail_msg("%u mistakes of %s, line %d: %s\nexpected %d: %s", e->n, mistakes[i].job,
                     e->e[0].line, e->e[0].text, mistakes[i].line, mistakes[i].what);
        assert_true(strchr(e->e[0].text, ',') && strstr(e->e[0].text, "expected"));
    }
    fabric_free(f);
    free(e);
}

/* Mistakes of the file, and of two jobs together. */
static void jobs_that_do_not_go_together_are_refused(void **state)
{
    static const struct {
        const char *text, *what;
    } wrong[] = {
        {"jobs = ( { hosts = \"all\"; size = \"1KiB\"; } ); job = 1;",
         "found unknown key \"job\", expected jobs"},
        {"", "found no jobs, expected jobs = ( { ... }, ... )"},
        {"jobs = ( );", "jobs: found a list ( ), expected a list"},
        {"jobs = (", "syntax error"},
        {"jobs = ( { hosts = \"all\"; size = \"1KiB\"; name = \"a\"; },\n"
         "{ hosts = \"all\"; size = \"1KiB\"; name = \"a\"; } );",
         "name: found \"a\" of the job in line 1"},
        {"jobs = ( { hosts = \"all\"; size = \"1KiB\"; name = \"a\"; group = 2; },\n"
         "{ hosts = \"all\"; size = \"1KiB\"; name = \"b\"; } );",
         "group: found 2, which a has, expected another"},
        {"jobs = ( { hosts = \"all\"; size = \"1KiB\"; repeat = \"others\"; } );",
         "repeat: found \"others\" in every job"},
    };
    struct fab_errors *e = calloc(1, sizeof(*e));
    struct fabric *f = load();
    struct jobs_plan p;

    (void)state;
    for (unsigned i = 0; i < LEN(wrong); i++) {
        assert_int_equal(jobs_load_string(&p, wrong[i].text, "x.conf", f, e), -EINVAL);
        if (!strstr(e->e[0].text, wrong[i].what))
            fail_msg("%s\nexpected %s", e->e[0].text, wrong[i].what);
        assert_int_equal(p.n, 0);
    }
    assert_int_equal(jobs_load(&p, "nowhere.conf", f, e), -EINVAL);
    assert_non_null(strstr(e->e[0].text, "no readable file"));
    fabric_free(f);
    free(e);
}

static void a_host_has_as_many_jobs_as_slots(void **state)
{
    struct fabric *f = fabric_load_string(
        "name = \"x\"; slots_per_host = 2; single_switch = { hosts = 4; host_link = { rate = "
        "\"100Gb/s\"; latency = \"300ns\"; }; };",
        "x.conf", NULL);
    static const char text[] = "jobs = ( { hosts = \"h0:h2\"; size = \"1KiB\"; },\n"
                               "{ hosts = \"h1:h3\"; size = \"1KiB\"; },\n"
                               "{ hosts = [ \"h0\", \"h1\" ]; size = \"1KiB\"; } );";
    struct fab_errors *e = calloc(1, sizeof(*e));
    struct jobs_plan p;

    (void)state;
    assert_non_null(f);
    assert_int_equal(jobs_load_string(&p, text, "x.conf", f, e), -EINVAL);
    assert_int_equal(e->e[0].line, 3);
    assert_non_null(
        strstr(e->e[0].text, "found h1 in 3 jobs, expected at most its 2 process slots"));
    fabric_free(f);
    free(e);
}

static void a_right_file_is_read_as_it_says(void **state)
{
    static const char text[] =
        "jobs = ( { name = \"a\"; hosts = [ \"h7\", \"h0:h4:2\" ]; algorithm = \"sharp\"; size = "
        "\"64KiB\"; type = \"bfloat16\"; op = \"max\"; repeat = \"others\"; start = \"1.5us\"; "
        "die_at = \"2ms\"; policy = [ \"sharp\", \"tree\" ]; trees = [ 1 ]; window = 16; group = "
        "77; },\n"
        "{ hosts = \"all\"; operations = ( { collective = \"barrier\"; }, { collective = "
        "\"reduce\"; algorithm = \"chain\"; size = \"4KiB\"; root = 3; } ); repeat = 5; } );";
    struct fab_errors *e = calloc(1, sizeof(*e));
    static const uint16_t hosts[] = {7, 0, 2, 4};
    struct fabric *f = load();
    const struct jobs_job *a, *b;
    struct jobs_plan p;

    (void)state;
    if (jobs_load_string(&p, text, "x.conf", f, e))
        fail_msg("%d: %s", e->e[0].line, e->e[0].text);
    assert_int_equal(p.n, 2);
    assert_int_equal(p.nranks, 12);
    a = &p.job[0], b = &p.job[1];
    assert_string_equal(a->name, "a");
    assert_int_equal(a->nranks, 4);
    assert_memory_equal(a->host_of_rank, hosts, sizeof(hosts));
    assert_memory_equal(p.host_of_rank, hosts, sizeof(hosts));
    assert_true(a->op[0].kind == COLL_ALLREDUCE && a->op[0].algo == ALGO_SHARP &&
                a->op[0].type == DT_BF16 && a->op[0].op == OP_MAX && a->op[0].count == 32768);
    assert_true(a->op[0].model_ps > 0);
    assert_int_equal(a->repeat, 0);
    assert_true(a->start_ps == 1500000 && a->die_ps == 2 * PS_PER_MS);
    assert_true(a->n_policy == 2 && a->policy[0] == ALGO_SHARP && a->policy[1] == ALGO_TREE);
    assert_true(a->n_trees == 1 && a->tree[0] == 1 && a->window == 16 && a->group == 77);
    assert_string_equal(b->name, "job1");
    assert_true(b->nranks == 8 && b->first_rank == 4 && b->n_ops == 2 && b->repeat == 5);
    assert_true(b->op[0].kind == COLL_BARRIER && b->op[0].asked == ALGO_AUTO &&
                b->op[0].algo != ALGO_AUTO);
    assert_true(b->op[1].kind == COLL_REDUCE && b->op[1].root == 3 && b->op[1].count == 1024);
    assert_true(b->die_ps == JOBS_NEVER && b->n_trees == 2 && b->group == 2);
    jobs_free(&p);
    fabric_free(f);
    free(e);
}

static void the_files_that_come_with_it_are_right(void **state)
{
    static const char *const files[] = {"conf/jobs/two.conf", "conf/jobs/eight.conf",
                                        "conf/jobs/protocols.conf"};
    static const unsigned n[] = {2, 8, 6};
    struct fab_errors *e = calloc(1, sizeof(*e));
    struct fabric *f = load();
    struct jobs_plan p;

    (void)state;
    for (unsigned i = 0; i < LEN(files); i++) {
        if (jobs_load(&p, files[i], f, e))
            fail_msg("%s:%d: %s", files[i], e->e[0].line, e->e[0].text);
        assert_int_equal(p.n, n[i]);
        jobs_free(&p);
    }
    fabric_free(f);
    free(e);
}

/* Jain, Chiu, Hawe 1984: k of n with equal parts and the others with none have k / n. */
static void the_fairness_index_is_jains(void **state)
{
    static const double alike[] = {0.3, 0.3, 0.3}, one[] = {0, 0.7, 0, 0}, half[] = {1, 0, 1, 0},
                        two[] = {1, 3};

    (void)state;
    assert_float_equal(jobs_jain(alike, 3), 1, 1e-12);
    assert_float_equal(jobs_jain(one, 4), 0.25, 1e-12);
    assert_float_equal(jobs_jain(half, 4), 0.5, 1e-12);
    assert_float_equal(jobs_jain(two, 2), 0.8, 1e-12);
    assert_float_equal(jobs_jain(NULL, 0), 0, 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_mistake_is_named_with_its_line),
        cmocka_unit_test(jobs_that_do_not_go_together_are_refused),
        cmocka_unit_test(a_host_has_as_many_jobs_as_slots),
        cmocka_unit_test(a_right_file_is_read_as_it_says),
        cmocka_unit_test(the_files_that_come_with_it_are_right),
        cmocka_unit_test(the_fairness_index_is_jains),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
