/* SPDX-License-Identifier: BSD-3-Clause */
/* Other machines of a fabric: how they are reached, and what runs there (scripts/trib-machines). */
#ifndef TRIB_TRIB_LAUNCH_H
#define TRIB_TRIB_LAUNCH_H

#include "trib/fabric_of.h"
#include "trib/run/words.h"

/* A command that is followed by an address: `how`; where that is NULL, TRIB_RSH, what trib up --launch was told, or ssh. The launchers of
 * labs go by their names. */
const char *launch_how(const char *dir, const char *how);
/* The program and its first words. what: up, status, link, capture; here: the machine that this one is, unless the run directory
 * knows it; NULL: none. */
struct words launch_command(const char *what, const char *here, const char *how,
                            const struct fabric_of *f);
/* Notes what trib up --launch was told, for what reaches the other machines later. A link in its place is replaced, not followed. */
void launch_note(const char *dir, const char *how);

#endif
