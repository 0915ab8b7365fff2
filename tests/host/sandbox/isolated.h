/* SPDX-License-Identifier: BSD-3-Clause */
/* This program, isolated in a small machine with a run directory of two hosts; its words say what it does there. */
#ifndef TESTS_SANDBOX_ISOLATED_H
#define TESTS_SANDBOX_ISOLATED_H

#include "host/sandbox/isolate.h"
#include "tests/host/sandbox/world.h"

#include <errno.h>
#include <signal.h>

#define RUNS "/tmp/tributary-%u"

/* A run directory below that of all fabrics, or elsewhere, with files of two hosts. */
static inline void make_run(struct world *w, bool elsewhere)
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
static inline void end_with(int code)
{
    fflush(NULL);
    _exit(code);
}

/* Isolates this program with these words; how that ended. What both print goes to the world's text. */
static inline int isolate(struct world *w, const char *what, const char *with)
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
        prctl(PR_SET_PDEATHSIG, SIGKILL);
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

/* Starts this program in there with what it prints in a pipe, and as a job of its own where that is asked; the first process. */
static inline pid_t start(struct world *w, const char *what, bool job, FILE **out)
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
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (job)
            setpgid(0, 0);
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

static inline bool hear_line(struct world *w, FILE *from)
{
    char line[128];

    if (!fgets(line, sizeof(line), from))
        return false;
    fputs(line, w->out);
    return !strcmp(line, "ready\n");
}

/* As far as it says that it is ready. */
static inline void hear_ready(struct world *w, FILE *from)
{
    while (!hear_line(w, from) && !feof(from))
        ;
}

#endif
