/* SPDX-License-Identifier: BSD-3-Clause */
#include "system/own_clear.h"

#include "system/own_path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH 64

static int remove_one(int dir, const char *name, enum own_takes what, unsigned depth);

/* Opens a descriptor of its own, so that two readers of a directory do not share a position. */
static DIR *open_again(int dir)
{
    int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);

    if (!d && copy >= 0)
        close(copy);
    return d;
}

/* Removes the entries that takes() selects (NULL: all), except `keep`. */
static int clear(int dir, const char *keep, enum own_takes (*takes)(const char *), unsigned depth)
{
    DIR *d = open_again(dir);
    int rc = d ? 0 : -errno, one;
    const struct dirent *e;

    while (d && (e = readdir(d))) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
            (keep && !strcmp(e->d_name, keep)))
            continue;
        one = remove_one(dir, e->d_name, takes ? takes(e->d_name) : OWN_TREE, depth);
        rc = rc ? rc : one;
    }
    if (d)
        closedir(d);
    return rc;
}

/* Opens a directory to remove its content; first makes it accessible if its mode forbids that. A descriptor
 * or -errno. */
static int open_tree(int dir, const char *name)
{
    const int flags = O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(dir, name, O_RDONLY | flags), at;
    char self[32];

    if (fd >= 0 || errno != EACCES)
        return fd < 0 ? -errno : fd;
    at = openat(dir, name, O_PATH | flags);
    if (at < 0)
        return -errno;
    snprintf(self, sizeof(self), "/proc/self/fd/%d", at);
    fd = chmod(self, 0700) ? -1 : openat(at, ".", O_RDONLY | flags);
    fd = fd < 0 ? -errno : fd;
    close(at);
    return fd;
}

static int remove_one(int dir, const char *name, enum own_takes what, unsigned depth)
{
    int rc, sub;

    if (what == OWN_LEAVE || !unlinkat(dir, name, 0) || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -errno;
    if (what == OWN_FILE)
        return -EISDIR;
    sub = depth ? open_tree(dir, name) : -ELOOP;
    rc = sub < 0 ? sub : clear(sub, NULL, NULL, depth - 1);
    if (sub >= 0)
        close(sub);
    return unlinkat(dir, name, AT_REMOVEDIR) && errno != ENOENT ? rc ? rc : -errno : 0;
}

int own_clear_if(int dir, enum own_takes (*takes)(const char *name))
{
    return clear(dir, NULL, takes, DEPTH);
}

int own_clear(int dir, const char *keep)
{
    return clear(dir, keep, NULL, DEPTH);
}

int own_remove(int dir, const char *name)
{
    return remove_one(dir, name, OWN_TREE, DEPTH);
}

int own_unlink(int dir, const char *name)
{
    const char *last = strrchr(name, '/');
    char parent[PATH_MAX];
    int at = dir, rc;

    if (last) {
        if (snprintf(parent, sizeof(parent), "%.*s", (int)(last - name), name) >=
            (int)sizeof(parent))
            return -ENAMETOOLONG;
        at = own_subdir_open(dir, parent);
        if (at < 0)
            return at;
        name = last + 1;
    }
    rc = unlinkat(at, name, 0) ? -errno : 0;
    if (at != dir)
        close(at);
    return rc;
}

void own_socket_clear(const char *path)
{
    char name[NAME_MAX + 1];
    int dir = own_output_dir(path, name, sizeof(name));
    struct stat st;

    if (dir < 0)
        return;
    if (!fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISSOCK(st.st_mode) &&
        own_trusts(st.st_uid))
        unlinkat(dir, name, 0);
    close(dir);
}

int own_rename(const char *from, const char *to)
{
    const char *slash = strrchr(from, '/');
    char name[NAME_MAX + 1];
    int dir = own_output_dir(to, name, sizeof(name)), rc;

    if (dir < 0)
        return dir;
    rc = renameat(dir, slash ? slash + 1 : from, dir, name) ? -errno : 0;
    close(dir);
    return rc;
}

bool own_dir_is(const char *path, int fd)
{
    struct stat a, b;

    return !fstat(fd, &a) && !lstat(path, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

int own_rmdir(int dir, const char *name)
{
    return unlinkat(dir, name, AT_REMOVEDIR) ? -errno : 0;
}
