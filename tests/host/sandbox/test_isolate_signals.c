/* SPDX-License-Identifier: BSD-3-Clause */
/* Signals of an isolated program: which it gets, which its group gets, how its stops reach the shell, and what ends all of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/host/sandbox/isolated.h"

/* ---- inside ---- */

static const char *who = "";
static volatile sig_atomic_t ends;

/* At once, so that none is lost between two. */
static void on_signal(int sig)
{
    dprintf(STDOUT_FILENO, "%sgot %d\n", who, sig);
    ends |= sig == SIGTERM;
}

static void catch_all(void)
{
    static const int sigs[] = {SIGTERM, SIGINT,  SIGHUP,   SIGQUIT, SIGUSR1,
                               SIGUSR2, SIGALRM, SIGWINCH, SIGCHLD};
    struct sigaction sa = {.sa_handler = on_signal};

    for (unsigned i = 0; i < sizeof(sigs) / sizeof(sigs[0]); i++)
        sigaction(sigs[i], &sa, NULL);
}

/* Tells of each signal until the one that ends it. */
static int hear_signals(void)
{
    struct sigaction sa;
    sigset_t none, all;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, NULL, &none);
    for (int i = 1; i < 32; i++)
        if (sigismember(&none, i))
            dprintf(STDOUT_FILENO, "blocked %d\n", i);
    sigprocmask(SIG_SETMASK, &all, &none);
    sigaction(SIGCHLD, NULL, &sa);
    dprintf(STDOUT_FILENO, "children %s\n", sa.sa_handler == SIG_IGN ? "ignored" : "not ignored");
    catch_all();
    dprintf(STDOUT_FILENO, "ready\n");
    while (!ends)
        sigsuspend(&none);
    return 3;
}

/* With a child in its process group. */
static int hear_as_two(void)
{
    int pipes[2];
    char c;

    if (pipe(pipes))
        return 1;
    if (!fork()) {
        who = "child ";
        catch_all();
        (void)!write(pipes[1], "x", 1);
        for (;;)
            pause();
    }
    if (read(pipes[0], &c, 1) != 1)
        return 1;
    catch_all();
    signal(SIGCHLD, SIG_DFL); /* its stops are no news */
    dprintf(STDOUT_FILENO, "ready\n");
    while (!ends)
        pause();
    return 3;
}

static int stop_itself(void)
{
    dprintf(STDOUT_FILENO, "ready\n");
    raise(SIGSTOP);
    dprintf(STDOUT_FILENO, "went on\n");
    return 4;
}

static int inside(const char *what)
{
    if (!strcmp(what, "signals"))
        return hear_signals();
    if (!strcmp(what, "two"))
        return hear_as_two();
    if (!strcmp(what, "stop"))
        return stop_itself();
    return 1;
}

/* ---- signals that are sent ---- */

static void begin(struct world *w, const char *what, bool job, pid_t *pid, FILE **from)
{
    make_run(w, true);
    if (job)
        world_need(setsid() < 0,
                   "setsid"); /* the shell: jobs stop if their parent is in the session */
    *pid = start(w, what, job, from);
}

static void end(struct world *w, pid_t pid, FILE *from)
{
    int status;

    world_need(waitpid(pid, &status, 0) != pid, "wait");
    fseek(w->out, 0, SEEK_END);
    fprintf(w->out, "%x\n", (unsigned)status);
    fclose(from);
}

static void send_signals(struct world *w)
{
    static const int sigs[] = {SIGINT,  SIGHUP,  SIGQUIT,  SIGUSR1,
                               SIGUSR2, SIGALRM, SIGWINCH, SIGTERM};
    FILE *from;
    pid_t pid;

    signal(SIGCHLD, SIG_IGN); /* what the program inherits */
    begin(w, "signals", false, &pid, &from);
    signal(SIGCHLD, SIG_DFL);
    hear_ready(w, from);
    for (unsigned i = 0; i < 8; i++) {
        kill(pid, SIGCHLD); /* which is of this process's own children */
        kill(pid, sigs[i]);
        hear_line(w, from);
    }
    end(w, pid, from);
}

static void the_program_gets_what_is_sent(void **state)
{
    (void)state;
    ASSERT_WORLD(send_signals, 0,
                 "children ignored\nready\n"
                 "got 2\ngot 1\ngot 3\ngot 10\ngot 12\ngot 14\ngot 28\ngot 15\n300\n");
}

/* ---- stops ---- */

/* The states of a process's descendants, a letter each, parents first. */
static void add_states(pid_t pid, char *states)
{
    char path[64], state;
    int child;
    FILE *f, *stat;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
    f = fopen(path, "r");
    while (f && fscanf(f, "%d", &child) == 1) {
        snprintf(path, sizeof(path), "/proc/%d/stat", child);
        stat = fopen(path, "r");
        if (stat && fscanf(stat, "%*d (%*[^)]) %c", &state) == 1)
            strncat(states, &state, 1);
        if (stat)
            fclose(stat);
        add_states(child, states);
    }
    if (f)
        fclose(f);
}

