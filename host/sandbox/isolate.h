/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib exec --isolate: a program that is not trusted runs as a host in namespaces of its own (user,
 * PID, IPC, mounts). It sees no other process of its user, and of the run directories of its user
 * only what it needs to be that host: the conf, the clock, its own host's sockets, locks and
 * counters. The network, the file system and what the caller's descriptors are open on stay shared.
 */
#ifndef TRIB_HOST_SANDBOX_ISOLATE_H
#define TRIB_HOST_SANDBOX_ISOLATE_H

#include "host/sandbox/sandbox.h"

/*
 * Runs argv as this host and returns its exit code; a signal that ended it ends the caller. The
 * caller stays: it passes signals on. All that the program has started ends with it. The calling
 * process must have one thread, and no descriptor of the run directory. lib: path of
 * libtribverbs.so, which the environment preloads already. 1, with a message on stderr: the machine
 * forbids it.
 */
int isolate_run(const struct rundir *rd, const struct fab_node *host, const char *lib, char **argv);

#endif
