/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which of a process's ports have something to say of their connection (io_port_fd()), at a cost that
 * does not grow with their number: a process has hundreds, and asks twenty times a second. One thread.
 */
#ifndef TRIB_MACHINE_WATCH_H
#define TRIB_MACHINE_WATCH_H

#include <stdbool.h>

struct watch {
    int epoll; /* -1: none */
    int *fd;   /* as registered; -1: none */
    bool *ready;
};

int watch_create(struct watch *w, unsigned n); /* 0 or -errno */
void watch_destroy(struct watch *w);
/*
 * Port i has this descriptor; -1: none. Call it after whatever may have changed the descriptor, the
 * number of which may be the same as before. One that was closed is forgotten without a call.
 */
void watch_set(struct watch *w, unsigned i, int fd);
/* Sets ready[i] of each of the first n ports that can be read or has an error, clears it of the others.
 * Returns how many are. */
unsigned watch_look(struct watch *w, unsigned n);

#endif
