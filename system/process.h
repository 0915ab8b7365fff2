/* SPDX-License-Identifier: BSD-3-Clause */
/* What can be known of another process: whether it is stopped, and which one holds a lock. */
#ifndef TRIB_SYSTEM_PROCESS_H
#define TRIB_SYSTEM_PROCESS_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

/* A process that lives, and that this PID namespace does not show. Never a pid: pid_max is less. */
#define PROCESS_AWAY INT_MAX

/*
 * The process that holds a write lock (fcntl) on the file: its pid, PROCESS_AWAY, 0 for none, or
 * -errno. The kernel drops the lock with its process, so a lock that is held tells that one lives.
 */
pid_t process_lock_holder(int fd);
/*
 * The first bytes of /proc/PID/NAME, size - 1 at most, with a 0 behind them: how many, or -errno; -ENOENT and -ESRCH: it has ended. The text is
 * empty then.
 */
ssize_t process_file(pid_t pid, const char *name, char *text, size_t size);
/* A field of /proc/PID/stat by its number in proc(5), from the state on; NULL: the text has none. */
#define PROCESS_NAME 32   /* bytes of the text of /proc/PID/comm */
#define PROCESS_STAT 1024 /* bytes of a text that has all of these */
enum {
    PROCESS_STAT_NAME = 2,
    PROCESS_STAT_STATE = 3,
    PROCESS_STAT_PARENT = 4,
    PROCESS_STAT_START = 22
};
const char *process_stat_field(const char *stat, unsigned field);
/* By a signal (SIGSTOP, SIGTSTP) or a debugger; false where /proc does not say. */
bool process_is_stopped(pid_t pid);

#endif
