/* SPDX-License-Identifier: BSD-3-Clause */
#include "machine/silent.h"

#include "system/own_path.h"
#include "system/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Opens the file proc/NAME.SUFFIX of the run directory; -errno on failure. */
static int file_of(const char *dir, const char *name, const char *suffix)
{
    char file[256], why[OWN_WHY];
    int at = own_dir_open(dir, false, why, sizeof(why)), fd;

    if (at < 0)
        return at;
    snprintf(file, sizeof(file), "proc/%.200s.%s", name, suffix);
    fd = own_file_open(at, file, O_RDONLY);
    close(at);
    return fd;
}

/* Its pid; 0: it does not run; -errno: unknown. */
static pid_t pid_of(const char *dir, const char *name)
{
    int fd = file_of(dir, name, "pid");
    pid_t pid;

    if (fd < 0)
        return fd == -ENOENT ? 0 : fd;
    pid = process_lock_holder(fd);
    close(fd);
    return pid;
}

bool silent_is_stopped(const char *dir, const char *name)
{
    pid_t pid = pid_of(dir, name);

    return pid > 0 && process_is_stopped(pid);
}

/* Reads how it ended, as its trib-keep has recorded; "": unknown. */
static void how_it_ended(const char *dir, const char *name, char *how, size_t size)
{
    int fd = file_of(dir, name, "ended");
    ssize_t n = fd < 0 ? -1 : read(fd, how, size - 1);

    if (fd >= 0)
        close(fd);
    how[n > 0 ? n : 0] = 0;
    how[strcspn(how, "\n")] = 0;
}

bool silent_has_died(const char *dir, const char *name)
{
    char how[96];

    how_it_ended(dir, name, how, sizeof(how));
    return *how && pid_of(dir, name) == 0;
}

void silent_why(const char *dir, const char *name, int rc, char *text, size_t size)
{
    pid_t pid = pid_of(dir, name);
    char how[96];

    if (pid == 0) {
        how_it_ended(dir, name, how, sizeof(how));
        snprintf(text, size, "trib-switch %s %s%s", name, *how ? "has died: " : "does not run",
                 how);
    } else if (pid > 0 && process_is_stopped(pid)) {
        snprintf(text, size,
                 "trib-switch %s does not answer: it is stopped by a signal or a debugger; kill "
                 "-CONT %d lets it go on",
                 name, (int)pid);
    } else {
        snprintf(text, size, "trib-switch %s does not answer: %s", name,
                 rc == -EAGAIN ? "nothing came in time" : strerror(-rc));
    }
}
