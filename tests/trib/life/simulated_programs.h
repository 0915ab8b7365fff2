/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs of the machine of simulated_tasks.h. trib and trib-keep are the real ones; trib-switch, trib-perf and a stranger are models, which do of
 * run directories what the real ones do, and what else they do is drawn: they start late, fail, die, hang, do not end when they are told to.
 */
#ifndef TRIB_TESTS_TRIB_LIFE_SIMULATED_PROGRAMS_H
#define TRIB_TESTS_TRIB_LIFE_SIMULATED_PROGRAMS_H

/* Their statics come before names of the test. */
int trib_main(int argc, char **argv);
int keep_main(int argc, char **argv);
#define main trib_main
#include "trib/trib.c"
#undef main
#define main keep_main
#include "host/keep/trib_keep.c"
#undef main

#include "name_calls.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtype-limits" /* of FAB_WIDE, which trib is compiled with */
#include "machine/rundir.h"
#pragma GCC diagnostic pop
#include "system/temp_file.h"

#define BASE    "/run/user/1000/tributary-1000"
#define FABRICS 2u
#define PROCS   3u /* of a fabric, at most */

/* What a trib-switch does that is started now. */
enum fate { SERVES, FAILS, CRASHES, HANGS, NEVER_READY, FATES };

struct fate_drawn {
    int64_t late_ns, ready_ns, lives_ns; /* INT64_MAX: until it is told to end */
    enum fate fate;
    bool deaf; /* to SIGTERM */
};

static struct fate_drawn fate_draw(void);

static void nap(int64_t ns)
{
    call_begin();
    call_wait(SLEEPS, sim->now + ns);
}

/* ---- a trib-switch ---- */

static const char *value_behind(char **argv, const char *option)
{
    for (; *argv; argv++)
        if (!strcmp(*argv, option) && argv[1])
            return argv[1];
    return "";
}

/* As write_once() of rundir.c. */
static int install(const struct rundir *rd, const char *name, const char *text)
{
    char why[OWN_WHY];
    int dir = own_dir_open(rd->path, false, why, sizeof(why)), fd;
    struct temp_file tmp;
    int rc = dir;

    fd = dir < 0 ? dir : temp_file_open(&tmp, dir, name, 0600);
    if (fd >= 0) {
        bool whole = write(fd, text, strlen(text)) == (ssize_t)strlen(text);

        close(fd);
        rc = whole ? temp_file_publish(&tmp, name, true) : -ENOSPC;
        if (!whole)
            temp_file_drop(&tmp);
    }
    if (dir >= 0)
        close(dir);
    return fd < 0 ? fd : rc == -EEXIST ? 0 : rc;
}

static int switch_files(struct rundir *rd, char **argv, const char *name, int *fd)
{
    char host[64];
    int rc = rundir_open(rd, value_behind(argv, "--run"), "x", true), port;
    const struct sim_file *conf = file_at(file_of("/home/u"), argv[1]);

    rc = rc ? rc : install(rd, "fabric.path", argv[1]);
    rc = rc ? rc : conf ? install(rd, "fabric.conf", conf->data) : -ENOENT;
    rc = rc ? rc : rundir_claim_proc(rd, name, fd);
    if (rc)
        return rc;
    close(rundir_file(rd, O_CREAT | O_RDWR, "shared"));
    snprintf(host, sizeof(host), "h-%s", name);
    rc = rundir_port_dir(rd, host);
    port = rc ? rc : rundir_file(rd, O_CREAT | O_RDWR, "port/%s/1.0.sock", host);
    if (port >= 0)
        close(port);
    return port < 0 ? port : 0;
}

static int switch_ready(const struct rundir *rd, const char *name)
{
    int fd = rundir_file(rd, O_CREAT | O_TRUNC | O_WRONLY, "proc/%s.ready", name);

    if (fd < 0)
        return fd;
    dprintf(fd, "pid %d\nnodes h-%s\n", (int)getpid(), name);
    close(fd);
    printf("trib-switch: %s is ready\n", name);
    sim->current->ready = true;
    return 0;
}

