/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The time line of a sweep in real time (trib perf --timeline). After a row's timed operations its
 * ranks run and record one more, and send their events. Of the fabric the time line has the
 * counters of every port, read by telemetry, and of the hosts' HCAs, before and after the
 * operation.
 */
#ifndef TRIB_HOST_LAUNCH_RANKS_TIMELINE_H
#define TRIB_HOST_LAUNCH_RANKS_TIMELINE_H

#include "host/bench/timeline.h"
#include "host/launch/ranks_priv.h"

struct ranks_timeline;

/* Call once the ranks are planned, before they connect. Does nothing without o->timeline. 0 or
 * -errno. */
int ranks_timeline_create(struct sweep *s);
void ranks_timeline_destroy(struct sweep *s);
/* Records a row that ran in this place, if the options ask for it. after_ps: fabric time until the
 * ranks begin; 0: at once. seconds: limit of the operation. 0 or -errno, as ranks_command(). */
int ranks_timeline_record(struct sweep *s, struct row *r, int place, int64_t after_ps,
                          double seconds, struct answers *a);
/* Add a rank's EVENTS, and its DONE of a RECORD, to the time line. */
void ranks_timeline_events(struct sweep *s, unsigned rank, const struct msg *m);
void ranks_timeline_done(struct sweep *s, unsigned rank, const struct msg_done *d);
/* Writes the file. 0, or -errno with a message. */
int ranks_timeline_write(struct sweep *s);

/* ---- ranks_timeline_ports.c ---- */

struct ports_reading;
/* Reads the counters of all ports and HCAs. Counters of a process that does not answer are unknown.
 * NULL: out of memory. */
struct ports_reading *ports_read(const struct sweep *s);
void ports_free(struct ports_reading *p);
/* JSON of the links (ports_links()), as in virtual time but without what nobody counted, and of the
 * paths between the ranks' hosts (ports_paths()). The caller frees it. */
struct json_t *ports_links(const struct sweep *s, const struct ports_reading *before,
                           const struct ports_reading *after, const struct timeline *t);
/* Fabric time between two readings. */
double ports_span_us(const struct ports_reading *before, const struct ports_reading *after);
struct json_t *ports_paths(const struct sweep *s);
/* What the rank's host counted. It is given to the first of several ranks on a host. */
struct timeline_counts ports_rank(const struct sweep *s, const struct ports_reading *before,
                                  const struct ports_reading *after, unsigned rank);

#endif
