/* SPDX-License-Identifier: BSD-3-Clause */
/* What becomes of an isolated program's terminal at its end, and at that of the user's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/host/sandbox/two_terminals.h"

#include <sys/time.h>

static int hangs_up_with_the_user(unsigned streams, int master, int slave)
{
    int inner;

    NEED(!begin(streams, master, slave, true));
    inner = two.t.master;
    fcntl(1, F_SETFL, O_NONBLOCK);
    terminal_copy(&two.t, POLLIN, 0); /* nothing is there: it is asked again */
    NEED(two.t.master == inner && two.t.n == 0);
    signal(SIGHUP, SIG_IGN);
    close(master);
    terminal_copy(&two.t, POLLIN | POLLHUP, POLLIN | POLLOUT);
    NEED(two.t.master == -1 && fcntl(inner, F_GETFD) < 0);
    two.t.n_out = 5, two.t.shown = 2; /* which nobody sees */
    terminal_copy(&two.t, POLLOUT, 0);
    NEED(two.t.n_out == 0 && two.t.shown == 0);
    return 0;
}

static int resizes(unsigned streams, int master, int slave)
{
    struct winsize size = {50, 132, 0, 0}, found;

    NEED(!begin(streams, master, slave, true));
    NEED(!ioctl(slave, TIOCSWINSZ, &size));
    terminal_resize(&two.t);
    NEED(!ioctl(two.inner, TIOCGWINSZ, &found) && found.ws_row == 50 && found.ws_col == 132);
    two.t.master = -1;
    terminal_resize(&two.t);
    return 0;
}

/* A terminal hands on what was written when it comes to it, in parts. */
static size_t read_all(int fd, char *to, size_t room, size_t expected)
{
    struct pollfd p = {fd, POLLIN, 0};
    size_t n = 0;
    ssize_t got;

    while (n < expected && poll(&p, 1, 5000) == 1 && (got = read(fd, to + n, room - n)) > 0)
        n += (size_t)got;
    return n;
}

static int shows_the_rest(unsigned streams, int master, int slave)
{
    char text[300], got[8192];
    int signals, inner_master, out;
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signals = signalfd(-1, &set, SFD_NONBLOCK);
    NEED(!begin(streams, master, slave, true));
    inner_master = two.t.master, out = two.t.out;
    memset(text, 'r', sizeof(text));
    NEED(write(two.inner, "first", 5) == 5);
    terminal_copy(&two.t, 0, POLLIN);
    NEED(write(two.inner, text, sizeof(text)) == sizeof(text));
    close(two.inner);
    terminal_end(&two.t, signals);
    NEED(read_all(master, got, sizeof(got), 305) == 305 && !memcmp(got, "firstr", 6));
    NEED(!is_raw(slave) && !two.t.raw && two.t.master == -1);
    NEED(fcntl(inner_master, F_GETFD) < 0 && fcntl(out, F_GETFD) < 0);
    NEED(fcntl(1, F_GETFD) >= 0);
    return 0;
}

/* After a signal that ends programs, nobody waits for a user who takes no output. A full pipe
 * stands for that user, because a terminal makes room by itself. */
static int ends_by(unsigned streams, int master, int slave, int sig)
{
    int signals, full[2];
    char text[4096];
    sigset_t set;

    sigfillset(&set);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signals = signalfd(-1, &set, SFD_NONBLOCK);
    NEED(!begin(streams, master, slave, true) && !pipe2(full, O_NONBLOCK));
    memset(text, 'f', sizeof(text));
    while (write(full[1], text, sizeof(text)) > 0)
        ;
    two.t.user = full[1];
    two.t.n_out = 10;
    raise(SIGUSR1); /* does not end it */
    raise(sig);
    terminal_end(&two.t, signals);
    NEED(two.t.n_out == 10 && two.t.master == -1);
    return 0;
}

#define ENDS_BY(name, sig)                                                                         \
    static int name(unsigned streams, int master, int slave)                                       \
    {                                                                                              \
        return ends_by(streams, master, slave, sig);                                               \
    }
