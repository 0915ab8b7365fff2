/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands of trib, one in each row. Help, trib(1) and completion are printed from the
 * table. */
#ifndef TRIB_TRIB_COMMAND_TABLE_H
#define TRIB_TRIB_COMMAND_TABLE_H

#include "trib/commands.h"
#include "trib/run/words.h"

#include <stdbool.h>

struct command_row {
    const char *name, *args, *options;
    const char *text;    /* what it does, without a full stop */
    command_fn *run;     /* NULL: the program does all of it */
    const char *program; /* has its own table of options; NULL: the command is trib's alone */
    bool looks;          /* it looks into run directories, which are checked first */
    bool answers;        /* trib answers -h and --help among its words */
};

/* Row i; NULL behind the last. */
const struct command_row *command_table_row(unsigned i);
/* NULL: there is no such command. */
const struct command_row *command_table_find(const char *name);
struct words command_table_names(void);
/* Runs a command; returns its exit code. */
int command_table_run(const struct command_row *row, int n, char **words);

#endif
