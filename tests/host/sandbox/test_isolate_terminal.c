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

#include "host/sandbox/isolate.h"
#include "tests/host/sandbox/world.h"

#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>

static int master, slave; /* the user's */

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
static int echo(const char *how)
{
    struct sigaction sa = {.sa_handler = on_signal};
    const int tty = STDERR_FILENO; /* always the terminal */
    bool has_keys = tcgetpgrp(tty) == getpgrp();
    struct termios t;
    char line[64];
    ssize_t n;

    if (!strcmp(how, "tries"))
        signal(SIGTTIN, SIG_IGN);
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

/* ---- the user ---- */

/* What the terminal shows until both texts do, in either order. */
static bool shows_both(const char *text, const char *other)
{
    static char seen[8192];
    struct pollfd p = {master, POLLIN, 0};
    size_t n = 0;

    while (n < sizeof(seen) - 1 && poll(&p, 1, 5000) == 1 && read(master, seen + n, 1) == 1) {
        seen[++n] = 0;
        if (strstr(seen, text) && strstr(seen, other))
            return true;
    }
    fprintf(stderr, "expected <%s>, found <%.*s>\n", text, (int)n, seen);
    return false;
}

static bool shows(const char *text)
{
    return shows_both(text, "");
}

static void types(const char *keys)
{
    (void)!write(master, keys, strlen(keys));
}

static bool is_raw(void)
{
    struct termios t;

    return !tcgetattr(slave, &t) && !(t.c_lflag & (ICANON | ECHO | ISIG));
}

/* ---- the shell ---- */

/* Leads the session of the terminal; the job is in a group of its own, or of this one as those of scripts are. */
static pid_t run_job(struct world *w, unsigned streams, bool job, const char *how)
{
    char self[] = "/proc/self/exe", in[] = "inside", word[16];
    char *argv[] = {self, in, word, NULL};
    int null = open("/dev/null", O_RDWR);
    pid_t pid;

    snprintf(word, sizeof(word), "%s", how);
    pid = fork();
    if (!pid) {
        signal(SIGTTOU, SIG_IGN);
        if (job) {
            setpgid(0, 0);
            tcsetpgrp(slave, getpid());
        }
        for (int fd = 0; fd < 3; fd++)
            dup2(streams & 1u << fd ? slave : null, fd);
        close(master);
        close(slave);
        signal(SIGTTOU, SIG_DFL);
        signal(SIGTSTP, SIG_DFL);
        _exit(isolate_run(&w->rd, &w->host, w->lib, argv));
    }
    close(null);
    return pid;
}

static void begin_session(struct world *w)
{
    struct winsize size = {24, 80, 0, 0};

    snprintf(w->rd.path, sizeof(w->rd.path), "/tmp/run");
    world_tmpfs("/tmp");
    world_dir("/tmp/run");
    world_dir("/tmp/run/port");
    world_dir("/tmp/run/port/h7");
    world_need(setsid() < 0, "setsid");
    world_need(ioctl(slave, TIOCSCTTY, 0), "terminal");
    ioctl(slave, TIOCSWINSZ, &size);
    signal(SIGTTOU, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGTSTP, SIG_IGN);
    alarm(60);
}

static void say(struct world *w, const char *what, bool is_so)
{
    fprintf(w->out, "%s: %s\n", what, is_so ? "yes" : "no");
}

static int ended(pid_t pid)
{
    int status;

    if (waitpid(pid, &status, WUNTRACED) != pid)
        return -1;
    return WIFSTOPPED(status)  ? 2000 + WSTOPSIG(status)
           : WIFEXITED(status) ? WEXITSTATUS(status)
                               : 1000 + WTERMSIG(status);
}

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

static int open_terminal(void **state)
{
    (void)state;
    return openpty(&master, &slave, NULL, NULL, NULL);
}

static int close_terminal(void **state)
{
    (void)state;
    close(master);
    close(slave);
    return 0;
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, open_terminal, close_terminal)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(a_program_has_a_terminal_of_its_own),
        TEST(keys_come_when_they_are_asked_for),
        TEST(a_script_keeps_its_keys),
    };

    if (argc > 2 && !strcmp(argv[1], "inside"))
        return echo(argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
