/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Directories and files that other users of the machine can neither replace nor write to, and output paths
 * that other users' links cannot lead astray.
 *
 * A path is walked component by component, on descriptors, so what was checked is what is used. Once a
 * directory has passed, only its owner and root can change a component of its path, so the path itself may
 * be used, too (a unix socket has no other name).
 */
#ifndef TRIB_SYSTEM_OWN_PATH_H
#define TRIB_SYSTEM_OWN_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define OWN_WHY 512 /* bytes of a reason */

#define OWN_SERVICES "/run/tributary" /* run directories of services: tributary@.service */

/*
 * Opens a directory of this user. Each directory on the way must belong to this user or root, and nobody
 * else may write to it unless it is sticky (/tmp); links on the way must belong to this user or root. The
 * directory itself must belong to this user, and nobody else may write to it. make: creates what is missing,
 * with mode 0700.
 *
 * A directory below OWN_SERVICES/NAME may belong to the owner of OWN_SERVICES/NAME instead: only root can
 * create that one, for a service, and the service controls by permissions who uses it.
 *
 * Returns a descriptor (close-on-exec) or -errno; -EPERM: a wrong owner or mode. why says what was found,
 * where, and what is expected; it is "" for -ENOENT.
 */
int own_dir_open(const char *path, bool make, char *why, size_t size);
/* Whether own_dir_open() accepts the directory and it belongs to user uid. */
bool own_dir_is_of(const char *path, uid_t uid);
/* Whether the path is below OWN_SERVICES. */
bool own_dir_is_service(const char *path);

/*
 * Opens a file below a directory that own_dir_open() has opened; name may have several components. Follows no
 * link and never waits (for the other end of a FIFO). The file must be plain, belong to this user or to the
 * owner of dir, have no other name, and nobody else may write to it. O_TRUNC takes effect
 * after these checks. New files get mode 0600. Returns a descriptor (close-on-exec) or -errno.
 */
int own_file_open(int dir, const char *name, int flags);
/* Says what is wrong with a file that own_file_open() refused with -EPERM. */
void own_file_why(int dir, const char *name, char *why, size_t size);
/* Opens a directory below one that own_dir_open() has opened, by the rules of own_file_open(). */
int own_subdir_open(int dir, const char *name);
/* The same, and makes the last component if it is missing. */
int own_subdir_make(int dir, const char *name, mode_t mode);
/* Says what is wrong with a directory that was refused with -EPERM. */
void own_subdir_why(int dir, const char *name, char *why, size_t size);

/*
 * Opens the directory for a file of results, following links, and copies the file's name in it to last (of
 * size `room`). A link in a sticky directory that others can write to is followed only if it belongs to this
 * user, to root or to the owner of the directory (the kernel does so with fs.protected_symlinks, but that may be
 * off and does not cover realpath(3)). Returns a descriptor (O_PATH) or -errno; -EPERM: somebody else's
 * link.
 */
int own_output_dir(const char *path, char *last, size_t room);
/* Whether somebody other than this user and root owns the entry, and could have put it in the way of this
 * user's output: a FIFO, a device, or a file in a sticky directory of others. */
bool own_output_is_foreign(int dir, const char *name);

/*
 * Opens a file for output, created or truncated, by the rules of own_output_dir(). flags: O_EXCL, O_NONBLOCK
 * (never waits for the other end of a FIFO). Devices and paths to open descriptors (own_output_is_special())
 * are opened as they are. Returns a descriptor (close-on-exec) or -errno; -EPERM: somebody else's link, FIFO
 * or file.
 */
int own_output_open(const char *path, int flags);
/* Whether the path is a device in /dev, or below /dev/fd, /dev/pts or /proc. Anything else below /dev, such
 * as /dev/shm, holds ordinary files. */
bool own_output_is_special(const char *path);

/*
 * Checks that a file may be loaded as code or run: only this user, root and the owner of the running program
 * (who decides what runs anyway) can write to it, or exchange it or a component of its path. A private group
 * of the owner, without other members, counts as the owner. The owner of a service is not trusted. The
 * loader checks what kind of file it is. 0 or -errno; -EPERM: why says what was found, where, and what is
 * expected.
 */
int own_code_check(const char *path, char *why, size_t size);

/* Whether uid is this user or root, whose files are trusted. In a user namespace that does not map root,
 * the owner of "/" counts as root. */
bool own_trusts(uid_t uid);

#endif
