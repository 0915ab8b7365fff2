/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Why the first failure to arrive is not always the one to report: when a rank is killed, another
 * rank may notice its own broken connection and say so before the launcher sees the death. A
 * failure that a rank reports is therefore held for GRACE_MS; a death or an interrupt that shows up
 * meanwhile is the cause. Nor is who is missed always the one to blame: a process that is stopped
 * may be waited for by way of others. So the launcher names who was stopped (suspect.h) beside what
 * was noticed first.
 */
#include "host/launch/job_processes.h"

#include "host/launch/process_monitor.h"
#include "host/launch/suspect.h"
#include "io/preload.h"
#include "io/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define GRACE_MS  400
#define WATCH_MS  100  /* how often the trib-switch processes are looked at */
#define FINISH_MS 5000 /* that ranks have to leave their group and end */

struct proc {
    pid_t pid; /* 0: reaped */
    int fd;    /* -1: closed */
    struct inbox in;
    bool answered, failed;
    struct suspect stop;
};

struct job {
    const struct fabric *fab;
    const struct rundir *rd;
    unsigned nranks;
    uint16_t *host;
    struct proc *rank;
    struct pollfd *pfd;            /* ranks, then the signal descriptor */
    struct process_monitor *watch; /* NULL: no run directory */
    int sigfd;
    sigset_t old_mask;
    bool told, interrupted, quitting;
    int bad_exits;
    int64_t held_since; /* when a rank's own failure arrived; 0: none */
    int64_t watched;
    char held[MSG_TEXT], cause[MSG_TEXT];
    char lost[MSG_TEXT / 2]; /* a trib-switch that died and that the job can do without */
};

static int64_t now_ms(void)
{
    return clock_mono_ns() / 1000000;
}

static const char *host_name(const struct job *j, unsigned rank)
{
    return j->fab->nodes[j->fab->hosts[j->host[rank]]].name;
}

const char *job_cause(const struct job *j)
{
    return j->cause;
}

bool job_interrupted(const struct job *j)
{
    return j->interrupted;
}

pid_t job_pid(const struct job *j, unsigned rank)
{
    return j->rank[rank].pid;
}

/* ---- messages ---- */