ENDS_BY(ends_by_hup, SIGHUP)
ENDS_BY(ends_by_int, SIGINT)
ENDS_BY(ends_by_quit, SIGQUIT)
ENDS_BY(ends_by_term, SIGTERM)
static void the_end_shows_the_rest(void **state)
{
    (void)state;
    ASSERT_WITH(3, hangs_up_with_the_user);
    ASSERT_WITH(3, resizes);
    ASSERT_WITH(3, shows_the_rest);
    ASSERT_WITH(3, ends_by_hup);
    ASSERT_WITH(3, ends_by_int);
    ASSERT_WITH(3, ends_by_quit);
    ASSERT_WITH(3, ends_by_term);
}

/* ---- a user who takes output late ---- */

static int signals_of(int sig)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, sig);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_NONBLOCK);
}

/* A full pipe is the user, of whom a child takes all once it reads a byte of `when`. */
static int late_user(int when)
{
    int full[2];
    char text[4096];

    if (pipe2(full, O_NONBLOCK))
        return -1;
    memset(text, 'f', sizeof(text));
    while (write(full[1], text, sizeof(text)) > 0)
        ;
    if (!fork()) {
        end_with_parent();
        if (when >= 0)
            (void)!read(when, text, 1);
        close(full[1]); /* so that the end is seen */
        fcntl(full[0], F_SETFL, 0);
        while (read(full[0], text, sizeof(text)) > 0)
            ;
        _exit(0);
    }
    close(full[0]);
    return full[1];
}

static int waits_beside_other_signals(unsigned streams, int master, int slave)
{
    int signals = signals_of(SIGUSR1);

    NEED(!begin(streams, master, slave, true));
    two.t.user = two.t.out = late_user(-1);
    two.t.n_out = 10;
    raise(SIGUSR1);
    terminal_end(&two.t, signals);
    NEED(two.t.n_out == 0 && two.t.master == -1);
    return 0;
}

static int interrupted[2];
static void on_alarm(int sig)
{
    static int n;

    (void)sig;
    if (++n == 5)
        (void)!write(interrupted[1], "x", 1);
}

static int waits_though_interrupted(unsigned streams, int master, int slave)
{
    struct sigaction sa = {.sa_handler = on_alarm};
    struct itimerval often = {{0, 2000}, {0, 2000}};
    int signals = signals_of(SIGUSR1);

    NEED(!pipe(interrupted));
    NEED(!begin(streams, master, slave, true));
    two.t.user = two.t.out = late_user(interrupted[0]);
    two.t.n_out = 10;
    sigaction(SIGALRM, &sa, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    terminal_end(&two.t, signals);
    NEED(two.t.n_out == 0 && two.t.master == -1);
    return 0;
}

static void a_user_who_takes_output_late_is_waited_for(void **state)
{
    (void)state;
    ASSERT_WITH(3, waits_beside_other_signals);
    ASSERT_WITH(3, waits_though_interrupted);
}

/* ---- what is closed ---- */

static int leaves_the_stream_open(unsigned streams, int master, int slave)
{
    NEED(!begin(streams, master, slave, false));
    NEED(two.t.out == two.t.user);
    terminal_end(&two.t, signals_of(SIGUSR1));
    NEED(fcntl(two.t.user, F_GETFD) >= 0 && !is_raw(slave));
    return 0;
}

static int ends_with_what_it_reads(unsigned streams, int master, int slave)
{
    int sv[2];
    char got[8];

    NEED(!begin(streams, master, slave, true));
    NEED(!socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
    close(two.t.master);
    two.t.master = sv[0];
    NEED(write(sv[1], "last", 4) == 4);
    close(sv[1]);
    terminal_end(&two.t, signals_of(SIGUSR1));
    NEED(read_all(master, got, sizeof(got), 4) == 4 && !memcmp(got, "last", 4));
    return 0;
}

static void the_users_stream_outlives_the_program(void **state)
{
    (void)state;
    ASSERT_WITH(3, leaves_the_stream_open);
    ASSERT_WITH(2, leaves_the_stream_open);
    ASSERT_WITH(3, ends_with_what_it_reads);
}

#define TEST(t) cmocka_unit_test(t)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_end_shows_the_rest),
        TEST(a_user_who_takes_output_late_is_waited_for),
        TEST(the_users_stream_outlives_the_program),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
