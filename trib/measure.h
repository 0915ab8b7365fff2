/* SPDX-License-Identifier: BSD-3-Clause */
/* Measuring and predicting: what stands before the options of trib perf and trib sim. */
#ifndef TRIB_TRIB_MEASURE_H
#define TRIB_TRIB_MEASURE_H

#include <stdbool.h>

/* Refuses a first word that is no CONF: a collective in front of it, or a name that nothing has. Ends the command. */
void measure_refuse_word(const char *command, int n, char **words) __attribute__((noreturn));
/* Whether the word is one of the values that trib-sim's options and arguments take, as collectives are. */
bool measure_is_collective(const char *word);
/* Whether the first of these words, none of them the value of an option, is a CONF. */
bool measure_names_conf(int n, char **words);

#endif
