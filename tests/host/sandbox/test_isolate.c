/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program in namespaces of its own: what it sees of the run directory, of processes and of memory, and how it
 * ends. The program is this one, with a word for what it does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/host/sandbox/isolated.h"

/* ---- inside ---- */

static void say_open(const char *path, int flags)
{
    int fd = open(path, flags, 0600);

    printf("%s: %s\n", path, fd < 0 ? strerror(errno) : "can be opened");
    if (fd >= 0)
        close(fd);
}

static void print_names(const char *what, const char *dir)
{
    struct dirent **e;
    int n = scandir(dir, &e, NULL, alphasort);

    printf("%s:", what);
    for (int i = 0; i < n; i++) {
        printf(" %s", e[i]->d_name);
        free(e[i]);
    }
    if (n >= 0)
        free(e);
    printf("\n");
}

/* What is below the run directory of the world, and what may be written. */
static int look(const char *run)
{
    char cwd[256];

    printf("%d of %d, in %s\n", (int)getpid(), (int)getppid(), getcwd(cwd, sizeof(cwd)));
    listed_dir(stdout, run, "", NULL);
    snprintf(cwd, sizeof(cwd), RUNS, (unsigned)geteuid());
    print_names("fabrics", cwd);
    snprintf(cwd, sizeof(cwd), "/tmp/xdg/tributary-%u", (unsigned)geteuid());
    print_names("others", cwd);
    if (chdir(run))
        return 1;
    say_open("fabric.conf", O_WRONLY);
    say_open("fabric.path", O_WRONLY);
    say_open("port/h7/token", O_WRONLY);
    say_open("port/h7/new", O_WRONLY | O_CREAT);
    say_open("proc/new", O_WRONLY | O_CREAT);
    listed_dir(stdout, "/dev/shm", "shm/", NULL);
    say_open("/dev/shm/new", O_WRONLY | O_CREAT);
    printf("%s\n", umount2("/dev/shm", MNT_DETACH) ? strerror(errno) : "uncovered");
    return 7;
}

/* Orphans in the namespace do not outlive the program, and their end does not end it. */
static int leave_children(void)
{
    int pipes[2];
    char c;

    if (pipe(pipes))
        return 1;
    if (!fork()) {
        if (!fork()) { /* whose parent will be init */
            usleep(1000);
            (void)!write(pipes[1], "x", 1);
            _exit(9);
        }
        _exit(8);
    }
    if (read(pipes[0], &c, 1) != 1)
        return 1;
    if (!fork()) {
        pause();
        _exit(0);
    }
    return 5;
}

static int inside(char **argv)
{
    if (!strcmp(argv[2], "look"))
        return look(argv[3]);
    if (!strcmp(argv[2], "children"))
        return leave_children();
    if (!strcmp(argv[2], "raise")) {
        signal(atoi(argv[3]), SIG_DFL); /* no sanitizer's */
        return raise(atoi(argv[3]));
    }
    return 1;
}

/* ---- outside ---- */

static void look_around(struct world *w)
{
    make_run(w, false);
    fprintf(w->out, "ended by %d\n", isolate(w, "look", w->rd.path));
    fprintf(w->out, "outside: ");
    listed_file(w->out, "/dev/shm/mine", "mine", NULL);
}

static void it_sees_its_host_alone(void **state)
{
    (void)state;
    ASSERT_WORLD(look_around, 0,
                 "2 of 1, in /tmp\n"
                 "fabric.conf 644: text\n"
                 "fabric.path 644: text\n"
                 "link/ 700\n"
                 "port/ 700\n"
                 "port/h7/ 755\n"
                 "port/h7/token 644: text\n"
                 "proc/ 700\n"
                 "proc/leaf0.page 644: text\n"
                 "fabrics: . .. rim\nothers: . ..\n"
                 "fabric.conf: Read-only file system\n"
                 "fabric.path: Read-only file system\n"
                 "port/h7/token: can be opened\n"
                 "port/h7/new: can be opened\n"
                 "proc/new: can be opened\n"
                 "/dev/shm/new: can be opened\n"
                 "Invalid argument\n" /* it cannot take the covers away */
                 "ended by 7\n"
                 "outside: mine 644: x\n");
}

static void look_elsewhere(struct world *w)
{
    make_run(w, true);
    fprintf(w->out, "ended by %d\n", isolate(w, "look", w->rd.path));
}

