/* SPDX-License-Identifier: BSD-3-Clause */
/* Copying where a side takes a part, is interrupted, belongs to others or is no terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/host/sandbox/two_terminals.h"

#include <sys/time.h>

/* ---- keys ---- */

static void fill(char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        text[i] = (char)(i % 101);
}

/* Keys to a program that has room for a part of them: what it got, behind the first `before` bytes, or 0 where it took all or nothing. */
static size_t take_a_part(size_t before, char *got, size_t room)
{
    int sv[2], small = 1;
    size_t n = 0;
    ssize_t more;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sv))
        return 0;
    setsockopt(sv[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
    for (size_t i = 0; i < before; i++)
        (void)!write(sv[0], "", 1);
    two.t = (struct terminal){.user = -1, .out = -1, .master = sv[0], .n = TERMINAL_KEYS};
    fill(two.t.typed, TERMINAL_KEYS);
    terminal_copy(&two.t, 0, POLLOUT);
    if (two.t.n && two.t.n < TERMINAL_KEYS)
        while ((more = read(sv[1], got + n, room - n)) > 0) {
            n += (size_t)more;
            terminal_copy(&two.t, 0, POLLOUT);
        }
    close(sv[0]);
    close(sv[1]);
    return n;
}

static void keys_that_are_taken_in_parts_keep_their_order(void **state)
{
    static char got[2 * TERMINAL_KEYS], expected[TERMINAL_KEYS];
    size_t n = 0, before = 0;

    (void)state;
    while (!n && before < 20)
        n = take_a_part(++before, got, sizeof(got));
    assert_int_equal(n, before + TERMINAL_KEYS);
    fill(expected, TERMINAL_KEYS);
    assert_memory_equal(got + before, expected, TERMINAL_KEYS);
    assert_int_equal(two.t.n, 0);
}

static void on_timer(int sig)
{
    (void)sig;
}

/* Calls that wait are interrupted from now on. */
static void interrupt(void)
{
    struct sigaction sa = {.sa_handler = on_timer};
    struct itimerval often = {{0, 2000}, {0, 2000}};

    sigaction(SIGALRM, &sa, NULL);
    setitimer(ITIMER_REAL, &often, NULL); /* instead of alarm(10): no call here waits for ever */
}

static int reads_interrupted(unsigned streams, int master, int slave)
{
    int inner;

    NEED(!begin(streams, master, slave, true));
    inner = two.t.master;
    interrupt();
    terminal_copy(&two.t, POLLIN, 0); /* waits for keys until it is interrupted */
    NEED(two.t.master == inner && two.t.n == 0 && two.t.raw);
    return 0;
}

static int reads_in_the_background(unsigned streams, int master, int slave)
{
    pid_t other;
    int inner;

    NEED(!begin(streams, master, slave, true));
    inner = two.t.master;
    other = start_group();
    terminal_set_group(streams, other);
    NEED(tcgetpgrp(slave) == other);
    terminal_copy(&two.t, POLLIN, 0);
    NEED(two.t.master == inner && !two.t.raw && two.t.keys);
    NEED(end_group(other));
    return 0;
}

static void who_gets_no_keys_now_keeps_the_terminal(void **state)
{
    (void)state;
    ASSERT_WITH(3, reads_interrupted);
    ASSERT_WITH(3, reads_in_the_background);
}

/* ---- output ---- */

static int full_pipe(int flags)
{
    int full[2];
    char c = 'f';

    if (pipe2(full, O_NONBLOCK))
        return -1;
    while (write(full[1], &c, 1) > 0)
        ;
    fcntl(full[1], F_SETFL, flags);
    return full[1];
}

static int keeps_output(unsigned streams, int master, int slave)
{
    NEED(!begin(streams, master, slave, true));
    two.t.n_out = 10, two.t.shown = 3;
    two.t.out = full_pipe(O_NONBLOCK);
    terminal_copy(&two.t, POLLOUT, 0);
    NEED(two.t.n_out == 10 && two.t.shown == 3);
    two.t.out = full_pipe(0);
    interrupt();
    terminal_copy(&two.t, POLLOUT, 0); /* waits for room until it is interrupted */
    NEED(two.t.n_out == 10 && two.t.shown == 3);
    return 0;
}

static void output_that_is_not_taken_stays(void **state)
{
    (void)state;
    ASSERT_WITH(3, keeps_output);
}

/* ---- whose it is ---- */

static int of_no_session(unsigned streams, int master, int slave)
{
    int inner_master, inner;

    NEED(!openpty(&inner_master, &inner, NULL, NULL, NULL));
    terminal_begin(&two.t, streams, inner_master, -1);
    NEED(two.t.keys && two.t.raw && is_raw(slave));
    terminal_pause(&two.t);
    NEED(!is_raw(slave));
    (void)master;
    return 0;
}

static int keeps_what_was(unsigned streams, int master, int slave)
{
    NEED(!begin(streams, master, slave, true));
    NEED(two.t.raw && two.t.was.c_lflag & ICANON);
    terminal_give_keys(&two.t); /* it has them */
    NEED(two.t.raw && two.t.was.c_lflag & ICANON);
    terminal_pause(&two.t);
    NEED(!is_raw(slave));
    return 0;
}

static bool blocks_ttou(void)
{
    sigset_t now;

    sigprocmask(SIG_SETMASK, NULL, &now);
    return sigismember(&now, SIGTTOU);
}

/* While others have the terminal its settings are theirs, though this process could change them. */
static int leaves_to_others(unsigned streams, int master, int slave)
{
    struct termios now;
    pid_t other;

    NEED(!begin(streams, master, slave, true));
    signal(SIGTTOU, SIG_IGN);
    other = start_group();
    NEED(!blocks_ttou());
    terminal_set_group(streams, other);
    NEED(tcgetpgrp(slave) == other && !blocks_ttou());
    two.t.was.c_cc[VERASE] = 7;
    terminal_pause(&two.t);
    NEED(!two.t.raw && !tcgetattr(slave, &now) && now.c_cc[VERASE] != 7 && is_raw(slave));
    terminal_give_keys(&two.t);
    NEED(!two.t.raw && two.t.keys && two.t.was.c_cc[VERASE] == 7);
    terminal_set_group(streams, getpgrp());
    terminal_give_keys(&two.t);
    NEED(two.t.raw && two.t.was.c_cc[VERASE] != 7);
    NEED(end_group(other));
    return 0;
}

static void settings_are_changed_by_who_has_the_terminal(void **state)
{
    (void)state;
    ASSERT_WITH(3, of_no_session);
    ASSERT_WITH(3, keeps_what_was);
    ASSERT_WITH(3, leaves_to_others);
}

#define TEST(t) cmocka_unit_test(t)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(keys_that_are_taken_in_parts_keep_their_order),
        TEST(who_gets_no_keys_now_keeps_the_terminal),
        TEST(output_that_is_not_taken_stays),
        TEST(settings_are_changed_by_who_has_the_terminal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
