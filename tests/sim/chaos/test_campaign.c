/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Campaigns, each in a process of its own: the line of a seed or case, its plan, what is printed of one that
 * fails and how it is replayed, and the words for seeds that are none.
 */
#include "sim/chaos/campaign.h"
#include "sim/chaos/chaos.h"
#include "tests/fabric/load.h"
#include "tests/support/captured.h"

#include <sys/wait.h>

static struct captured out, err;

/* Runs it; its exit status. What it prints is in out.text and err.text. */
static int run(const struct campaign_cfg *cfg)
{
    int status = 0;
    pid_t child;

    captured_begin(&out, stdout);
    captured_begin(&err, stderr);
    child = fork();
    if (!child) {
        status = campaign_run(cfg);
        fflush(stdout);
        _exit(status);
    }
    waitpid(child, &status, 0);
    captured_end(&err);
    captured_end(&out);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void seeds_that_are_none(void **state)
{
    static const struct {
        const char *seeds, *save, *text;
    } rows[] = {
        {"", NULL, "found \"\", expected a seed, or FIRST-LAST"},
        {"x", NULL, "found \"x\", expected a seed, or FIRST-LAST"},
        {"-3", NULL, "found \"-3\", expected a seed, or FIRST-LAST"},
        {"3-", NULL, "found \"3-\", expected a seed, or FIRST-LAST"},
        {"3-x", NULL, "found \"3-x\", expected a seed, or FIRST-LAST"},
        {"3-4x", NULL, "found \"3-4x\", expected a seed, or FIRST-LAST"},
        {"5-3", NULL, "found \"5-3\", a range that runs backwards, expected a seed, or FIRST-LAST"},
        {"99999999999999999999", NULL,
         "found \"99999999999999999999\", expected a seed, or FIRST-LAST"},
        {"3-4", "x.case", "found \"3-4\", expected a seed (--save-case)"},
    };

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        const struct campaign_cfg cfg = {.seeds = rows[i].seeds, .save_file = rows[i].save};
        char text[256];

        snprintf(text, sizeof(text), "trib-sim: --chaos: %s\n", rows[i].text);
        assert_int_equal(run(&cfg), 2);
        assert_string_equal(err.text, text);
        assert_string_equal(out.text, "");
    }
}

static void a_fabric_that_is_none(void **state)
{
    (void)state;
    assert_int_equal(run(&(struct campaign_cfg){.seeds = "1", .conf = "conf/none.conf"}), 2);
    assert_non_null(strstr(err.text, "conf/none.conf"));
    assert_string_equal(out.text, "");
}

/* ---- cases ---- */

static char path[64];

static void write_case(const char *faults)
{
    int fd;
    FILE *f;

    strcpy(path, "/tmp/trib-case.XXXXXX");
    fd = mkstemp(path);
    assert_true(fd >= 0);
    f = fdopen(fd, "w");
    fprintf(
        f,
        "found = \"\"; conf = \"leaf-spine-8.conf\"; seed = \"1\"; key = \"1\"; group = 1;\n"
        "hosts = [0, 1, 5]; algorithms = [ \"ring\", \"sharp\" ]; policy = [ \"sharp\" ];\n"
        "trees = 1; operations = ( { collective = \"all_reduce\"; algorithm = \"sharp\"; type = "
        "\"int32\"; op = \"max\"; count = 40; seed = \"1\"; in_place = true; } );\n"
        "jobs = ( { start = \"after\"; processes = [0, 2]; key = \"2\"; group = 2; algorithms = "
        "[ \"ring\" ]; operations = ( { collective = \"broadcast\"; algorithm = \"ring\"; type "
        "= \"float\"; op = \"sum\"; count = 4; root = 1; seed = \"3\"; } ); } );\n%s",
        faults);
    fclose(f);
}

/* The line of a seed but for the numbers of its run, and what comes behind it. */
static void same_line(const char *before, const char *behind)
{
    const char *at = strchr(out.text, '[');
    double ms;
    unsigned long long frames, trace;
    int n = 0;

    if (strncmp(out.text, before, strlen(before)))
        fail_msg("found:\n%s\nexpected:\n%s", out.text, before);
    assert_ptr_equal(at, out.text + strlen(before));
    assert_int_equal(sscanf(at, "[%lf ms, %llu frames, %16llx]\n%n", &ms, &frames, &trace, &n), 3);
    assert_true(ms > 0 && ms < 1000 && frames > 0 && trace > 0);
    assert_string_equal(at + n, behind);
}

