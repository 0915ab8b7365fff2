/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files in the making: under a name that nobody can guess, in the directory that they go to, with
 * O_EXCL and O_NOFOLLOW, and renamed when they are whole. Nobody's link leads one astray, no reader
 * sees half of one, and when something fails none stays. Every file that is renamed is written so
 * (scripts/one_helper.py).
 */
#ifndef TRIB_SYSTEM_TEMP_FILE_H
#define TRIB_SYSTEM_TEMP_FILE_H

#include <limits.h>
#include <stdbool.h>

struct temp_file {
    int dir; /* the caller's */
    char at[NAME_MAX + 1];
};

#define TEMP_MODE_THERE (-1) /* as the file that is replaced; of a new one, 0666 by the umask */

/* Makes the file that will be `name` in dir, with these permissions. A descriptor (close-on-exec,
 * for writing) or -errno. */
int temp_file_open(struct temp_file *t, int dir, const char *name, int mode);
/* Gives it its name. once: unless there is one, -EEXIST. 0 or -errno; then it is removed. */
int temp_file_publish(struct temp_file *t, const char *name, bool once);
/* Removes it, since it is not to be. */
void temp_file_drop(struct temp_file *t);

#endif
