/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/assert.h"
#include "host/keep/procs.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TERM_MS 5000 /* from SIGTERM to SIGKILL */
#define KILL_MS 5000
#define ROUNDS  3 /* each finds processes that were started during the last one */

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* A zombie counts as ended, whether or not its parent has reaped it. */
bool procs_wait(const struct procs *p, int ms)
{
    int64_t until = now_ms() + ms;

    for (unsigned i = 0; i < p->n; i++) {
        struct pollfd f = {.fd = p->at[i].fd, .events = POLLIN};
        int64_t left = until - now_ms();

        T_ASSERT(f.fd >= 0, "a process of another namespace is waited for");
        while (poll(&f, 1, left > 0 ? (int)left : 0) < 0 && errno == EINTR)
            ;
        if (!(f.revents & POLLIN))
            return false;
    }
    return true;
}

int procs_signal(const struct procs *p, int sig)
{
    int rc = 0;

    T_ASSERT(!procs_away(p), "half a fabric is signalled");
    for (unsigned turn = 0; turn < 2; turn++)
        for (unsigned i = 0; i < p->n; i++)
            if ((*p->at[i].name != 0) == turn &&
                syscall(SYS_pidfd_send_signal, p->at[i].fd, sig, NULL, 0) && errno != ESRCH && !rc)
                rc = -errno;
    return rc;
}

int procs_stop(const char *dir, bool keeper)
{
    struct procs p;
    int rc = 0;

    for (unsigned i = 0; i < ROUNDS; i++) {
        bool none;

        rc = procs_find(&p, dir, keeper);
        none = !p.n;
        if (!rc && procs_away(&p))
            rc = -EXDEV; /* ending only some of them would leave half a fabric */
        if (!rc && !none)
            rc = procs_signal(&p, SIGTERM);
        if (!rc && !none && !procs_wait(&p, TERM_MS)) {
            rc = procs_signal(&p, SIGKILL);
            if (!rc && !procs_wait(&p, KILL_MS))
                rc = -ETIMEDOUT;
        }
        procs_free(&p);
        if (rc || none)
            break;
    }
    return rc;
}
