/* SPDX-License-Identifier: BSD-3-Clause */
/* The user's terminal, the user at its keys, and a shell that runs isolated programs there, jobs of their own or parts of a script. */
#ifndef TESTS_SANDBOX_JOBS_H
#define TESTS_SANDBOX_JOBS_H

#include "host/sandbox/isolate.h"
#include "tests/host/sandbox/world.h"

#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>

static int master, slave; /* the user's */

/* ---- the user ---- */

static char seen[8192]; /* what the terminal has shown since the last question */

/* What the terminal shows until both texts do, in either order. */
static inline bool shows_both(const char *text, const char *other)
{
    struct pollfd p = {master, POLLIN, 0};
    size_t n = 0;

    while (n < sizeof(seen) - 1 && poll(&p, 1, 30000) == 1 && read(master, seen + n, 1) == 1) {
        seen[++n] = 0;
        if (strstr(seen, text) && strstr(seen, other))
            return true;
    }
    fprintf(stderr, "expected <%s>, found <%.*s>\n", text, (int)n, seen);
    return false;
}

static inline bool shows(const char *text)
{
    return shows_both(text, "");
}

static inline void types(const char *keys)
{
    (void)!write(master, keys, strlen(keys));
}

static inline bool is_raw(void)
{
    struct termios t;

    return !tcgetattr(slave, &t) && !(t.c_lflag & (ICANON | ECHO | ISIG));
}

/* ---- the shell ---- */

#define JOB_TELLS  8  /* standard error is the world's text */
#define JOB_LEAVES 16 /* a further descriptor of the user's terminal open */

/* Leads the session of the terminal; the job is in a group of its own, or of this one as those of scripts are. */
static inline pid_t run_job(struct world *w, unsigned streams, bool job, const char *how)
{
    char self[] = "/proc/self/exe", in[] = "inside", word[16];
    char *argv[] = {self, in, word, NULL};
    int null = open("/dev/null", O_RDWR);
    pid_t pid;

    snprintf(word, sizeof(word), "%s", how);
    fflush(w->out);
    pid = fork();
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGTTOU, SIG_IGN);
        if (job) {
            setpgid(0, 0);
            tcsetpgrp(slave, getpid());
        }
        for (int fd = 0; fd < 3; fd++)
            dup2(streams & 1u << fd ? slave : null, fd);
        if (streams & JOB_TELLS)
            dup2(fileno(w->out), STDERR_FILENO);
        close(master);
        if (!(streams & JOB_LEAVES))
            close(slave);
        signal(SIGTTOU, SIG_DFL);
        signal(SIGTSTP, SIG_DFL);
        _exit(isolate_run(&w->rd, &w->host, w->lib, argv));
    }
    close(null);
    return pid;
}

static inline void begin_session(struct world *w)
{
    struct winsize size = {24, 80, 0, 0};

    snprintf(w->rd.path, sizeof(w->rd.path), "/tmp/run");
    world_tmpfs("/tmp");
    world_dir("/tmp/run");
    world_dir("/tmp/run/port");
    world_dir("/tmp/run/port/h7");
    world_need(setsid() < 0, "setsid");
    world_need(ioctl(slave, TIOCSCTTY, 0), "terminal");
    ioctl(slave, TIOCSWINSZ, &size);
    signal(SIGTTOU, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGTSTP, SIG_IGN);
}

static inline void say(struct world *w, const char *what, bool is_so)
{
    fprintf(w->out, "%s: %s\n", what, is_so ? "yes" : "no");
}

static inline int ended(pid_t pid)
{
    int status;

    if (waitpid(pid, &status, WUNTRACED) != pid)
        return -1;
    return WIFSTOPPED(status)  ? 2000 + WSTOPSIG(status)
           : WIFEXITED(status) ? WEXITSTATUS(status)
                               : 1000 + WTERMSIG(status);
}

static inline int jobs_begin(void **state)
{
    (void)state;
    return openpty(&master, &slave, NULL, NULL, NULL);
}

static inline int jobs_end(void **state)
{
    (void)state;
    close(master);
    close(slave);
    return 0;
}

#endif
