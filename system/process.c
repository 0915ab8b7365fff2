/* SPDX-License-Identifier: BSD-3-Clause */
#include "system/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

pid_t process_lock_holder(int fd)
{
    struct flock lk = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    if (fcntl(fd, F_GETLK, &lk))
        return -errno;
    /* The kernel gives 0 for a holder that the caller's PID namespace does not show. */
    return lk.l_type == F_UNLCK ? 0 : lk.l_pid > 0 ? lk.l_pid : PROCESS_AWAY;
}

/* The state follows the name, which is in parentheses and may contain some itself. */
bool process_is_stopped(pid_t pid)
{
    char path[64], line[512], *end;
    FILE *f;
    bool yes = false;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    f = fopen(path, "re");
    if (!f)
        return false;
    if (fgets(line, sizeof(line), f) && (end = strrchr(line, ')')) != NULL && end[1] == ' ')
        yes = end[2] == 'T' || end[2] == 't';
    fclose(f);
    return yes;
}
