/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The time line of a sweep in real time (trib perf --timeline): after a row's timed operations its
 * ranks run one more, recorded. The ranks send what they did; of the fabric it has the counters of
 * every port before and after, read by telemetry, and those of the hosts' HCAs.
 */
#ifndef TRIB_HOST_LAUNCH_RANKS_TIMELINE_H
#define TRIB_HOST_LAUNCH_RANKS_TIMELINE_H

#include "host/bench/timeline.h"
#include "host/launch/ranks_priv.h"

struct ranks_timeline;

/* Once the ranks are planned, before they connect; nothing without o->timeline. 0 or -errno. */
int ranks_timeline_create(struct sweep *s);
void ranks_timeline_destroy(struct sweep *s);
/* Records a row that ran in this place, if it is one that is wanted. after_ps: the ranks begin so much
 * later, 0: at once. seconds: that the operation may take.
 * 0 or -errno, as ranks_command(). */
int ranks_timeline_record(struct sweep *s, struct row *r, int place, int64_t after_ps,
                          double seconds, struct answers *a);
/* Takes an answer of a rank: EVENTS, and DONE of a RECORD. */
void ranks_timeline_events(struct sweep *s, unsigned rank, const struct msg *m);
void ranks_timeline_done(struct sweep *s, unsigned rank, const struct msg_done *d);
/* Writes the file. 0 or -errno, reported. */
int ranks_timeline_write(struct sweep *s);

/* ---- ranks_timeline_ports.c ---- */

struct ports_reading;
/* Reads the counters of all ports and HCAs. NULL: no memory. What does not answer is not known. */
struct ports_reading *ports_read(const struct sweep *s);
void ports_free(struct ports_reading *p);
/* Of the links, as in virtual time but for what nobody counted, and paths between ranks' hosts; the
 * caller's. */
struct json_t *ports_links(const struct sweep *s, const struct ports_reading *before,
                           const struct ports_reading *after, const struct timeline *t);
/* Fabric time between two readings. */
double ports_span_us(const struct ports_reading *before, const struct ports_reading *after);
struct json_t *ports_paths(const struct sweep *s);
/* What the rank's host counted; of several ranks on a host the first has it all. */
struct timeline_counts ports_rank(const struct sweep *s, const struct ports_reading *before,
                                  const struct ports_reading *after, unsigned rank);

#endif
