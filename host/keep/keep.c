/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two processes start a fabric. The first one belongs to the command that wants the fabric: it
 * waits, and ends with its parent, however that ends. The second one, the keeper, has a session of
 * its own. It is the parent of the trib-switch processes and so the only one that sees how each of
 * them ends (proc/<name>.ended). It holds the run directory's lock (claim.c) for as long as it
 * lives.
 *
 * A socket connects the keeper to the first process until all processes are ready. If it closes
 * before, the keeper undoes the start; if the keeper was killed, the first process does. Later, a
 * fabric that lives with a process (trib perf) is stopped when a pidfd of that process reports its
 * end; its switches also get a signal when the keeper dies. A fabric that stays up outlives every
 * other process, the keeper included.
 */
#include "system/own_clear.h"
#include "system/own_path.h"
#include "host/keep/claim.h"
#include "host/keep/keep.h"

#include "base/assert.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define POLL_MS  50
#define LOG_ROOM 4096
#define READY_MS 60000        /* time for all processes to serve their ports, on a busy machine */
#define END_MS   5000         /* from SIGTERM to SIGKILL */
#define UNDO_MS  (3 * END_MS) /* time to undo a start */
#define SILENT_MS                                                                                  \
    (READY_MS + UNDO_MS) /* time for the keeper to report that all is up, or why not */

/* Messages of the keeper on the socket. The first process answers UP with a byte. */
enum { CLAIMED = 'c', UP = 'u' };

struct kept_child {
    const char *name;
    pid_t pid; /* 0: has ended */
};

struct keeper {
    const struct keep_cfg *cfg;
    struct claim claim;
    int first;   /* socket to the first process; -1: the fabric is up */
    int partner; /* pidfd of the process that the fabric lives with; -1: none, or not up yet */
    int signals;
    bool stopped; /* a signal asked the keeper to end the fabric */
    bool gone;    /* the first process, or the partner, has ended */
    struct kept_child *child;
    unsigned running; /* children whose pid is not 0 */
    uint64_t oom;     /* oom_kills() when it was last read */
};

/* ---- its processes ---- */

static void become_switch(const struct keeper *k, const struct kept_child *ch, pid_t keeper)
{
    const struct keep_cfg *c = k->cfg;
    char **argv = calloc(c->n_opts + 8, sizeof(*argv)), log[KEEP_NAME + 16];
    sigset_t none;
    unsigned n = 0;
    int fd;

    setsid();
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (c->lives_with)
        prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (!argv || getppid() != keeper)
        _exit(1);
    snprintf(log, sizeof(log), "proc/%s.log", ch->name);
    /* start_switches() has just created proc/, so the file cannot exist yet. */
    fd = own_file_open(k->claim.dir, log, O_CREAT | O_EXCL | O_WRONLY | O_APPEND);
    if (fd < 0) {
        fprintf(stderr, "trib: cannot make %s/%s: %s\n", c->dir, log, strerror(-fd));
        _exit(1);
    }
    /* Reserve room for the first messages: one may say that the file system is full. */
    if (fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, LOG_ROOM) && (errno == ENOSPC || errno == EDQUOT)) {
        fprintf(stderr,
                "trib: cannot write %s/%s: %s; XDG_RUNTIME_DIR or TRIB_RUN names another place\n",
                c->dir, log, strerror(errno));
        _exit(1);
    }
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
    argv[n++] = (char *)(uintptr_t)c->program;
    argv[n++] = (char *)(uintptr_t)c->conf;
    argv[n++] = (char *)(uintptr_t) "--proc";
    argv[n++] = (char *)(uintptr_t)ch->name;
    argv[n++] = (char *)(uintptr_t) "--run";
    argv[n++] = (char *)(uintptr_t)c->dir;
    for (unsigned i = 0; i < c->n_opts; i++)
        argv[n++] = c->opts[i];
    T_ASSERT(n < c->n_opts + 8, "there are more arguments than room for them");
    execv(c->program, argv);
    fprintf(stderr, "cannot run %s: %s\n", c->program, strerror(errno));
    _exit(127);
}

