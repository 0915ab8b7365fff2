/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Temporary files: created with O_EXCL and O_NOFOLLOW under a random name in the directory where they belong,
 * and renamed when they are complete. No link of others leads one astray, no reader sees half of one, and
 * none stays when something fails. Every file of the tree that is renamed is written this way
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

#define TEMP_MODE_THERE (-1) /* that of the file to replace; for a new file 0666 less the umask */

/* Creates the temporary file for `name` in dir, with these permissions. A descriptor (close-on-exec, for
 * writing) or -errno. */
int temp_file_open(struct temp_file *t, int dir, const char *name, int mode);
/* Renames it to `name`. once: -EEXIST if the name is taken. 0, or -errno; then it has been removed. */
int temp_file_publish(struct temp_file *t, const char *name, bool once);
/* Removes it instead of publishing it. */
void temp_file_drop(struct temp_file *t);

#endif
