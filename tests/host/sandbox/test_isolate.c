/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program in namespaces of its own: what it sees of the run directory, of processes and of memory, how it ends,
 * and which signals it gets. The program is this one, with a word for what it does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "host/sandbox/isolate.h"
#include "tests/host/sandbox/world.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#define RUNS "/tmp/tributary-%u"

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

static volatile sig_atomic_t got;
static void on_signal(int sig)
{
    got = sig;
}

/* Tells of each signal until the one that ends it. */
static int hear_signals(void)
{
    static const int sigs[] = {SIGTERM, SIGINT,  SIGHUP,  SIGQUIT,
                               SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH};
    struct sigaction sa = {.sa_handler = on_signal};
    sigset_t none, all;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, NULL, &none);
    for (int i = 1; i < 32; i++)
        if (sigismember(&none, i))
            printf("blocked %d\n", i);
    sigprocmask(SIG_SETMASK, &all, &none);
    for (unsigned i = 0; i < sizeof(sigs) / sizeof(sigs[0]); i++)
        sigaction(sigs[i], &sa, NULL);
    sigaction(SIGCHLD, NULL, &sa);
    printf("children %s\n", sa.sa_handler == SIG_IGN ? "ignored" : "not ignored");
    printf("ready\n");
    for (;;) {
        fflush(stdout);
        sigsuspend(&none);
        printf("got %d\n", (int)got);
        if (got == SIGTERM)
            return 3;
    }
}

/* What is orphaned in there does not outlive it, and its end is not the program's. */
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
    if (!strcmp(argv[2], "signals"))
        return hear_signals();
    if (!strcmp(argv[2], "children"))
        return leave_children();
    if (!strcmp(argv[2], "raise")) {
        signal(atoi(argv[3]), SIG_DFL); /* no sanitizer's */
        return raise(atoi(argv[3]));
    }
    if (!strcmp(argv[2], "killinit"))
        return kill(1, SIGKILL); /* which the kernel does not do from in there */
    return 1;
}

/* ---- outside ---- */

/* A run directory below that of all fabrics, or elsewhere, with files of two hosts. */
static void make_run(struct world *w, bool elsewhere)
{
    static const char *const dirs[] = {"proc", "port", "port/h7", "port/h8", "link"},
                             *const files[] = {"fabric.conf",     "fabric.path",   "machine",
                                               "port/h7/token",   "port/h8/token", "proc/leaf0.pid",
                                               "proc/leaf0.page", "proc/a.page.b"};
    char path[2 * RUN_PATH];

    world_tmpfs("/tmp");
    snprintf(path, sizeof(path), RUNS, (unsigned)geteuid());
    world_dir(path);
    strcat(path, "/other");
    world_dir(path);
    snprintf(path, sizeof(path), "/tmp/xdg");
    world_dir(path);
    setenv("XDG_RUNTIME_DIR", path, 1);
    snprintf(path, sizeof(path), "/tmp/xdg/tributary-%u", (unsigned)geteuid());
    world_dir(path);
    strcat(path, "/third");
    world_dir(path);
    if (elsewhere)
        snprintf(w->rd.path, sizeof(w->rd.path), "/tmp/run");
    else
        snprintf(w->rd.path, sizeof(w->rd.path), RUNS "/rim", (unsigned)geteuid());
    world_dir(w->rd.path);
    for (unsigned i = 0; i < 5; i++) {
        snprintf(path, sizeof(path), "%s/%s", w->rd.path, dirs[i]);
        world_dir(path);
    }
    for (unsigned i = 0; i < 8; i++) {
        snprintf(path, sizeof(path), "%s/%s", w->rd.path, files[i]);
        world_text(path, "text\n");
    }
    world_text("/dev/shm/mine", "x\n");
    world_need(chdir("/tmp"), "chdir");
}

/* A sanitizer of leaks starts a thread, which no process of a PID namespace without init can. */
static void end_with(int code)
{
    fflush(NULL);
    _exit(code);
}

