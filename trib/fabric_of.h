/* SPDX-License-Identifier: BSD-3-Clause */
/* Which fabric a command means: by the path of a conf, by a name, or the one that is up. */
#ifndef TRIB_TRIB_FABRIC_OF_H
#define TRIB_TRIB_FABRIC_OF_H

#include "trib/run/words.h"

#include <stdbool.h>

struct fabric;

struct fabric_of {
    const char *dir;  /* its run directory, which need not be there */
    const char *conf; /* NULL: not known */
};

/* The fabric that CONF means. One that is up goes by its name, too, and by the path of the conf that it was started from,
 * which may be gone. The command ends where there is none. */
struct fabric_of fabric_of_conf(const char *word);
/* The same; it must be up, and be started from this conf, as two confs may have one name. */
struct fabric_of fabric_of_conf_up(const char *word);
/* The one that is up. remains: or what one has left that has died. */
struct fabric_of fabric_of_none(bool remains);
/* The same, without a word; dir is NULL where that is not one fabric. */
struct fabric_of fabric_of_none_quietly(void);
/*
 * For commands with an optional CONF first: *taken says whether the first of n words was one. named: there are enough words for a
 * CONF by its bare name.
 */
struct fabric_of fabric_of_words(bool named, int n, char *const *words, bool *taken);

/* Does any trib-switch of it run, of this user? */
bool fabric_of_alive(const char *dir);
/* Ends the command: the fabric of that directory is not up. */
void fabric_of_not_up(const char *dir) __attribute__((noreturn));
/* Lines about fabrics of other users, and of this one elsewhere. name: those of that name; NULL: all. */
void fabric_of_others(const char *name, bool on_stderr);

/* Its name in messages: the last part of its run directory. */
const char *fabric_of_name(const char *dir);
/* A file of the run directory, without newlines at the end; "" where there is none that can be read. */
const char *fabric_of_file(const char *dir, const char *file);
/* Whether the conf has the bytes of the one that the fabric was started from. */
bool fabric_of_same_conf(const struct fabric_of *f);
/* A conf as data; the command ends with its mistakes. */
struct fabric *fabric_of_load(const char *conf);

/* Two words in the wrong order: what a command takes behind CONF, and CONF. Ends the command. */
void fabric_of_check_order(const char *command, int n, char *const *words, const char *rest);

#endif
