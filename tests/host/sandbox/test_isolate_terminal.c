/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An isolated program at a terminal: keys, signals of keys, stops and the window's size, with this program as the
 * user, as the shell and as what is isolated.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/host/sandbox/jobs.h"

/* ---- inside ---- */

/* At once, so that none is lost between two reads. */
static void on_signal(int sig)
{
    struct winsize size;

    if (sig == SIGWINCH && !ioctl(STDERR_FILENO, TIOCGWINSZ, &size))
        dprintf(STDERR_FILENO, "size %d %d\n", size.ws_row, size.ws_col);
    else
        dprintf(STDERR_FILENO, "signal %d\n", sig);
}

/* Says each line and signal that it gets, at the terminal. */
static int echo(void)
{
    struct sigaction sa = {.sa_handler = on_signal};
    const int tty = STDERR_FILENO; /* always the terminal */
    bool has_keys = tcgetpgrp(tty) == getpgrp();
    struct termios t;
    char line[64];
    ssize_t n;

    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGWINCH, &sa, NULL);
    sigaction(SIGCONT, &sa, NULL);
    sigaction(SIGHUP, &sa, NULL);
    if (has_keys && !tcgetattr(tty, &t)) { /* a terminal drops what is written as Ctrl-C comes */
        t.c_lflag |= NOFLSH;
        tcsetattr(tty, TCSANOW, &t);
    }
    dprintf(tty, "ready %d%d%d %s\n", isatty(0), isatty(1), isatty(2),
            has_keys ? "with keys" : "without keys");
    for (;;) {
        n = read(tty, line, sizeof(line) - 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) /* hung up */
            return 9;
        line[n - 1] = 0;
        if (!strcmp(line, "end"))
            return 3;
        dprintf(tty, "line <%s>\n", line);
    }
}

/* ---- jobs ---- */

static void a_job(struct world *w)
{
    struct winsize size = {50, 132, 0, 0};
    pid_t pid;

    begin_session(w);
    pid = run_job(w, 7, true, "echo");
    say(w, "begins", shows("ready 111 with keys"));
    say(w, "is raw", is_raw());
    types("abc\r");
    say(w, "hears", shows("line <abc>"));
    types("\003");
    say(w, "is interrupted", shows("signal 2\r\n"));
    ioctl(slave, TIOCSWINSZ, &size);
    say(w, "is resized", shows("size 50 132"));
    types("\032");
    fprintf(w->out, "stops %d\n", ended(pid) - 2000);
    say(w, "is raw", is_raw());
    size.ws_row = 10, size.ws_col = 20;
    tcsetpgrp(slave, getpgrp());
    ioctl(slave, TIOCSWINSZ, &size); /* which the shell hears of alone */
    tcsetpgrp(slave, pid);
    kill(-pid, SIGCONT);
    say(w, "goes on", shows("signal 18"));
    types("\r");
    say(w, "hears", shows("line <>"));
    say(w, "is raw", is_raw());
    types("end\r");
    fprintf(w->out, "ends %d\n", ended(pid));
    say(w, "is raw", is_raw());
}

static void a_program_has_a_terminal_of_its_own(void **state)
{
    (void)state;
    ASSERT_WORLD(a_job, 0,
                 "begins: yes\nis raw: yes\nhears: yes\nis interrupted: yes\nis resized: yes\n"
                 "stops 20\nis raw: no\ngoes on: yes\nhears: yes\nis raw: yes\nends 3\n"
                 "is raw: no\n");
}

/* Without standard input at the terminal it has keys once it reads them. */
static void a_job_with_a_pipe(struct world *w)
{
    pid_t pid;

    begin_session(w);
    pid = run_job(w, 6, true, "echo");
    say(w, "begins", shows("ready 011 without keys"));
    say(w, "goes on", shows("signal 18"));
    types("abc\r");
    say(w, "hears", shows("line <abc>"));
    say(w, "is raw", is_raw());
    types("end\r");
    fprintf(w->out, "ends %d\n", ended(pid));
    say(w, "is raw", is_raw());
}

static void keys_come_when_they_are_asked_for(void **state)
{
    (void)state;
    ASSERT_WORLD(a_job_with_a_pipe, 0,
                 "begins: yes\ngoes on: yes\nhears: yes\nis raw: yes\nends 3\nis raw: no\n");
}

/* Part of a script: it gets none, and is told once. */
static void a_script_with_a_pipe(struct world *w)
{
    pid_t pid;

    begin_session(w);
    pid = run_job(w, 6, false, "echo");
    say(w, "is told",
        shows_both("ready 011 without keys",
                   "trib: the program of h7 asks for keys and gets none: it is part of a script, "
                   "and its standard input is no terminal"));
    say(w, "is raw", is_raw());
    kill(pid, SIGTERM);
    fprintf(w->out, "ends %d\n", ended(pid));
}

static void a_script_keeps_its_keys(void **state)
{
    (void)state;
    ASSERT_WORLD(a_script_with_a_pipe, 0, "is told: yes\nis raw: no\nends 1015\n");
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, jobs_begin, jobs_end)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(a_program_has_a_terminal_of_its_own),
        TEST(keys_come_when_they_are_asked_for),
        TEST(a_script_keeps_its_keys),
    };

    if (argc > 2 && !strcmp(argv[1], "inside"))
        return echo();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
