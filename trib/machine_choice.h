/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses the switch processes of a conf that run here: all of them, or those of one machine if the
 * conf has machines. */
#ifndef TRIB_TRIB_MACHINE_CHOICE_H
#define TRIB_TRIB_MACHINE_CHOICE_H

#include "fabric/fabric.h"
#include "trib/run/words.h"

/* machine is NULL if the conf has no machines. */
struct machine_choice {
    const char *machine;
    struct words procs;
};

/*
 * Chooses the machine that the user named; named NULL: the one that has one of the addresses (host
 * order). False: *why has the reason.
 */
bool machine_choice_make(struct machine_choice *m, const struct fabric *f, const char *conf,
                         const char *named, const uint32_t *addresses, unsigned n, char **why);
/* Writes the addresses of this machine, up to `most`, 127.0.0.1 first; returns their number. */
unsigned machine_choice_addresses(uint32_t *addresses, unsigned most);

#endif
