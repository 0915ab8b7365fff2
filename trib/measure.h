/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the words before the options of trib perf and trib sim. */
#ifndef TRIB_TRIB_MEASURE_H
#define TRIB_TRIB_MEASURE_H

#include <stdbool.h>

/* Refuses a first word that is no CONF: a collective in front of it, or a name that nothing has. Ends the command. */
void measure_refuse_word(const char *command, int n, char **words) __attribute__((noreturn));
/* Whether the word is a value of trib-sim's options and arguments, such as a collective. */
bool measure_is_collective(const char *word);
/* Whether the first of these words is a CONF. */
bool measure_names_conf(int n, char **words);

#endif
