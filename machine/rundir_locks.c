/* SPDX-License-Identifier: BSD-3-Clause */
/* Locks of a run directory: process slots of hosts' ports, and the pid files of trib-switch processes. */
#include "system/own_path.h"
#include "system/process.h"
#include "machine/rundir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* ---- slots ---- */

/* Uses flock, not fcntl: two claims of one process must conflict, and closing another descriptor of the
 * file must not release the slot. */
int rundir_claim_slot(const struct rundir *rd, const char *host, unsigned port, unsigned slots,
                      int *fd)
{
    bool shared = own_dir_is_service(rd->path);
    char name[RUN_PATH + 64];
    int rc = rundir_port_dir(rd, host);
    unsigned denied = 0;

    *fd = -1;
    for (unsigned s = 0; s < slots && !rc; s++) {
        snprintf(name, sizeof(name), "port/%.*s/%u.%u.lock", RUN_PATH, host, port, s);
        *fd = shared ? rundir_file_quiet(rd, O_CREAT | O_RDWR, "%s", name)
                     : rundir_file(rd, O_CREAT | O_RDWR, "%s", name);
        if (shared && (*fd == -EACCES || *fd == -EPERM || *fd == -EISDIR)) { /* another user's */
            denied++;
            continue;
        }
        if (*fd < 0)
            return *fd;
        if (!flock(*fd, LOCK_EX | LOCK_NB))
            return (int)s;
        close(*fd);
    }
    *fd = -1;
    if (denied != slots)
        return rc ? rc : -EBUSY;
    fprintf(stderr, "tributary: host %s is not this user's (access in the conf): %s\n", host,
            strerror(EACCES));
    return -EACCES;
}

/* ---- pid files ---- */

/* Start time of this process in clock ticks since boot: field 22 of /proc/PID/stat (after the name, which
 * may contain any character). It tells the process from a later one with the same pid. */
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

/* Uses fcntl, because F_GETLK returns the holder's pid even if the file's text is stale. */
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
        if (pid == PROCESS_AWAY)
            fprintf(stderr, "tributary: %s runs already in %s, in another PID namespace\n", name,
                    rd->path);
        else
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
    int fd = rundir_file_quiet(rd, O_RDONLY, "proc/%s.pid", name), rc;

    if (fd < 0)
        return fd == -ENOENT ? 0 : fd;
    rc = process_lock_holder(fd);
    close(fd);
    return rc;
}
