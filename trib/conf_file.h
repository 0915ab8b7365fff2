/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds confs, and the files for them (workloads, fault plans, jobs, schedules), by path or by
 * name. Files that come with trib have a name, and the path that they have in a checkout.
 */
#ifndef TRIB_TRIB_CONF_FILE_H
#define TRIB_TRIB_CONF_FILE_H

#include "trib/run/words.h"

#include <stdbool.h>

/*
 * Returns the path of a file. kind: its folder in conf/, which messages name; NULL or "": a conf,
 * or a file of any kind. Ends the command with a message and exit code `code` if there is none.
 */
const char *conf_file_or_die(const char *word, const char *kind, int code);
/* The same, but returns NULL if there is none, with the reason in *why unless why is NULL. */
const char *conf_file_find(const char *word, const char *kind, char **why);

/* Whether a word is of letters, digits and underscores and, behind the first, of dots and dashes,
 * too. */
bool conf_file_is_name(const char *word);
/* Whether a word is a CONF. A bare name is one if a conf that comes with trib, or a run directory,
 * has it. */
bool conf_file_is_conf(const char *word);
/* Names of confs and of this user's run directories, or of files of a kind. */
struct words conf_file_names(const char *kind);
/* "; did you mean NAME?", or "". */
char *conf_file_hint(const char *word, const struct words *names);

/* Copies words, with the files of --workload, --faults, --jobs and --schedule by their paths. A
 * value that is there but no plain file, such as a pipe, is empty, or begins with a dash, stays as
 * it is: the program reads or refuses it. */
struct words conf_file_beside(int n, char *const *words);

#endif
