/* SPDX-License-Identifier: BSD-3-Clause */
/* Which fabrics are up, and which processes they have: run directories whose pid files another process holds, that
 * come, change their conf, and go. */
#include "tests/io/live/looked.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define DIRS 18u

static char base[64]; /* where all fabrics of this user are */
static char dir[DIRS][RUN_PATH];
static struct live l;

/* ---- run directories ---- */

static const char *in(unsigned i, const char *file)
{
    static char path[2 * RUN_PATH];

    snprintf(path, sizeof(path), "%s/%s", dir[i], file);
    return path;
}

static void put(unsigned i, const char *file, const char *text)
{
    char tmp[2 * RUN_PATH];
    FILE *f;

    snprintf(tmp, sizeof(tmp), "%s", in(i, "new"));
    f = fopen(tmp, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    assert_int_equal(rename(tmp, in(i, file)), 0);
}

/* A fabric's, of one host and one switch. */
static void put_conf(unsigned i, const char *name)
{
    char text[512];

    snprintf(text, sizeof(text),
             "name = \"%s\"; nodes = ( { name = \"h0\"; kind = \"host\"; },"
             " { name = \"s0\"; kind = \"switch\"; } ); link_defaults = { rate = \"100Gb/s\"; "
             "latency = \"300ns\"; }; links = ( { a = \"h0\"; b = \"s0\"; } );",
             name);
    put(i, "fabric.conf", text);
}

static void make_dir(unsigned i, const char *name)
{
    struct rundir rd;

    snprintf(dir[i], sizeof(dir[i]), "%s/tributary-%u/%s", base, (unsigned)getuid(), name);
    assert_int_equal(rundir_open(&rd, dir[i], NULL, true), 0);
    put_conf(i, name);
}

static int setup(void **state)
{
    (void)state;
    strcpy(base, "/tmp/test_live.XXXXXX");
    assert_non_null(mkdtemp(base));
    setenv("XDG_RUNTIME_DIR", base, 1);
    unsetenv("TRIB_RUN");
    memset(dir, 0, sizeof(dir));
    return 0;
}

static int teardown(void **state)
{
    char rm[128];

    (void)state;
    live_end(&l);
    assert_int_equal(l.n, 0);
    snprintf(rm, sizeof(rm), "rm -rf %s", base);
    assert_int_equal(system(rm), 0);
    return 0;
}

/* ---- their processes ---- */

/* A process that holds proc/NAME.pid of directories `from` to `to`; it ends with holder_end(). */
static pid_t holder(unsigned from, unsigned to, const char *name)
{
    int done[2], fd;
    char c;
    pid_t pid;

    assert_int_equal(pipe(done), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (unsigned i = from; i <= to; i++) {
            struct rundir rd = {.sh = NULL};

            snprintf(rd.path, sizeof(rd.path), "%s", dir[i]);
            if (rundir_claim_proc(&rd, name, &fd))
                _exit(1);
        }
        (void)!write(done[1], "x", 1);
        pause();
        _exit(0);
    }
    close(done[1]);
    assert_int_equal(read(done[0], &c, 1), 1);
    close(done[0]);
    return pid;
}

static void holder_end(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* ---- one directory ---- */

static void the_directory_is_the_users_choice(void **state)
{
    (void)state;
    live_init(&l, "/x", 0);
    assert_string_equal(l.dir, "/x");
    live_init(&l, NULL, LIVE_TOTALS);
    assert_null(l.dir);
    assert_int_equal(l.what, LIVE_TOTALS);
    setenv("TRIB_RUN", "", 1);
    live_init(&l, NULL, 0);
    assert_null(l.dir);
    setenv("TRIB_RUN", "/y", 1);
    live_init(&l, NULL, 0);
    assert_string_equal(l.dir, "/y");
    live_init(&l, "/x", 0);
    assert_string_equal(l.dir, "/x");
    unsetenv("TRIB_RUN");
}

static void a_fabric_is_up_while_one_of_its_processes_is(void **state)
{
    pid_t pid;
    (void)state;

    make_dir(0, "lab");
    live_init(&l, dir[0], 0);
    live_look(&l);
    assert_int_equal(l.n, 0); /* nobody runs */
    pid = holder(0, 0, "p0");
    live_look(&l);
    assert_int_equal(l.n, 1);
    assert_string_equal(l.fab[0]->f->name, "lab");
    assert_string_equal(l.fab[0]->rd.path, dir[0]);
    assert_int_equal(l.fab[0]->n_procs, 1);
    assert_string_equal(l.fab[0]->proc[0].name, "p0");
    assert_int_equal(l.fab[0]->proc[0].pid, pid);
    holder_end(pid);
    live_look(&l);
    assert_int_equal(l.n, 0);
}

/* It is another fabric then, of which nothing is known yet; a conf that nobody can read is none. */
static void another_conf_is_another_fabric(void **state)
{
    const struct live_fabric *x;
    pid_t pid;
    (void)state;

    make_dir(0, "lab");
    pid = holder(0, 0, "p0");
    live_init(&l, dir[0], 0);
    live_look(&l);
    assert_int_equal(l.n, 1);
    x = l.fab[0];
    live_look(&l);
    assert_ptr_equal(l.fab[0], x); /* the same as before */
    put_conf(0, "other");
    live_look(&l);
    assert_int_equal(l.n, 1);
    assert_string_equal(l.fab[0]->f->name, "other");
    put(0, "fabric.conf", "nonsense");
    live_look(&l);
    assert_int_equal(l.n, 0);
    put_conf(0, "third");
    live_look(&l);
    assert_int_equal(l.n, 1);
    assert_int_equal(unlink(in(0, "fabric.conf")), 0);
    live_look(&l);
    assert_int_equal(l.n, 0);
    holder_end(pid);
}

/* The same file, written anew in place: its time says so. */
static void a_conf_that_was_written_anew_is_read_anew(void **state)
{
    struct timespec times[2] = {{.tv_sec = 1000, .tv_nsec = 5}, {.tv_sec = 1000, .tv_nsec = 5}};
    const int64_t ns[] = {5, 6, 6};
    const time_t s[] = {1000, 1000, 1001};
    pid_t pid;
    (void)state;

    make_dir(0, "lab");
    pid = holder(0, 0, "p0");
    put(0, "proc/p0.ready", "");
    live_init(&l, dir[0], 0);
    for (unsigned i = 0; i < 3; i++) {
        times[1] = (struct timespec){s[i], ns[i]};
        assert_int_equal(utimensat(AT_FDCWD, in(0, "fabric.conf"), times, 0), 0);
        live_look(&l);
        assert_int_equal(l.n, 1);
        assert_int_equal(l.fab[0]->proc[0].patience, 5); /* looked at for the first time */
        l.fab[0]->proc[0].patience = 3;
        live_look(&l);
        assert_int_equal(l.fab[0]->proc[0].patience, 2); /* and again */
    }
    holder_end(pid);
}

/* ---- all of a user ---- */

static void all_fabrics_of_a_user_are_looked_at(void **state)
{
    static const char *const names[] = {"c", "a", "d", "b"};
    pid_t all, third;
    (void)state;

    for (unsigned i = 0; i < 4; i++)
        make_dir(i, names[i]);
    make_dir(4, ".hidden");
    all = holder(0, 4, "p0");
    live_init(&l, NULL, 0);
    live_look(&l);
    assert_int_equal(l.n, 4);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(l.fab[i]->f->name[0], 'a' + (int)i); /* by name */
    third = holder(2, 2, "p1");
    holder_end(all);
    live_look(&l);
    assert_int_equal(l.n, 1);
    assert_string_equal(l.fab[0]->f->name, "d");
    assert_true(l.fab[0]->seen);
    holder_end(third);
}

static void sixteen_are_looked_at_at_most(void **state)
{
    pid_t pid;
    (void)state;

    for (unsigned i = 0; i < DIRS; i++) {
        char name[8];

        snprintf(name, sizeof(name), "f%02u", i);
        make_dir(i, name);
    }
    pid = holder(0, DIRS - 1, "p0");
    live_init(&l, NULL, 0);
    live_look(&l);
    assert_int_equal(l.n, LIVE_FABRICS);
    holder_end(pid);
}

/* ---- processes ---- */

static struct live_proc *only(struct live_fabric *x)
{
    assert_true(live_procs(x));
    assert_int_equal(x->n_procs, 1);
    return &x->proc[0];
}

static void a_process_is_asked_when_it_is_ready(void **state)
{
    struct live_fabric x = {.n_procs = 0};
    struct live_proc *p;
    pid_t pid;
    (void)state;

    make_dir(0, "lab");
    snprintf(x.rd.path, sizeof(x.rd.path), "%s", dir[0]);
    assert_false(live_procs(&x));
    pid = holder(0, 0, "p0");
    put(0, "proc/x.log", "");
    put(0, "proc/.pid", "");
    p = only(&x);
    assert_string_equal(live_proc_state(p), "starting");
    assert_int_equal(p->fd, -1);
    put(0, "proc/p0.ready", "");
    assert_string_equal(live_proc_state(only(&x)), "ready");
    p->state = LIVE_SILENT;
    p->patience = 4;
    p->fd = dup(0);
    assert_string_equal(live_proc_state(only(&x)), "silent"); /* until it is asked again */
    assert_true(p->patience == 4 && p->fd >= 0);
    assert_int_equal(kill(pid, SIGSTOP), 0);
    assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
    assert_string_equal(live_proc_state(only(&x)), "stopped");
    p->state = LIVE_READY;
    assert_string_equal(live_proc_state(p), "ready");
    holder_end(pid);
    pid = holder(0, 0, "p0"); /* another one of its name */
    p->state = LIVE_SILENT;
    assert_string_equal(live_proc_state(only(&x)), "ready");
    assert_true(!p->patience && p->fd < 0 && p->pid == pid);
    assert_int_equal(unlink(in(0, "proc/p0.ready")), 0);
    assert_string_equal(live_proc_state(only(&x)), "starting");
    holder_end(pid);
    put(0, "proc/p0.ready", ""); /* as a killed one leaves it */
    assert_false(live_procs(&x));
    assert_string_equal(live_proc_state(p), "ended");
}

static void some_of_the_processes_may_have_ended(void **state)
{
    struct live_fabric x = {.n_procs = 0};
    pid_t a, b;
    (void)state;

    make_dir(0, "lab");
    snprintf(x.rd.path, sizeof(x.rd.path), "%s", dir[0]);
    a = holder(0, 0, "a");
    b = holder(0, 0, "b");
    assert_true(live_procs(&x));
    assert_int_equal(x.n_procs, 2);
    holder_end(a);
    assert_true(live_procs(&x));
    assert_int_equal(x.n_procs, 2);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(x.proc[i].pid, *x.proc[i].name == 'a' ? 0 : b);
    holder_end(b);
    assert_false(live_procs(&x));
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(the_directory_is_the_users_choice),
        CASE(a_fabric_is_up_while_one_of_its_processes_is),
        CASE(another_conf_is_another_fabric),
        CASE(a_conf_that_was_written_anew_is_read_anew),
        CASE(all_fabrics_of_a_user_are_looked_at),
        CASE(sixteen_are_looked_at_at_most),
        CASE(a_process_is_asked_when_it_is_ready),
        CASE(some_of_the_processes_may_have_ended),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
