/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/preload.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Prepends `what` to the variable, unless it begins with it. */
static int put_first(const char *variable, const char *what, const char *separators)
{
    const char *old = getenv(variable);
    size_t len = strlen(what);
    char *both;
    int rc;

    if (!old || !*old)
        return setenv(variable, what, 1) ? -errno : 0;
    if (!strncmp(old, what, len) && (!old[len] || strchr(separators, old[len])))
        return 0;
    if (asprintf(&both, "%s:%s", what, old) < 0)
        return -ENOMEM;
    rc = setenv(variable, both, 1) ? -errno : 0;
    free(both);
    return rc;
}

int preload_set(const char *lib)
{
    const char *slash = strrchr(lib, '/');
    char *dir;
    int rc;

    if (!strpbrk(lib, " \t\n:;"))
        return put_first("LD_PRELOAD", lib, ": ");
    if (!slash || strpbrk(lib, ":;") || strpbrk(slash, " \t\n"))
        return -EINVAL;
    dir = strndup(lib, (size_t)(slash - lib));
    rc = dir ? put_first("LD_LIBRARY_PATH", dir, ":;") : -ENOMEM;
    free(dir);
    return rc ? rc : put_first("LD_PRELOAD", slash + 1, ": ");
}
