/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Confs, and the files that stand beside them, by path or by name: workloads, fault plans, jobs, schedules. What comes with trib goes by its name, or by the path
 * that it has in a checkout.
 */
#ifndef TRIB_TRIB_CONF_FILE_H
#define TRIB_TRIB_CONF_FILE_H

#include "trib/run/words.h"

#include <stdbool.h>

/*
 * The path of a file; kind: the folder of conf/ that has it, which messages are about; NULL or "": a conf, and the others too. The command ends with a message and `code`
 * where there is none.
 */
const char *conf_file_or_die(const char *word, const char *kind, int code);
/* The same; NULL where there is none, and why in *why, if that is asked for. */
const char *conf_file_find(const char *word, const char *kind, char **why);

/* Of letters, digits, dots, dashes and underscores. */
bool conf_file_is_name(const char *word);
/* Whether a word is a CONF. A bare name is one where a conf that comes with trib, or a fabric that is up, has it. */
bool conf_file_is_conf(const char *word);
/* Names of confs and of fabrics that are up, or of files of a kind. */
struct words conf_file_names(const char *kind);
/* "; did you mean NAME?", or "". */
char *conf_file_hint(const char *word, const struct words *names);

/* Words with the files behind --workload, --faults, --jobs and --schedule by their paths. What is there but is no plain file, as
 * a pipe, and nothing at all are for the program to read or refuse. */
struct words conf_file_beside(int n, char *const *words);

#endif
