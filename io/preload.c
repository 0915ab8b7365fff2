/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/preload.h"

#include "base/own_path.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* Whether somebody who is neither this user, root, nor whose program this is can change the file:
 * it is about to run in this user's programs. */
static bool is_foreign(const char *path, uid_t programs, bool is_dir)
{
    struct stat st;

    if (stat(path, &st)) /* the loader says so */
        return false;
    if ((own_trusts(st.st_uid) || st.st_uid == programs) &&
        (!(st.st_mode & S_IWOTH) || (is_dir && st.st_mode & S_ISVTX)))
        return false;
    fprintf(stderr,
            "tributary: %s: found user %u and mode %04o, expected a library of this user, of root "
            "or of the owner of this program that not everybody can write to (TRIB_LIB, "
            "TRIB_BUILD)\n",
            path, (unsigned)st.st_uid, (unsigned)st.st_mode & 07777);
    return true;
}

static int check(const char *lib)
{
    const char *slash = strrchr(lib, '/');
    struct stat self;
    char *dir;
    int rc;

    if (!slash) /* the loader looks for it where it looks for all */
        return 0;
    if (stat("/proc/self/exe", &self))
        self.st_uid = geteuid();
    dir = strndup(lib, slash == lib ? 1 : (size_t)(slash - lib));
    if (!dir)
        return -ENOMEM;
    rc = is_foreign(dir, self.st_uid, true) || is_foreign(lib, self.st_uid, false) ? -EPERM : 0;
    free(dir);
    return rc;
}

int preload_set(const char *lib)
{
    const char *slash = strrchr(lib, '/');
    char *dir;
    int rc = check(lib);

    if (rc)
        return rc;
    if (!strpbrk(lib, " \t\n:;"))
        return put_first("LD_PRELOAD", lib, ": ");
    if (!slash || strpbrk(lib, ":;") || strpbrk(slash, " \t\n"))
        return -EINVAL;
    dir = strndup(lib, (size_t)(slash - lib));
    rc = dir ? put_first("LD_LIBRARY_PATH", dir, ":;") : -ENOMEM;
    free(dir);
    return rc ? rc : put_first("LD_PRELOAD", slash + 1, ": ");
}
