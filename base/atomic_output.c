/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/atomic_output.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where to write. tmp: temporary file, renamed to path at the end; empty: path is written
 * directly. */
struct output_target {
    char path[PATH_MAX], tmp[PATH_MAX];
};

bool atomic_output_is_file(const char *path)
{
    struct stat st;

    /* These names may lead to a regular file (standard output may be one), but it belongs to
     * others. */
    if (!strncmp(path, "/dev/", 5) || !strncmp(path, "/proc/", 6))
        return false;
    return stat(path, &st) || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode);
}

static int target_of(struct output_target *p, const char *path)
{
    struct stat st;

    p->tmp[0] = 0;
    if (strlen(path) >= sizeof(p->path))
        return -ENAMETOOLONG;
    strcpy(p->path, path);
    if (!atomic_output_is_file(path))
        return 0;
    if (!stat(path, &st)) {
        if (S_ISDIR(st.st_mode))
            return -EISDIR;
        if (!realpath(path, p->path)) /* follows links */
            return -errno;
    }
    return snprintf(p->tmp, sizeof(p->tmp), "%.*s.%d.tmp", PATH_MAX - 16, p->path, (int)getpid()) <
                   (int)sizeof(p->tmp)
               ? 0
               : -ENAMETOOLONG;
}

int atomic_output_can_write(const char *path)
{
    struct output_target p;
    int rc = target_of(&p, path);
    FILE *f;

    if (rc)
        return rc;
    if (!*p.tmp)
        return access(p.path, W_OK) ? -errno : 0;
    f = fopen(p.tmp, "we");
    if (!f)
        return -errno;
    fclose(f);
    unlink(p.tmp);
    return 0;
}

int atomic_output_json(const char *path, const struct json_t *j, size_t flags)
{
    struct output_target p;
    int rc = target_of(&p, path);
    FILE *f;

    if (rc)
        return rc;
    fflush(stdout); /* path may be standard output */
    f = *p.tmp ? fopen(p.tmp, "we") : fopen(p.path, "ae");
    if (!f)
        return -errno;
    errno = 0;
    rc = json_dumpf(j, f, flags) || fputc('\n', f) < 0 ? (errno ? -errno : -EIO) : 0;
    if (fclose(f) && !rc) /* buffered data meets a full disk here */
        rc = -errno;
    if (!*p.tmp)
        return rc;
    if (!rc && rename(p.tmp, p.path))
        rc = -errno;
    if (rc)
        unlink(p.tmp);
    return rc;
}

int atomic_output_end(const char *program)
{
    errno = 0;
    if (!fflush(stdout) && !ferror(stdout))
        return 0;
    /* errno is 0 where only an earlier write knew the reason. */
    fprintf(stderr, "%s: cannot write to standard output%s%s\n", program, errno ? ": " : "",
            errno ? strerror(errno) : "");
    return -EIO;
}
