/* SPDX-License-Identifier: BSD-3-Clause */
/* What the launcher starts in place of trib-perf is the test program itself: it tells its socket what it was given. */
#ifndef TRIB_TESTS_HOST_LAUNCH_STARTED_H
#define TRIB_TESTS_HOST_LAUNCH_STARTED_H

#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static inline const char *started_env(const char *name)
{
    const char *v = getenv(name);

    return v ? v : "none";
}

/* Then it copies what comes, a line "exit N" ends it so. */
static inline int started_serve(int fd)
{
    char text[512];
    ssize_t n;

    while ((n = read(fd, text, sizeof(text) - 1)) > 0) {
        text[n] = 0;
        if (!strncmp(text, "exit ", 5))
            return atoi(text + 5);
        if (write(fd, text, (size_t)n) != n)
            return 1;
    }
    return 20;
}

static inline int started_main(int argc, char **argv)
{
    int fd = argc > 2 ? atoi(argv[2]) : -1, death = 0, n = 0, handed = 0;
    struct sigaction hup, intr, term;
    struct dirent *e;
    sigset_t mask;
    DIR *d;

    prctl(PR_GET_PDEATHSIG, &death);
    sigaction(SIGHUP, NULL, &hup);
    sigaction(SIGINT, NULL, &intr);
    sigaction(SIGTERM, NULL, &term);
    sigprocmask(SIG_SETMASK, NULL, &mask);
    d = opendir("/proc/self/fd");
    while (d && (e = readdir(d)))
        if (*e->d_name != '.' && atoi(e->d_name) > 2 && atoi(e->d_name) != dirfd(d)) {
            n += atoi(e->d_name) != fd;
            handed += getenv("TRIB_TOKEN") && atoi(e->d_name) != fd;
        }
    if (d)
        closedir(d);
    dprintf(fd, "%s %d of %s in %s told %s preload %s token %d death %d %s %s %s %s, %d open\n",
            argv[0], argc, started_env("TRIB_HOST"), started_env("TRIB_RUN"),
            started_env("TRIB_DEATHS_TOLD"), started_env("LD_PRELOAD"),
            getenv("TRIB_TOKEN") != NULL, death, hup.sa_handler == SIG_IGN ? "ign" : "dfl",
            intr.sa_handler == SIG_IGN ? "ign" : "dfl", term.sa_handler == SIG_IGN ? "ign" : "dfl",
            sigismember(&mask, SIGTERM) || sigismember(&mask, SIGCHLD) ? "blocked" : "free",
            n - (handed > 0));
    return started_serve(fd);
}

static inline bool started_is(int argc, char **argv)
{
    return argc > 1 && !strcmp(argv[1], "--rank-process");
}

#endif
