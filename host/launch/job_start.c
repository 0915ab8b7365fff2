/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts a job: a process for each rank, connected to the launcher by a socket. */
#include "host/launch/job_processes_priv.h"
#include "machine/preload.h"
#include "machine/token.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define MACHINE_ENV "TRIB_MACHINE"

/* Whether a shell reads the word as it is. A remote launcher may or may not run its command in a
 * shell, so only such words are sent to other machines. */
static bool is_plain(const char *word)
{
    return *word && *word != '=' &&
           !word[strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                              "/._+,:=-")];
}

/* Runs rsh in a local shell, because it is the user's command with arguments. words[0]: the
 * machine, which is left out if rsh names it by itself; the others: what to run there. */
static void exec_elsewhere(const char *rsh, const char *const words[5], int fd)
{
    char *script;

    for (unsigned i = 0; i < 5 && words[i]; i++)
        if (!is_plain(words[i])) {
            fprintf(
                stderr,
                "trib-perf: found \"%s\", expected letters, digits and / . _ + , : = - alone in "
                "what another machine is told\n",
                words[i]);
            _exit(1);
        }
    if (dup2(fd, STDIN_FILENO) < 0 || dup2(fd, STDOUT_FILENO) < 0)
        _exit(1);
    close(fd);
    if (asprintf(&script, "%sexec %s \"$@\"", rsh && strstr(rsh, MACHINE_ENV) ? "shift; " : "",
                 rsh ? rsh : "ssh") < 0)
        _exit(1);
    execl("/bin/sh", "sh", "-c", script, "sh", words[0], words[1], words[2], words[3], words[4],
          (char *)NULL);
    perror("trib-perf: cannot start a rank");
    _exit(1);
}

/* How another machine finds this program: by its name if PATH finds this program here, else by its
 * path, assuming that a checkout has the same path on all machines. */
static const char *own_name(char path[PATH_MAX])
{
    const char *dirs = getenv("PATH");
    char *list = strdup(dirs ? dirs : ""), *save = NULL, file[PATH_MAX + 16];
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
    struct stat self, st;
    bool same = false;

    path[n > 0 ? n : 0] = 0;
    if (!stat("/proc/self/exe", &self))
        for (char *d = list ? strtok_r(list, ":", &save) : NULL; d; d = strtok_r(NULL, ":", &save))
            if (snprintf(file, sizeof(file), "%s/trib-perf", d) < (int)sizeof(file) &&
                !access(file, X_OK) && !stat(file, &st)) {
                same = st.st_dev == self.st_dev && st.st_ino == self.st_ino;
                break;
            }
    free(list);
    return same || n <= 0 || !is_plain(path) ? "trib-perf" : path;
}

/* Starts the rank on the machine that runs its host's NIC. */
static void exec_away(const struct job_processes *j, const char *rsh, unsigned r, int fd)
{
    uint32_t ip = job_machine(j, r)->ip;
    char address[16], path[PATH_MAX];

    snprintf(address, sizeof(address), "%u.%u.%u.%u", ip >> 24, ip >> 16 & 255, ip >> 8 & 255,
             ip & 255);
    setenv(MACHINE_ENV, job_machine(j, r)->name, 1);
    exec_elsewhere(rsh,
                   (const char *const[5]){address, own_name(path), "--away-rank", j->fab->name,
                                          job_host(j, r)},
                   fd);
}

/* Runs in the child. A rank ignores the terminal's signals, because the launcher handles them, and
 * is killed when the launcher ends. */
