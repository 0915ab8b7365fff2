/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib exec --isolate: runs an untrusted program as a host in its own namespaces (user, PID, IPC,
 * mounts). The program sees no other process of its user. Of the user's run directories it sees
 * only what that host needs: the conf, the clock, and the host's own sockets, locks and counters.
 * The network, the file system and the caller's open descriptors stay shared.
 */
#ifndef TRIB_HOST_SANDBOX_ISOLATE_H
#define TRIB_HOST_SANDBOX_ISOLATE_H

#include "host/sandbox/sandbox.h"

/*
 * Runs argv as this host and returns its exit code; if a signal ends it, the same signal ends the
 * caller. Meanwhile the caller forwards signals. All processes that the program has started end
 * with it. The calling process must have one thread and no descriptor of the run directory. lib:
 * path of libtribverbs.so, which the environment preloads already. Returns 1, with a message on
 * stderr, if the machine forbids it.
 */
int isolate_run(const struct rundir *rd, const struct fab_node *host, const char *lib, char **argv);

#endif
