/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds run directories: TRIB_RUN, those of this user, those of services. Directories in which
 * another user could exchange files are refused before anything there is read.
 */
#ifndef TRIB_TRIB_WHERE_H
#define TRIB_TRIB_WHERE_H

#include "trib/run/words.h"

#include <stdbool.h>

/* Reads the environment; TRIB_RUN is absolute from then on, for the programs that run later, too. */
void where_begin(void);
/* TRIB_RUN, or NULL. */
const char *where_run(void);
/* The directory of this user's run directories. */
const char *where_base(void);
/* Whether a run directory is in where_base(). */
bool where_is_in_base(const char *dir);

/*
 * Refuses run directories in which another user could exchange files. root may ask for the status
 * of another user's fabric, and take it down: then where_user() names that user, and trib-keep does
 * both with that user's rights.
 */
void where_check(const char *command);
/* The same without messages; leaves out directories that may not be read. */
void where_check_quietly(void);
const char *where_user(void);

/* The run directories of this user, by name; those of services that it may use. */
struct words where_fabrics(void);
struct words where_services(void);
/* The run directory of the service of that name. */
char *where_service(const char *name);

/* Whether a path is a directory, a file, this user's own, or there at all; links are followed. */
bool where_is_dir(const char *path);
bool where_is_file(const char *path);
bool where_is_own(const char *path);
bool where_is_there(const char *path);
/* The name of a path's owner. */
const char *where_owner(const char *path);
/* The path from the root, without "." and ".."; links in it stay. */
char *where_absolute(const char *path);

#endif