static void become_rank(const struct job_processes *j, const struct job_processes_cfg *cfg,
                        unsigned r, int fd, pid_t parent)
{
    char number[16];
    int rc;

    sigprocmask(SIG_SETMASK, &j->old_mask, NULL);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    for (unsigned i = 0; i < r; i++)
        if (j->rank[i].fd >= 0)
            close(j->rank[i].fd);
    close(j->sigfd);
    if (j->fab->nodes[j->fab->hosts[j->host[r]]].outside)
        exec_elsewhere(cfg->rsh,
                       (const char *const[5]){job_host(j, r), "trib-perf", "--remote-rank"}, fd);
    if (job_machine(j, r))
        exec_away(j, cfg->rsh, r, fd);
    if (cfg->rank_main)
        _exit(cfg->rank_main(fd, r));
    snprintf(number, sizeof(number), "%d", fd);
    setenv("TRIB_HOST", job_host(j, r), 1);
    setenv(PROCESS_MONITOR_ENV, "1", 1);
    if (cfg->rd) {
        setenv("TRIB_RUN", cfg->rd->path, 1);
        (void)token_hand_over(cfg->rd,
                              job_host(j, r)); /* without it, the rank reports the reason */
    }
    if (cfg->preload && (rc = preload_set(cfg->preload)) != 0) {
        fprintf(stderr, "trib-perf: cannot preload %s%s\n", cfg->preload,
                rc == -EINVAL ? ", expected a path without colons" : "");
        _exit(1);
    }
    execl("/proc/self/exe", "trib-perf", "--rank-process", number, (char *)NULL);
    perror("trib-perf: cannot start a rank");
    _exit(1);
}

static int start_rank(struct job_processes *j, const struct job_processes_cfg *cfg, unsigned r)
{
    int sv[2];
    pid_t parent = getpid();

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, sv))
        return -errno;
    fcntl(sv[0], F_SETFD, FD_CLOEXEC);
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0) {
        close(sv[0]);
        close(sv[1]);
        return -errno;
    }
    if (pid == 0) {
        close(sv[0]);
        become_rank(j, cfg, r, sv[1], parent);
    }
    close(sv[1]);
    j->rank[r].pid = pid;
    j->rank[r].fd = sv[0];
    return 0;
}

static int catch_signals(struct job_processes *j)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, &j->old_mask);
    j->sigfd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return j->sigfd < 0 ? -errno : 0;
}

static void look_for_machines(struct job_processes *j)
{
    for (unsigned r = 0; r < j->nranks; r++) {
        const struct fab_machine *m = job_machine(j, r);

        if (m && !rundir_machine_there(j->rd, m->name))
            job_set_cause(
                j,
                "rank %u is for host %s of machine %s, which is not there: expected trib up "
                "of the same conf on it",
                r, job_host(j, r), m->name);
    }
}

int job_launch(struct job_processes **out, const struct job_processes_cfg *cfg)
{
    struct job_processes *j = calloc(1, sizeof(*j));

    if (!j)
        return -ENOMEM;
    *out = j;
    j->fab = cfg->fab;
    j->rd = cfg->rd;
    j->nranks = cfg->nranks;
    j->host = calloc(cfg->nranks, sizeof(*j->host));
    j->rank = calloc(cfg->nranks, sizeof(*j->rank));
    j->pfd = calloc(cfg->nranks + 1, sizeof(*j->pfd));
    j->sigfd = -1;
    if (!j->host || !j->rank || !j->pfd)
        return -ENOMEM;
    memcpy(j->host, cfg->host_of_rank, cfg->nranks * sizeof(*j->host));
    j->machine = cfg->rd ? rundir_machine(cfg->rd, cfg->fab) : FAB_NONE;
    look_for_machines(j);
    for (unsigned r = 0; r < cfg->nranks; r++)
        j->rank[r].fd = -1;
    if (!j->cause[0] && cfg->rd &&
        process_monitor_start(&j->watch, cfg->rd, cfg->fab, j->host, cfg->nranks))
        job_set_cause(j, "no trib-switch runs in %s", cfg->rd->path);
    if (j->cause[0])
        return -ECANCELED;
    int rc = catch_signals(j);
    for (unsigned r = 0; !rc && r < cfg->nranks; r++)
        rc = start_rank(j, cfg, r);
    if (rc)
        job_set_cause(j, "cannot start ranks: %s", strerror(-rc));
    return rc;
}
