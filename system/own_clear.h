/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Removal relative to descriptors of directories. It never follows a link; a link is removed itself, not
 * its target. Processes of a host may write to parts of a run directory, so they may have exchanged
 * anything there for a link to elsewhere. All removals of the tree go through here
 * (scripts/one_helper.py).
 */
#ifndef TRIB_SYSTEM_OWN_CLEAR_H
#define TRIB_SYSTEM_OWN_CLEAR_H

#include <stdbool.h>

enum own_takes {
    OWN_LEAVE,
    OWN_FILE, /* remove it unless it is a directory */
    OWN_TREE, /* remove it; a directory with all its content */
};

/* Removes the entries of a directory that takes() selects. 0 or -errno of the first that stays. */
int own_clear_if(int dir, enum own_takes (*takes)(const char *name));
/* Removes all entries but `keep` (NULL: keeps none). */
int own_clear(int dir, const char *keep);
/* Removes one entry; a directory with all its content. 0 (also if there is no such entry) or -errno. */
int own_remove(int dir, const char *name);
/* Removes one file or link. name may have several components, none of them a link. 0 or -errno. */
int own_unlink(int dir, const char *name);

/* Removes a socket of this user or root that is in the way of a new one; anything else stays. The path is
 * resolved as in own_output_dir(). */
void own_socket_clear(const char *path);
/* Renames a file within its directory, which is resolved as in own_output_dir(). 0 or -errno. */
int own_rename(const char *from, const char *to);
/* Whether path names the directory or file behind fd. A link at the end of the path is not followed. */
bool own_dir_is(const char *path, int fd);
/* Removes an empty directory (not a link) in dir; AT_FDCWD: name is a path. 0 or -errno. */
int own_rmdir(int dir, const char *name);

#endif
