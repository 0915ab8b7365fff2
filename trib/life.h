/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts fabrics and waits for them, by trib-keep. */
#ifndef TRIB_TRIB_LIFE_H
#define TRIB_TRIB_LIFE_H

#include "trib/fabric_of.h"

struct life_start {
    bool stays;          /* the fabric outlives this command; else it ends with it */
    const char *machine; /* in: the one that the user named, or NULL; out: the one that was
                          * chosen */
    const char *dilation;
};

/* Starts the fabric; ends the command if that fails. The fabric is stopped when the command ends,
 * until signals_stop_at_end() says otherwise. */
void life_begin(const struct fabric_of *f, struct life_start *s);
/* Waits until every process serves its ports: another command may be starting the fabric. */
void life_wait_ready(const char *dir);
/* Waits until no process of the fabric is alive, a signal comes, or so many seconds are over (< 0:
 * without limit). Signals are held meanwhile and afterwards. Returns the signal, or 0. */
int life_wait_gone(const char *dir, double seconds);

#endif