static int start_switches(struct keeper *k)
{
    const struct keep_cfg *c = k->cfg;
    pid_t me = getpid();

    if (own_clear(k->claim.dir, KEEP_FILE) || mkdirat(k->claim.dir, "proc", 0700))
        return say("cannot clear the run directory %s: %s", c->dir, strerror(errno));
    for (unsigned i = 0; i < c->n_opts; i++)
        if (!strcmp(c->opts[i], "--dilation"))
            dir_write(k->claim.dir, "dilation.fixed",
                      ""); /* the user chose it, so trib-perf must not change it */
    k->oom = oom_kills();
    for (unsigned i = 0; i < c->n_procs; i++) {
        k->child[i].name = c->procs[i];
        fflush(NULL);
        pid_t pid = fork();
        if (pid < 0)
            return say("cannot start trib-switch %s: %s", c->procs[i], strerror(errno));
        if (!pid)
            become_switch(k, &k->child[i], me);
        T_ASSERT(!k->child[i].pid, "a process is started twice");
        k->child[i].pid = pid;
        k->running++;
    }
    return 0;
}

/* ---- events ---- */

/* Waits up to ms for a signal, or for the end of the first process or of the partner. */
static void wait_event(struct keeper *k, int ms)
{
    struct pollfd p[3] = {{k->signals, POLLIN, 0}, {k->first, POLLIN, 0}, {k->partner, POLLIN, 0}};
    struct signalfd_siginfo si;

    if (poll(p, 3, ms) <= 0)
        return;
    while (read(k->signals, &si, sizeof(si)) == sizeof(si))
        k->stopped |= si.ssi_signo != SIGCHLD;
    k->gone |= (k->first >= 0 && p[1].revents) || (k->partner >= 0 && p[2].revents);
}

/* Records in the directory how a child ended, for trib status. Returns the child, or NULL. */
static const struct kept_child *child_reap(struct keeper *k, char *how, size_t size)
{
    char name[KEEP_NAME + 16], text[256];
    int status;
    pid_t pid = waitpid(-1, &status, WNOHANG);
    uint64_t oom;

    if (pid <= 0)
        return NULL;
    wait_event(k, 0); /* who tells a child to end tells its keeper before */
    oom = oom_kills();
    oom_describe(how, size, status, oom > k->oom);
    k->oom = oom;
    for (unsigned i = 0; i < k->cfg->n_procs; i++) {
        struct kept_child *ch = &k->child[i];

        if (ch->pid != pid)
            continue;
        T_ASSERT(k->running, "a process has ended that was not counted");
        ch->pid = 0;
        k->running--;
        if (!k->stopped && !k->gone && status) {
            snprintf(name, sizeof(name), "proc/%s.ended", ch->name);
            snprintf(text, sizeof(text), "%s\n", how);
            dir_write(k->claim.dir, name, text);
        }
        if (!k->stopped && !k->gone)
            keep_lose_ports(k->claim.dir, ch->name);
        return ch;
    }
    return NULL;
}

static int failed_start(const struct keeper *k, const struct kept_child *ch, const char *how)
{
    char log[KEEP_NAME + 16];

    snprintf(log, sizeof(log), "proc/%s.log", ch->name);
    fprintf(stderr, "trib: trib-switch %s did not come up: it %s%s; it said:\n", ch->name,
            strncmp(how, "killed", 6) ? "" : "was ", how);
    if (!dir_tail(k->claim.dir, log))
        fputs("(nothing)\n", stderr);
    return 1;
}

static bool is_ready(const struct keeper *k, const char *name)
{
    char path[KEEP_NAME + 16];

    snprintf(path, sizeof(path), "proc/%s.ready", name);
    return !faccessat(k->claim.dir, path, F_OK, AT_SYMLINK_NOFOLLOW);
}

