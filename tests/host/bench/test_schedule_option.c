/* SPDX-License-Identifier: BSD-3-Clause */
/* --schedule beside the options that say something else than the file. */
#include "host/bench/schedule_option.h"

#include "collective/file/sched_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define RING "conf/schedules/ring-8.sched"

static struct perf_opts o;
static char err[OPT_ERR];

static int load(const char *line)
{
    static char buf[256];
    char *argv[16] = {(char *)(uintptr_t) "trib-perf"}, *save = NULL;
    struct option_result r;
    int argc = 1;

    snprintf(buf, sizeof(buf), "c.conf %s", line);
    for (char *s = strtok_r(buf, " ", &save); s && argc < 16; s = strtok_r(NULL, " ", &save))
        argv[argc++] = s;
    perf_options_init(&o);
    assert_int_equal(options_parse(&perf_program, (void *[]){&o}, argc, argv, &r), 0);
    return schedule_option_load(&o, &perf_program, &r, err);
}

static void what_the_file_does_not_have_is_refused(void **state)
{
    static const struct {
        const char *args, *says; /* "": it is taken */
    } rows[] = {
        {"", ""},
        {"all_reduce", ""},
        {"broadcast",
         "--schedule: found broadcast, expected all_reduce, of which " RING " is a schedule"},
        {"-g 8", ""},
        {"-g 4", "-g: found 4, expected the 8 ranks of " RING},
        {"-r 0", ""},
        {"-r 1", "-r: found 1, expected the root 0 of " RING},
        {"--place out", ""},
        {"--place in", ""},
        {"-k 2", "-k: found it with --schedule, expected one of them: a schedule moves every "
                 "block"},
        {"--policy ring", "--policy: found it with --schedule alone, expected --algo too: a "
                          "schedule needs no switch that could fail"},
        {"--policy ring --algo sharp", ""},
        {"--algo sharp", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char line[128];

        snprintf(line, sizeof(line), "%s --schedule " RING, rows[i].args);
        assert_int_equal(load(line), *rows[i].says ? OPT_BAD : OPT_OK);
        assert_string_equal(err, rows[i].says);
        assert_non_null(o.file);
        assert_int_equal(o.coll, COLL_ALLREDUCE);
        assert_int_equal(o.ranks, 8);
        assert_int_equal(o.root, 0);
        assert_int_equal(o.algos, 1u << ALGO_SCHEDULE |
                                      (strstr(rows[i].args, "--algo") ? 1u << ALGO_SHARP : 0));
        schedule_option_free(&o);
        assert_null(o.file);
    }
}

static void a_file_that_is_out_of_place_alone_does_not_run_in_place(void **state)
{
    char path[] = "/tmp/test_schedule.XXXXXX", line[128], says[128];
    char text[256];
    FILE *in = fopen(RING, "r"), *f;
    int fd = mkstemp(path);

    (void)state;
    assert_true(in && fd >= 0);
    f = fdopen(fd, "w");
    while (fgets(text, sizeof(text), in))
        fprintf(f, "%s%s", text, strncmp(text, "ranks ", 6) == 0 ? "place out\n" : "");
    fclose(in);
    fclose(f);
    snprintf(line, sizeof(line), "--place in --schedule %s", path);
    assert_int_equal(load(line), OPT_BAD);
    snprintf(says, sizeof(says), "--place: found in, expected out: %s says place out", path);
    assert_string_equal(err, says);
    schedule_option_free(&o);
    unlink(path);
}

static void without_a_file_nothing_changes(void **state)
{
    (void)state;
    strcpy(err, "x");
    assert_int_equal(load("broadcast -g 4 -r 2"), OPT_OK);
    assert_string_equal(err, "");
    assert_null(o.file);
    assert_int_equal(o.coll, COLL_BROADCAST);
    assert_int_equal(o.ranks, 4);
    assert_int_equal(o.root, 2);
    assert_int_equal(o.algos, 0);
    assert_int_equal(load("--schedule /nonexistent"), OPT_BAD);
    assert_null(o.file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_file_does_not_have_is_refused),
        cmocka_unit_test(a_file_that_is_out_of_place_alone_does_not_run_in_place),
        cmocka_unit_test(without_a_file_nothing_changes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
