/* SPDX-License-Identifier: BSD-3-Clause */
/* The terminal of an isolated program beside the user's: two pairs of pseudo-terminals, and what is copied between. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/host/sandbox/two_terminals.h"

/* ---- which streams ---- */

static void output_goes_to_the_first_of_output_error_and_input(void **state)
{
    static const struct {
        unsigned streams;
        int stream;
        bool keys;
    } rows[] = {{0, 0, false}, {1, 0, false}, {2, 1, false}, {3, 1, true},
                {4, 2, false}, {5, 2, false}, {6, 1, false}, {7, 1, true}};

    (void)state;
    for (unsigned i = 0; i < 8; i++) {
        assert_int_equal(terminal_stream(rows[i].streams), rows[i].stream);
        assert_int_equal(terminal_has_keys(rows[i].streams), rows[i].keys);
    }
}

static int streams_are(unsigned streams, int master, int slave)
{
    (void)master, (void)slave;
    NEED(terminal_streams() == streams);
    return 0;
}

static void streams_that_are_a_terminal_are_bits(void **state)
{
    (void)state;
    for (unsigned s = 0; s < 8; s++)
        ASSERT_WITH(s, streams_are);
}

static int others_are_closed(unsigned streams, int master, int slave)
{
    int low = dup2(slave, 3), other = fcntl(STDIN_FILENO, F_DUPFD, 200);

    (void)streams;
    NEED(master > low); /* what is behind it hangs up with it */
    terminal_close_others();
    NEED(fcntl(low, F_GETFD) < 0);
    NEED(fcntl(master, F_GETFD) < 0);
    NEED(fcntl(other, F_GETFD) >= 0); /* no terminal */
    NEED(fcntl(0, F_GETFD) >= 0 && fcntl(1, F_GETFD) >= 0 && fcntl(2, F_GETFD) >= 0);
    return 0;
}

static void other_descriptors_of_terminals_are_closed(void **state)
{
    (void)state;
    ASSERT_WITH(6, others_are_closed);
}

/* ---- opened anew ---- */

static int opened_anew(unsigned streams, int master, int slave)
{
    int fd = terminal_open(streams);

    (void)master, (void)slave;
    if (!streams) {
        NEED(fd == -1);
        return 0;
    }
    NEED(fd > 2 && isatty(fd));
    NEED((fcntl(fd, F_GETFL) & (O_ACCMODE | O_NONBLOCK)) == (O_WRONLY | O_NONBLOCK));
    NEED(fcntl(fd, F_GETFD) == FD_CLOEXEC);
    NEED(!(fcntl(terminal_stream(streams), F_GETFL) & O_NONBLOCK));
    return 0;
}

static void the_terminal_is_opened_anew_without_waiting(void **state)
{
    (void)state;
    ASSERT_WITH(0, opened_anew);
    for (unsigned s = 1; s < 8; s++)
        ASSERT_WITH(s, opened_anew);
}

/* ---- the two sides ---- */

static int begins_with_keys(unsigned streams, int master, int slave)
{
    NEED(!begin(streams, master, slave, true));
    NEED(two.t.user == 1 && two.t.out > 2 && two.t.out != two.t.user);
    NEED(two.t.keys && two.t.raw && is_raw(slave) && two.t.was.c_lflag & ICANON);
    NEED(fcntl(two.t.master, F_GETFL) & O_NONBLOCK);
    terminal_pause(&two.t);
    NEED(!two.t.raw && two.t.keys && !is_raw(slave));
    terminal_pause(&two.t);
    terminal_give_keys(&two.t);
    NEED(two.t.raw && is_raw(slave));
    NEED(two.t.was.c_lflag & ICANON);
    two.t.master = -1; /* who has none gives nobody keys */
    terminal_pause(&two.t);
    terminal_give_keys(&two.t);
    NEED(!two.t.raw && !is_raw(slave));
    return 0;
}

static int begins_without(unsigned streams, int master, int slave)
{
    NEED(!begin(streams, master, slave, false));
    NEED(two.t.user == terminal_stream(streams) && two.t.out == two.t.user);
    NEED(!two.t.keys && !two.t.raw && !is_raw(slave));
    terminal_pause(&two.t); /* nothing was changed, so nothing is set back */
    NEED(!is_raw(slave));
    terminal_give_keys(&two.t);
    NEED(two.t.keys && two.t.raw && is_raw(slave));
    return 0;
}