/* Waits until every process serves its ports. */
static int wait_ready(struct keeper *k)
{
    int64_t waited = 0;
    char how[128];

    for (unsigned i = 0; i < k->cfg->n_procs;) {
        const struct kept_child *ch;

        if (is_ready(k, k->child[i].name)) {
            i++;
            continue;
        }
        wait_event(k, POLL_MS);
        waited += POLL_MS;
        ch = child_reap(k, how, sizeof(how));
        if (k->stopped)
            return say("the fabric %s was taken down while it was being started",
                       fabric_name(k->cfg->dir));
        if (k->gone)
            return 1;
        if (ch)
            return failed_start(k, ch, how);
        if (waited > READY_MS)
            return failed_start(k, &k->child[i], "was not ready within a minute");
    }
    return 0;
}

/* Ends the children by their pids: one that was just forked has no file in the run directory yet.
 */
static void end_children(struct keeper *k)
{
    static const int sig[] = {SIGTERM, SIGKILL};
    char how[128];

    k->stopped = true;
    for (unsigned s = 0; s < 2 && k->running; s++) {
        for (unsigned i = 0; i < k->cfg->n_procs; i++)
            if (k->child[i].pid)
                kill(k->child[i].pid, sig[s]);
        for (int ms = 0; k->running && ms < END_MS; ms += POLL_MS) {
            struct pollfd p = {k->signals, POLLIN, 0};
            struct signalfd_siginfo si;

            poll(&p, 1, POLL_MS);
            while (read(k->signals, &si, sizeof(si)) == sizeof(si))
                ;
            while (child_reap(k, how, sizeof(how)))
                ;
        }
    }
}

/* Ends all processes and removes the run directory. If another command has claimed that meanwhile,
 * its processes and files stay. */
static int undo(struct keeper *k)
{
    int rc;

    end_children(k);
    if (claim_is_lost(&k->claim))
        return 1;
    procs_stop(k->cfg->dir, false);
    rc = dir_remove(k->cfg->dir, k->claim.dir);
    if (rc)
        say("cannot remove %s: %s", k->cfg->dir, strerror(-rc));
    return 1;
}

static void detach(int fd_null)
{
    for (int fd = 0; fd < 3; fd++)
        dup2(fd_null, fd);
}

/* Supervises the fabric while it is up. Returns the exit code. */
static int keeper_keep(struct keeper *k)
{
    bool lives_with = k->cfg->lives_with;
    char how[128];

    T_ASSERT(k->first < 0 && lives_with == (k->partner >= 0), "a fabric is up and has its starter");
    for (;;) {
        while (child_reap(k, how, sizeof(how)))
            ;
        if (k->stopped || k->gone || (!k->running && !lives_with))
            break;
        wait_event(k, -1);
    }
    if (k->stopped || k->gone)
        return undo(k);
    (void)own_unlink(k->claim.dir, KEEP_FILE); /* the rest is for trib status and trib down */
    return 0;
}

static int keeper_main(struct keeper *k)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC), partner = k->partner;
    char claimed = CLAIMED, byte = UP;
    int rc;

    if (null < 0)
        return say("cannot open /dev/null: %s", strerror(errno));
    setsid();
    dup2(null, STDIN_FILENO);
    k->partner = -1; /* until the fabric is up, the first process is its owner */
    rc = claim_take(&k->claim);
    if (rc) {
        claim_abandon(&k->claim);
        return rc;
    }
    send(k->first, &claimed, 1, MSG_NOSIGNAL);
    rc = start_switches(k);
    rc = rc ? rc : wait_ready(k);
    if (!rc && (send(k->first, &byte, 1, MSG_NOSIGNAL) != 1 || recv(k->first, &byte, 1, 0) != 1))
        rc = 1; /* the first process has ended */
    if (rc)
        return undo(k);
    claim_mark_up(&k->claim);
    shutdown(k->first, SHUT_RDWR);
    close(k->first);
    k->first = -1;
    k->partner = partner;
    detach(null);
    return keeper_keep(k);
}

/* ---- the first process ---- */

struct starter {
    pid_t keeper;
    int sock, signals;
    bool claimed; /* the keeper has the run directory */
    bool up;      /* the keeper has been told that its fabric may stay */
    bool shut;    /* the keeper has been told to undo the start */
    int rc;
};