static void a_case_has_a_line(void **state)
{
    struct campaign_cfg cfg = {.case_file = path};
    char line[512];

    (void)state;
    write_case("");
    assert_int_equal(run(&cfg), 0);
    unlink(path);
    snprintf(line, sizeof(line),
             "case %s: leaf-spine-8, 3 ranks, only sharp, 2 after, 0 faults; all_reduce by sharp "
             "int32 max x40 root 0 in place; job 1: broadcast by ring float sum x4 root 1 (left "
             "out: not supported): exact ",
             path);
    if (!strstr(out.text, "left out")) /* where it is supported it runs */
        snprintf(line, sizeof(line),
                 "case %s: leaf-spine-8, 3 ranks, only sharp, 2 after, 0 faults; all_reduce by "
                 "sharp int32 max x40 root 0 in place; job 1: broadcast by ring float sum x4 root "
                 "1: exact ",
                 path);
    same_line(line, "faults = ( );\n");
    assert_string_equal(err.text, "");
}

/* A rank dies: an error with a name, which is none of chaos. */
static void errors_that_may_be(void **state)
{
    struct campaign_cfg cfg = {.case_file = path};

    (void)state;
    write_case("faults = ( { at = \"1ns\"; rank = 1; die = true; told = \"1us\"; } );\n");
    assert_int_equal(run(&cfg), 0);
    unlink(path);
    assert_non_null(strstr(out.text, ", 1 faults; "));
    assert_non_null(strstr(out.text, ": named errors on "));
    assert_non_null(strstr(out.text,
                           "]\nfaults = (\n           { at = \"1ns\"; rank = 1; die = true; told = "
                           "\"1us\"; } );\n"));
    assert_null(strstr(out.text, "FAILED"));
}

static void a_case_with_a_mistake_fails(void **state)
{
    struct campaign_cfg cfg = {.case_file = path};
    char text[512];

    (void)state;
    write_case("slices = \"q\";\n");
    assert_int_equal(run(&cfg), 1);
    unlink(path);
    snprintf(text, sizeof(text),
             ": FAILED: %s:0: slices: found \"q\", expected a number such as \"0x2a\" [0.000 ms, 0 "
             "frames, 0000000000000000]\n  replay: trib sim --chaos-case %s\n",
             path, path);
    assert_string_equal(out.text, text);
}

/* ---- seeds ---- */

static void several_seeds_are_counted(void **state)
{
    unsigned lines = 0, seeds = 0, failed = 9, errors = 9, fell = 9, named = 0, without = 0;
    char *at = out.text;

    (void)state;
    assert_int_equal(run(&(struct campaign_cfg){.seeds = "3-14"}), 0);
    for (char *line; (line = strsep(&at, "\n")) && *line;) {
        char head[32];

        if (sscanf(line, "%u seeds, %u failed; %u ended with named errors, %u without aggregation",
                   &seeds, &failed, &errors, &fell) == 4)
            continue;
        snprintf(head, sizeof(head), "seed %u: ", 3 + lines++);
        assert_memory_equal(line, head, strlen(head));
        named += strstr(line, ": named errors on ") != NULL;
        without += strstr(line, ": exact, fell back: ") != NULL;
    }
    assert_true(lines == 12 && seeds == 12 && failed == 0);
    assert_int_equal(errors, named);
    assert_true(fell >= without && fell <= without + named);
}

static void a_seed_on_a_fabric_with_faults(void **state)
{
    struct campaign_cfg cfg = {
        .seeds = "7", .conf = "conf/two-hosts.conf", .faults = "nowhere.conf"};

    (void)state;
    assert_int_equal(run(&cfg), 1);
    assert_non_null(strstr(out.text, ": FAILED: nowhere.conf:0: found no readable file"));
    assert_non_null(strstr(out.text, "\n  replay: trib sim conf/two-hosts.conf --chaos 7 --faults "
                                     "nowhere.conf\n"));
    cfg.faults = NULL;
    assert_int_equal(run(&cfg), 0);
    assert_memory_equal(out.text, "seed 7: two-hosts, ", 19);
    assert_null(strstr(out.text, "replay"));
    assert_non_null(strstr(out.text, "]\nfaults = ("));
    assert_null(strstr(out.text, "seeds, "));
}

/* Of a tenth of a millisecond, which is over before the seed is. */
static void a_seed_that_takes_too_long(void **state)
{
    (void)state;
    assert_int_equal(run(&(struct campaign_cfg){.seeds = "7", .wall_s = 1e-4}), 3);
    assert_memory_equal(out.text, "seed 7: ", 7);
    assert_non_null(
        strstr(out.text, ": FAILED: no end within 0.0001 s of wall time (--max-wall)\n"));
    assert_non_null(strstr(out.text, "  replay: trib sim --chaos 7\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seeds_that_are_none),
        cmocka_unit_test(a_fabric_that_is_none),
        cmocka_unit_test(a_case_has_a_line),
        cmocka_unit_test(errors_that_may_be),
        cmocka_unit_test(a_case_with_a_mistake_fails),
        cmocka_unit_test(several_seeds_are_counted),
        cmocka_unit_test(a_seed_on_a_fabric_with_faults),
        cmocka_unit_test(a_seed_that_takes_too_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
