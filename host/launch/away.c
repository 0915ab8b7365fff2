/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs a rank in a child process with a socket, as the launcher does on its own machine. This
 * process copies between the socket and standard input and output, until one of them closes.
 */
#include "host/launch/away.h"

#include "machine/process_monitor.h"
#include "machine/preload.h"
#include "machine/rundir.h"
#include "machine/token.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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

/* Copies what can be read now. False: `from` or `to` is closed. */
static bool away_copy(int from, int to)
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
            runs = away_copy(rank, STDOUT_FILENO);
        else if (p[0].revents)
            runs = away_copy(STDIN_FILENO, rank);
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

/* ---- where the fabric is on this machine ---- */

/* Whether this fabric, with the host, is up in the run directory `dir`. If so, rd is open on it. */
static bool is_in(struct rundir *rd, const char *dir, const char *fabric, const char *host)
{
    char token[PATH_MAX];
    struct fabric *f;
    bool yes;

    if (snprintf(token, sizeof(token), "%s/port/%s/host.token", dir, host) >= (int)sizeof(token) ||
        access(token, R_OK) || rundir_open(rd, dir, fabric, false))
        return false;
    f = rundir_fabric(rd);
    yes = f && !strcmp(f->name, fabric);
    if (f)
        fabric_free(f);
    if (!yes)
        rundir_close(rd);
    return yes;
}

/* Finds trib-keep beside this program, or where it is installed. */
static bool find_keep(char *keep, size_t size)
{
    static const char *const places[] = {"trib-keep", "../libexec/tributary/trib-keep"};
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char *slash;

    self[n > 0 ? n : 0] = 0;
    slash = strrchr(self, '/');
    for (unsigned i = 0; slash && i < 2; i++) {
        snprintf(keep, size, "%.*s/%s", (int)(slash - self), self, places[i]);
        if (!access(keep, X_OK))
            return true;
    }
    return false;
}

/* Opens the output of `trib-keep fabrics`. */
static FILE *list_fabrics(pid_t *pid)
{
    char keep[PATH_MAX + 32];
    int p[2];

    if (!find_keep(keep, sizeof(keep)) || pipe2(p, O_CLOEXEC))
        return NULL;
    *pid = fork();
    if (!*pid) {
        dup2(p[1], STDOUT_FILENO);
        execl(keep, "trib-keep", "fabrics", (char *)NULL);
        _exit(127);
    }
    close(p[1]);
    if (*pid > 0)
        return fdopen(p[0], "re");
    close(p[0]);
    return NULL;
}

/* Finds the fabric among this user's processes on this machine. */
static bool is_among_processes(struct rundir *rd, const char *fabric, const char *host)
{
    char line[2 * PATH_MAX], *dir;
    pid_t pid = 0;
    FILE *f = list_fabrics(&pid);
    bool found = false;
    unsigned uid;

    while (f && !found && fgets(line, sizeof(line), f)) { /* user, uid, pid, directory */
        line[strcspn(line, "\n")] = 0;
        dir = strrchr(line, '\t');
        found = sscanf(line, "%*s\t%u", &uid) == 1 && uid == geteuid() && dir &&
                is_in(rd, dir + 1, fabric, host);
    }
    if (f)
        fclose(f);
    if (pid > 0)
        waitpid(pid, NULL, 0);
    return found;
}

/*
 * Finds the fabric's run directory on this machine: in TRIB_RUN, in the default place, or among the
 * processes. ssh passes no environment; Slurm and some mpiruns pass that of the launching machine,
 * on which the run directory and the user's number may differ.
 */
static bool find_fabric(struct rundir *rd, const char *fabric, const char *host)
{
    const char *run = getenv("TRIB_RUN");
    char dir[PATH_MAX];

    if (run && *run && is_in(rd, run, fabric, host))
        return true;
    if ((!rundir_default(dir, sizeof(dir), NULL, fabric) && is_in(rd, dir, fabric, host)) ||
        is_among_processes(rd, fabric, host))
        return true;
    fprintf(stderr,
            "trib-perf: found no fabric %s with host %s that user %u runs on this machine, neither "
            "in %s%s%s nor among its processes; expected trib up there, by this user\n",
            fabric, host, (unsigned)getuid(), run && *run ? run : "", run && *run ? " nor in " : "",
            dir);
    return false;
}

int away_rank(const char *fabric, const char *host, const char *preload)
{
    pid_t parent = getpid(), pid;
    struct rundir rd;
    int sv[2], status;

    signal(SIGPIPE, SIG_IGN);
    if (!find_fabric(&rd, fabric, host))
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
