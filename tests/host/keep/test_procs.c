/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which processes are a fabric's: by locks on pid files, by arguments, and who is left alone. The processes
 * are this program again, under the names of the fabric's, which wait until they are ended.
 */
#include "tests/host/keep/scratch.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define ENV_LOCK "TEST_LOCK" /* the file that such a process locks, */
#define ENV_START                                                                                  \
    "TEST_START" /* and what it writes there: its number and this start; "": its own */

/* ---- processes ---- */

static void say_ready(int to)
{
    (void)!write(to, "x", 1);
}

/* In the child, run again: locks what it is told to. */
static int be_process(void)
{
    const char *file = getenv(ENV_LOCK), *start = getenv(ENV_START);
    struct flock lk = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getenv("TEST_DEAF"))
        signal(SIGTERM, SIG_IGN);
    if (file) {
        char text[64];
        int fd = open(file, O_RDWR | O_CREAT, 0600);

        if (fd < 0 || fcntl(fd, F_SETLK, &lk))
            return 1;
        snprintf(text, sizeof(text), "%d\n%s\n", (int)getpid(), start ? start : "");
        if (!start || !*start)
            snprintf(text, sizeof(text), "%d\n%llu\n", (int)getpid(),
                     (unsigned long long)procs_start_time(getpid()));
        if (strcmp(start ? start : "", "none") != 0 && write(fd, text, strlen(text)) < 0)
            return 1;
    }
    say_ready(3);
    for (;;)
        pause();
}

/* Its pid, once it is ready. */
static pid_t start(const char *const args[])
{
    int p[2];
    char ready;
    pid_t pid;

    assert_int_equal(pipe(p), 0);
    pid = fork();
    if (!pid) {
        dup2(p[1], 3);
        execv("/proc/self/exe", (char *const *)(uintptr_t)args);
        _exit(1);
    }
    close(p[1]);
    assert_int_equal(read(p[0], &ready, 1), 1);
    close(p[0]);
    return pid;
}

