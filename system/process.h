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
/* By a signal (SIGSTOP, SIGTSTP) or a debugger; false where /proc does not say. */
bool process_is_stopped(pid_t pid);

#endif
