/* SPDX-License-Identifier: BSD-3-Clause */
/* What is known about another process: whether it is stopped, and which one holds a lock. */
#ifndef TRIB_SYSTEM_PROCESS_H
#define TRIB_SYSTEM_PROCESS_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

/* Stands for a living process outside of this PID namespace. Never a pid: pid_max is less. */
#define PROCESS_AWAY INT_MAX

/*
 * The process that holds a write lock (fcntl) on the file: its pid; PROCESS_AWAY; 0: none; or -errno. The
 * kernel releases the lock when its process ends, so a lock that is held proves that one lives.
 */
pid_t process_lock_holder(int fd);
/*
 * Reads up to size - 1 bytes of /proc/PID/NAME and ends them with a 0. Returns how many, or -errno, with an
 * empty text; -ENOENT and -ESRCH: the process has ended.
 */
ssize_t process_file(pid_t pid, const char *name, char *text, size_t size);
#define PROCESS_NAME 32   /* bytes of the text of /proc/PID/comm */
#define PROCESS_STAT 1024 /* bytes of a text that has all of these */
enum {
    PROCESS_STAT_NAME = 2,
    PROCESS_STAT_STATE = 3,
    PROCESS_STAT_PARENT = 4,
    PROCESS_STAT_START = 22
};
/* A field of /proc/PID/stat by its number in proc(5), from the state on. NULL: the text does not have it. */
const char *process_stat_field(const char *stat, unsigned field);
/* Whether a signal (SIGSTOP, SIGTSTP) or a debugger has stopped it; false if /proc does not say. */
bool process_is_stopped(pid_t pid);

#endif
