/* SPDX-License-Identifier: BSD-3-Clause */
/* Two pairs of pseudo-terminals in a child process that leads a session: the user's and the program's. */
#ifndef TESTS_SANDBOX_TWO_TERMINALS_H
#define TESTS_SANDBOX_TWO_TERMINALS_H

#include "host/sandbox/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* A child leads sessions, where no signal of its parent's group reaches it. */
static inline void end_with_parent(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* A process group beside this one, which waits until it is killed. */
static inline pid_t start_group(void)
{
    pid_t other = fork();

    if (!other) {
        end_with_parent();
        setpgid(0, 0);
        pause();
        _exit(0);
    }
    setpgid(other, other);
    return other;
}

static inline bool end_group(pid_t other)
{
    kill(other, SIGKILL);
    return waitpid(other, NULL, 0) == other;
}

/* A session leader with a pair of terminals, the streams of `streams` at the slave; f's status. */
static inline int with_terminal(unsigned streams, int (*f)(unsigned streams, int master, int slave))
{
    int status, master, slave;
    struct winsize size = {24, 80, 0, 0};
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (!pid) {
        int null = open("/dev/null", O_RDWR);

        end_with_parent();
        if (openpty(&master, &slave, NULL, NULL, &size) || setsid() < 0)
            _exit(77);
        for (int fd = 0; fd < 3; fd++)
            dup2(streams & 1u << fd ? slave : null, fd);
        alarm(10);
        _exit(f(streams, master, slave));
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

#define ASSERT_WITH(streams, f)                                                                    \
    do {                                                                                           \
        int status_ = with_terminal(streams, f);                                                   \
                                                                                                   \
        if (status_ == 77)                                                                         \
            skip();                                                                                \
        if (status_)                                                                               \
            fail_msg("line %d of %u", status_, (unsigned)(streams));                               \
    } while (0)

/* In a child: the line of what is not so is its status. */
static inline int line_of(int line)
{
    return line % 256 ? line % 256 : 1;
}
#define NEED(what)                                                                                 \
    do {                                                                                           \
        if (!(what))                                                                               \
            return line_of(__LINE__);                                                              \
    } while (0)

/* The user's terminal is the slave of `screen`; the program's is `inner`. */
static struct two {
    struct terminal t;
    int screen, inner;
} two;

static inline bool is_raw(int fd)
{
    struct termios t;

    return !tcgetattr(fd, &t) && !(t.c_lflag & (ICANON | ECHO)) && !(t.c_oflag & OPOST);
}

static inline int begin(unsigned streams, int master, int slave, bool anew)
{
    int inner_master, inner, out = anew ? terminal_open(streams) : -1;

    if (openpty(&inner_master, &inner, NULL, NULL, NULL) || (anew && out < 0))
        return -1;
    ioctl(slave, TIOCSCTTY, 0);
    cfmakeraw(&two.t.was);
    tcsetattr(inner, TCSANOW, &two.t.was);
    terminal_begin(&two.t, streams, inner_master, out);
    two.screen = master, two.inner = inner;
    fcntl(master, F_SETFL, O_NONBLOCK);
    fcntl(inner, F_SETFL, O_NONBLOCK);
    return 0;
}

#endif
