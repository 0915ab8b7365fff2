/* SPDX-License-Identifier: BSD-3-Clause */
#include "machine/preload.h"

#include "system/own_path.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether an item is a sanitizer's runtime: it must be the first library, or it ends the program. */
static bool is_runtime(const char *item, size_t len)
{
    static const char *const names[] = {"libasan.", "libtsan.",   "libubsan.",
                                        "liblsan.", "libhwasan.", "libclang_rt."};
    const char *slash = memrchr(item, '/', len), *base = slash ? slash + 1 : item;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (len - (size_t)(base - item) > strlen(names[i]) &&
            !strncmp(base, names[i], strlen(names[i])))
            return true;
    return false;
}

/* Bytes of the sanitizer runtimes at the start of a list, with the separators after them. */
static size_t runtimes(const char *list, const char *separators)
{
    size_t at = 0, len;

    while (len = strcspn(list + at, separators), is_runtime(list + at, len))
        at += len + strspn(list + at + len, separators);
    return at;
}

/* Prepends `what` to the variable, behind sanitizer runtimes, unless it is there already. */
static int put_first(const char *variable, const char *what, const char *separators)
{
    const char *old = getenv(variable), *rest;
    size_t len = strlen(what), kept;
    char *both;
    int rc;

    if (!old || !*old)
        return setenv(variable, what, 1) ? -errno : 0;
    kept = runtimes(old, separators);
    rest = old + kept;
    if (!strncmp(rest, what, len) && (!rest[len] || strchr(separators, rest[len])))
        return 0;
    if (asprintf(&both, "%.*s%s%s%s%s", (int)kept, old,
                 kept && !strchr(separators, old[kept - 1]) ? ":" : "", what, *rest ? ":" : "",
                 rest) < 0)
        return -ENOMEM;
    rc = setenv(variable, both, 1) ? -errno : 0;
    free(both);
    return rc;
}

/* Whether another user than this one, root, or the owner of this program can change the file, which is
 * about to run in this user's programs. */
static bool is_foreign(const char *path, uid_t programs, bool is_dir)
{
    struct stat st;

    if (stat(path, &st)) /* the loader will report it */
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

static int preload_check(const char *lib)
{
    const char *slash = strrchr(lib, '/');
    struct stat self;
    char *dir;
    int rc;

    if (!slash) /* the loader searches its usual folders */
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

/* The address sanitizer must not insist on being first (host/hca/io/sanitizers.c). */
static int allow_order(void)
{
    const char *old = getenv("ASAN_OPTIONS");
    char *both;
    int rc;

    if (old && strstr(old, "verify_asan_link_order"))
        return 0;
    if (asprintf(&both, "verify_asan_link_order=0%s%s", old && *old ? ":" : "", old ? old : "") < 0)
        return -ENOMEM;
    rc = setenv("ASAN_OPTIONS", both, 1) ? -errno : 0;
    free(both);
    return rc;
}

int preload_set(const char *lib)
{
    const char *slash = strrchr(lib, '/');
    char *dir;
    int rc = preload_check(lib);

    rc = rc ? rc : allow_order();
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
