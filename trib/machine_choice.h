/* SPDX-License-Identifier: BSD-3-Clause */
/* The switch processes of a conf that run here: all, or, of a conf with machines, those of one of them. */
#ifndef TRIB_TRIB_MACHINE_CHOICE_H
#define TRIB_TRIB_MACHINE_CHOICE_H

#include "fabric/fabric.h"
#include "trib/run/words.h"

/* NULL: the conf has no machines. */
struct machine_choice {
    const char *machine;
    struct words procs;
};

/*
 * named: the machine that the user named; NULL: it is the one that has one of the addresses (host order).
 * Returns true, or false and why.
 */
bool machine_choice_make(struct machine_choice *m, const struct fabric *f, const char *conf,
                         const char *named, const uint32_t *addresses, unsigned n, char **why);
/* The addresses of this machine, up to `most`, 127.0.0.1 among them. How many. */
unsigned machine_choice_addresses(uint32_t *addresses, unsigned most);

#endif