static void a_run_directory_elsewhere_is_covered_alone(void **state)
{
    (void)state;
    ASSERT_WORLD(look_elsewhere, 0,
                 "2 of 1, in /tmp\n"
                 "fabric.conf 644: text\n"
                 "fabric.path 644: text\n"
                 "link/ 700\n"
                 "port/ 700\n"
                 "port/h7/ 755\n"
                 "port/h7/token 644: text\n"
                 "proc/ 700\n"
                 "proc/leaf0.page 644: text\n"
                 "fabrics: . ..\nothers: . ..\n"
                 "fabric.conf: Read-only file system\n"
                 "fabric.path: Read-only file system\n"
                 "port/h7/token: can be opened\n"
                 "port/h7/new: can be opened\n"
                 "proc/new: can be opened\n"
                 "/dev/shm/new: can be opened\n"
                 "Invalid argument\n" /* it cannot take the covers away */
                 "ended by 7\n");
}

static void end_in_ways(struct world *w)
{
    static const int sigs[] = {SIGTERM, SIGKILL, SIGSEGV, SIGINT, SIGPIPE};

    make_run(w, true);
    fprintf(w->out, "%d\n", isolate(w, "run", "/tmp/nowhere"));
    fprintf(w->out, "%d\n", isolate(w, "run", "/tmp/run/fabric.conf"));
    fprintf(w->out, "%d\n", isolate(w, "children", ""));
    for (unsigned i = 0; i < 5; i++) {
        char text[16];

        snprintf(text, sizeof(text), "%d", sigs[i]);
        fprintf(w->out, "%d\n", isolate(w, "raise", text) - 1000);
    }
}

static void it_ends_as_the_program_does(void **state)
{
    (void)state;
    ASSERT_WORLD(end_in_ways, 0,
                 "trib: cannot run /tmp/nowhere: No such file or directory\n"
                 "127\n"
                 "trib: cannot run /tmp/run/fabric.conf: Permission denied\n"
                 "126\n"
                 "5\n"
                 "15\n9\n11\n2\n13\n");
}

/* ---- refused ---- */

static void forbid(struct world *w)
{
    make_run(w, true);
    world_need(isolated_user_namespace(CLONE_NEWNS), "user namespace");
    world_text("/proc/sys/user/max_user_namespaces", "0");
    fprintf(w->out, "%d\n", isolate(w, "look", ""));
}

static void lack_a_run_directory(struct world *w)
{
    make_run(w, true);
    snprintf(w->rd.path, sizeof(w->rd.path), "/tmp/none");
    fprintf(w->out, "%d\n", isolate(w, "look", ""));
}

static void find_a_link(struct world *w)
{
    make_run(w, true);
    world_need(unlink("/tmp/run/fabric.conf"), "unlink");
    world_link("fabric.path", "/tmp/run/fabric.conf");
    fprintf(w->out, "%d\n", isolate(w, "look", ""));
}

static void what_is_missing_is_left_out(struct world *w)
{
    make_run(w, true);
    world_need(unlink("/tmp/run/fabric.conf"), "unlink");
    listed_remove("/tmp/run/proc");
    fprintf(w->out, "%d\n", isolate(w, "raise", "0"));
}

static void what_the_machine_refuses_is_named(void **state)
{
    (void)state;
    ASSERT_WORLD(forbid, 0,
                 "trib: cannot isolate h7: the machine refuses a user namespace: No space left on "
                 "device (unprivileged user namespaces: sysctl user.max_user_namespaces, "
                 "kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns; "
                 "a container may forbid them)\n1\n");
    ASSERT_WORLD(lack_a_run_directory, 0,
                 "trib: cannot isolate h7: the machine refuses /tmp/none: No such file or "
                 "directory\n1\n");
    ASSERT_WORLD(find_a_link, 0,
                 "trib: cannot isolate h7: the machine refuses /tmp/run: Operation not permitted "
                 "(unprivileged user namespaces: sysctl user.max_user_namespaces, "
                 "kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns; "
                 "a container may forbid them)\n1\n");
    ASSERT_WORLD(what_is_missing_is_left_out, 0, "0\n");
}

#define TEST(t) cmocka_unit_test(t)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(it_sees_its_host_alone),
        TEST(a_run_directory_elsewhere_is_covered_alone),
        TEST(it_ends_as_the_program_does),
        TEST(what_the_machine_refuses_is_named),
    };

    if (argc > 2 && !strcmp(argv[1], "inside"))
        return inside(argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
