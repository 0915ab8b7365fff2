/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/sandbox/terminal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FOREGROUND_MS 250 /* how often a background job checks whether it is in the foreground */
#define LAST_MS       200 /* wait for last output, as another process may have the terminal open */
#define BLOCKING      64  /* bytes per write to a terminal that may block */

unsigned terminal_streams(void)
{
    unsigned streams = 0;

    for (int fd = 0; fd < 3; fd++)
        streams |= isatty(fd) ? 1u << fd : 0;
    return streams;
}

bool terminal_has_keys(unsigned streams)
{
    return (streams & 3) == 3;
}

int terminal_stream(unsigned streams)
{
    return streams & 2 ? STDOUT_FILENO : streams & 4 ? STDERR_FILENO : STDIN_FILENO;
}

/* ---- inside ---- */

int terminal_mounts(void)
{
    if (mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
              "newinstance,ptmxmode=0666,mode=0600"))
        return errno == ENOENT ? 0 : -errno;
    return mount("/dev/pts/ptmx", "/dev/ptmx", NULL, MS_BIND, NULL) && errno != ENOENT ? -errno : 0;
}

/* Copies the user's settings. Without the keys, only the user's terminal processes output, not
 * both. */
static void copy_settings(int from, int to, bool keys)
{
    struct winsize size;
    struct termios t;

    if (!tcgetattr(from, &t)) {
        if (!keys)
            t.c_oflag &= ~(tcflag_t)OPOST;
        tcsetattr(to, TCSANOW, &t);
    }
    if (!ioctl(from, TIOCGWINSZ, &size))
        ioctl(to, TIOCSWINSZ, &size);
}

int terminal_make(unsigned streams)
{
    int master = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC), slave = -1, rc = 0;
    char name[64];

    if (master < 0 || grantpt(master) || unlockpt(master) || ptsname_r(master, name, sizeof(name)))
        rc = -errno;
    if (!rc)
        slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (!rc && (slave < 0 || ioctl(slave, TIOCSCTTY, 0)))
        rc = -errno;
    if (!rc)
        copy_settings(terminal_stream(streams), slave, terminal_has_keys(streams));
    for (int fd = 0; fd < 3 && !rc; fd++)
        if (streams & 1u << fd && dup2(slave, fd) < 0)
            rc = -errno;
    if (slave >= 0)
        close(slave);
    if (rc && master >= 0)
        close(master);
    return rc ? rc : master;
}

void terminal_set_group(unsigned streams, pid_t group)
{
    sigset_t one, old;

    sigemptyset(&one);
    sigaddset(&one, SIGTTOU);
    sigprocmask(SIG_BLOCK, &one, &old);
    tcsetpgrp(terminal_stream(streams), group);
    sigprocmask(SIG_SETMASK, &old, NULL);
}

void terminal_close_others(void)
{
    DIR *d = opendir("/proc/self/fd");
    struct dirent *e;

    while (d && (e = readdir(d))) {
        int fd = atoi(e->d_name);

        if (fd > STDERR_FILENO && isatty(fd))
            close(fd);
    }
    if (d)
        closedir(d);
}

/* The filter compares the lower 32 bits of ioctl's request, as the kernel does. */
#define LOW_REQUEST                                                                                \
    (offsetof(struct seccomp_data, args[1]) + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0))
#define IOCTL_32  54         /* ioctl's number on i386 and arm */
#define X32       0x40000000 /* bit in system call numbers of x32 */
#define IOCTL_X32 514
#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#define COMPAT AUDIT_ARCH_I386
#elif defined(__aarch64__)
#define NATIVE AUDIT_ARCH_AARCH64
#define COMPAT AUDIT_ARCH_ARM
#else
#error "expected x86-64 or arm64"
#endif

int terminal_refuse_typing(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, COMPAT, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IOCTL_32, 3, 6),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_ioctl, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, X32 | IOCTL_X32, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, LOW_REQUEST),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TIOCSTI, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TIOCLINUX, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    };
    struct sock_fprog filter = {sizeof(code) / sizeof(code[0]), code};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
        return -errno;
    return 0;
}

/* ---- outside ---- */

static bool in_foreground(const struct terminal *t)
{
    pid_t group = tcgetpgrp(t->user);

    return group == getpgrp() ||
           (group < 0 && errno == ENOTTY); /* not the controlling terminal: no job control */
}

