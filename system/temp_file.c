/* SPDX-License-Identifier: BSD-3-Clause */
#include "system/temp_file.h"

#include "system/credential.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Permissions of the plain file with this name. -1: there is none. */
static int mode_there(int dir, const char *name)
{
    struct stat st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
        return -1;
    return (int)(st.st_mode & 0777);
}

int temp_file_open(struct temp_file *t, int dir, const char *name, int mode)
{
    const int flags = O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC;
    unsigned random[2];
    int fd, rc = 0;

    if (credential_random(random, sizeof(random)))
        return -EIO;
    t->dir = dir;
    snprintf(t->at, sizeof(t->at), "%.200s.%08x%08x.tmp", name, random[0], random[1]);
    mode = mode == TEMP_MODE_THERE ? mode_there(dir, name) : mode;
    fd = openat(dir, t->at, flags, mode < 0 ? 0666 : 0600);
    if (fd < 0)
        return -errno;
    if (mode >= 0 && fchmod(fd, (mode_t)mode))
        rc = -errno;
    if (!rc)
        return fd;
    close(fd);
    temp_file_drop(t);
    return rc;
}

/* Renames unless the name is taken. NFS has no RENAME_NOREPLACE: there the file has two names for a moment. */
static int publish_once(const struct temp_file *t, const char *name)
{
    if (!renameat2(t->dir, t->at, t->dir, name, RENAME_NOREPLACE))
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -errno;
    if (linkat(t->dir, t->at, t->dir, name, 0))
        return -errno;
    return unlinkat(t->dir, t->at, 0) ? -errno : 0;
}

int temp_file_publish(struct temp_file *t, const char *name, bool once)
{
    int rc = once ? publish_once(t, name) : renameat(t->dir, t->at, t->dir, name) ? -errno : 0;

    if (rc)
        temp_file_drop(t);
    return rc;
}

void temp_file_drop(struct temp_file *t)
{
    unlinkat(t->dir, t->at, 0);
}
