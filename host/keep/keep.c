/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fabric is started by two processes. The first one belongs to whoever asked: it waits, and ends
 * with its parent, however that ends. The second one, the keeper, has a session of its own, is the
 * parent of the trib-switch processes, and sees how each of them ends (proc/<name>.ended), which
 * nobody else can. It holds the lock of the run directory's file `keeper` for as long as it lives:
 * so two cannot start one fabric, and who comes second is told by whom.
 *
 * Until all processes are ready the keeper has a socket to the first process; its end, for whatever
 * reason, takes everything back. Later a fabric that lives with somebody (trib perf) goes when a
 * pidfd of that process says that it has ended; its processes also get a signal when the keeper
 * dies. A fabric that stays up outlives everybody, the keeper included.
 */
#include "host/keep/keep.h"

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
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LOOK_MS   50
#define READY_MS  60000 /* until all processes serve their ports, on a busy machine */
#define END_MS    5000  /* that they have to end by themselves */
#define TRIES     50    /* to lock a directory that is being removed */
#define RETRY_US  20000
#define UP_WORD   "up"
#define MAX_PROCS 4096

struct child {
    const char *name;
    pid_t pid; /* 0: has ended */
};

struct keeper {
    const struct keep_cfg *cfg;
    int dir, lock;    /* the run directory; its keeper file */
    int asked, alive; /* socket to the first process; pidfd of whom it lives with */
    int signals;
    bool told_to_end, gone; /* by a signal; the one that asked, or lives with it */
    struct child *child;
    unsigned running;
    uint64_t oom;
};

static const char *fabric_name(const struct keep_cfg *c)
{
    const char *slash = strrchr(c->dir, '/');

    return slash && slash[1] ? slash + 1 : c->dir;
}

static int say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static int say(const char *fmt, ...)
{
    va_list ap;

    fputs("trib: ", stderr);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    return 1;
}

/* ---- taking the directory ---- */

/* -EAGAIN: its processes have ended, and so is its keeper about to. */
static int say_taken(const struct keeper *k, pid_t holder)
{
    const struct keep_cfg *c = k->cfg;
    char state[16] = "";
    struct procs p;
    bool none;

    if (pread(k->lock, state, sizeof(state) - 1, 0) < 0)
        state[0] = 0;
    if (!strncmp(state, UP_WORD, sizeof(UP_WORD) - 1)) {
        if (procs_find(&p, c->dir, false))
            return say("out of memory");
        none = !p.n;
        procs_free(&p);
        if (none)
            return -EAGAIN;
        return say("the fabric %s is up already (process %d keeps it, run directory %s); trib down "
                   "stops it",
                   fabric_name(c), (int)holder, c->dir);
    }
    return say("the fabric %s is being started by another command (process %d, run directory %s)",
               fabric_name(c), (int)holder, c->dir);
}