static void set_cause(struct job *j, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void set_cause(struct job *j, const char *fmt, ...)
{
    va_list ap;

    if (j->cause[0])
        return;
    va_start(ap, fmt);
    vsnprintf(j->cause, sizeof(j->cause), fmt, ap);
    va_end(ap);
}

static void tell_cause(struct job *j)
{
    if (j->told)
        return;
    j->told = true;
    for (unsigned r = 0; r < j->nranks; r++)
        if (j->rank[r].fd >= 0)
            msg_send(j->rank[r].fd, MSG_ABORT, j->cause, strlen(j->cause) + 1);
}

void job_abort(struct job *j, const char *why)
{
    set_cause(j, "%s", why);
    tell_cause(j);
}

int job_send(struct job *j, unsigned rank, uint32_t type, const void *body, size_t len)
{
    return j->rank[rank].fd < 0 ? -EPIPE : msg_send(j->rank[rank].fd, type, body, len);
}

/* A rank that cannot be told is dead or dying; job_gather finds out how. */
int job_bcast(struct job *j, uint32_t type, const void *body, size_t len)
{
    if (j->cause[0])
        return -ECANCELED;
    for (unsigned r = 0; r < j->nranks; r++) {
        j->rank[r].answered = false;
        job_send(j, r, type, body, len);
    }
    return 0;
}

/* ---- what can happen ---- */

static void rank_ended(struct job *j, unsigned r, pid_t pid, int status)
{
    j->rank[r].pid = 0;
    if (WIFSIGNALED(status))
        set_cause(j, "rank %u (%s, pid %d) was killed by signal %d (%s)", r, host_name(j, r),
                  (int)pid, WTERMSIG(status), strsignal(WTERMSIG(status)));
    else if (!j->quitting && !j->told && !j->rank[r].failed)
        set_cause(j, "rank %u (%s, pid %d) ended with exit code %d", r, host_name(j, r), (int)pid,
                  WEXITSTATUS(status));
    j->bad_exits += status != 0;
}

static void reap(struct job *j)
{
    for (unsigned r = 0; r < j->nranks; r++) {
        int status;
        pid_t pid = j->rank[r].pid;

        while (j->rank[r].pid && waitpid(pid, &status, WNOHANG | WUNTRACED | WCONTINUED) == pid) {
            if (WIFSTOPPED(status) || WIFCONTINUED(status))
                suspect_note(&j->rank[r].stop, WIFSTOPPED(status), now_ms());
            else
                rank_ended(j, r, pid, status);
        }
    }
}

static void close_rank(struct job *j, unsigned r)
{
    if (j->rank[r].fd >= 0)
        close(j->rank[r].fd);
    j->rank[r].fd = -1;
}

static void watch_switches(struct job *j)
{
    int64_t now = now_ms();
    char text[MSG_TEXT / 2];
    bool needed;

    if (!j->watch || now - j->watched < WATCH_MS)
        return;
    j->watched = now;
    process_monitor_look(j->watch, now);
    if (!process_monitor_died(j->watch, text, sizeof(text), &needed))
        return;
    if (needed) {
        set_cause(j, "%s", text);
        return;
    }
    memcpy(j->lost, text, sizeof(j->lost));
    fprintf(stderr, "trib-perf: %s; the job goes on by other paths\n", text);
}

static void take_signals(struct job *j)
{
    struct signalfd_siginfo si;

    while (read(j->sigfd, &si, sizeof(si)) == sizeof(si)) {
        if (si.ssi_signo == SIGCHLD)
            continue;
        j->interrupted = true;
        set_cause(j, "interrupted (%s)", strsignal((int)si.ssi_signo));
    }
}

struct gather {
    uint32_t type;
    job_fn each, on_progress;
    void *ctx;
};

static void take_message(struct job *j, unsigned r, const struct msg *m, const struct gather *g)
{
    struct proc *p = &j->rank[r];

    if (m->type == MSG_FAIL) {
        p->failed = true;
        if (!j->held_since) {
            j->held_since = now_ms();
            snprintf(j->held, sizeof(j->held), "rank %u (%s, pid %d): %.*s", r, host_name(j, r),
                     (int)p->pid, (int)m->len, (const char *)m->body);
        }
    } else if (m->type == MSG_PROGRESS) {
        if (g && g->on_progress)
            g->on_progress(g->ctx, r, m);
    } else if (g && m->type == g->type && !p->answered) {
        p->answered = true;
        if (g->each && g->each(g->ctx, r, m))
            set_cause(j, "rank %u (%s, pid %d): unusable answer", r, host_name(j, r), (int)p->pid);
    } else if (g) {
        set_cause(j, "rank %u (%s, pid %d): unexpected message %u", r, host_name(j, r), (int)p->pid,
                  m->type);
    }
}

static void take_input(struct job *j, unsigned r, const struct gather *g)
{
    struct proc *p = &j->rank[r];
    struct msg m;
    int rc;

    while ((rc = msg_fill(&p->in, p->fd)) > 0) {
        while ((rc = msg_next(&p->in, &m)) > 0)
            take_message(j, r, &m, g);
        if (rc < 0)
            break;
    }
    if (rc < 0)
        close_rank(j, r);
}

/* Who was stopped, if anybody: "rank 3 (h3, pid 77) is stopped, for 2.0 s now", or "". Whether it
 * is stuck. */
static bool name_stopped(struct job *j, char *text, size_t size)
{
    bool stuck = false;
    char how[64];

    *text = '\0';
    for (unsigned r = 0; r < j->nranks; r++)
        if (j->rank[r].pid && suspect_says(&j->rank[r].stop, now_ms(), how, sizeof(how))) {
            snprintf(text, size, "rank %u (%s, pid %d) %s", r, host_name(j, r), (int)j->rank[r].pid,
                     how);
            return suspect_is_stuck(&j->rank[r].stop, now_ms());
        }
    if (j->watch)
        process_monitor_stopped(j->watch, now_ms(), text, size, &stuck);
    return stuck;
}

static void blame(struct job *j)
{
    char stopped[MSG_TEXT / 2];

    name_stopped(j, stopped, sizeof(stopped));
    if (*stopped)
        set_cause(j, "%.*s; noticed first: %.*s", (int)sizeof(stopped), stopped,
                  (int)(sizeof(j->held) - sizeof(stopped) - 32), j->held);
    else
        set_cause(j, "%.*s%s%s%s", (int)(sizeof(j->held) - sizeof(j->lost)), j->held,
                  *j->lost ? " (" : "", j->lost, *j->lost ? ")" : "");
}

/* One turn: waits up to ms for anything and takes it in. */
static void turn(struct job *j, int ms, const struct gather *g)
{
    char stopped[MSG_TEXT / 2];

    for (unsigned r = 0; r < j->nranks; r++)
        j->pfd[r] = (struct pollfd){.fd = j->rank[r].fd, .events = POLLIN};
    j->pfd[j->nranks] = (struct pollfd){.fd = j->sigfd, .events = POLLIN};
    if (poll(j->pfd, j->nranks + 1, ms) > 0) {
        take_signals(j);
        for (unsigned r = 0; r < j->nranks; r++)
            if (j->pfd[r].revents)
                take_input(j, r, g);
    }
    reap(j);
    watch_switches(j);
    if (j->held_since && now_ms() - j->held_since > GRACE_MS)
        blame(j);
    if (!j->cause[0] && name_stopped(j, stopped, sizeof(stopped)))
        set_cause(j, "%s", stopped);
    if (j->cause[0])
        tell_cause(j);
}

static bool all_answered(const struct job *j)
{
    for (unsigned r = 0; r < j->nranks; r++)
        if (!j->rank[r].answered)
            return false;
    return true;
}

static void name_missing(struct job *j, double seconds, const char *bound)
{
    char list[160] = "", stopped[MSG_TEXT / 2];
    size_t at = 0;

    name_stopped(j, stopped, sizeof(stopped));

    for (unsigned r = 0; r < j->nranks && at < sizeof(list) - 48; r++)
        if (!j->rank[r].answered)
            at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%u (%s)", at ? ", " : "", r,
                                   host_name(j, r));
    if (bound)
        set_cause(j, "%s%s%s: no answer from rank %s", stopped, *stopped ? "; " : "", bound, list);
    else
        set_cause(j, "%s%sno answer within %.0f s from rank %s", stopped, *stopped ? "; " : "",
                  seconds, list);
}

