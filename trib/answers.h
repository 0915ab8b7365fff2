/* SPDX-License-Identifier: BSD-3-Clause */
/* Questions to the switch processes of a fabric, and what of their answers is shown. */
#ifndef TRIB_TRIB_ANSWERS_H
#define TRIB_TRIB_ANSWERS_H

#include "machine/telemetry_client.h"
#include "trib/run/words.h"

#include <jansson.h>
#include <stdbool.h>

/* The answers by process; lives until the command ends. *ok: some process executed the command. */
json_t *answers_ask(const char *dir, const char *command, const struct telemetry_whom *whom,
                    bool *ok);
/* The same, without a word on stderr. */
json_t *answers_ask_quietly(const char *dir, const char *command,
                            const struct telemetry_whom *whom);
/* What is wrong, of answers that are errors, one a line. */
char *answers_why(const json_t *answers);
/* The texts of answers that are lists, of all processes. */
struct words answers_lines(const json_t *answers);
/* The sum of a number of that name over all processes. */
json_int_t answers_sum(const json_t *answers, const char *name);
/* The present dilation, as any of the processes says it; 0: none does. */
json_int_t answers_dilation(const json_t *answers);
/* Prints lines, sorted, each once; `none` where there are none. */
void answers_print_lines(struct words lines, const char *none);

#endif
