/* SPDX-License-Identifier: BSD-3-Clause */
/* A fabric's life: it is started, waited for and stopped, by trib-keep. */
#ifndef TRIB_TRIB_LIFE_H
#define TRIB_TRIB_LIFE_H

#include "trib/fabric_of.h"

struct life_start {
    bool stays;          /* it outlives this command; else it ends with it */
    const char *machine; /* the one that the user named; NULL: none. Then the one that was taken */
    const char *dilation;
};

/* Starts it; the command ends where that fails. It is stopped when the command ends, until signals_stop_at_end() says otherwise. */
void life_begin(const struct fabric_of *f, struct life_start *s);
/* Waits until every process serves its ports: another command may be starting the fabric. */
void life_wait_ready(const char *dir);
/* Waits until no process of the fabric lives, a signal comes, or so many seconds (< 0: however long) are over; signals are held
 * meanwhile and afterwards. Returns the signal, or 0. */
int life_wait_gone(const char *dir, double seconds);

#endif
