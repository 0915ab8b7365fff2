/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The keeper thread holds the port's descriptors: the memif's socket, the file of frames, the
 * slot's lock.
 *
 * Programs close all descriptors that they do not know (closefrom, daemon, a loop up to the limit)
 * and then reuse the numbers. So the port's descriptors are not in the program's table: a thread
 * with a table of its own opens them and polls its socket. Nothing that a program does to its
 * descriptors reaches that table, a forked child does not inherit it, and the program's own numbers
 * are as they would be without this library.
 *
 * The table starts empty: a copy of the program's pipes would keep their other ends waiting.
 * Standard error stays open until the port is up, for error messages; then it is /dev/null.
 *
 * The keeper also writes the port's counters, which are files: threads that move frames do not
 * write files.
 *
 * Where the kernel has no close_range() and refuses unshare() (5.8 and older in a container) the
 * keeper uses the program's table.
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

/* 0, 1 and 2 stay open, or the next file that is opened becomes standard output. */
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

/* Tracks the connection. A thread with the program's descriptors posts the events that follow from
 * it (process_check_port). */
static void process_keeper_keep(struct process_hca *p)
{
    struct pollfd f = {.events = POLLIN};
    int ms = IDLE_MS;
    bool up, again;

    pthread_mutex_lock(&p->lock);
    up = io_port_up(p->port);
    if (up != p->connected)
        process_wake(p);
    again = up && !p->connected;
    p->connected = up;
    p->lost |= !up;
    f.fd = io_port_fd(p->port);
    pthread_mutex_unlock(&p->lock);
    if (again)
        process_find_nic(p);
    process_look_for_deaths(p);
    if (process_count(p, false))
        p->counted_ns = clock_mono_ns();
    if (clock_mono_ns() - p->counted_ns < QUIET_NS)
        ms = (int)(port_counters_period_ns(&p->counters) / 1000000);
    poll(&f, 1, up || ms < RETRY_MS ? ms : RETRY_MS);
}

void *process_keeper(void *arg)
{
    struct process_hca *p = arg;
    int rc;

    pthread_setname_np(pthread_self(), "trib-hca-port");
    p->shared_fds = !own_table();
    rc = process_start(p);
    if (!p->shared_fds)
        to_null(2);
    pthread_mutex_lock(&p->lock);
    p->start_rc = rc;
    p->start_done = true;
    pthread_cond_broadcast(&p->started);
    pthread_mutex_unlock(&p->lock);
    while (!rc)
        process_keeper_keep(p);
    return NULL;
}
