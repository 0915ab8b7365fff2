/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rank itself is a process with a socket, as beside the launcher; this one copies between that
 * socket and standard input and output, and ends with either.
 */
#include "host/launch/away.h"

#include "io/live/process_monitor.h"
#include "io/preload.h"
#include "io/rundir.h"
#include "io/token.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int write_all(int fd, const char *at, size_t n)
{
    while (n) {
        ssize_t k = write(fd, at, n);

        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return -1;
        at += k;
        n -= (size_t)k;
    }
    return 0;
}

/* False: the end of `from`, or of `to`. */
static bool copy(int from, int to)
{
    char buf[1 << 16];
    ssize_t n = read(from, buf, sizeof(buf));

    return n > 0 ? !write_all(to, buf, (size_t)n) : n < 0 && errno == EINTR;
}

static void relay(int rank)
{
    struct pollfd p[2] = {{STDIN_FILENO, POLLIN, 0}, {rank, POLLIN, 0}};
    bool runs = true;

    while (runs) {
        if (poll(p, 2, -1) < 0 && errno != EINTR)
            return;
        if (p[1].revents)
            runs = copy(rank, STDOUT_FILENO);
        else if (p[0].revents)
            runs = copy(STDIN_FILENO, rank);
    }
}

static int become_rank(const struct rundir *rd, const char *host, const char *preload, int fd,
                       pid_t parent)
{
    char number[16];
    int rc;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        return 1;
    snprintf(number, sizeof(number), "%d", fd);
    setenv("TRIB_HOST", host, 1);
    setenv(PROCESS_MONITOR_ENV, "1", 1);
    setenv("TRIB_RUN", rd->path, 1);
    rc = token_hand_over(rd, host);
    if (rc)
        fprintf(stderr, "trib-perf: host %s does not run on this machine: %s\n", host,
                strerror(-rc));
    if (!rc && preload)
        rc = preload_set(preload);
    if (rc)
        return 1;
    execl("/proc/self/exe", "trib-perf", "--rank-process", number, (char *)NULL);
    perror("trib-perf: cannot start a rank");
    return 1;
}

int away_rank(const char *fabric, const char *host, const char *preload)
{
    pid_t parent = getpid(), pid;
    struct rundir rd;
    int sv[2], status;

    signal(SIGPIPE, SIG_IGN);
    if (rundir_open(&rd, NULL, fabric, false))
        return 1;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, sv)) {
        perror("trib-perf: cannot start a rank");
        return 1;
    }
    pid = fork();
    if (!pid) {
        close(sv[0]);
        dup2(STDERR_FILENO, STDOUT_FILENO);
        _exit(become_rank(&rd, host, preload, sv[1], parent));
    }
    close(sv[1]);
    if (pid > 0)
        relay(sv[0]);
    close(sv[0]);
    close(STDOUT_FILENO);
    rundir_close(&rd);
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status)
                                                                           : 1;
}
