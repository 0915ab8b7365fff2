/* SPDX-License-Identifier: BSD-3-Clause */
#include "trib/run/signals.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
#define N_ENDING (sizeof(ending) / sizeof(ending[0]))

static const char *stop_keep, *volatile stop_dir;
static sigset_t taken, before; /* those that are not ignored; the mask of the caller */
static unsigned holds;
static bool ends_ignored; /* by the caller */

/* Nothing here may allocate or print: it runs in a signal handler, too. */
static void fabric_stop(void)
{
    const char *dir = stop_dir;
    pid_t pid;

    if (!dir)
        return;
    stop_dir = NULL;
    for (unsigned i = 0; i < N_ENDING; i++)
        signal(ending[i], SIG_IGN);
    pid = fork();
    if (!pid) {
        execl(stop_keep, stop_keep, "stop", dir, (char *)NULL);
        _exit(127);
    }
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

static void on_ending(int sig)
{
    fabric_stop();
    _exit(SIGNALS_CODE(sig));
}

void signals_begin(void)
{
    struct sigaction sa = {.sa_handler = on_ending}, old;

    sigemptyset(&taken);
    sigprocmask(SIG_BLOCK, NULL, &before);
    ends_ignored = signal(SIGCHLD, SIG_DFL) == SIG_IGN; /* if it is ignored, waitpid() loses the
                                                         * status of children */
    sigfillset(&sa.sa_mask);
    for (unsigned i = 0; i < N_ENDING; i++) {
        sigaction(ending[i], NULL, &old);
        if (old.sa_handler == SIG_IGN)
            continue;
        sigaction(ending[i], &sa, NULL);
        sigaddset(&taken, ending[i]);
    }
    atexit(fabric_stop);
}

/* SIGPIPE comes when nobody reads the output: it ends the command, and the fabric with it. */
void signals_stop_at_end(const char *keep, const char *dir)
{
    struct sigaction sa = {.sa_handler = dir ? on_ending : SIG_DFL}, old;

    sigfillset(&sa.sa_mask);
    stop_keep = keep;
    stop_dir = dir;
    sigaction(SIGPIPE, NULL, &old);
    if (old.sa_handler != SIG_IGN)
        sigaction(SIGPIPE, &sa, NULL);
}

static sigset_t held_set(void)
{
    sigset_t set = taken;

    sigaddset(&set, SIGCHLD);
    return set;
}

void signals_hold(void)
{
    sigset_t set = held_set();

    if (!holds++)
        sigprocmask(SIG_BLOCK, &set, NULL);
}

void signals_release(void)
{
    if (!--holds)
        sigprocmask(SIG_SETMASK, &before, NULL);
}

int signals_next(int ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    sigset_t set = held_set();
    int sig = ms < 0 ? sigwaitinfo(&set, NULL) : sigtimedwait(&set, NULL, &t);

    return sig > 0 && sig != SIGCHLD ? sig : 0;
}

void signals_child(void)
{
    for (unsigned i = 0; i < N_ENDING; i++)
        if (sigismember(&taken, ending[i]))
            signal(ending[i], SIG_DFL);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

void signals_hand_on(void)
{
    if (ends_ignored)
        signal(SIGCHLD, SIG_IGN);
}

static int code_of(int status)
{
    return WIFSIGNALED(status) ? SIGNALS_CODE(WTERMSIG(status)) : WEXITSTATUS(status);
}

int signals_wait(pid_t child)
{
    int status = 0;

    signals_hold();
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) {
            status = 127 << 8;
            break;
        }
    signals_release();
    return code_of(status);
}

int signals_pass(pid_t child, int hup, int *asked)
{
    int status = 0, sig, code;
    pid_t got;

    *asked = 0;
    while (!(got = waitpid(child, &status, WNOHANG))) {
        sig = signals_next(-1);
        if (!sig)
            continue;
        *asked = SIGNALS_CODE(sig);
        kill(child, sig == SIGHUP ? hup : SIGTERM);
        kill(child, SIGCONT);
    }
    code = got == child ? code_of(status) : 127;
    return code == SIGNALS_CODE(SIGTERM) && *asked ? *asked : code;
}
