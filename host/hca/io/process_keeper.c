/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who keeps the port's descriptors: the memif's socket, the file of frames, the slot's lock.
 *
 * Programs close all descriptors that they do not know (closefrom, daemon, a loop up to the limit)
 * and then have others under the same numbers. So the port's are not in the program's table: a
 * thread with a table of its own opens them, and sleeps until its socket says something. Nothing
 * that a program does to its descriptors reaches that table, a child of a fork does not inherit it,
 * and the program's own numbers are as they would be without us.
 *
 * The table begins empty: a copy of the program's pipes would keep their other ends waiting.
 * Standard error is there until the port is up, for what there is to say; then /dev/null is.
 *
 * It counts, too: a port's counters are files, and nobody shall write files where frames move.
 *
 * Where the kernel has no close_range() and allows no unshare() (5.8 and older in a container) the
 * program's table is used, as if there were no keeper.
 */
#include "host/hca/io/process_priv.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE (1U << 1)
#endif

#define RETRY_MS 50
#define IDLE_MS  100
#define QUIET_NS 1000000000LL

/* ---- a table of its own ---- */

static void close_by_number(unsigned first)
{
    long max = sysconf(_SC_OPEN_MAX);

    for (long fd = first; fd < (max < 0 || max > 65536 ? 65536 : max); fd++)
        close((int)fd);
}

static void close_others(void)
{
    if (syscall(SYS_close_range, 3u, ~0u, 0))
        close_by_number(3);
}

/* 0, 1 and 2 must be something, or what is opened next becomes somebody's standard output. */
static void to_null(int fd)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (null < 0 || null == fd)
        return;
    dup3(null, fd, O_CLOEXEC);
    close(null);
}

static bool own_table(void)
{
    if (!syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_UNSHARE))
        ;
    else if (!unshare(CLONE_FILES))
        close_others();
    else
        return false;
    to_null(0);
    to_null(1);
    return true;
}

/* ---- the port ---- */

/* What becomes of it is said by a thread that has the program's descriptors (rim_check_port). */
static void keep(struct rim_hca *r)
{
    struct pollfd f = {.events = POLLIN};
    int ms = IDLE_MS;
    bool up;

    pthread_mutex_lock(&r->lock);
    up = rim_port_up(r->port);
    if (up != r->connected)
        bell_ring(r->bell);
    r->connected = up;
    r->lost |= !up;
    f.fd = rim_port_fd(r->port);
    pthread_mutex_unlock(&r->lock);
    if (rim_count(r, false))
        r->counted_ns = clock_mono_ns();
    if (clock_mono_ns() - r->counted_ns < QUIET_NS)
        ms = (int)(port_counters_period_ns(&r->counters) / 1000000);
    poll(&f, 1, up || ms < RETRY_MS ? ms : RETRY_MS);
}

void *rim_keeper(void *arg)
{
    struct rim_hca *r = arg;
    int rc;

    pthread_setname_np(pthread_self(), "trib-hca-port");
    r->shared_fds = !own_table();
    rc = rim_start(r);
    if (!r->shared_fds)
        to_null(2);
    pthread_mutex_lock(&r->lock);
    r->start_rc = rc;
    r->start_done = true;
    pthread_cond_broadcast(&r->started);
    pthread_mutex_unlock(&r->lock);
    while (!rc)
        keep(r);
    return NULL;
}
