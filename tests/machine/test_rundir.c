/* SPDX-License-Identifier: BSD-3-Clause */
/* The run directory: its owner, its first process, and that nothing stays behind. */
#include "machine/rundir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char base[64], dir[128], conf[128];

static const char text[] = "name = \"pair\";\n"
                           "fabric = { template = \"single_switch\"; hosts = 2; };\n";

static void write_conf(const char *s)
{
    FILE *f = fopen(conf, "w");

    assert_non_null(f);
    fputs(s, f);
    fclose(f);
}

/* A fabric as rundir_install() needs it: names and the file. */
static struct fab_node node = {.name = "h0", .kind = FAB_HOST, .n_ports = 1};
static struct fab_link one_link = {.name = "h0:0-s0:0"};
static uint16_t host0;

static struct fabric tiny(void)
{
    struct fabric f = {.name = "pair",
                       .n_nodes = 1,
                       .n_hosts = 1,
                       .n_links = 1,
                       .nodes = &node,
                       .links = &one_link,
                       .hosts = &host0};

    snprintf(f.path, sizeof(f.path), "%s", conf);
    return f;
}

static int setup(void **state)
{
    (void)state;
    snprintf(base, sizeof(base), "/tmp/trib-rundir-XXXXXX");
    if (!mkdtemp(base))
        return -1;
    snprintf(dir, sizeof(dir), "%s/run", base);
    snprintf(conf, sizeof(conf), "%s/x.conf", base);
    return 0;
}

static int teardown(void **state)
{
    char cmd[128];

    (void)state;
    snprintf(cmd, sizeof(cmd), "rm -rf %s", base);
    return system(cmd);
}

