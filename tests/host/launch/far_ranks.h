/* SPDX-License-Identifier: BSD-3-Clause */
/* A job for tests of the launcher whose ranks are only the far ends of sockets. */
#ifndef TRIB_TESTS_HOST_LAUNCH_FAR_RANKS_H
#define TRIB_TESTS_HOST_LAUNCH_FAR_RANKS_H

#include "host/launch/msg_read.h"
#include "host/launch/ranks_priv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#define N   3
#define PID 1 /* nobody's child: it is never reaped, and nothing here ends it */

static struct fab_node nodes[N] = {{.name = "h0"}, {.name = "h1"}, {.name = "h2"}};
static struct fab_tree trees[2];
static uint16_t hosts[N] = {0, 1, 2};
static struct fabric fab = {
    .n_nodes = N, .n_hosts = N, .nodes = nodes, .hosts = hosts, .trees = trees, .n_trees = 2};

/* fd: the ranks' ends. Arrays are of N, pfd of one more; they are the caller's. */
static inline void far_ranks_open(struct job_processes *j, struct job_process *rank,
                                  struct pollfd *pfd, int *fd)
{
    *j = (struct job_processes){.fab = &fab,
                                .nranks = N,
                                .machine = FAB_NONE,
                                .host = hosts,
                                .rank = rank,
                                .pfd = pfd,
                                .sigfd = -1};
    for (unsigned r = 0; r < N; r++) {
        int sv[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sv), 0);
        rank[r] = (struct job_process){.pid = PID, .fd = sv[0]};
        fd[r] = sv[1];
    }
}

/* Ends that a test has closed are -1. in: what ranks have read. */
static inline void far_ranks_close(struct job_process *rank, int *fd, struct inbox *in)
{
    for (unsigned r = 0; r < N; r++) {
        if (rank[r].fd >= 0)
            close(rank[r].fd);
        if (fd[r] >= 0)
            close(fd[r]);
        msg_free(&rank[r].in);
        msg_free(&in[r]);
    }
}

#endif
