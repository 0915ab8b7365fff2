/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Removal, by descriptors of directories: nothing is looked for through a link, and a link is removed
 * itself, never what it leads to. A process of a host may write to parts of a run directory, so
 * whatever is there may have been exchanged for a link to elsewhere. All that the tree removes goes
 * through here (scripts/one_helper.py).
 */
#ifndef TRIB_SYSTEM_OWN_CLEAR_H
#define TRIB_SYSTEM_OWN_CLEAR_H

#include <stdbool.h>

enum own_takes {
    OWN_LEAVE,
    OWN_FILE, /* what is no directory */
    OWN_TREE, /* a directory too, with all that is in it */
};

/* Removes the entries of a directory for which takes() says so. 0 or -errno of the first that stays. */
int own_clear_if(int dir, enum own_takes (*takes)(const char *name));
/* All but `keep` (NULL: nothing is kept). */
int own_clear(int dir, const char *keep);
/* One entry, a directory with all that is in it. 0, also if there is none, or -errno. */
int own_remove(int dir, const char *name);
/* One file or link; name may have several components, none of them a link. 0, or -errno. */
int own_unlink(int dir, const char *name);

/* Removes a socket of this user's or of root's that is in the way of another one; anything else
 * stays. The way to it is that of own_output_dir(). */
void own_socket_clear(const char *path);
/* Gives a file another name in its directory, to which own_output_dir() leads. 0 or -errno. */
int own_rename(const char *from, const char *to);
/* Whether the path leads to this directory or file, without a link at its end. */
bool own_dir_is(const char *path, int fd);
/* Removes an empty directory, no link, in dir (AT_FDCWD: name is a path). 0 or -errno. */
int own_rmdir(int dir, const char *name);

#endif
