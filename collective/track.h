/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Records which step last wrote each byte of a buffer, and which steps have read it since, to find
 * the dependencies of a schedule. For alg.c only.
 */
#ifndef TRIB_COLLECTIVE_TRACK_H
#define TRIB_COLLECTIVE_TRACK_H

#include "collective/sched.h"

struct track;

/* Makes a tracker of `bytes` unwritten bytes. NULL: out of memory. */
struct track *track_new(uint64_t bytes);
void track_free(struct track *t);

/* Calls fn with every step that a reader (or, if write, a writer) of the bytes has to wait for,
 * some more than once. 0 or -ENOMEM. */
typedef void (*track_fn)(void *arg, struct dep d);
int track_ask(struct track *t, uint64_t off, uint64_t len, bool write, track_fn fn, void *arg);
/* Notes that step d reads (writes) the bytes. 0 or -ENOMEM. */
int track_note(struct track *t, uint64_t off, uint64_t len, bool write, struct dep d);

#endif
