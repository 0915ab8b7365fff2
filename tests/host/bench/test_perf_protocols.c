/* SPDX-License-Identifier: BSD-3-Clause */
/* A conf's protocols are loaded before options that name them are read; its mistakes are told first. */
#include "host/bench/perf_protocols.h"

#include "system/provenance.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define HEAD                                                                                       \
    "link_defaults = { rate = \"400Gb/s\"; latency = \"300ns\"; };\nsingle_switch = { hosts = 2; " \
    "};\n"

static char dir[32], said[2048];

static const char *file(const char *name, const char *text)
{
    static char path[4][96];
    static unsigned n;
    FILE *f;

    n = (n + 1) % 4;
    snprintf(path[n], sizeof(path[n]), "%s/%s", dir, name);
    f = fopen(path[n], "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    return path[n];
}

static int load(const char *a, const char *b)
{
    char *argv[] = {(char *)(uintptr_t) "trib-perf", (char *)(uintptr_t)a, (char *)(uintptr_t)b};
    FILE *f = tmpfile();
    int was = dup(STDERR_FILENO), rc;

    dup2(fileno(f), STDERR_FILENO);
    rc = perf_load_protocols(b ? 3 : 2, argv);
    fflush(stderr);
    dup2(was, STDERR_FILENO);
    close(was);
    rewind(f);
    said[fread(said, 1, sizeof(said) - 1, f)] = '\0';
    fclose(f);
    return rc;
}

static void only_confs_that_mention_a_protocol_are_loaded(void **state)
{
    static const char wrong[] = "protocol = ;\n";

    (void)state;
    assert_int_equal(load(file("plain.conf", HEAD), NULL), 0);
    assert_int_equal(load(file("broken.conf", "hosts = ;\n"), NULL), 0); /* others say so later */
    assert_int_equal(load("/nonexistent.conf", NULL), 0);
    assert_int_equal(load(dir, NULL), 0);
    assert_string_equal(said, "");
    assert_int_equal(load(file("wrong.conf", wrong), NULL), -EINVAL);
    assert_non_null(strstr(said, "/wrong.conf:1: "));
    assert_int_equal(load("-x", file("wrong.conf", wrong)),
                     0); /* an option's value, as far as known */
    assert_int_equal(load(file("wrong.txt", wrong), NULL), 0);
    assert_int_equal(load(file("x.conf", wrong), NULL), -EINVAL);
    assert_string_equal(strrchr(said, '\n'), "\n");
}

static void a_conf_names_protocols_that_there_are(void **state)
{
    (void)state;
    assert_int_equal(load(file("good.conf", HEAD "reduce = { protocol = \"switchml\"; };\n"), NULL),
                     0);
    assert_string_equal(said, "");
    assert_true(load(file("none.conf", HEAD "reduce = { protocol = \"nothing\"; };\n"), NULL) < 0);
    assert_non_null(strstr(said, "nothing"));
    assert_int_equal(said[strlen(said) - 1], '\n');
    assert_true(load(file("none.conf", HEAD "reduce = { protocol = \"nothing\"; };\n"),
                     file("good.conf", HEAD "reduce = { protocol = \"switchml\"; };\n")) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_confs_that_mention_a_protocol_are_loaded),
        cmocka_unit_test(a_conf_names_protocols_that_there_are),
    };
    char rm[64];
    int rc;

    strcpy(dir, "/tmp/test_perf_prot.XXXXXX");
    if (!mkdtemp(dir))
        return 1;
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    snprintf(rm, sizeof(rm), "rm -rf %s", dir);
    return system(rm) || rc;
}