int job_gather(struct job *j, uint32_t type, double seconds, job_fn each, job_fn on_progress,
               void *ctx)
{
    struct job_limits l = {.seconds = seconds};

    return job_gather_within(j, type, &l, each, on_progress, ctx);
}

int job_gather_within(struct job *j, uint32_t type, const struct job_limits *l, job_fn each,
                      job_fn on_progress, void *ctx)
{
    struct gather g = {type, each, on_progress, ctx};
    int64_t now = now_ms(), deadline = now + (int64_t)(l->seconds * 1000);
    int64_t soft = l->soft ? now + (int64_t)(l->soft_s * 1000) : INT64_MAX;

    while (!j->cause[0] && !all_answered(j)) {
        int64_t left = soft - now_ms();

        turn(j, left < 0 ? 0 : left < WATCH_MS ? (int)left : WATCH_MS, &g);
        if (now_ms() >= soft && !j->cause[0]) {
            l->soft(ctx);
            soft = INT64_MAX;
        }
        if (!j->cause[0] && !all_answered(j) && now_ms() >= deadline) {
            name_missing(j, l->seconds, l->bound);
            tell_cause(j);
            return -ETIMEDOUT;
        }
    }
    if (!j->cause[0])
        return 0;
    tell_cause(j);
    return -ECANCELED;
}

/* ---- end ---- */

static bool any_left(const struct job *j)
{
    for (unsigned r = 0; r < j->nranks; r++)
        if (j->rank[r].pid)
            return true;
    return false;
}

