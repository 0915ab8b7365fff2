/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * There are three processes. The first process is the caller. It stays outside, with the pid and
 * the terminal that others know, forwards signals and keys, and ends as the program ends. The
 * second one is init of the PID namespace. It leads a session of its own, so that signals of
 * process groups and terminals do not cross; it makes the mounts and reaps orphans, and when it
 * ends, the kernel kills all others in the namespace. The third one becomes the program, in a
 * process group of its own: job control can stop that group, because its parent is in the same
 * session, but not the group of init.
 */
#include "host/sandbox/isolate.h"

#include "host/sandbox/isolated_view.h"
#include "host/sandbox/terminal.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- messages between the first process and init ---- */

enum tell { TELL_TERMINAL, TELL_STOPPED, TELL_KEYS, TELL_ENDED };

struct told {
    enum tell what;
    int value; /* TELL_ENDED: status of the program; TELL_STOPPED: the signal */
};

/* Sends a message of init. fd: a descriptor to pass along, or -1. 0 or -errno. */
static int isolate_tell(int sock, enum tell what, int value, int fd)
{
    union {
        char buf[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } ctl = {0};
    struct told t = {what, value};
    struct iovec iov = {&t, sizeof(t)};
    struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};

    if (fd >= 0) {
        mh.msg_control = ctl.buf;
        mh.msg_controllen = sizeof(ctl.buf);
        *CMSG_FIRSTHDR(&mh) = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&mh)), &fd, sizeof(fd));
    }
    return sendmsg(sock, &mh, MSG_NOSIGNAL) == sizeof(t) ? 0 : -errno;
}

