/* SPDX-License-Identifier: BSD-3-Clause */
/* What becomes of an isolated program's terminal at its end, and at that of the user's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/host/sandbox/two_terminals.h"

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

/* Who takes no output is not waited for after a signal that ends programs. A full pipe is the user: a terminal makes room by itself. */
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

#define TEST(t) cmocka_unit_test(t)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_end_shows_the_rest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
