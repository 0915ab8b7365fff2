/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a run of trib-sim writes beside its results: traces of links, counters, a time line.
 */
#ifndef TRIB_SIM_OBSERVE_H
#define TRIB_SIM_OBSERVE_H

#include "sim/capacity.h"

/* Starts observers before any frame is sent, when nothing can be refused any more: a trace replaces
 * an earlier file. 0, or -errno with a sentence in m->s->cause. */
int observe_begin(struct sim *m);
/* The tap of every frame, with m for its context; NULL: nobody looks at frames. */
net_tap_fn observe_tap(const struct sim *m);
/* Writes the time line of the bench, before it is destroyed. 0 or -errno, reported. */
int observe_write_timeline(struct sim *m);
/* Ends the trace, and says how long it is. 0 or -errno, reported. */
int observe_end_trace(struct sim *m);
void observe_end(struct sim *m); /* all others */

#endif