static void finish(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static pid_t start_switch(const char *dir, const char *proc)
{
    return start((const char *const[]){"/usr/bin/trib-switch", "--conf", "x", "--run", dir,
                                       "--proc", proc, NULL});
}

static void lock_by(const char *file, const char *written)
{
    if (file)
        setenv(ENV_LOCK, file, 1);
    else
        unsetenv(ENV_LOCK);
    setenv(ENV_START, written, 1);
}

static struct procs found;

static unsigned find(const char *dir, bool keeper)
{
    procs_free(&found);
    assert_int_equal(procs_find(&found, dir, keeper), 0);
    return found.n;
}

/* ---- by their arguments ---- */

static void processes_are_found_by_their_arguments(void **state)
{
    char dir[96], longer[100], slash[100];
    pid_t a, b, keeper, others[4];

    (void)state;
    snprintf(dir, sizeof(dir), "%s", at("run"));
    snprintf(longer, sizeof(longer), "%sx", dir);
    snprintf(slash, sizeof(slash), "%s//", dir);
    put("run/proc", NULL);
    a = start_switch(dir, "leaf0");
    b = start((const char *const[]){"trib-switch", "--run", slash, NULL});
    keeper = start((const char *const[]){"/x/trib-keep", "start", dir, "conf", NULL});
    others[0] = start_switch(longer, "leaf1");
    others[1] = start((const char *const[]){"trib-switcher", "--run", dir, NULL});
    others[2] = start((const char *const[]){"trib-keep", "stop", dir, NULL});
    others[3] = start((const char *const[]){"trib-switch", "--run", NULL});
    assert_int_equal(find(dir, false), 2);
    for (unsigned i = 0; i < 2; i++) {
        const struct proc *p = &found.at[i];

        assert_true(p->pid == a || p->pid == b);
        assert_string_equal(p->name, p->pid == a ? "leaf0" : "?");
        assert_true(p->fd >= 0);
    }
    assert_int_not_equal(found.at[0].pid, found.at[1].pid);
    assert_int_equal(found.foreign, 0);
    assert_int_equal(find(slash, true), 3);
    for (unsigned i = 0; i < 3; i++)
        if (found.at[i].pid == keeper)
            assert_string_equal(found.at[i].name, "");
    assert_int_equal(procs_away(&found), 0);
    assert_int_equal(find("/nonexistent", true), 0);
    for (unsigned i = 0; i < 4; i++)
        finish(others[i]);
    finish(a), finish(b), finish(keeper);
    assert_int_equal(find(dir, true), 0);
}

/* ---- by locks ---- */

static void processes_are_found_by_their_locks(void **state)
{
    static const struct {
        const char *name, *written; /* "": as it is; "none": nothing */
        bool ours;
    } rows[] = {
        {"trib-switch", "", true},
        {"trib-switch", "none", true}, /* between its claim and its first write */
        {"trib-switch", "12345", false},
        {"trib-other", "", false},
    };
    char dir[96], says[1200];

    (void)state;
    snprintf(dir, sizeof(dir), "%s", at("locks"));
    for (size_t i = 0; i < LEN(rows); i++) {
        pid_t pid;

        put("locks/proc/x.log", "");
        lock_by(at("locks/proc/leaf0.pid"), rows[i].written);
        pid = start((const char *const[]){rows[i].name, NULL});
        lock_by(NULL, "");
        assert_int_equal(find(dir, false), rows[i].ours);
        assert_int_equal(found.foreign, !rows[i].ours);
        if (rows[i].ours) {
            assert_int_equal(found.at[0].pid, pid);
            assert_string_equal(found.at[0].name, "leaf0");
        } else {
            snprintf(says, sizeof(says),
                     "%s/proc/leaf0.pid names process %d (%s), which is not the fabric's and is "
                     "left alone",
                     dir, (int)pid, rows[i].name);
            assert_string_equal(found.first_foreign, says);
        }
        chmod(at("locks/proc"), 0777); /* a directory that others could write to proves nothing */
        assert_int_equal(find(dir, false), 0);
        assert_int_equal(found.foreign, 0);
        chmod(at("locks/proc"), 0700);
        finish(pid);
        assert_int_equal(find(dir, false), 0); /* nobody holds the lock */
        unlink(at("locks/proc/leaf0.pid"));
    }
}

/* A file without a lock may name anybody: this process is none that is worth a word. */
static void stale_files_name_who_has_the_number_now(void **state)
{
    char text[32];
    pid_t pid = start((const char *const[]){"something", NULL});

    (void)state;
    snprintf(text, sizeof(text), "%d\n1\n", (int)pid);
    put("stale/proc/a.pid", text);
    snprintf(text, sizeof(text), "%d\n1\n", (int)getpid());
    put("stale/proc/b.pid", text);
    put("stale/proc/c.pid", "-5\n1\n");
    put("stale/proc/d.pid", "99999999999\n1\n");
    put("stale/proc/e.pid", "no number");
    put("stale/proc/.pid", "1\n1\n"); /* no name */
    assert_int_equal(find(at("stale"), true), 0);
    assert_int_equal(found.foreign, 1);
    assert_non_null(strstr(found.first_foreign, "/stale/proc/a.pid names process"));
    assert_non_null(strstr(found.first_foreign, "(something)"));
    finish(pid);
}

static void a_keeper_is_found_by_its_lock(void **state)
{
    pid_t pid, other;

    (void)state;
    put("kept/proc", NULL);
    lock_by(at("kept/keeper"), "none");
    pid = start((const char *const[]){"trib-keep", "start", "/elsewhere", NULL});
    lock_by(NULL, "");
    assert_int_equal(find(at("kept"), false), 0);
    assert_int_equal(find(at("kept"), true), 1);
    assert_int_equal(found.at[0].pid, pid);
    assert_string_equal(found.at[0].name, "");
    finish(pid);
    lock_by(at("kept/keeper"), "none");
    other = start((const char *const[]){"other", NULL});
    lock_by(NULL, "");
    assert_int_equal(find(at("kept"), true), 0);
    finish(other);
    lock_by(at("kept/keeper"), "none"); /* while it removes the directory */
    other = start((const char *const[]){"trib-keep", "stop", at("kept"), NULL});
    lock_by(NULL, "");
    assert_int_equal(find(at("kept"), true), 0);
    finish(other);
}

/* ---- all, and their end ---- */

static void many_are_found(void **state)
{
    pid_t pid[20];

    (void)state;
    put("many", NULL);
    for (unsigned i = 0; i < LEN(pid); i++)
        pid[i] = start_switch(at("many"), "p");
    assert_int_equal(find(at("many"), true), LEN(pid));
    assert_false(procs_wait(&found, 0));
    assert_int_equal(procs_signal(&found, 0), 0);
    for (unsigned i = 0; i + 1 < LEN(pid); i++)
        kill(pid[i], SIGKILL);
    assert_false(procs_wait(&found, 50));               /* one lives */
    assert_int_equal(procs_signal(&found, SIGTERM), 0); /* the others have ended: no failure */
    assert_true(procs_wait(&found, 5000));
    for (unsigned i = 0; i < LEN(pid); i++)
        waitpid(pid[i], NULL, 0);
    assert_int_equal(procs_signal(&found, SIGTERM), 0);
    procs_free(&found);
    assert_int_equal(found.n + found.cap, 0);
    assert_true(procs_wait(&found, 0));
}

static void all_of_a_fabric_are_stopped(void **state)
{
    int status;
    pid_t pid, keeper, other;

    (void)state;
    put("stop", NULL);
    put("go", NULL);
    pid = start_switch(at("stop"), "p");
    keeper = start((const char *const[]){"trib-keep", "start", at("stop"), NULL});
    other = start_switch(at("go"), "p");
    assert_int_equal(procs_stop(at("stop"), false), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WTERMSIG(status), SIGTERM);
    assert_int_equal(waitpid(keeper, &status, WNOHANG), 0);
    assert_int_equal(procs_stop(at("stop"), true), 0);
    assert_int_equal(waitpid(keeper, &status, 0), keeper);
    assert_int_equal(procs_stop(at("stop"), true), 0); /* nothing is left */
    assert_int_equal(waitpid(other, &status, WNOHANG), 0);
    finish(other);
}

/* ---- one process ---- */

static void a_process_has_the_start_time_that_the_kernel_says(void **state)
{
    char text[1024], *p;
    FILE *f = fopen("/proc/self/stat", "r");

    (void)state;
    text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
    fclose(f);
    p = strrchr(text, ')') + 2; /* field 3 */
    for (int field = 3; field < 22; field++)
        p = strchr(p, ' ') + 1;
    assert_true(procs_start_time(getpid()) == strtoull(p, NULL, 10));
    assert_true(procs_start_time(getpid()) > 0);
    assert_true(procs_start_time(0) == 0);
    assert_true(procs_start_time(INT_MAX) == 0);
}

static void text_of_others_is_printable(void **state)
{
    char text[] = "a b~\x7f\x80\xff\x1f\n\tz";

    (void)state;
    procs_printable(text);
    assert_string_equal(text, "a b~??????z");
}

struct seen {
    pid_t pid;
    unsigned n;
    struct fabric_seen f;
};

static void note_seen(void *ctx, const struct fabric_seen *f)
{
    struct seen *s = ctx;

    if (f->pid != s->pid)
        return;
    s->n++;
    s->f = *f;
}

static void a_scan_sees_fabrics_of_all(void **state)
{
    struct seen s = {0};
    pid_t pid;

    (void)state;
    s.pid = pid = start_switch("/x/odd\ndir", "leaf\t0");
    procs_scan(note_seen, &s);
    assert_int_equal(s.n, 1);
    assert_int_equal(s.f.uid, getuid());
    assert_true(s.f.start == procs_start_time(pid));
    assert_false(s.f.keeper);
    assert_string_equal(s.f.proc, "leaf?0");
    assert_string_equal(s.f.dir, "/x/odd?dir");
    finish(pid);
    s = (struct seen){.pid = start((const char *const[]){"trib-keep", "start", "/y", NULL})};
    procs_scan(note_seen, &s);
    assert_int_equal(s.n, 1);
    assert_true(s.f.keeper);
    assert_string_equal(s.f.proc, "?");
    finish(s.pid);
}

static void a_fabric_is_its_directorys_owners_or_its_processes(void **state)
{
    uid_t uid = 12345;
    pid_t pid;

    (void)state;
    put("mine", NULL);
    assert_true(procs_owner(at("mine"), &uid));
    assert_int_equal(uid, getuid());
    uid = 12345;
    put("file", "");
    assert_false(procs_owner(at("file"), &uid)); /* no directory, and nobody names it */
    assert_false(procs_owner(at("absent"), &uid));
    assert_int_equal(uid, 12345);
    pid = start_switch(at("absent"), "p");
    assert_true(procs_owner(at("absent"), &uid));
    assert_int_equal(uid, getuid());
    finish(pid);
}

/* Those of other users and directories may be there too. */
static void fabrics_are_listed_with_their_processes(void **state)
{
    char run[96], first[256], rest[512];
    pid_t pid[3], keeper;
    const char *text;
    struct heard h;

    (void)state;
    snprintf(run, sizeof(run), "%s", at("listed"));
    put("listed/proc/leaf0.ready", "pid 1\nnodes a b c\x01 d e f\nmore\n");
    put("listed/proc/leaf1.ready", "pid 1\nnodes a b c d e f g\n");
    put("listed/proc/leaf2.ready", "pid 1\n");
    keeper = start((const char *const[]){"trib-keep", "start", run, NULL});
    for (unsigned i = 0; i < 3; i++) {
        char name[16];

        snprintf(name, sizeof(name), "leaf%u", i);
        pid[i] = start_switch(run, name);
    }
    h = listen_to(stdout);
    int rc = all_print();
    text = what_was_said(&h);
    assert_int_equal(rc, 0);
    snprintf(first, sizeof(first), "fabric listed of user %s: run directory %s, since 20",
             owner_name(getuid()), run);
    text = strstr(text, first);
    assert_non_null(text);
    snprintf(rest, sizeof(rest),
             "  trib-switch leaf0: pid %d, 6 nodes: a b c? d e f\n"
             "  trib-switch leaf1: pid %d, 7 nodes: a b c d e f ...\n"
             "  trib-switch leaf2: pid %d, nodes not known (not ready, or of an earlier version)\n"
             "  trib-keep: pid %d\n",
             (int)pid[0], (int)pid[1], (int)pid[2], (int)keeper);
    assert_memory_equal(strchr(text, '\n') + 1, rest, strlen(rest));
    for (unsigned i = 0; i < 3; i++)
        finish(pid[i]);
    finish(keeper);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_are_found_by_their_arguments),
        cmocka_unit_test(processes_are_found_by_their_locks),
        cmocka_unit_test(stale_files_name_who_has_the_number_now),
        cmocka_unit_test(a_keeper_is_found_by_its_lock),
        cmocka_unit_test(many_are_found),
        cmocka_unit_test(all_of_a_fabric_are_stopped),
        cmocka_unit_test(a_process_has_the_start_time_that_the_kernel_says),
        cmocka_unit_test(text_of_others_is_printable),
        cmocka_unit_test(a_scan_sees_fabrics_of_all),
        cmocka_unit_test(a_fabric_is_its_directorys_owners_or_its_processes),
        cmocka_unit_test(fabrics_are_listed_with_their_processes),
    };
    int rc;

    (void)argc;
    if (getenv("TEST_PROCESS"))
        return be_process();
    (void)argv;
    setenv("TEST_PROCESS", "1", 1); /* of what this program starts */
    rc = cmocka_run_group_tests(tests, scratch_make, scratch_drop);
    procs_free(&found);
    return rc;
}
