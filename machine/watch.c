/* SPDX-License-Identifier: BSD-3-Clause */
#include "machine/watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define AT_ONCE 64

int watch_create(struct watch *w, unsigned n)
{
    *w = (struct watch){.fd = calloc(n + 1u, sizeof(*w->fd)),
                        .ready = calloc(n + 1u, sizeof(*w->ready)),
                        .epoll = epoll_create1(EPOLL_CLOEXEC)};
    if (w->epoll < 0)
        return -errno;
    if (!w->fd || !w->ready)
        return -ENOMEM;
    for (unsigned i = 0; i < n; i++)
        w->fd[i] = -1;
    return 0;
}

/* Also for a watch that was never created, which is all zero. */
void watch_destroy(struct watch *w)
{
    if (w->fd && w->epoll >= 0)
        close(w->epoll);
    free(w->fd);
    free(w->ready);
    *w = (struct watch){.epoll = -1};
}

void watch_set(struct watch *w, unsigned i, int fd)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.u32 = i};

    w->fd[i] = fd;
    if (fd < 0)
        return;
    if (epoll_ctl(w->epoll, EPOLL_CTL_MOD, fd, &ev) && errno == ENOENT &&
        epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &ev))
        w->fd[i] = -1; /* the next call tries again */
}

unsigned watch_look(struct watch *w, unsigned n)
{
    struct epoll_event ev[AT_ONCE];
    unsigned total = 0;
    int got;

    memset(w->ready, 0, n * sizeof(*w->ready));
    /* epoll_wait() continues with other ports each time; stops at a batch without a new one. */
    do {
        bool fresh = false;

        got = epoll_wait(w->epoll, ev, AT_ONCE, 0);
        for (int k = 0; k < got; k++) {
            bool *r = &w->ready[ev[k].data.u32];

            fresh |= !*r;
            total += !*r;
            *r = true;
        }
        if (!fresh)
            break;
    } while (got == AT_ONCE);
    return total;
}