/* What they come to be. */
static void say_states(struct world *w, pid_t pid, const char *expected)
{
    char states[64] = "";

    for (unsigned i = 0; i < 1000 && strcmp(states, expected) != 0; i++) {
        usleep(i ? 5000 : 0);
        states[0] = 0;
        add_states(pid, states);
    }
    fseek(w->out, 0, SEEK_END);
    fprintf(w->out, "init, program, child: %s\n", states);
}

static void say_stop(struct world *w, pid_t pid)
{
    int status;

    world_need(waitpid(pid, &status, WUNTRACED) != pid, "wait");
    fseek(w->out, 0, SEEK_END);
    fprintf(w->out, WIFSTOPPED(status) ? "stopped by %d\n" : "ended by %d\n",
            WIFSTOPPED(status) ? WSTOPSIG(status) : status);
}

static void stop_two(struct world *w)
{
    FILE *from;
    pid_t pid;

    begin(w, "two", true, &pid, &from);
    hear_ready(w, from);
    kill(pid, SIGUSR1);
    hear_line(w, from);
    kill(pid, SIGTSTP);
    say_stop(w, pid);
    say_states(w, pid, "STT");
    kill(pid, SIGCONT);
    say_states(w, pid, "SSS");
    kill(pid, SIGTERM);
    hear_line(w, from);
    end(w, pid, from);
}

static void its_group_stops_and_goes_on_with_it(void **state)
{
    (void)state;
    ASSERT_WORLD(stop_two, 0,
                 "ready\ngot 10\nstopped by 20\ninit, program, child: STT\n"
                 "init, program, child: SSS\ngot 15\n300\n");
}

static void stop_alone(struct world *w)
{
    FILE *from;
    pid_t pid;

    begin(w, "stop", true, &pid, &from);
    hear_ready(w, from);
    say_stop(w, pid);
    kill(pid, SIGCONT);
    hear_line(w, from);
    end(w, pid, from);
}

static void a_program_that_stops_itself_stops_its_job(void **state)
{
    (void)state;
    ASSERT_WORLD(stop_alone, 0, "ready\nstopped by 20\nwent on\n400\n");
}

/* A script has the program in its own group, and goes on itself. */
static int be_script(struct world *w)
{
    FILE *from;
    pid_t pid = start(w, "stop", false, &from);
    int status;

    hear_ready(w, from);
    say_stop(w, pid);
    kill(pid, SIGCONT);
    hear_line(w, from);
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

static void stop_in_a_script(struct world *w)
{
    int status;
    pid_t script;

    make_run(w, true);
    world_need(setsid() < 0, "setsid");
    script = fork();
    if (!script) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setpgid(0, 0);
        end_with(be_script(w));
    }
    world_need(waitpid(script, &status, WUNTRACED) != script, "wait");
    fseek(w->out, 0, SEEK_END);
    fprintf(w->out, "script %x\n", (unsigned)status);
    if (WIFSTOPPED(status))
        kill(-script, SIGKILL);
}

static void a_script_is_not_stopped_with_its_program(void **state)
{
    (void)state;
    ASSERT_WORLD(stop_in_a_script, 0, "ready\nstopped by 20\nwent on\nscript 400\n");
}

/* ---- ends ---- */

/* Init is the one child of the first process. */
static void kill_init(struct world *w)
{
    char path[128];
    int init = 0;
    FILE *from, *f;
    pid_t pid;

    begin(w, "signals", false, &pid, &from);
    hear_ready(w, from);
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
    f = fopen(path, "r");
    world_need(!f || fscanf(f, "%d", &init) != 1 || init < 2, path);
    fclose(f);
    fflush(w->out);
    kill(init, SIGKILL);
    end(w, pid, from);
}

static void a_namespace_that_is_killed_is_said(void **state)
{
    (void)state;
    ASSERT_WORLD(kill_init, 0,
                 "children not ignored\nready\ntrib: the namespace of h7 was killed\n100\n");
}

static void kill_the_first(struct world *w)
{
    FILE *from;
    pid_t pid;

    begin(w, "two", false, &pid, &from);
    hear_ready(w, from);
    kill(pid, SIGKILL);
    hear_line(w, from); /* the end, once nobody in there can write any more */
    fprintf(w->out, "%s\n", feof(from) ? "all ended" : "somebody is left");
    end(w, pid, from);
}

static void all_of_it_ends_with_the_first_process(void **state)
{
    (void)state;
    ASSERT_WORLD(kill_the_first, 0, "ready\nall ended\n9\n");
}

#define TEST(t) cmocka_unit_test(t)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(the_program_gets_what_is_sent),
        TEST(its_group_stops_and_goes_on_with_it),
        TEST(a_program_that_stops_itself_stops_its_job),
        TEST(a_script_is_not_stopped_with_its_program),
        TEST(a_namespace_that_is_killed_is_said),
        TEST(all_of_it_ends_with_the_first_process),
    };

    if (argc > 2 && !strcmp(argv[1], "inside"))
        return inside(argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
