/* SPDX-License-Identifier: BSD-3-Clause */
#include "machine/rundir_default.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int rundir_default(char *buf, size_t size, const char *parent, const char *fabric)
{
    const char *xdg = getenv("XDG_RUNTIME_DIR");
    int n;

    parent = parent ? parent : xdg && *xdg ? xdg : "/tmp";
    n = snprintf(buf, size, "%s/tributary-%u%s%s", parent, (unsigned)getuid(), fabric ? "/" : "",
                 fabric ? fabric : "");
    return n < (int)size ? 0 : -ENAMETOOLONG;
}