int terminal_open(unsigned streams)
{
    char path[32];

    if (!streams)
        return -1;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", terminal_stream(streams));
    return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

void terminal_begin(struct terminal *t, unsigned streams, int master, int out)
{
    *t = (struct terminal){.user = terminal_stream(streams), .master = master};
    fcntl(master, F_SETFL, O_RDWR | O_NONBLOCK);
    t->out = out < 0 ? t->user : out;
    if (terminal_has_keys(streams))
        terminal_give_keys(t);
}

void terminal_give_keys(struct terminal *t)
{
    struct termios raw;

    if (t->master < 0)
        return;
    t->keys = true;
    if (!in_foreground(t) || (!t->raw && tcgetattr(t->user, &t->was)))
        return;
    raw = t->was;
    cfmakeraw(&raw);
    t->raw =
        !tcsetattr(t->user, TCSANOW, &raw); /* TCSADRAIN may wait for ever for output to drain */
}

void terminal_pause(struct terminal *t)
{
    if (t->raw && in_foreground(t))
        tcsetattr(t->user, TCSANOW, &t->was);
    t->raw = false;
}

void terminal_resize(const struct terminal *t)
{
    struct winsize size;

    if (t->master >= 0 && !ioctl(t->user, TIOCGWINSZ, &size))
        ioctl(t->master, TIOCSWINSZ, &size);
}

int terminal_wants(struct terminal *t, short *user, short *master)
{
    *user = *master = 0;
    if (t->master < 0)
        return -1;
    if (t->keys && !t->raw) /* the job was in the background: try again */
        terminal_give_keys(t);
    if (t->raw && !t->n)
        *user = POLLIN;
    *user = (short)(*user | (t->n_out ? POLLOUT : 0));
    *master = (short)((t->n_out ? 0 : POLLIN) | (t->n ? POLLOUT : 0));
    return t->keys && !t->raw ? FOREGROUND_MS : -1;
}

static void hang_up(struct terminal *t)
{
    close(t->master);
    t->master = -1;
}

static void read_keys(struct terminal *t)
{
    ssize_t n = read(t->user, t->typed, sizeof(t->typed));

    if (n > 0) {
        t->n = (size_t)n;
        t->suspended = t->typed[n - 1] == (char)t->was.c_cc[VSUSP];
    } else if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
        return;
    } else if (!in_foreground(t) && tcgetpgrp(t->user) > 0) {
        t->raw = false; /* the user's shell has the terminal, and its own settings */
    } else {
        hang_up(t); /* the user's terminal is gone */
    }
}

static void write_keys(struct terminal *t)
{
    ssize_t n = write(t->master, t->typed, t->n);

    if (n > 0) {
        t->n -= (size_t)n;
        memmove(t->typed, t->typed + n, t->n);
    }
}

/* Writes as much as the terminal accepts. Call it if the terminal is writable. */
static void write_output(struct terminal *t)
{
    size_t left = t->n_out - t->shown;
    ssize_t n;

    if (t->out == t->user && left > BLOCKING)
        left = BLOCKING;
    n = write(t->out, t->output + t->shown, left);
    if (n < 0 && errno != EINTR && errno != EAGAIN)
        n = (ssize_t)left; /* the terminal is gone: drop it */
    t->shown += n > 0 ? (size_t)n : 0;
    if (t->shown == t->n_out)
        t->shown = t->n_out = 0;
}

/* Reads the program's next output, once all of the last has been shown. False: there is none. */
static bool read_output(struct terminal *t)
{
    ssize_t n = read(t->master, t->output, sizeof(t->output));

    t->n_out = n > 0 ? (size_t)n : 0;
    return n > 0;
}

void terminal_copy(struct terminal *t, short user, short master)
{
    if (user & ~POLLOUT)
        read_keys(t);
    if (t->master >= 0 && t->n && master & POLLOUT)
        write_keys(t);
    if (t->n_out && user & POLLOUT)
        write_output(t);
    if (t->master >= 0 && master & POLLIN && !t->n_out)
        read_output(t);
}

static bool is_ended(int signals)
{
    struct signalfd_siginfo si;
    bool ends = false;

    while (read(signals, &si, sizeof(si)) == sizeof(si))
        ends |= si.ssi_signo == SIGHUP || si.ssi_signo == SIGINT || si.ssi_signo == SIGQUIT ||
                si.ssi_signo == SIGTERM;
    return ends;
}

void terminal_end(struct terminal *t, int signals)
{
    struct pollfd p[2] = {{t->user, POLLOUT, 0}, {signals, POLLIN, 0}};
    struct pollfd more = {t->master, POLLIN, 0};

    while (t->n_out || (t->master >= 0 && poll(&more, 1, LAST_MS) > 0 && read_output(t))) {
        if (poll(p, 2, -1) < 0 && errno != EINTR)
            break;
        if (p[1].revents && is_ended(signals))
            break;
        if (p[0].revents)
            write_output(t);
    }
    terminal_pause(t);
    if (t->master >= 0)
        hang_up(t);
    if (t->out >= 0 && t->out != t->user)
        close(t->out);
}
