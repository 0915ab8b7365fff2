/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files in the Trace Event Format of Chrome's tracing, which Perfetto (ui.perfetto.dev) opens: one JSON
 * object with "traceEvents" and "otherData". Events go at once to a temporary file without a name, so memory
 * is bounded. The output file gets all of them at the end, or stays as it was.
 *
 * Times are picoseconds here, and microseconds, to the picosecond, in the file.
 */
#ifndef TRIB_SYSTEM_TRACE_EVENTS_H
#define TRIB_SYSTEM_TRACE_EVENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json_t;
struct trace_events;

struct trace_event {
    char ph; /* X: from ps for dur_ps; i: at ps; C: values (args) at ps; s, f: a flow's ends */
    uint32_t pid, tid;
    int64_t ps, dur_ps;
    const char *name, *cat;
    const char *id; /* s, f: identifies the flow */
};

/* most: how many events are kept at most. 0 or -errno. */
int trace_events_create(struct trace_events **t, uint64_t most);
void trace_events_destroy(struct trace_events *t); /* NULL: nothing */
/* Drops all events. */
void trace_events_restart(struct trace_events *t);
/* Takes ownership of args (NULL: none). False: the limit is reached, and the event was left out. */
bool trace_events_add(struct trace_events *t, const struct trace_event *e, struct json_t *args);
/* Names a process, or a thread of it. Never left out. */
void trace_events_process(struct trace_events *t, uint32_t pid, const char *name);
void trace_events_thread(struct trace_events *t, uint32_t pid, uint32_t tid, const char *name);
uint64_t trace_events_count(const struct trace_events *t);
uint64_t trace_events_left_out(const struct trace_events *t);
/* Copies the events between processes: copy_to writes them to a file, append reads all of such a file. */
int trace_events_copy_to(struct trace_events *t, FILE *out);
int trace_events_append(struct trace_events *t, FILE *in);
/* Writes the file; takes ownership of `other`, its "otherData". 0 or -errno. */
int trace_events_write(struct trace_events *t, const char *path, struct json_t *other);

#endif