static void a_program_has_keys_at_once_or_when_it_asks(void **state)
{
    (void)state;
    ASSERT_WITH(3, begins_with_keys);
    ASSERT_WITH(7, begins_with_keys);
    ASSERT_WITH(2, begins_without);
    ASSERT_WITH(4, begins_without);
    ASSERT_WITH(1, begins_without);
}

static int waits_for(unsigned streams, int master, int slave)
{
    short user, inner;

    NEED(!begin(streams, master, slave, true));
    NEED(terminal_wants(&two.t, &user, &inner) == -1 && user == POLLIN && inner == POLLIN);
    two.t.n = 1;
    NEED(terminal_wants(&two.t, &user, &inner) == -1 && user == 0 && inner == (POLLIN | POLLOUT));
    two.t.n = 0, two.t.n_out = 1;
    NEED(terminal_wants(&two.t, &user, &inner) == -1 && user == (POLLIN | POLLOUT) && inner == 0);
    two.t.n = 1;
    NEED(terminal_wants(&two.t, &user, &inner) == -1 && user == POLLOUT && inner == POLLOUT);
    two.t.n = 0, two.t.n_out = 0;
    terminal_pause(&two.t); /* it takes them again */
    NEED(terminal_wants(&two.t, &user, &inner) == -1 && user == POLLIN && two.t.raw);
    terminal_pause(&two.t);
    two.t.keys = false;
    NEED(terminal_wants(&two.t, &user, &inner) == -1 && user == 0 && inner == POLLIN);
    NEED(!two.t.raw);
    two.t.master = -1, two.t.keys = true, two.t.n_out = 1;
    NEED(terminal_wants(&two.t, &user, &inner) == -1 && user == 0 && inner == 0);
    return 0;
}

/* While another group has the terminal, whoever wants keys looks every 250 ms whether it is back. */
static int waits_in_the_background(unsigned streams, int master, int slave)
{
    short user, inner;
    pid_t other;

    NEED(!begin(streams, master, slave, true));
    terminal_pause(&two.t);
    other = start_group();
    terminal_set_group(streams, other);
    NEED(terminal_wants(&two.t, &user, &inner) == 250 && user == 0 && inner == POLLIN);
    NEED(!two.t.raw && two.t.keys && !is_raw(slave));
    two.t.raw = true;
    terminal_pause(&two.t); /* it is not ours to set back */
    NEED(!two.t.raw);
    NEED(end_group(other));
    terminal_set_group(streams, getpgrp());
    NEED(tcgetpgrp(slave) == getpgrp());
    NEED(terminal_wants(&two.t, &user, &inner) == -1 && user == POLLIN && is_raw(slave));
    return 0;
}

static void what_to_wait_for_follows_from_what_is_there(void **state)
{
    (void)state;
    ASSERT_WITH(3, waits_for);
    ASSERT_WITH(3, waits_in_the_background);
}

static int copies(unsigned streams, int master, int slave)
{
    char text[64] = "";

    NEED(!begin(streams, master, slave, true));
    NEED(write(master, "abc", 3) == 3);
    terminal_copy(&two.t, POLLIN, 0);
    NEED(two.t.n == 3 && !memcmp(two.t.typed, "abc", 3) && !two.t.suspended);
    NEED(read(two.inner, text, sizeof(text)) < 0);
    terminal_copy(&two.t, 0, POLLIN); /* it cannot be written to */
    NEED(two.t.n == 3);
    terminal_copy(&two.t, 0, POLLOUT);
    NEED(two.t.n == 0 && read(two.inner, text, sizeof(text)) == 3 && !memcmp(text, "abc", 3));
    NEED(write(master, "a\032", 2) == 2); /* Ctrl-Z last */
    terminal_copy(&two.t, POLLIN, POLLOUT);
    NEED(two.t.suspended && two.t.n == 0);
    NEED(read(two.inner, text, sizeof(text)) == 2);
    NEED(write(master, "\032b", 2) == 2);
    terminal_copy(&two.t, POLLIN, POLLOUT);
    NEED(!two.t.suspended);
    /* And back. */
    NEED(write(two.inner, "out", 3) == 3);
    terminal_copy(&two.t, 0, POLLOUT);
    NEED(two.t.n_out == 0);
    terminal_copy(&two.t, 0, POLLIN);
    NEED(two.t.n_out == 3 && two.t.shown == 0);
    NEED(write(two.inner, "more", 4) == 4);
    terminal_copy(&two.t, 0, POLLIN); /* none before the first is shown */
    NEED(two.t.n_out == 3 && read(master, text, sizeof(text)) < 0);
    terminal_copy(&two.t, POLLOUT, POLLIN);
    NEED(read(master, text, sizeof(text)) == 3 && !memcmp(text, "out", 3));
    NEED(two.t.n_out == 4 && two.t.shown == 0);
    terminal_copy(&two.t, POLLOUT, 0);
    NEED(read(master, text, sizeof(text)) == 4 && !memcmp(text, "more", 4) && two.t.n_out == 0);
    return 0;
}

