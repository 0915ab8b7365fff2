/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks the switch processes of a fabric, and picks from their answers what is shown. */
#ifndef TRIB_TRIB_ANSWERS_H
#define TRIB_TRIB_ANSWERS_H

#include "machine/telemetry_client.h"
#include "trib/run/words.h"

#include <jansson.h>
#include <stdbool.h>

/* Returns the answers to a telemetry command by process; they live until trib ends. *ok: some
 * process executed it. */
json_t *answers_ask(const char *dir, const char *command, const struct telemetry_whom *whom,
                    bool *ok);
/* The same, without messages on stderr. */
json_t *answers_ask_quietly(const char *dir, const char *command,
                            const struct telemetry_whom *whom);
/* The errors among the answers, one a line. */
char *answers_why(const json_t *answers);
/* The texts of all answers that are lists. */
struct words answers_lines(const json_t *answers);
/* The sum of a number of that name over all processes. */
json_int_t answers_sum(const json_t *answers, const char *name);
/* The present dilation, as any of the processes says it; 0: none does. */
json_int_t answers_dilation(const json_t *answers);
/* Prints lines, sorted, each once; prints `none` if there are none. */
void answers_print_lines(struct words lines, const char *none);

#endif
