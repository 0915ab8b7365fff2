/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of the run directory, and the pid file of a trib-switch among them. */
#include "base/own_path.h"
#include "io/rundir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int say_why(const struct rundir *rd, int err, const char *why)
{
    fprintf(stderr, "tributary: %s/%s%s%s\n", rd->path, why, err == EPERM ? "" : ": ",
            err == EPERM ? "" : strerror(err));
    return -err;
}

int rundir_file(const struct rundir *rd, int flags, const char *fmt, ...)
{
    char name[RUN_PATH + 64], why[OWN_WHY];
    va_list ap;
    int dir, fd, n;

    va_start(ap, fmt);
    n = vsnprintf(name, sizeof(name), fmt, ap);
    va_end(ap);
    if (n < 0 || n >= (int)sizeof(name))
        return -ENAMETOOLONG;
    dir = own_dir_open(rd->path, false, why, sizeof(why));
    if (dir < 0) {
        if (dir != -ENOENT)
            fprintf(stderr, "tributary: run directory %s\n", why);
        return dir;
    }
    fd = own_file_open(dir, name, flags);
    if (fd == -EPERM)
        own_file_why(dir, name, why, sizeof(why));
    close(dir);
    if (fd < 0 && fd != -ENOENT && fd != -EEXIST)
        return say_why(rd, -fd, fd == -EPERM ? why : name);
    return fd;
}

/* In clock ticks since boot, field 22 of /proc/PID/stat (after the name, which may have any
 * characters): tells a process from a later one with the same pid. */
static unsigned long long start_time(void)
{
    FILE *f = fopen("/proc/self/stat", "re");
    char buf[1024], *p = NULL;

    if (f && fgets(buf, sizeof(buf), f))
        p = strrchr(buf, ')');
    if (f)
        fclose(f);
    for (int field = 2; field < 22 && p; field++)
        p = strchr(p + 1, ' ');
    return p ? strtoull(p, NULL, 10) : 0;
}

/* fcntl, so that F_GETLK returns the holder's pid even when the file is stale. */
int rundir_claim_proc(const struct rundir *rd, const char *name, int *fd)
{
    struct flock lk = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int pid;

    *fd = rundir_file(rd, O_CREAT | O_RDWR, "proc/%s.pid", name);
    if (*fd < 0)
        return *fd;
    if (fcntl(*fd, F_SETLK, &lk)) {
        pid = rundir_proc_pid(rd, name);
        close(*fd);
        *fd = -1;
        fprintf(stderr, "tributary: %s runs already in %s as process %d\n", name, rd->path,
                pid > 0 ? pid : 0);
        return -EBUSY;
    }
    if (ftruncate(*fd, 0) || dprintf(*fd, "%d\n%llu\n", (int)getpid(), start_time()) < 0) {
        int err = errno;

        close(*fd);
        *fd = -1;
        fprintf(stderr, "tributary: cannot write %s/proc/%s.pid: %s\n", rd->path, name,
                strerror(err));
        return -err;
    }
    return 0;
}

int rundir_proc_pid(const struct rundir *rd, const char *name)
{
    struct flock lk = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = rundir_file(rd, O_RDONLY, "proc/%s.pid", name), rc;

    if (fd < 0)
        return fd == -ENAMETOOLONG ? fd : 0;
    rc = fcntl(fd, F_GETLK, &lk);
    close(fd);
    return rc || lk.l_type == F_UNLCK ? 0 : (int)lk.l_pid;
}
