/* SPDX-License-Identifier: BSD-3-Clause */
/* Isolated programs at a terminal that they share: with a script around them, with others' descriptors, in the background, and hung up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/host/sandbox/jobs.h"

/* ---- inside ---- */

static const int tty = STDERR_FILENO; /* the terminal, but for one that tells how it hangs up */

static void on_continue(int sig)
{
    dprintf(tty, "signal %d\n", sig);
}

/* Without keys, it changes settings before it reads. */
static int set_terminal(void)
{
    struct termios t;

    dprintf(tty, "ready\n");
    if (tcgetattr(tty, &t) || tcsetattr(tty, TCSANOW, &t))
        return 1;
    dprintf(tty, "%s\n", tcgetpgrp(tty) == getpgrp() ? "in front" : "behind");
    return 4;
}

/* A line with "stop" stops it as no key does. */
static int read_lines(void)
{
    struct sigaction sa = {.sa_handler = on_continue};
    char line[64];
    ssize_t n;

    sigaction(SIGCONT, &sa, NULL);
    dprintf(tty, "ready\n");
    for (;;) {
        n = read(tty, line, sizeof(line) - 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return 9;
        line[n - 1] = 0;
        if (!strcmp(line, "end"))
            return 3;
        dprintf(tty, "line <%s>\n", line);
        if (!strcmp(line, "stop"))
            raise(SIGSTOP);
    }
}

/* Reads from behind, gives the terminal away, and reads again. */
static int read_from_behind(void)
{
    struct sigaction sa = {.sa_handler = on_continue};
    char c;
    pid_t other = fork();

    if (!other) {
        for (;;)
            pause();
    }
    setpgid(other, other);
    sigaction(SIGCONT, &sa, NULL);
    fcntl(tty, F_SETFL, O_RDWR | O_NONBLOCK);
    for (int i = 1; i <= 2; i++) {
        while (read(tty, &c, 1) < 0 && errno == EINTR)
            ;
        dprintf(tty, "read %d\n", i);
        tcsetpgrp(tty, other);
    }
    return 5;
}

static void on_hangup(int sig)
{
    dprintf(STDERR_FILENO, "signal %d\n", sig);
    _exit(6);
}

static int wait_for_the_end(void)
{
    struct sigaction sa = {.sa_handler = on_hangup};

    sigaction(SIGHUP, &sa, NULL);
    dprintf(STDOUT_FILENO, "ready\n");
    pause();
    return 8;
}

static int count_and_type(void)
{
    unsigned n = 0;
    char c = 'x';
    int why = ioctl(tty, TIOCSTI, &c) ? errno : 0;

    for (int fd = 3; fd < 256; fd++)
        n += isatty(fd);
    dprintf(tty, "others %u, typing %s\n", n, strerror(why));
    return 7;
}

static int inside(const char *how)
{
    static const struct {
        const char *how;
        int (*be)(void);
    } ways[] = {{"set", set_terminal},
                {"lines", read_lines},
                {"behind", read_from_behind},
                {"hangup", wait_for_the_end},
                {"type", count_and_type}};

    for (unsigned i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        if (!strcmp(how, ways[i].how))
            return ways[i].be();
    return 1;
}

/* ---- keys ---- */

static void a_job_that_sets(struct world *w)
{
    pid_t pid;

    begin_session(w);
    pid = run_job(w, 6, true, "set");
    say(w, "is", shows("in front"));
    fprintf(w->out, "ends %d\n", ended(pid));
}

static void who_changes_settings_comes_to_the_front(void **state)
{
    (void)state;
    ASSERT_WORLD(a_job_that_sets, 0, "is: yes\nends 4\n");
}

/* Its output is a file. */
static void a_script_at_the_keys(struct world *w)
{
    pid_t pid;

    begin_session(w);
    pid = run_job(w, 5, false, "lines");
    say(w, "goes on", shows("signal 18"));
    say(w, "is raw", is_raw());
    types("abc\r");
    say(w, "hears", shows("line <abc>"));
    types("end\r");
    fprintf(w->out, "ends %d\n", ended(pid));
}

static void a_script_whose_input_is_the_terminal_has_keys(void **state)
{
    (void)state;
    ASSERT_WORLD(a_script_at_the_keys, 0, "goes on: yes\nis raw: yes\nhears: yes\nends 3\n");
}

static unsigned times_seen(const char *text)
{
    unsigned n = 0;

    for (const char *at = seen; (at = strstr(at, text)); at++)
        n++;
    return n;
}

static void a_script_without_keys(struct world *w)
{
    pid_t pid;

    begin_session(w);
    pid = run_job(w, 6, false, "behind");
    say(w, "reads twice", shows("read 2"));
    fprintf(w->out, "told %u, went on %u\n", times_seen("asks for keys"), times_seen("signal 18"));
    fprintf(w->out, "ends %d\n", ended(pid));
}

static void that_there_are_no_keys_is_said_once(void **state)
{
    (void)state;
    ASSERT_WORLD(a_script_without_keys, 0, "reads twice: yes\ntold 1, went on 2\nends 5\n");
}

/* ---- stops ---- */

/* Waits for its program, which it continues wherever it stops. */
static int be_script(struct world *w)
{
    pid_t pid;
    int how;

    signal(SIGTSTP, SIG_DFL);
    pid = run_job(w, 7, false, "lines");
    while ((how = ended(pid)) > 2000)
        kill(pid, SIGCONT);
    return how;
}

static void a_script_that_is_suspended(struct world *w)
{
    pid_t script;

    begin_session(w);
    script = fork();
    if (!script) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setpgid(0, 0);
        tcsetpgrp(slave, getpid());
        fflush(NULL);
        _exit(be_script(w));
    }
    say(w, "begins", shows("ready"));
    types("\032"); /* Ctrl-Z is for all of it */
    fprintf(w->out, "stops %d\n", ended(script) - 2000);
    kill(-script, SIGCONT);
    say(w, "goes on", shows("signal 18"));
    types("stop\r"); /* its own stop is not */
    say(w, "goes on", shows("signal 18"));
    types("end\r");
    fprintf(w->out, "ends %d\n", ended(script));
    kill(-script, SIGKILL);
}

static void the_key_that_stops_stops_the_script_too(void **state)
{
    (void)state;
    ASSERT_WORLD(a_script_that_is_suspended, 0,
                 "begins: yes\nstops 20\ngoes on: yes\ngoes on: yes\nends 3\n");
}

/* ---- the terminal goes ---- */

static void a_job_whose_terminal_goes(struct world *w)
{
    pid_t pid;

    begin_session(w);
    pid = run_job(w, 3 | JOB_TELLS, true, "hangup");
    say(w, "begins", shows("ready"));
    fflush(w->out);
    world_need(ioctl(slave, TIOCVHANGUP), "hang up");
    fprintf(w->out, "ends %d\n", ended(pid));
}

static void what_hangs_up_hangs_up_the_program(void **state)
{
    (void)state;
    ASSERT_WORLD(a_job_whose_terminal_goes, 0, "begins: yes\nsignal 1\nends 6\n");
}

/* ---- what it has beside its streams ---- */

static void a_job_that_inherits(struct world *w)
{
    pid_t pid;

    begin_session(w);
    pid = run_job(w, 7 | JOB_LEAVES, true, "type");
    say(w, "has no other", shows("others 0, typing Operation not permitted"));
    fprintf(w->out, "ends %d\n", ended(pid));
}

static void no_other_terminal_is_in_its_reach(void **state)
{
    (void)state;
    ASSERT_WORLD(a_job_that_inherits, 0, "has no other: yes\nends 7\n");
}

static void a_job_without_terminals(struct world *w)
{
    pid_t pid;

    begin_session(w);
    world_need(rmdir("/dev/pts"), "rmdir");
    pid = run_job(w, 7, true, "type");
    say(w, "is refused",
        shows("trib: cannot isolate h7: the machine refuses a terminal of its own: No such file or "
              "directory"));
    fprintf(w->out, "ends %d\n", ended(pid));
}

static void a_terminal_that_cannot_be_made_is_named(void **state)
{
    (void)state;
    ASSERT_WORLD(a_job_without_terminals, 0, "is refused: yes\nends 1\n");
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, jobs_begin, jobs_end)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(who_changes_settings_comes_to_the_front),
        TEST(a_script_whose_input_is_the_terminal_has_keys),
        TEST(that_there_are_no_keys_is_said_once),
        TEST(the_key_that_stops_stops_the_script_too),
        TEST(what_hangs_up_hangs_up_the_program),
        TEST(no_other_terminal_is_in_its_reach),
        TEST(a_terminal_that_cannot_be_made_is_named),
    };

    if (argc > 2 && !strcmp(argv[1], "inside"))
        return inside(argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