static void a_directory_is_ours_alone_and_goes_away_whole(void **state)
{
    struct rundir rd;
    struct stat st;
    int fd;

    (void)state;
    assert_int_equal(rundir_open(&rd, dir, NULL, true), 0);
    assert_null(rd.sh);
    assert_int_equal(stat(dir, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_int_equal(rundir_claim_slot(&rd, "h0", 0, 2, &fd), 0);
    close(fd);
    rundir_remove(&rd);
    rundir_close(&rd);
    assert_int_equal(stat(dir, &st), -1);
}

static void the_default_follows_the_environment(void **state)
{
    char want[256];
    struct rundir rd;

    (void)state;
    setenv("XDG_RUNTIME_DIR", base, 1);
    unsetenv("TRIB_RUN");
    assert_int_equal(rundir_open(&rd, NULL, "pair", true), 0);
    snprintf(want, sizeof(want), "%s/tributary-%u/pair", base, (unsigned)getuid());
    assert_string_equal(rd.path, want);
    rundir_close(&rd);
    setenv("TRIB_RUN", want, 1);
    assert_int_equal(rundir_open(&rd, NULL, NULL, true), 0);
    rundir_close(&rd);
    unsetenv("TRIB_RUN");
    assert_int_equal(rundir_open(&rd, NULL, NULL, false), -EINVAL);
}

static void what_is_not_there_or_not_ours_is_refused(void **state)
{
    struct rundir rd;

    (void)state;
    assert_int_equal(rundir_open(&rd, dir, NULL, false), -ENOENT);
    mkdir(dir, 0700);
    chmod(dir, 0777);
    assert_int_equal(rundir_open(&rd, dir, NULL, true), -EPERM);
    chmod(dir, 0700);
    assert_int_equal(rundir_open(&rd, dir, NULL, false), -ENOENT); /* nobody runs there */
    assert_null(rd.sh);
}

static void the_conf_is_kept_and_another_one_is_refused(void **state)
{
    struct fabric f = tiny();
    struct rundir rd;
    char path[256], got[256] = "";
    FILE *in;

    (void)state;
    write_conf(text);
    assert_int_equal(rundir_open(&rd, dir, NULL, true), 0);
    assert_int_equal(rundir_install(&rd, &f), 0);
    assert_int_equal(rundir_install(&rd, &f), 0);
    assert_int_equal(rundir_path(&rd, path, sizeof(path), "fabric.path"), 0);
    in = fopen(path, "r");
    assert_non_null(fgets(got, sizeof(got), in));
    fclose(in);
    assert_string_equal(got, conf);
    write_conf("name = \"other\";\n");
    assert_int_equal(rundir_install(&rd, &f), -EEXIST);
    rundir_remove(&rd);
    rundir_close(&rd);
}

static void a_path_too_long_for_its_sockets_is_refused(void **state)
{
    struct fabric f = tiny();
    struct rundir rd;
    char deep[RUN_PATH];

    (void)state;
    write_conf(text);
    snprintf(deep, sizeof(deep), "%s/%0*d", base, 90, 0);
    assert_int_equal(rundir_open(&rd, deep, NULL, true), 0);
    assert_int_equal(rundir_install(&rd, &f), -ENAMETOOLONG);
    rundir_close(&rd);
}

static void slots_are_claimed_once_and_given_back(void **state)
{
    struct rundir rd;
    int fd[3];

    (void)state;
    assert_int_equal(rundir_open(&rd, dir, NULL, true), 0);
    assert_int_equal(rundir_claim_slot(&rd, "h0", 0, 2, &fd[0]), 0);
    assert_int_equal(rundir_claim_slot(&rd, "h0", 0, 2, &fd[1]), 1);
    assert_int_equal(rundir_claim_slot(&rd, "h0", 0, 2, &fd[2]), -EBUSY);
    assert_int_equal(rundir_claim_slot(&rd, "h0", 1, 2, &fd[2]), 0);
    close(fd[0]);
    assert_int_equal(rundir_claim_slot(&rd, "h0", 0, 2, &fd[0]), 0);
    close(fd[0]);
    close(fd[1]);
    close(fd[2]);
    rundir_close(&rd);
}

static void a_slot_of_a_killed_process_is_free_again(void **state)
{
    struct rundir rd;
    int fd, ready[2];
    char c;
    pid_t pid;

    (void)state;
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(rundir_open(&rd, dir, NULL, true), 0);
    pid = fork();
    if (!pid) {
        rundir_claim_slot(&rd, "h0", 0, 1, &fd);
        if (write(ready[1], "x", 1) == 1)
            pause();
        _exit(0);
    }
    assert_int_equal(read(ready[0], &c, 1), 1);
    assert_int_equal(rundir_claim_slot(&rd, "h0", 0, 1, &fd), -EBUSY);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_int_equal(rundir_claim_slot(&rd, "h0", 0, 1, &fd), 0);
    close(fd);
    rundir_close(&rd);
}

static void a_process_name_is_taken_once_and_names_its_pid(void **state)
{
    struct rundir rd;
    int fd, ready[2];
    char c;
    pid_t pid;

    (void)state;
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(rundir_open(&rd, dir, NULL, true), 0);
    assert_int_equal(rundir_proc_pid(&rd, "leaf0"), 0);
    pid = fork();
    if (!pid) {
        if (!rundir_claim_proc(&rd, "leaf0", &fd) && write(ready[1], "x", 1) == 1)
            pause();
        _exit(0);
    }
    assert_int_equal(read(ready[0], &c, 1), 1);
    assert_int_equal(rundir_proc_pid(&rd, "leaf0"), pid);
    assert_int_equal(rundir_claim_proc(&rd, "leaf0", &fd), -EBUSY);
    rundir_remove(&rd); /* a process runs: nothing is removed */
    assert_int_equal(access(dir, F_OK), 0);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_int_equal(rundir_proc_pid(&rd, "leaf0"), 0);
    assert_int_equal(rundir_claim_proc(&rd, "leaf0", &fd), 0);
    close(fd);
    rundir_close(&rd);
}

/* Children that install it at the same moment: all find the whole file, of one name. */
static void install_by(unsigned n)
{
    struct fabric f = tiny();
    int gate[2], status;
    struct rundir rd;
    char c;

    assert_int_equal(pipe(gate), 0);
    for (unsigned i = 0; i < n; i++) {
        if (fork())
            continue;
        close(gate[1]);
        c = (char)read(gate[0], &c, 1); /* until the parent closes it */
        _exit(rundir_open(&rd, dir, NULL, true) || rundir_install(&rd, &f));
    }
    close(gate[0]);
    close(gate[1]);
    for (unsigned i = 0; i < n; i++) {
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
}

static void processes_that_start_at_once_agree_on_the_conf(void **state)
{
    (void)state;
    write_conf(text);
    for (unsigned i = 0; i < 300; i++) {
        snprintf(dir, sizeof(dir), "%s/run%u", base, i);
        install_by(4);
    }
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_directory_is_ours_alone_and_goes_away_whole),
        T(the_default_follows_the_environment),
        T(what_is_not_there_or_not_ours_is_refused),
        T(the_conf_is_kept_and_another_one_is_refused),
        T(a_path_too_long_for_its_sockets_is_refused),
        T(slots_are_claimed_once_and_given_back),
        T(a_slot_of_a_killed_process_is_free_again),
        T(a_process_name_is_taken_once_and_names_its_pid),
        T(processes_that_start_at_once_agree_on_the_conf),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