/* Isolates this program with these words; how that ended. What both print goes to the world's text. */
static int isolate(struct world *w, const char *what, const char *with)
{
    char self[] = "/proc/self/exe", in[] = "inside", word[64], more[RUN_PATH];
    char *argv[] = {self, in, word, more, NULL};
    int status, null = open("/dev/null", O_RDWR);
    pid_t pid;

    snprintf(word, sizeof(word), "%s", what);
    snprintf(more, sizeof(more), "%s", with);
    if (!strcmp(what, "run"))
        argv[0] = more, argv[1] = NULL;
    fflush(w->out);
    pid = fork();
    if (!pid) {
        dup2(null, 0);
        dup2(fileno(w->out), 1);
        dup2(fileno(w->out), 2);
        alarm(20);
        end_with(isolate_run(&w->rd, &w->host, w->lib, argv));
    }
    close(null);
    if (waitpid(pid, &status, 0) != pid)
        return -1;
    fseek(w->out, 0, SEEK_END);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

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

/* ---- signals ---- */

/* Starts this program in there with what it prints in a pipe; the first process. */
static pid_t start(struct world *w, const char *what, FILE **out)
{
    char self[] = "/proc/self/exe", in[] = "inside", word[64];
    char *argv[] = {self, in, word, NULL};
    int pipes[2];
    pid_t pid;

    snprintf(word, sizeof(word), "%s", what);
    world_need(pipe2(pipes, O_CLOEXEC), "pipe");
    fflush(w->out);
    pid = fork();
    if (!pid) {
        dup2(open("/dev/null", O_RDWR | O_CLOEXEC), 0);
        dup2(pipes[1], 1);
        dup2(fileno(w->out), 2);
        alarm(20);
        end_with(isolate_run(&w->rd, &w->host, w->lib, argv));
    }
    close(pipes[1]);
    *out = fdopen(pipes[0], "r");
    return pid;
}

static bool hear_line(struct world *w, FILE *from)
{
    char line[128];

    if (!fgets(line, sizeof(line), from))
        return false;
    fputs(line, w->out);
    return !strcmp(line, "ready\n");
}

static void send_signals(struct world *w)
{
    static const int sigs[] = {SIGINT,  SIGHUP,  SIGQUIT,  SIGUSR1,
                               SIGUSR2, SIGALRM, SIGWINCH, SIGTERM};
    FILE *from;
    pid_t pid;
    int status;

    make_run(w, true);
    signal(SIGCHLD, SIG_IGN); /* what the program inherits */
    pid = start(w, "signals", &from);
    signal(SIGCHLD, SIG_DFL);
    while (!hear_line(w, from))
        ;
    for (unsigned i = 0; i < 8; i++) {
        kill(pid, sigs[i]);
        hear_line(w, from);
    }
    waitpid(pid, &status, 0);
    fseek(w->out, 0, SEEK_END);
    fprintf(w->out, "%x\n", (unsigned)status);
    fclose(from);
}

static void the_program_gets_what_is_sent(void **state)
{
    (void)state;
    ASSERT_WORLD(send_signals, 0,
                 "children ignored\nready\n"
                 "got 2\ngot 1\ngot 3\ngot 10\ngot 12\ngot 14\ngot 28\ngot 15\n300\n");
}

/* Init is the one child of the first process. */
static void kill_init(struct world *w)
{
    char path[128];
    int init = 0, status;
    FILE *from, *f;
    pid_t pid;

    make_run(w, true);
    pid = start(w, "signals", &from);
    while (!hear_line(w, from))
        ;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
    f = fopen(path, "r");
    world_need(!f || fscanf(f, "%d", &init) != 1 || init < 2, path);
    fclose(f);
    fflush(w->out);
    kill(init, SIGKILL);
    waitpid(pid, &status, 0);
    fseek(w->out, 0, SEEK_END);
    fprintf(w->out, "%x\n", (unsigned)status);
    fclose(from);
}

static void a_namespace_that_is_killed_is_said(void **state)
{
    (void)state;
    ASSERT_WORLD(kill_init, 0,
                 "children not ignored\nready\ntrib: the namespace of h7 was killed\n100\n");
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
        TEST(the_program_gets_what_is_sent),
        TEST(a_namespace_that_is_killed_is_said),
        TEST(what_the_machine_refuses_is_named),
    };

    if (argc > 2 && !strcmp(argv[1], "inside"))
        return inside(argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