/* Makes the keeper undo the start, and continues it in case it is stopped (SIGSTOP). */
static void tell_to_undo(struct starter *s, int rc)
{
    T_ASSERT(!s->shut && rc, "a start is undone twice, or without a reason");
    shutdown(s->sock, SHUT_WR);
    kill(s->keeper, SIGCONT);
    s->shut = true;
    s->rc = rc;
}

/* Reads a message of the keeper. false: the keeper has closed the socket. */
static bool starter_hear(struct starter *s)
{
    char byte;

    if (recv(s->sock, &byte, 1, 0) != 1)
        return false;
    s->claimed = true;
    if (byte == UP && !s->shut && send(s->sock, &byte, 1, MSG_NOSIGNAL) == 1) {
        s->up = true; /* the keeper closes its end */
        s->rc = 0;
    }
    return true;
}

/*
 * Waits until the keeper reports that the fabric is up; its end before that is a failure. A signal
 * to this process makes the keeper undo the start, and so does its silence for SILENT_MS; a keeper
 * that then does not end is killed.
 */
static void wait_for_keeper(struct starter *s)
{
    struct pollfd p[2] = {{s->signals, POLLIN, 0}, {s->sock, POLLIN, 0}};
    struct signalfd_siginfo si;
    int n;

    for (;;) {
        n = poll(p, 2, s->shut ? UNDO_MS : SILENT_MS);
        if (n == 0 && s->shut) {
            kill(s->keeper, SIGKILL); /* undo_killed() ends its switch processes */
            return;
        }
        if (n == 0) {
            say("process %d, which starts the fabric, has said nothing for %d s (is it stopped?); "
                "the start is undone",
                (int)s->keeper, SILENT_MS / 1000);
            tell_to_undo(s, 1);
        }
        if (n <= 0)
            continue;
        if (p[0].revents && read(s->signals, &si, sizeof(si)) == sizeof(si) && !s->shut && !s->up)
            tell_to_undo(s, si.ssi_signo == SIGINT ? 130 : 143);
        if (p[1].revents && !starter_hear(s))
            return;
    }
}

/* If the keeper was killed, ends the processes and removes the run directory that it left behind.
 */
static void undo_killed(const struct starter *s, const char *dir)
{
    char how[128];
    int status, rc;

    if (waitpid(s->keeper, &status, 0) != s->keeper || !WIFSIGNALED(status))
        return;
    oom_describe(how, sizeof(how), status, false);
    say("process %d, which started the fabric %s, was %s; the start is undone", (int)s->keeper,
        fabric_name(dir), how);
    rc = claim_undo(dir, s->claimed);
    if (rc)
        say("cannot remove %s: %s", dir, strerror(-rc));
}

int keep_start(const struct keep_cfg *cfg)
{
    struct keeper k = {.cfg = cfg, .claim = {cfg->dir, -1, -1}, .partner = -1};
    struct starter s = {.rc = 1};
    sigset_t set;
    int sv[2];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != cfg->with)
        return 1;
    closefrom(3);
    signal(SIGCHLD, SIG_DFL); /* if the caller left it ignored, waitpid() would report no child */
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    if (cfg->lives_with)
        k.partner = (int)syscall(SYS_pidfd_open, cfg->with, 0);
    /* A signalfd gives each process its own signals. */
    k.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    sigdelset(&set, SIGCHLD);
    s.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    k.child = calloc(cfg->n_procs, sizeof(*k.child));
    if (!k.child || k.signals < 0 || s.signals < 0 || (cfg->lives_with && k.partner < 0) ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv))
        return say("cannot start a fabric: %s", strerror(errno));
    fcntl(k.partner, F_SETFD, FD_CLOEXEC);
    fflush(NULL);
    s.keeper = fork();
    if (s.keeper < 0)
        return say("cannot start a fabric: %s", strerror(errno));
    if (!s.keeper) {
        close(sv[0]);
        close(s.signals);
        k.first = sv[1];
        _exit(keeper_main(&k));
    }
    close(sv[1]);
    close(k.signals);
    s.sock = sv[0];
    wait_for_keeper(&s);
    if (!s.up)
        undo_killed(&s, cfg->dir);
    return s.rc;
}
