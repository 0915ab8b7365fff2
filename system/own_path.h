/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Directories and files that other users of the machine can neither replace nor write to, and paths
 * for output that other users' links do not lead astray.
 *
 * A path is walked component by component, on descriptors, so what was checked is what is used. Once
 * a directory has passed, only its owner and root can change any component of its path, and the
 * path itself may be used too (a unix socket has no other name).
 */
#ifndef TRIB_SYSTEM_OWN_PATH_H
#define TRIB_SYSTEM_OWN_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define OWN_WHY 512 /* bytes for a reason */

#define OWN_SERVICES "/run/tributary" /* run directories of services: tributary@.service */

/*
 * Opens a directory of this user's own. Each directory on the way belongs to this user or root, and
 * nobody else can write to it, unless it is sticky (/tmp); links on the way belong to this user or
 * root. The directory itself belongs to this user, and nobody else can write to it. make: what is
 * missing is made, mode 0700.
 *
 * A directory below OWN_SERVICES/NAME may belong to the user of that directory instead: root, who alone
 * can make it, runs a service there, and the service says by permissions who uses it.
 *
 * Returns a descriptor (close-on-exec) or -errno; -EPERM: an owner or a mode. why says what was
 * found, where, and what is expected; "" for -ENOENT.
 */
int own_dir_open(const char *path, bool make, char *why, size_t size);
/* Whether own_dir_open() takes the directory, and it belongs to this user. */
bool own_dir_is_of(const char *path, uid_t uid);
/* Whether the path is below OWN_SERVICES. */
bool own_dir_is_service(const char *path);

/*
 * Opens a file below a directory that own_dir_open() has opened; name may have several components.
 * It follows no link and never waits (for a FIFO's other end); the file is a plain one of this
 * user's (or of the user whose the directory is), has no other name, and nobody else can write to it. O_TRUNC takes effect after these
 * checks. Files are made with mode 0600. A descriptor (close-on-exec) or -errno.
 */
int own_file_open(int dir, const char *name, int flags);
/* Says what is wrong with a file that own_file_open() refused with -EPERM. */
void own_file_why(int dir, const char *name, char *why, size_t size);
/* A directory below one that own_dir_open() has opened, as own_file_open(). */
int own_subdir_open(int dir, const char *name);
/* The same; the last component is made unless it is there. */
int own_subdir_make(int dir, const char *name, mode_t mode);
/* Says what is wrong with a directory that was refused with -EPERM. */
void own_subdir_why(int dir, const char *name, char *why, size_t size);

/*
 * Opens the directory into which a file of results goes, and copies the file's name there to last
 * (of size `room`), with links followed. A link in a directory that is sticky and writable by
 * others is followed only if it is this user's or the directory owner's (as the kernel does with
 * fs.protected_symlinks, which may be off and does not cover realpath(3)). A descriptor (O_PATH) or
 * -errno; -EPERM: somebody else's link.
 */
int own_output_dir(const char *path, char *last, size_t room);
/* Whether somebody other than this user and root owns what is at name, and could have put it there
 * in the way of this user's output: a FIFO, a device, a file. */
bool own_output_is_foreign(int dir, const char *name);

/*
 * Opens a file for output, made or truncated, by the rules of own_output_dir(). flags: O_EXCL,
 * O_NONBLOCK (never waits for a FIFO's other end). Devices and what leads to open descriptors
 * (own_output_is_special()) are opened as they are. A descriptor (close-on-exec) or -errno; -EPERM: somebody
 * else's link, FIFO or file.
 */
int own_output_open(const char *path, int flags);
/* Whether the path is a device in /dev, below /dev/fd, /dev/pts or /proc; all else below /dev, such as
 * /dev/shm, is a place for files as any other. */
bool own_output_is_special(const char *path);

/*
 * Whether a file may be loaded as code, or run: nobody but this user, root, and the owner of the
 * running program (who decides what runs already) can write to it, or exchange it or a component of
 * its path. A group of the owner's own, without other members, is the owner. Those who run a service
 * are not trusted. Of what kind it is, the loader says. 0, or -errno; -EPERM: why says what was found,
 * where, and what is expected.
 */
int own_code_check(const char *path, char *why, size_t size);

/* Whether a user is this one or root: root's files are trusted. In a user namespace that does not
 * know root, its directories show the owner of "/". */
bool own_trusts(uid_t uid);

#endif
