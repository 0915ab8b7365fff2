/* SPDX-License-Identifier: BSD-3-Clause */
/* Why a trib-switch does not answer: it does not run, has died, is stopped, or is slow. */
#include "machine/silent.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/test_silent.XXXXXX";

static int set_up(void **state)
{
    char path[64];

    (void)state;
    snprintf(path, sizeof(path), "%s/proc", mkdtemp(dir));
    return mkdir(path, 0700);
}

static int tear_down(void **state)
{
    char cmd[64];

    (void)state;
    snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
    return system(cmd);
}

static void put(const char *name, const char *text)
{
    char path[128];
    int fd;

    snprintf(path, sizeof(path), "%s/proc/%s", dir, name);
    fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

/* A child that holds the lock of a pid file until it is killed. */
static pid_t holder(const char *name)
{
    struct flock lk = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char path[128], c;
    int ready[2], fd;
    pid_t pid;

    snprintf(path, sizeof(path), "%s/proc/%s", dir, name);
    assert_int_equal(pipe(ready), 0);
    pid = fork();
    if (!pid) {
        fd = open(path, O_RDWR);
        if (fd >= 0 && !fcntl(fd, F_SETLK, &lk) && write(ready[1], "x", 1) == 1)
            pause();
        _exit(1);
    }
    assert_int_equal(read(ready[0], &c, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static const char *why(const char *name, int rc)
{
    static char text[SILENT_WHY];

    silent_why(dir, name, rc, text, sizeof(text));
    return text;
}

static void one_that_does_not_run_may_have_died(void **state)
{
    (void)state;
    assert_string_equal(why("a", -EAGAIN), "trib-switch a does not run");
    assert_false(silent_has_died(dir, "a"));
    put("a.pid", "");
    assert_string_equal(why("a", -EAGAIN), "trib-switch a does not run");
    put("a.ended", "killed by signal 9 (Killed)\nmore");
    assert_string_equal(why("a", -EAGAIN), "trib-switch a has died: killed by signal 9 (Killed)");
    assert_true(silent_has_died(dir, "a"));
    assert_false(silent_is_stopped(dir, "a"));
    put("b.ended", "exit status 1");
    assert_true(silent_has_died(dir, "b"));
    put("b.ended", "\nexit status 1");
    assert_false(silent_has_died(dir, "b"));
    assert_string_equal(why("b", 0), "trib-switch b does not run");
    assert_false(silent_has_died("/nonexistent", "a"));
}

static void one_that_runs_is_stopped_or_slow(void **state)
{
    char text[SILENT_WHY];
    int status;
    pid_t pid;

    (void)state;
    put("c.pid", "");
    put("c.ended", "exit status 1"); /* of the one before */
    pid = holder("c.pid");
    assert_false(silent_has_died(dir, "c"));
    assert_false(silent_is_stopped(dir, "c"));
    assert_string_equal(why("c", -EAGAIN), "trib-switch c does not answer: nothing came in time");
    assert_string_equal(why("c", -ECONNREFUSED),
                        "trib-switch c does not answer: Connection refused");
    kill(pid, SIGSTOP);
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(silent_is_stopped(dir, "c"));
    snprintf(text, sizeof(text),
             "trib-switch c does not answer: it is stopped by a signal or a debugger; kill -CONT "
             "%d lets it go on",
             (int)pid);
    assert_string_equal(why("c", -EAGAIN), text);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_true(silent_has_died(dir, "c"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_does_not_run_may_have_died),
        cmocka_unit_test(one_that_runs_is_stopped_or_slow),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