/* 0: ours; -EAGAIN: the directory went away meanwhile; 1: said why not. */
static int lock_dir(struct keeper *k)
{
    const struct keep_cfg *c = k->cfg;
    struct flock lk = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char path[KEEP_PATH];
    struct stat st;
    int rc = dir_make(c->dir);

    if (rc)
        return say(
            "cannot make the run directory %s: %s; XDG_RUNTIME_DIR or TRIB_RUN names another "
            "place",
            c->dir, strerror(-rc));
    k->dir = open(c->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (k->dir < 0 && errno == ENOENT)
        return -EAGAIN;
    if (k->dir < 0 || fstat(k->dir, &st))
        return say("cannot open the run directory %s: %s", c->dir, strerror(errno));
    if (st.st_uid != geteuid())
        return say(
            "the run directory %s belongs to user %u, expected one of user %u; TRIB_RUN names "
            "another place",
            c->dir, (unsigned)st.st_uid, (unsigned)geteuid());
    if (dir_kind(k->dir) == DIR_FOREIGN)
        return say("found files in %s that are no fabric's, expected TRIB_RUN to name an empty or "
                   "new directory",
                   c->dir);
    k->lock = openat(k->dir, KEEP_FILE, O_CREAT | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (k->lock < 0)
        return errno == ENOENT ? -EAGAIN
                               : say("cannot make %s/" KEEP_FILE
                                     ": %s; XDG_RUNTIME_DIR or TRIB_RUN names another place",
                                     c->dir, strerror(errno));
    if (fcntl(k->lock, F_SETLK, &lk)) {
        rc = errno;
        lk.l_type = F_WRLCK;
        if (rc != EACCES && rc != EAGAIN)
            return say("cannot lock %s/" KEEP_FILE ": %s", c->dir, strerror(rc));
        if (fcntl(k->lock, F_GETLK, &lk) || lk.l_type == F_UNLCK)
            return -EAGAIN;
        return say_taken(k, lk.l_pid);
    }
    snprintf(path, sizeof(path), "%s/" KEEP_FILE, c->dir);
    return dir_is(path, k->lock) ? 0 : -EAGAIN;
}

static void let_go(struct keeper *k)
{
    if (k->lock >= 0)
        close(k->lock);
    if (k->dir >= 0)
        close(k->dir);
    k->lock = k->dir = -1;
}

static int take_dir(struct keeper *k)
{
    struct procs p;
    int rc = -EAGAIN;

    for (unsigned i = 0; i < TRIES && rc == -EAGAIN; i++) {
        if (i)
            usleep(RETRY_US);
        let_go(k);
        rc = lock_dir(k);
    }
    if (rc == -EAGAIN)
        return say("the run directory %s is being removed by another command", k->cfg->dir);
    if (rc)
        return rc;
    /* Processes may live without a keeper. */
    if (procs_find(&p, k->cfg->dir, false))
        return say("out of memory");
    rc = p.n ? say("the fabric %s is up already (process %d, run directory %s); trib down stops it",
                   fabric_name(k->cfg), (int)p.at[0].pid, k->cfg->dir)
             : 0;
    procs_free(&p);
    return rc;
}

/* ---- its processes ---- */

static void become_switch(const struct keeper *k, const struct child *ch, pid_t keeper)
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
    fd = openat(k->dir, log, O_CREAT | O_TRUNC | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0) {
        fprintf(stderr, "trib: cannot make %s/%s: %s\n", c->dir, log, strerror(errno));
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
    execv(c->program, argv);
    fprintf(stderr, "cannot run %s: %s\n", c->program, strerror(errno));
    _exit(127);
}

static int start_switches(struct keeper *k)
{
    const struct keep_cfg *c = k->cfg;
    pid_t me = getpid();

    if (dir_clear(k->dir, KEEP_FILE) || mkdirat(k->dir, "proc", 0700))
        return say("cannot clear the run directory %s: %s", c->dir, strerror(errno));
    if (c->n_opts)
        dir_write(k->dir, "dilation.fixed", ""); /* told once: trib-perf leaves it as it is */
    k->oom = oom_kills();
    for (unsigned i = 0; i < c->n_procs; i++) {
        k->child[i].name = c->procs[i];
        fflush(NULL);
        pid_t pid = fork();
        if (pid < 0)
            return say("cannot start trib-switch %s: %s", c->procs[i], strerror(errno));
        if (!pid)
            become_switch(k, &k->child[i], me);
        k->child[i].pid = pid;
        k->running++;
    }
    return 0;
}

/* ---- what can happen ---- */

/* How it ended stays in the directory, for trib status. Returns the child, or NULL. */
static const struct child *reap(struct keeper *k, char *how, size_t size)
{
    char name[KEEP_NAME + 16], text[256];
    int status;
    pid_t pid = waitpid(-1, &status, WNOHANG);
    uint64_t oom;

    if (pid <= 0)
        return NULL;
    oom = oom_kills();
    oom_describe(how, size, status, oom > k->oom);
    k->oom = oom;
    for (unsigned i = 0; i < k->cfg->n_procs; i++) {
        struct child *ch = &k->child[i];

        if (ch->pid != pid)
            continue;
        ch->pid = 0;
        k->running--;
        if (!k->told_to_end && !k->gone && status) {
            snprintf(name, sizeof(name), "proc/%s.ended", ch->name);
            snprintf(text, sizeof(text), "%s\n", how);
            dir_write(k->dir, name, text);
        }
        return ch;
    }
    return NULL;
}

/* Waits up to ms for a signal, or the end of who asked or lives with us. */
static void look(struct keeper *k, int ms)
{
    struct pollfd p[3] = {{k->signals, POLLIN, 0}, {k->asked, POLLIN, 0}, {k->alive, POLLIN, 0}};
    struct signalfd_siginfo si;

    if (poll(p, 3, ms) <= 0)
        return;
    while (read(k->signals, &si, sizeof(si)) == sizeof(si))
        k->told_to_end |= si.ssi_signo != SIGCHLD;
    k->gone |= (k->asked >= 0 && p[1].revents) || (k->alive >= 0 && p[2].revents);
}

static int failed_start(const struct keeper *k, const struct child *ch, const char *how)
{
    char log[KEEP_NAME + 16];

    snprintf(log, sizeof(log), "proc/%s.log", ch->name);
    fprintf(stderr, "trib: trib-switch %s did not come up: it %s%s; it said:\n", ch->name,
            strncmp(how, "killed", 6) ? "" : "was ", how);
    if (!dir_tail(k->dir, log))
        fputs("(nothing)\n", stderr);
    return 1;
}

static bool is_ready(const struct keeper *k, const char *name)
{
    char path[KEEP_NAME + 16];

    snprintf(path, sizeof(path), "proc/%s.ready", name);
    return !faccessat(k->dir, path, F_OK, 0);
}

/* Until every process serves its ports. */
static int wait_ready(struct keeper *k)
{
    int64_t waited = 0;
    char how[128];

    for (unsigned i = 0; i < k->cfg->n_procs;) {
        const struct child *ch;

        if (is_ready(k, k->child[i].name)) {
            i++;
            continue;
        }
        look(k, LOOK_MS);
        waited += LOOK_MS;
        if (k->told_to_end)
            return say("the fabric %s was taken down while it was being started",
                       fabric_name(k->cfg));
        if (k->gone)
            return 1;
        while ((ch = reap(k, how, sizeof(how))))
            return failed_start(k, ch, how);
        if (waited > READY_MS)
            return failed_start(k, &k->child[i], "was not ready within a minute");
    }
    return 0;
}

/* One that has only just been forked has no name yet: children are signalled as such. */
static void end_children(struct keeper *k)
{
    static const int sig[] = {SIGTERM, SIGKILL};
    char how[128];

    k->told_to_end = true;
    for (unsigned s = 0; s < 2 && k->running; s++) {
        for (unsigned i = 0; i < k->cfg->n_procs; i++)
            if (k->child[i].pid)
                kill(k->child[i].pid, sig[s]);
        for (int ms = 0; k->running && ms < END_MS; ms += LOOK_MS) {
            struct pollfd p = {k->signals, POLLIN, 0};
            struct signalfd_siginfo si;

            poll(&p, 1, LOOK_MS);
            while (read(k->signals, &si, sizeof(si)) == sizeof(si))
                ;
            while (reap(k, how, sizeof(how)))
                ;
        }
    }
}

/* Everything is taken back. */
static int undo(struct keeper *k)
{
    int rc;

    end_children(k);
    procs_stop(k->cfg->dir, false);
    rc = dir_remove(k->cfg->dir, k->dir);
    if (rc)
        say("cannot remove %s: %s", k->cfg->dir, strerror(-rc));
    return 1;
}

/* A directory that was made for nothing. */
static void leave_untaken(struct keeper *k)
{
    if (k->dir >= 0 && dir_kind(k->dir) == DIR_EMPTY && dir_is(k->cfg->dir, k->dir))
        dir_drop(k->cfg->dir);
    let_go(k);
}

static void detach(int fd_null)
{
    for (int fd = 0; fd < 3; fd++)
        dup2(fd_null, fd);
}

/* The keeper's life once everything is up. */
static int keep(struct keeper *k)
{
    bool lives_with = k->cfg->lives_with;
    char how[128];

    for (;;) {
        while (reap(k, how, sizeof(how)))
            ;
        if (k->told_to_end || k->gone || (!k->running && !lives_with))
            break;
        look(k, -1);
    }
    if (k->told_to_end || k->gone)
        return undo(k);
    unlinkat(k->dir, KEEP_FILE, 0); /* the rest is for trib status and trib down */
    return 0;
}

static int keeper_main(struct keeper *k)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC), alive = k->alive;
    char byte = 1;
    int rc;

    setsid();
    dup2(null, STDIN_FILENO);
    k->alive = -1; /* until all is up the first process speaks for it */
    rc = take_dir(k);
    if (rc) {
        leave_untaken(k);
        return rc;
    }
    rc = start_switches(k);
    rc = rc ? rc : wait_ready(k);
    if (!rc && (send(k->asked, &byte, 1, MSG_NOSIGNAL) != 1 || recv(k->asked, &byte, 1, 0) != 1))
        rc = 1; /* nobody is there any more */
    if (rc)
        return undo(k);
    if (pwrite(k->lock, UP_WORD "\n", sizeof(UP_WORD), 0) < 0)
        say("cannot write %s/" KEEP_FILE ": %s", k->cfg->dir, strerror(errno));
    shutdown(k->asked, SHUT_RDWR);
    close(k->asked);
    k->asked = -1;
    k->alive = alive;
    detach(null);
    return keep(k);
}