static int switch_finish(struct rundir *rd, const char *name, int fd)
{
    if (fd >= 0) {
        (void)rundir_unlink(rd, "proc/%s.ready", name);
        (void)rundir_unlink(rd, "proc/%s.pid", name);
        close(fd);
    }
    rundir_remove(rd);
    return 0;
}

/* Until it is told to end, or ns are over. */
static bool switch_told(const struct fate_drawn *f, int64_t ns)
{
    int64_t until = ns == INT64_MAX ? ns : sim->now + ns;
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    while (sim->now < until) {
        sim->current->signals = set;
        call_begin();
        call_wait(WAITS_SIGNAL, until);
        for (int sig = 1; sig < 32; sig++)
            if (sigismember(&set, sig) == 1 && sigismember(&sim->current->pending, sig) == 1) {
                sigdelset(&sim->current->pending, sig);
                if (!f->deaf)
                    return true;
            }
    }
    return false;
}

static int switch_main(int argc, char **argv)
{
    const char *name = value_behind(argv, "--proc");
    struct fate_drawn f = fate_draw();
    struct rundir rd;
    int fd = -1;

    (void)argc;
    sigaddset(&sim->current->mask, SIGTERM); /* its handler only takes a note */
    sigaddset(&sim->current->mask, SIGINT);
    if (switch_told(&f, f.late_ns))
        return 0;
    if (f.fate == FAILS) {
        fprintf(stderr, "it is broken\n");
        return 3;
    }
    if (f.fate == HANGS)
        switch_told(&f, INT64_MAX);
    if (switch_files(&rd, argv, name, &fd)) {
        if (fd >= 0)
            switch_finish(&rd, name, fd);
        return 1;
    }
    if (switch_told(&f, f.fate == NEVER_READY ? INT64_MAX : f.ready_ns))
        return switch_finish(&rd, name, fd);
    if (f.fate == CRASHES)
        kill(getpid(), SIGSEGV);
    if (switch_ready(&rd, name))
        return switch_finish(&rd, name, fd) + 1;
    if (!switch_told(&f, f.lives_ns)) {
        if (draw(2))
            kill(getpid(), SIGSEGV);
        return 7;
    }
    return switch_finish(&rd, name, fd);
}

/* ---- others ---- */

static int perf_main(int argc, char **argv)
{
    (void)argc;
    if (argv[1] && !strcmp(argv[1], "--check-options"))
        return 0;
    nap(draw_scaled(10 * MS, 3));
    return draw(4) ? 0 : 1;
}

static int sleep_main(int argc, char **argv)
{
    (void)argc, (void)argv;
    for (;;)
        nap(1000 * S);
    return 0;
}

static const struct program programs[] = {
    {"trib", trib_main, false},         {"trib-keep", keep_main, false},
    {"trib-switch", switch_main, true}, {"trib-perf", perf_main, true},
    {"sleep", sleep_main, true},
};

static const struct program *program_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    for (unsigned i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
        if (!strcmp(programs[i].name, slash ? slash + 1 : path))
            return &programs[i];
    return NULL;
}

/* ---- commands that somebody gives ---- */

#define COMMANDS 64u

struct command {
    int id;
    int fabric;
    int64_t began_ns, ended_ns;
    int status; /* -1: it runs */
    bool asked; /* by a signal of a trouble, or killed */
    const char *what;
    struct sim_says says;
};

static struct task *task_spawn(const struct program *p, struct sim_says *says, char *const *argv)
{
    struct task *t = task_new();
    int argc = 0;

    t->parent = INIT;
    t->group = t->session = t->pid;
    for (int fd = 0; fd < 3; fd++) {
        struct sim_open *o = open_new(fd && says ? OPEN_SAYS : OPEN_NULL);

        o->says = says;
        fd_of_new(t, o, false);
    }
    while (argv[argc])
        argc++;
    task_becomes(t, p, argc, argv);
    return t;
}

#endif
