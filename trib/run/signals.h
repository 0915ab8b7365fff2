/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Signals, as in shells: SIGINT, SIGTERM and SIGHUP end the command with 128 plus their number,
 * after it has taken down a fabric that it has started for itself. A signal that the caller ignores
 * stays ignored. If the command is killed, trib-keep takes that fabric down.
 */
#ifndef TRIB_TRIB_RUN_SIGNALS_H
#define TRIB_TRIB_RUN_SIGNALS_H

#include <stdbool.h>
#include <sys/types.h>

#define SIGNALS_CODE(sig) (128 + (sig))

void signals_begin(void);
/* Sets the fabric to stop when this command ends, however it ends; dir NULL: none. keep: the path
 * of trib-keep. */
void signals_stop_at_end(const char *keep, const char *dir);

/* Signals are held between these; calls nest. */
void signals_hold(void);
void signals_release(void);
/* Waits for a held signal, up to ms milliseconds (-1: without limit). Returns its number; 0: none
 * has come. */
int signals_next(int ms);

/* Called in a forked child before it becomes another program. */
void signals_child(void);
/* Called before another program takes this process's place: ignores SIGCHLD if the caller does. */
void signals_hand_on(void);
/* Waits for a child; returns its exit code, or 128 plus the number of a signal. Holds signals to
 * this command meanwhile. */
int signals_wait(pid_t child);
/*
 * Waits for a child and passes signals on to it: SIGHUP as hup, others as SIGTERM, each followed by
 * SIGCONT, as a stopped child would never end. Sets *asked to the code of the last signal, else to
 * 0. Returns the child's exit code; if SIGTERM ended it, the code of the signal that asked for
 * that. Signals must have been held since before the child began.
 */
int signals_pass(pid_t child, int hup, int *asked);

#endif
