/* SPDX-License-Identifier: BSD-3-Clause */
#include "system/process.h"

#include "base/assert.h"

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
    /* The kernel reports 0 for a holder outside of the caller's PID namespace. */
    return lk.l_type == F_UNLCK ? 0 : lk.l_pid > 0 ? lk.l_pid : PROCESS_AWAY;
}

ssize_t process_file(pid_t pid, const char *name, char *text, size_t size)
{
    char path[64];
    ssize_t n;
    int fd;

    T_ASSERT(size, "there is no room for the end of a text");
    *text = 0;
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    n = read(fd, text, size - 1);
    n = n < 0 ? -errno : n;
    close(fd);
    text[n > 0 ? n : 0] = 0;
    return n;
}

/* Fields are found behind the name's last ')': the name stands in parentheses and may contain some. */
const char *process_stat_field(const char *stat, unsigned field)
{
    const char *at = strrchr(stat, ')');

    for (unsigned i = PROCESS_STAT_NAME; at && i < field; i++)
        at = strchr(at + 1, ' ');
    return at && *at == ' ' ? at + 1 : NULL;
}

bool process_is_stopped(pid_t pid)
{
    char stat[PROCESS_STAT];
    const char *state;

    if (process_file(pid, "stat", stat, sizeof(stat)) <= 0)
        return false;
    state = process_stat_field(stat, PROCESS_STAT_STATE);
    return state && (*state == 'T' || *state == 't');
}
