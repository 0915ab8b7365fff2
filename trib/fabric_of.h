/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the fabric that a command means: by the path of a conf, by a name, or the one that is
 * up. */
#ifndef TRIB_TRIB_FABRIC_OF_H
#define TRIB_TRIB_FABRIC_OF_H

#include "trib/run/words.h"

#include <stdbool.h>

struct fabric;

struct fabric_of {
    const char *dir;  /* its run directory, which need not be there */
    const char *conf; /* NULL: not known */
};

/* Returns the fabric that CONF means. Its name means one that is up, too, and so does the path of
 * the conf that it was started from, which may be gone. Ends the command if there is none. */
struct fabric_of fabric_of_conf(const char *word);
/* The same, but the fabric must be up and started from this conf, as two confs may have one
 * name. */
struct fabric_of fabric_of_conf_up(const char *word);
/* Ends the command if the fabric was started from another conf of that name. */
void fabric_of_check_conf(const struct fabric_of *f);
/* Returns the fabric that is up. If this user has none: with remains, one that has died, else a
 * service's. Ends the command unless it is one. */
struct fabric_of fabric_of_none(bool remains);
/* The same without remains and without messages; dir is NULL unless it is one. */
struct fabric_of fabric_of_none_quietly(void);
/*
 * For commands with an optional CONF: *taken tells whether the first of n words is one. named: the
 * first word is a CONF, even as a bare name.
 */
struct fabric_of fabric_of_words(bool named, int n, char *const *words, bool *taken);

/* Whether any trib-switch of the fabric runs, of this user. */
bool fabric_of_alive(const char *dir);
/* Ends the command: the fabric of that directory is not up. */
void fabric_of_not_up(const char *dir) __attribute__((noreturn));
/* Prints lines about fabrics of other users, and of this user elsewhere. name: only those of that
 * name; NULL: all. */
void fabric_of_others(const char *name, bool on_stderr);

/* Its name in messages: the last part of its run directory. */
const char *fabric_of_name(const char *dir);
/* The text of a file in the run directory, without newlines at the end; "" if it cannot be read. */
const char *fabric_of_file(const char *dir, const char *file);
/* Whether the conf has the bytes of the one that the fabric was started from. */
bool fabric_of_same_conf(const struct fabric_of *f);
/* Loads a conf; ends the command with the conf's mistakes. */
struct fabric *fabric_of_load(const char *conf);

/* Ends the command if the first two words are in the wrong order: CONF, and what comes behind
 * it. */
void fabric_of_check_order(const char *command, int n, char *const *words, const char *rest);

#endif