/* A terminal that may block is given 64 bytes at a time. */
static int copies_by_parts(unsigned streams, int master, int slave)
{
    char text[256], got[256];

    memset(text, 'q', sizeof(text));
    NEED(!begin(streams, master, slave, false));
    NEED(write(two.inner, text, 150) == 150);
    terminal_copy(&two.t, 0, POLLIN);
    NEED(two.t.n_out == 150);
    terminal_copy(&two.t, POLLOUT, 0);
    NEED(two.t.shown == 64 && read(master, got, sizeof(got)) == 64);
    terminal_copy(&two.t, POLLOUT, 0);
    NEED(two.t.shown == 128 && two.t.n_out == 150 && read(master, got, sizeof(got)) == 64);
    terminal_copy(&two.t, POLLOUT, 0);
    NEED(two.t.shown == 0 && two.t.n_out == 0 && read(master, got, sizeof(got)) == 22);
    NEED(write(two.inner, text, 64) == 64); /* exactly one */
    terminal_copy(&two.t, 0, POLLIN);
    terminal_copy(&two.t, POLLOUT, 0);
    NEED(two.t.n_out == 0 && read(master, got, sizeof(got)) == 64);
    return 0;
}

static int copies_all_to_one_that_does_not_block(unsigned streams, int master, int slave)
{
    char text[256], got[256];

    memset(text, 'q', sizeof(text));
    NEED(!begin(streams, master, slave, true));
    NEED(write(two.inner, text, 150) == 150);
    terminal_copy(&two.t, 0, POLLIN);
    terminal_copy(&two.t, POLLOUT, 0);
    NEED(two.t.n_out == 0 && read(master, got, sizeof(got)) == 150);
    return 0;
}

/* Keys that the program does not take stay in their order. */
static int keeps_what_is_not_taken(unsigned streams, int master, int slave)
{
    int sv[2];
    char text[8];

    NEED(!begin(streams, master, slave, true));
    NEED(!socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
    close(two.t.master);
    two.t.master = sv[0];
    memcpy(two.t.typed, "12345", 5);
    two.t.n = 5;
    terminal_copy(&two.t, 0, 0);
    NEED(two.t.n == 5);
    terminal_copy(&two.t, 0, POLLOUT);
    NEED(two.t.n == 0 && read(sv[1], text, 8) == 5);
    close(sv[1]); /* gone: nothing is taken, and nothing is lost */
    signal(SIGPIPE, SIG_IGN);
    two.t.n = 5;
    terminal_copy(&two.t, 0, POLLOUT);
    NEED(two.t.n == 5 && !memcmp(two.t.typed, "12345", 5));
    return 0;
}

static void keys_and_output_are_copied(void **state)
{
    (void)state;
    ASSERT_WITH(7, copies);
    ASSERT_WITH(2, copies_by_parts);
    ASSERT_WITH(3, copies_all_to_one_that_does_not_block);
    ASSERT_WITH(3, keeps_what_is_not_taken);
}

#define TEST(t) cmocka_unit_test(t)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(output_goes_to_the_first_of_output_error_and_input),
        TEST(streams_that_are_a_terminal_are_bits),
        TEST(other_descriptors_of_terminals_are_closed),
        TEST(the_terminal_is_opened_anew_without_waiting),
        TEST(a_program_has_keys_at_once_or_when_it_asks),
        TEST(what_to_wait_for_follows_from_what_is_there),
        TEST(keys_and_output_are_copied),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
