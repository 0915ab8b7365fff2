/* SPDX-License-Identifier: BSD-3-Clause */
/* Namespaces of an isolated program, and what it sees in them of files, processes and the fabric.
 */
#ifndef TRIB_HOST_SANDBOX_ISOLATED_VIEW_H
#define TRIB_HOST_SANDBOX_ISOLATED_VIEW_H

#include "host/sandbox/sandbox.h"

/* Enters a new user namespace, in which this user and group keep their numbers, and new namespaces
 * of the kinds `others` (CLONE_NEW...). 0 or -errno. */
int isolated_user_namespace(int others);

/* Called in init: makes the mounts that the program shall see, such that it cannot undo them. pid:
 * of the first process, outside. 0; or -errno, and *what names what was refused. */
int isolated_mounts(const struct rundir *rd, const struct fab_node *host, const char *lib,
                    unsigned pid, const char **what);

#endif
