/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The child process of a property. A CPU timer checks that the number of packets still grows. The
 * parent sees which signal ended the child, and waits at most MOST_WALL seconds.
 */
#include "protocols/check/property.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST_WALL 300 /* s */
#define LOOKS     4   /* looks without progress, half a second of CPU time apart, until it fails */

/* Used in the child. */
static struct property_found *mine;

/* Handler of the timer: a packet takes microseconds, so if several looks find the same packet of
 * the same seed, the protocol is in an endless loop. */
static void child_look(int signal)
{
    static uint64_t seed, packet, packets;
    static unsigned same;

    (void)signal;
    if (mine->seed == seed && mine->packet == packet && mine->packets == packets) {
        if (++same == LOOKS) {
            static const char text[] = "a function of the protocol does not return";

            memcpy(mine->text, text, sizeof(text));
            mine->failed = true;
            _exit(1);
        }
        return;
    }
    same = 0;
    seed = mine->seed;
    packet = mine->packet;
    packets = mine->packets;
}

_Noreturn static void child(const struct property_plan *plan, enum property p,
                            struct property_found *found)
{
    const struct itimerval half = {{0, 500000}, {0, 500000}};
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    const struct rlimit no_core = {0, 0};
    uint64_t last = plan->last;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_CORE, &no_core);
    mine = found;
    for (unsigned i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++)
        signal(fatal[i], SIG_DFL); /* the parent's handlers must not run in the child */
    signal(SIGVTALRM, child_look);
    setitimer(ITIMER_VIRTUAL, &half, NULL);
    mallopt(M_PERTURB, 0xb1);
    /* Run more seeds, because most forged packets have no effect. */
    if (p == P_HOSTILE && last > plan->first)
        last *= 3;
    for (uint64_t s = plan->first; s <= last && property_seed(plan, p, s, found); s++)
        if (p == P_VERSIONS)
            break;
    if (plan->trace)
        fflush(plan->trace);
    found->ended = true;
    _exit(0);
}

/* Waits for the child. *status: its status; -ETIME: it did not end. */
static int wait_for(pid_t pid, int *status)
{
    for (unsigned ms = 0; ms < MOST_WALL * 1000u; ms += ms < 100 ? 1 : 10) {
        const struct timespec pause = {0, ms < 100 ? 1000000 : 10000000};
        pid_t ended = waitpid(pid, status, WNOHANG);

        if (ended == pid)
            return 0;
        if (ended < 0)
            return -errno;
        nanosleep(&pause, NULL);
    }
    kill(pid, SIGKILL);
    waitpid(pid, status, 0);
    return -ETIME;
}

int property_run(const struct property_plan *plan, enum property p, struct property_found *found)
{
    struct property_found *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status = 0, rc;
    pid_t pid;

    if (shared == MAP_FAILED)
        return -errno;
    fflush(NULL);
    pid = fork();
    if (!pid)
        child(plan, p, shared);
    if (pid < 0) {
        rc = -errno;
        munmap(shared, sizeof(*shared));
        return rc;
    }
    rc = wait_for(pid, &status);
    *found = *shared;
    munmap(shared, sizeof(*shared));
    if (rc == -ETIME)
        snprintf(found->text, sizeof(found->text), "has not ended after %d s", MOST_WALL);
    else if (WIFSIGNALED(status))
        snprintf(found->text, sizeof(found->text),
                 "a function of the protocol ends by signal %d, %s", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else if (!found->ended && !found->failed)
        snprintf(found->text, sizeof(found->text), "a function of the protocol exits, code %d",
                 WEXITSTATUS(status));
    if (rc == -ETIME || !found->ended)
        found->failed = true;
    return rc == -ETIME ? 0 : rc;
}
