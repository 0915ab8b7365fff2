/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file in the Trace Event Format of Chrome's tracing, which Perfetto (ui.perfetto.dev) opens: one
 * JSON object with "traceEvents" and "otherData". Events are written as they come, to a temporary
 * file without a name, so memory is bounded; a file gets them all at the end, or stays as it was.
 *
 * Times are picoseconds here and microseconds, to the picosecond, in the file.
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
    const char *id; /* s, f: which flow */
};

/* most: events that are kept. 0 or -errno. */
int trace_events_create(struct trace_events **t, uint64_t most);
void trace_events_destroy(struct trace_events *t); /* NULL: nothing */
/* Forgets every event. */
void trace_events_restart(struct trace_events *t);
/* Takes ownership of args (NULL: none). False: there are too many already, and it was left out. */
bool trace_events_add(struct trace_events *t, const struct trace_event *e, struct json_t *args);
/* The name of a process, and of a thread of it; order: its place among the others. Never left out. */
void trace_events_process(struct trace_events *t, uint32_t pid, const char *name);
void trace_events_thread(struct trace_events *t, uint32_t pid, uint32_t tid, const char *name);
uint64_t trace_events_count(const struct trace_events *t);
uint64_t trace_events_left_out(const struct trace_events *t);
/* The events alone, as they are in the file, and back from such a file, whole: from one process to another. */
int trace_events_copy_to(struct trace_events *t, FILE *out);
int trace_events_append(struct trace_events *t, FILE *in);
/* Writes the file, with `other` as its "otherData", of which it takes ownership. 0 or -errno. */
int trace_events_write(struct trace_events *t, const char *path, struct json_t *other);

#endif