int job_end(struct job *j)
{
    int64_t deadline = now_ms() + FINISH_MS;

    if (!j->cause[0]) {
        job_bcast(j, MSG_QUIT, NULL, 0);
        j->quitting = true;
    }
    /* One that is stopped hears of nothing. */
    for (unsigned r = 0; r < j->nranks && j->cause[0]; r++)
        if (j->rank[r].pid && j->rank[r].stop.since_ms && !j->rank[r].stop.until_ms)
            kill(j->rank[r].pid, SIGKILL);
    while (any_left(j) && now_ms() < deadline)
        turn(j, 50, NULL);
    for (unsigned r = 0; r < j->nranks; r++) {
        if (!j->rank[r].pid)
            continue;
        set_cause(j, "rank %u (%s, pid %d) did not end within %d s", r, host_name(j, r),
                  (int)j->rank[r].pid, FINISH_MS / 1000);
        kill(j->rank[r].pid, SIGKILL);
        waitpid(j->rank[r].pid, NULL, 0);
        j->rank[r].pid = 0;
        j->bad_exits++;
    }
    return j->bad_exits || j->cause[0] ? -ECANCELED : 0;
}

void job_free(struct job *j)
{
    if (!j)
        return;
    for (unsigned r = 0; j->rank && r < j->nranks; r++) {
        close_rank(j, r);
        msg_free(&j->rank[r].in);
    }
    if (j->sigfd >= 0) {
        close(j->sigfd);
        sigprocmask(SIG_SETMASK, &j->old_mask, NULL);
    }
    process_monitor_stop(j->watch);
    free(j->pfd);
    free(j->rank);
    free(j->host);
    free(j);
}

/* ---- start ---- */

/* As a shell would read it: rsh may have arguments. */
static void exec_elsewhere(const char *rsh, const char *host, int fd)
{
    char script[512];

    if (dup2(fd, STDIN_FILENO) < 0 || dup2(fd, STDOUT_FILENO) < 0)
        _exit(1);
    close(fd);
    snprintf(script, sizeof(script), "exec %s \"$@\"", rsh);
    execl("/bin/sh", "sh", "-c", script, "sh", host, "trib-perf", "--remote-rank", (char *)NULL);
    perror("trib-perf: cannot start a rank");
    _exit(1);
}

/* In the child. A rank leaves the terminal's signals to the launcher and dies with it. */
static void become_rank(const struct job *j, const struct job_cfg *cfg, unsigned r, int fd,
                        pid_t parent)
{
    char number[16];

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
        exec_elsewhere(cfg->rsh, host_name(j, r), fd);
    if (cfg->rank_main)
        _exit(cfg->rank_main(fd, r));
    snprintf(number, sizeof(number), "%d", fd);
    setenv("TRIB_HOST", host_name(j, r), 1);
    if (cfg->rd)
        setenv("TRIB_RUN", cfg->rd->path, 1);
    if (cfg->preload && preload_set(cfg->preload))
        fprintf(stderr, "trib-perf: cannot preload %s, expected a path without colons\n",
                cfg->preload);
    execl("/proc/self/exe", "trib-perf", "--rank-process", number, (char *)NULL);
    perror("trib-perf: cannot start a rank");
    _exit(1);
}

static int start_rank(struct job *j, const struct job_cfg *cfg, unsigned r)
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

static int catch_signals(struct job *j)
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

int job_launch(struct job **out, const struct job_cfg *cfg)
{
    struct job *j = calloc(1, sizeof(*j));

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
    for (unsigned r = 0; r < cfg->nranks; r++)
        j->rank[r].fd = -1;
    if (cfg->rd && process_monitor_start(&j->watch, cfg->rd, cfg->fab))
        set_cause(j, "no trib-switch runs in %s", cfg->rd->path);
    if (j->cause[0])
        return -ECANCELED;
    int rc = catch_signals(j);
    for (unsigned r = 0; !rc && r < cfg->nranks; r++)
        rc = start_rank(j, cfg, r);
    if (rc)
        set_cause(j, "cannot start ranks: %s", strerror(-rc));
    return rc;
}
