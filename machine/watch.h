/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds the ports of a process whose connection needs attention (io_port_fd()), at a cost that does not
 * grow with their number: a process has hundreds and looks twenty times a second. One thread.
 */
#ifndef TRIB_MACHINE_WATCH_H
#define TRIB_MACHINE_WATCH_H

#include <stdbool.h>

struct watch {
    int epoll; /* -1: none */
    int *fd;   /* [n] as registered; -1: none */
    bool *ready;
};

int watch_create(struct watch *w, unsigned n); /* 0 or -errno */
void watch_destroy(struct watch *w);
/*
 * Registers port i's descriptor; -1: none. Call it after anything that may have changed the descriptor,
 * even if its number is the same. Closed descriptors are forgotten without a call.
 */
void watch_set(struct watch *w, unsigned i, int fd);
/* Sets ready[i] for each of the first n ports that is readable or has an error, and clears the others.
 * Returns how many are set. */
unsigned watch_look(struct watch *w, unsigned n);

#endif
