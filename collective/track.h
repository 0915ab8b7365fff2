/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which step wrote each byte of a buffer last, and which have read it since: what the dependencies
 * of a schedule are found from. For alg.c only.
 */
#ifndef TRIB_COLLECTIVE_TRACK_H
#define TRIB_COLLECTIVE_TRACK_H

#include "collective/sched.h"

struct track;

/* `bytes` long, nothing written. NULL: no memory. */
struct track *track_new(uint64_t bytes);
void track_free(struct track *t);

/* Calls fn with every step that a reader (or, if write, a writer) of the bytes has to wait for,
 * some more than once. 0 or -ENOMEM. */
typedef void (*track_fn)(void *arg, struct dep d);
int track_ask(struct track *t, uint64_t off, uint64_t len, bool write, track_fn fn, void *arg);
/* Step d reads (writes) the bytes. -ENOMEM. */
int track_note(struct track *t, uint64_t off, uint64_t len, bool write, struct dep d);

#endif