static bool isolate_hear(int sock, struct told *t, int *fd)
{
    union {
        char buf[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } ctl;
    struct iovec iov = {t, sizeof(*t)};
    struct msghdr mh = {.msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = ctl.buf,
                        .msg_controllen = sizeof(ctl.buf)};
    ssize_t n = recvmsg(sock, &mh, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

    *fd = -1;
    if (n > 0 && CMSG_FIRSTHDR(&mh))
        memcpy(fd, CMSG_DATA(CMSG_FIRSTHDR(&mh)), sizeof(*fd));
    return n == sizeof(*t);
}

static void pass_on(sigset_t *set)
{
    static const int sig[] = {SIGTERM, SIGINT,   SIGHUP,  SIGQUIT, SIGUSR1, SIGUSR2,
                              SIGALRM, SIGWINCH, SIGTSTP, SIGCONT, SIGCHLD};

    sigemptyset(set);
    for (unsigned i = 0; i < sizeof(sig) / sizeof(sig[0]); i++)
        sigaddset(set, sig[i]);
}

/* ---- init ---- */

/* State that each process inherits from the one before. */
struct isolated {
    const struct rundir *rd;
    const struct fab_node *host;
    const char *lib;
    char **argv;
    pid_t outside;    /* pid of the first process */
    unsigned streams; /* bits of the standard streams that are the user's terminal */
    int out;          /* of terminal_open() */
    bool job;         /* a shell with job control started this process, not a script */
    sigset_t set, old;
    void (*on_child)(int); /* the caller's disposition of SIGCHLD */
};

/* Called when the program's process group has stopped: because it needs the keys, which it then
 * gets, or because the user wants to return to the shell. */
static void program_stopped(const struct isolated *w, pid_t child, int sig, int sock)
{
    if (w->streams && (sig == SIGTTIN || sig == SIGTTOU)) {
        terminal_set_group(w->streams, child);
        isolate_tell(sock, TELL_KEYS, 0, -1);
        kill(-child, SIGCONT);
    } else {
        isolate_tell(sock, TELL_STOPPED, sig, -1);
    }
}

/*
 * Waits for the program and reaps all other processes. The first process forwards its signals over
 * the socket; negative numbers are for the program's process group. Returns the program's status,
 * or -1 if the first process has ended.
 */
static int init_supervise(const struct isolated *w, pid_t child, int signals, int sock)
{
    struct pollfd p[2] = {{signals, POLLIN, 0}, {sock, POLLIN, 0}};
    struct signalfd_siginfo si;
    int status, sig;
    pid_t pid;

    for (;;) {
        while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
            if (pid == child && !WIFSTOPPED(status))
                return status;
            if (pid == child)
                program_stopped(w, child, WSTOPSIG(status), sock);
        }
        if (poll(p, 2, -1) < 0 && errno != EINTR)
            return -1;
        if (p[1].revents) {
            if (recv(sock, &sig, sizeof(sig), MSG_DONTWAIT) != sizeof(sig))
                return -1;
            kill(sig < 0 ? -child : child, sig < 0 ? -sig : sig);
        }
        while (read(signals, &si, sizeof(si)) == sizeof(si))
            if (si.ssi_signo ==
                SIGHUP) /* the terminal is gone, and the kernel tells only the session leader */
                kill(-child, SIGHUP);
    }
}

static void become_program(const struct isolated *w)
{
    int code;

    setpgid(0, 0);
    if (w->streams && terminal_has_keys(w->streams))
        terminal_set_group(w->streams, getpid());
    signal(SIGCHLD, w->on_child);
    sigprocmask(SIG_SETMASK, &w->old, NULL);
    execvp(w->argv[0], w->argv);
    code = errno == ENOENT ? 127 : 126; /* as shells do */
    fprintf(stderr, "trib: cannot run %s: %s\n", w->argv[0], strerror(errno));
    _exit(code);
}

static int isolate_refuse(const struct fab_node *host, const char *what, int rc)
{
    fprintf(stderr, "trib: cannot isolate %s: the machine refuses %s: %s", host->name, what,
            strerror(-rc));
    fputs(rc == -EPERM || rc == -ENOSPC || rc == -EACCES
              ? " (unprivileged user namespaces: sysctl user.max_user_namespaces, "
                "kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns; "
                "a container may forbid them)\n"
              : "\n",
          stderr);
    return 1;
}

/* Replaces the user's terminal, if there is one, by a pseudo-terminal, and refuses typing into it.
 */
static int leave_terminal(const struct isolated *w, int sock, const char **what)
{
    int master = -1, rc;

    *what = "a terminal of its own";
    if (w->streams) {
        master = terminal_make(w->streams);
        rc = master < 0 ? master : isolate_tell(sock, TELL_TERMINAL, 0, master);
        if (master >= 0)
            close(master);
        if (rc)
            return rc;
    }
    terminal_close_others();
    *what = "a filter of system calls";
    return terminal_refuse_typing();
}

/* Never returns. Reports the program's status on the socket. */
static void be_init(const struct isolated *w, int sock)
{
    int signals = signalfd(-1, &w->set, SFD_CLOEXEC | SFD_NONBLOCK), status = 1 << 8, rc;
    const char *what = "signals";
    pid_t child;

    rc = signals < 0 || setsid() < 0 ? -errno : 0;
    rc = rc ? rc : isolated_mounts(w->rd, w->host, w->lib, (unsigned)w->outside, &what);
    rc = rc ? rc : leave_terminal(w, sock, &what);
    if (rc) {
        isolate_refuse(w->host, what, rc);
    } else {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        fflush(NULL);
        child = fork();
        if (!child)
            become_program(w);
        if (child > 0)
            setpgid(child, child);
        if (child < 0)
            isolate_refuse(w->host, "a process", -errno);
        else
            status = init_supervise(w, child, signals, sock);
    }
    _exit(isolate_tell(sock, TELL_ENDED, status, -1) != 0);
}

/* ---- the first process ---- */

/*
 * Job control: stops this process group as the program has stopped, so that the user's shell sees
 * it. The group of a script has other processes in it: the whole group stops only if the user typed
 * the key, else only this process does.
 */
static void stop_job(const struct isolated *w, struct terminal *t)
{
    bool all = w->job || t->suspended;
    sigset_t one;

    terminal_pause(t);
    sigemptyset(&one);
    sigaddset(&one, SIGTSTP);
    kill(all ? 0 : getpid(), SIGTSTP);
    sigprocmask(SIG_UNBLOCK, &one, NULL); /* stops here until SIGCONT */
    sigprocmask(SIG_BLOCK, &one, NULL);
    t->suspended = false;
}

static void send_signal(int sock, int sig)
{
    (void)!send(sock, &sig, sizeof(sig), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void go_on(struct terminal *t, int sock)
{
    if (t->keys)
        terminal_give_keys(t);
    terminal_resize(t);
    send_signal(sock, -SIGCONT);
}

/* Forwards signals: those of the terminal to the program's process group, others to the program. */
static void pass_signals(int signals, struct terminal *t, int sock)
{
    struct signalfd_siginfo si;

    while (read(signals, &si, sizeof(si)) == sizeof(si)) {
        int sig = (int)si.ssi_signo;

        if (sig == SIGCONT)
            go_on(t, sock);
        else if (sig == SIGWINCH && t->master >= 0)
            terminal_resize(t);
        else if (sig != SIGCHLD)
            send_signal(sock, sig == SIGTSTP || si.ssi_code == SI_KERNEL ? -sig : sig);
    }
}

/* The keys stay with the script, which may ask for a password. */
static void say_no_keys(const struct isolated *w)
{
    static bool said;

    if (!said)
        fprintf(
            stderr,
            "trib: the program of %s asks for keys and gets none: it is part of a script, and its "
            "standard input is no terminal\n",
            w->host->name);
    said = true;
}

/* Handles init's messages. Returns the program's status once init has sent it, else -1. */
static int hear_init(const struct isolated *w, struct terminal *t, int sock)
{
    struct told m = {0};
    int fd;

    while (isolate_hear(sock, &m, &fd)) {
        switch (m.what) {
        case TELL_TERMINAL:
            terminal_begin(t, w->streams, fd, w->out);
            break;
        case TELL_KEYS:
            if (w->job || w->streams & 1)
                terminal_give_keys(t);
            else
                say_no_keys(w);
            break;
        case TELL_STOPPED:
            stop_job(w, t);
            go_on(t, sock);
            break;
        case TELL_ENDED:
            return m.value;
        }
    }
    return -1;
}

/* Serves the terminal and signals until init ends. Returns the program's status; -1: init was
 * killed. */
static int supervise(const struct isolated *w, pid_t init, int signals, int sock)
{
    struct terminal t = {.user = -1, .master = -1, .out = -1};
    int status = -1, ended, ms;

    for (;;) {
        struct pollfd p[4] = {{signals, POLLIN, 0}, {sock, POLLIN, 0}};

        if (waitpid(init, &ended, WNOHANG) != 0) /* it has ended, or was reaped before */
            break;
        ms = terminal_wants(&t, &p[2].events, &p[3].events);
        p[2].fd = p[2].events ? t.user : -1;
        p[3].fd = p[3].events ? t.master : -1; /* -1: poll() would report POLLHUP all the time */
        if (status >= 0)
            p[1].fd = -1;
        if (poll(p, 4, ms) < 0 && errno != EINTR)
            break;
        pass_signals(signals, &t, sock);
        if (p[1].revents)
            status = hear_init(w, &t, sock);
        if (t.master >= 0)
            terminal_copy(&t, p[2].revents, p[3].revents);
    }
    if (status < 0)
        status = hear_init(w, &t, sock);
    terminal_end(&t, signals);
    return status;
}

static int end_as(int status)
{
    struct rlimit none = {0, 0};
    sigset_t one;

    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    setrlimit(RLIMIT_CORE, &none); /* the program has dumped core already */
    signal(WTERMSIG(status), SIG_DFL);
    sigemptyset(&one);
    sigaddset(&one, WTERMSIG(status));
    sigprocmask(SIG_UNBLOCK, &one, NULL);
    raise(WTERMSIG(status));
    return 128 + WTERMSIG(status);
}

int isolate_run(const struct rundir *rd, const struct fab_node *host, const char *lib, char **argv)
{
    struct isolated w = {.rd = rd,
                         .host = host,
                         .lib = lib,
                         .argv = argv,
                         .outside = getpid(),
                         .streams = terminal_streams(),
                         .job = getpgid(getppid()) != getpgrp()};
    int sv[2], signals, status, rc;
    pid_t init;

    pass_on(&w.set);
    sigprocmask(SIG_BLOCK, &w.set, &w.old);
    w.on_child = signal(SIGCHLD, SIG_DFL); /* if it were ignored, waitpid() would report no child */
    signals = signalfd(-1, &w.set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv))
        return isolate_refuse(host, "descriptors", -errno);
    w.out = terminal_open(w.streams);
    rc = isolated_user_namespace(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC);
    if (rc)
        return isolate_refuse(host, "a user namespace", rc);
    fflush(NULL);
    init = fork();
    if (init < 0)
        return isolate_refuse(host, "a process", -errno);
    if (!init) {
        close(sv[0]);
        close(signals);
        be_init(&w, sv[1]);
    }
    close(sv[1]);
    status = supervise(&w, init, signals, sv[0]);
    if (status < 0) {
        fprintf(stderr, "trib: the namespace of %s was killed\n", host->name);
        return 1;
    }
    return end_as(status);
}
