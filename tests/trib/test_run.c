/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs that a command runs: exit codes as shells say them, output, signals that are passed on. */
#include "trib/run/run.h"

#include "tests/trib/words_test.h"
#include "trib/run/signals.h"
#include "trib/run/text.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct words sh(const char *script)
{
    struct words command = {0};

    words_append_all(&command, "/bin/sh", "-c", script);
    return command;
}

static void exit_codes(void **state)
{
    struct words command = sh("exit 7");

    (void)state;
    assert_int_equal(run_whole(&command, false), 7);
    command = sh("kill -9 $$");
    assert_int_equal(run_whole(&command, false), 128 + 9);
    command.at[0] = "/nonexistent";
    assert_int_equal(run_whole(&command, true), 127);
}

static void output_without_newlines_at_its_end(void **state)
{
    struct words command = sh("printf 'a\\n\\nb\\n\\n'; exit 3");
    char *text;

    (void)state;
    assert_int_equal(run_output(&command, false, &text), 3);
    assert_string_equal(text, "a\n\nb");
    command = sh("head -c 100000 /dev/zero | tr '\\0' x");
    assert_int_equal(run_output(&command, false, &text), 0);
    assert_int_equal(strlen(text), 100000);
}

static void what_runs_beside_reads_nothing(void **state)
{
    struct words command = sh("read x && exit 1; kill -INT $$; exit 5");
    int asked;

    (void)state;
    signals_hold();
    assert_int_equal(signals_pass(run_beside(&command), SIGHUP, &asked), 5);
    assert_int_equal(asked, 0);
    signals_release();
}

/* A signal comes while it is waited for: the child has SIGTERM, and a signal that it does not catch counts as the one that came. */
static void passed_on(int sig, int code)
{
    struct words command = sh("kill -\"$1\" $PPID; exec sleep 60");
    int asked;

    words_append_all(&command, "sh", text_of("%d", sig));
    signals_hold();
    assert_int_equal(signals_pass(run_beside(&command), SIGTERM, &asked), code);
    assert_int_equal(asked, code);
    signals_release();
}

static void signals_are_passed_on(void **state)
{
    (void)state;
    passed_on(SIGTERM, 143);
    passed_on(SIGINT, 130);
    passed_on(SIGHUP, 129);
}

static void a_child_says_its_own_code(void **state)
{
    struct words command = sh("trap 'exit 4' TERM; kill -INT $PPID; while :; do sleep 0.01; done");
    int asked;

    (void)state;
    signals_hold();
    assert_int_equal(signals_pass(run_beside(&command), SIGHUP, &asked), 4);
    assert_int_equal(asked, 130);
    signals_release();
}

/* In a process of its own: a signal ends it with 128 and the number, and stops the fabric. */
static int end_of_one_that(int sig, bool ignored, const char *keep)
{
    pid_t pid = fork();
    int status;

    if (!pid) {
        signal(sig, ignored ? SIG_IGN : SIG_DFL);
        signals_begin();
        if (keep)
            signals_stop_at_end(keep, "dir");
        raise(sig);
        _exit(9);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void signals_end_the_command(void **state)
{
    char keep[] = "/tmp/test_run.XXXXXX", made[64];
    int fd = mkstemp(keep);

    (void)state;
    assert_int_equal(end_of_one_that(SIGTERM, false, NULL), 143);
    assert_int_equal(end_of_one_that(SIGINT, false, NULL), 130);
    assert_int_equal(end_of_one_that(SIGHUP, false, NULL), 129);
    assert_int_equal(end_of_one_that(SIGHUP, true, NULL), 9);
    snprintf(made, sizeof(made), "%s.stop.dir", keep);
    dprintf(fd, "#!/bin/sh\n: >\"$0.$1.$2\"\n");
    fchmod(fd, 0700);
    close(fd);
    assert_int_equal(end_of_one_that(SIGTERM, false, keep), 143);
    assert_int_equal(unlink(made), 0);
    assert_int_equal(end_of_one_that(SIGPIPE, false, keep), 141);
    assert_int_equal(unlink(made), 0);
    unlink(keep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exit_codes),
        cmocka_unit_test(output_without_newlines_at_its_end),
        cmocka_unit_test(what_runs_beside_reads_nothing),
        cmocka_unit_test(signals_are_passed_on),
        cmocka_unit_test(a_child_says_its_own_code),
        cmocka_unit_test(signals_end_the_command),
    };

    signals_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
