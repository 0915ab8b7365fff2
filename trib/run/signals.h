/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Signals, as shells answer them: SIGINT, SIGTERM and SIGHUP end the command with 128 and their number,
 * after it has taken down a fabric that it has started for itself. One that the caller ignores stays
 * ignored. If the command is killed, trib-keep takes that fabric down.
 */
#ifndef TRIB_TRIB_RUN_SIGNALS_H
#define TRIB_TRIB_RUN_SIGNALS_H

#include <stdbool.h>
#include <sys/types.h>

#define SIGNALS_CODE(sig) (128 + (sig))

void signals_begin(void);
/* The fabric that goes when this command does, however; NULL: none. keep: trib-keep. */
void signals_stop_at_end(const char *keep, const char *dir);

/* Signals wait between these, which nest. */
void signals_hold(void);
void signals_release(void);
/* Waits for one of them, up to ms milliseconds (-1: however long). Its number; 0: none has come. Only
 * while they are held. */
int signals_next(int ms);

/* What a forked child does before it becomes another program. */
void signals_child(void);
/* Before any other program takes this process's place: it ignores SIGCHLD where the caller does. */
void signals_hand_on(void);
/* Waits for a child; its exit code, 128 and the number for a signal. Signals to this command wait. */
int signals_wait(pid_t child);
/*
 * Waits for a child and passes signals on: each as SIGTERM, SIGHUP as hup, with SIGCONT behind it, as one
 * that is stopped would never end. Sets *asked to the code of the last signal, else to 0. The child's exit
 * code; where SIGTERM ended it, that of the signal that asked for it. To be called while they are held since
 * before the child began.
 */
int signals_pass(pid_t child, int hup, int *asked);

#endif
