/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of the option parser. */
#ifndef TRIB_BASE_OPTIONS_PRIV_H
#define TRIB_BASE_OPTIONS_PRIV_H

#include "base/options.h"

#define OPTIONS_N(a) (sizeof(a) / sizeof((a)[0]))

/* A row as it applies in one program. */
struct option_at {
    const struct option_row *row;
    const struct option_group *group;
    unsigned into;       /* 0: the program's own structure, 1: its base's */
    const char *initial; /* its default in this program */
    bool hidden;
};

/* -h, --help and --version. */
extern const struct option_row option_common[2];

/* Option i: first the program's groups, then its base's, then the common ones. False: there is none. */
bool option_at(const struct option_program *p, unsigned i, struct option_at *at);
/* Argument i. False: there is none. */
bool option_word(const struct option_program *p, unsigned i, struct option_at *at);

#endif
