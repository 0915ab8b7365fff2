/* SPDX-License-Identifier: BSD-3-Clause */
/* The namespaces of an isolated program: what it sees of files, processes and the fabric. */
#ifndef TRIB_HOST_SANDBOX_ISOLATED_VIEW_H
#define TRIB_HOST_SANDBOX_ISOLATED_VIEW_H

#include "host/sandbox/sandbox.h"

/* A user namespace with this user and group under their own numbers, and these others (CLONE_NEW...) in
 * it. 0 or -errno. */
int isolated_user_namespace(int others);

/* In init: everything that the program shall see, and nothing that it could take away again. pid: of
 * the first process, as it is outside. 0, or -errno and *what names what was refused. */
int isolated_mounts(const struct rundir *rd, const struct fab_node *host, const char *lib,
                    unsigned pid, const char **what);

#endif
