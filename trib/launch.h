/* SPDX-License-Identifier: BSD-3-Clause */
/* Other machines of a fabric: how they are reached, and what runs there (scripts/trib-machines). */
#ifndef TRIB_TRIB_LAUNCH_H
#define TRIB_TRIB_LAUNCH_H

#include "trib/fabric_of.h"
#include "trib/run/words.h"

/* Returns the command that runs another on the machine whose address follows: `how`; if NULL,
 * TRIB_RSH, else the launcher of trib up --launch, else ssh. mpirun and srun stand for themselves
 * with their options. */
const char *launch_how(const char *dir, const char *how);
/* Returns scripts/trib-machines with its first words. what: up, status, link, capture; here: the
 * machine that this one is, unless the run directory knows it; NULL: none. */
struct words launch_command(const char *what, const char *here, const char *how,
                            const struct fabric_of *f);
/* Writes the launcher of trib up --launch into the run directory, for later commands. Replaces a
 * link in its place, and does not follow it. */
void launch_note(const char *dir, const char *how);

#endif
