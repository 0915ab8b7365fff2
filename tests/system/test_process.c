/* SPDX-License-Identifier: BSD-3-Clause */
/* The holder of a lock is named, also where this PID namespace does not show it; a process is known to
 * be stopped. */
#include "system/process.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

static int lock_file(void)
{
    char path[] = "/tmp/test_process.XXXXXX";
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    unlink(path);
    return fd;
}

/* A child that holds the lock, until it is killed. */
static pid_t holder(int fd)
{
    struct flock lk = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int ready[2];
    char c;
    pid_t pid;

    assert_int_equal(pipe(ready), 0);
    pid = fork();
    if (!pid) {
        if (!fcntl(fd, F_SETLK, &lk) && write(ready[1], "x", 1) == 1)
            pause();
        _exit(1);
    }
    assert_int_equal(read(ready[0], &c, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void the_holder_of_a_lock_is_named(void **state)
{
    int fd = lock_file(), none = open("/", O_PATH);
    pid_t pid;

    (void)state;
    assert_int_equal(process_lock_holder(fd), 0);
    pid = holder(fd);
    assert_int_equal(process_lock_holder(fd), pid);
    end(pid);
    assert_int_equal(process_lock_holder(fd), 0);
    assert_int_equal(process_lock_holder(none), -EBADF);
    close(none);
    close(fd);
}

/* Seen from a namespace of its own. */
static void a_holder_of_another_pid_namespace_is_away(void **state)
{
    int fd = lock_file(), status;
    pid_t pid = holder(fd), looker = fork(), inner;

    (void)state;
    if (!looker) {
        if (unshare(CLONE_NEWPID) && unshare(CLONE_NEWUSER | CLONE_NEWPID))
            _exit(77);
        inner = fork();
        if (!inner)
            _exit(process_lock_holder(fd) == PROCESS_AWAY ? 0 : 1);
        waitpid(inner, &status, 0);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
    }
    waitpid(looker, &status, 0);
    end(pid);
    close(fd);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_stopped_process_is_known(void **state)
{
    int fd = lock_file(), status;
    pid_t pid = holder(fd);

    (void)state;
    assert_false(process_is_stopped(pid));
    kill(pid, SIGSTOP);
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(process_is_stopped(pid));
    kill(pid, SIGCONT);
    assert_int_equal(waitpid(pid, &status, WCONTINUED), pid);
    assert_false(process_is_stopped(pid));
    end(pid);
    assert_false(process_is_stopped(pid));
    close(fd);
}

/* Numbers are those of proc(5). */
static void a_field_of_stat_is_found_behind_any_name(void **state)
{
    static const char stat[] = "7 (a ) b) (c)) S 5 6 7 8";

    (void)state;
    assert_string_equal(process_stat_field(stat, PROCESS_STAT_STATE), "S 5 6 7 8");
    assert_string_equal(process_stat_field(stat, PROCESS_STAT_PARENT), "5 6 7 8");
    assert_string_equal(process_stat_field(stat, 7), "8");
    assert_null(process_stat_field(stat, 8));
    assert_null(process_stat_field(stat, PROCESS_STAT_START));
    assert_null(process_stat_field("", PROCESS_STAT_STATE));
    assert_null(process_stat_field("7 (name)", PROCESS_STAT_STATE));
}

static void a_file_of_proc_is_read_as_far_as_there_is_room(void **state)
{
    char stat[PROCESS_STAT], name[PROCESS_NAME], part[4];

    (void)state;
    assert_true(process_file(getpid(), "stat", stat, sizeof(stat)) > 40);
    assert_int_equal(strtol(process_stat_field(stat, PROCESS_STAT_PARENT), NULL, 10), getppid());
    assert_int_equal(process_file(getpid(), "comm", name, sizeof(name)), 13);
    assert_string_equal(name, "test_process\n");
    assert_int_equal(process_file(getpid(), "comm", part, sizeof(part)), 3);
    assert_string_equal(part, "tes");
    assert_int_equal(process_file(getpid(), "nothing", part, sizeof(part)), -ENOENT);
    assert_string_equal(part, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_holder_of_a_lock_is_named),
        cmocka_unit_test(a_holder_of_another_pid_namespace_is_away),
        cmocka_unit_test(a_stopped_process_is_known),
        cmocka_unit_test(a_field_of_stat_is_found_behind_any_name),
        cmocka_unit_test(a_file_of_proc_is_read_as_far_as_there_is_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