/* ---- the first process ---- */

/* Until the keeper says that all is up. Its end without that word is a failure; ours ends it. */
static int wait_for_keeper(int sock, int signals)
{
    struct pollfd p[2] = {{signals, POLLIN, 0}, {sock, POLLIN, 0}};
    bool shut = false;
    char byte;
    int rc = 1;

    for (;;) {
        if (poll(p, 2, -1) < 0)
            continue;
        if (p[0].revents) {
            struct signalfd_siginfo si;

            if (read(signals, &si, sizeof(si)) == sizeof(si) && !shut) {
                shutdown(sock, SHUT_WR); /* and wait until it has taken all back */
                shut = true;
                rc = si.ssi_signo == SIGINT ? 130 : 143;
            }
        }
        if (p[1].revents) {
            if (recv(sock, &byte, 1, 0) != 1)
                return rc;
            if (!shut && send(sock, &byte, 1, MSG_NOSIGNAL) == 1)
                rc = 0; /* it closes its end */
        }
    }
}

int keep_start(const struct keep_cfg *cfg)
{
    struct keeper k = {.cfg = cfg, .dir = -1, .lock = -1, .alive = -1};
    sigset_t set;
    int sv[2];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != cfg->with)
        return 1;
    closefrom(3);
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    if (cfg->lives_with)
        k.alive = (int)syscall(SYS_pidfd_open, cfg->with, 0);
    k.child = calloc(cfg->n_procs, sizeof(*k.child));
    if (!k.child || (cfg->lives_with && k.alive < 0) ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv))
        return say("cannot start a fabric: %s", strerror(errno));
    fcntl(k.alive, F_SETFD, FD_CLOEXEC);
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0)
        return say("cannot start a fabric: %s", strerror(errno));
    if (!pid) {
        close(sv[0]);
        k.asked = sv[1];
        k.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        _exit(k.signals < 0 ? 1 : keeper_main(&k));
    }
    close(sv[1]);
    sigdelset(&set, SIGCHLD);
    return wait_for_keeper(sv[0], signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}
