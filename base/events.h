/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The last events of an engine: a ring in which an event costs a few stores. It is printed when an
 * assertion, chaos or a sanitizer stops the run. An engine records changes of state, not frames.
 *
 * With TRIB_LOG=ROOM:debug every event is also printed when it happens (base/log.h).
 *
 * Threads: a ring belongs to its engine's thread; init, fini and dump of different rings may be
 * called by any thread.
 */
#ifndef TRIB_BASE_EVENTS_H
#define TRIB_BASE_EVENTS_H

#include "base/assert.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define EVENTS_KEPT  32u /* a power of two */
#define EVENTS_NAMED 24u
_Static_assert((EVENTS_KEPT & (EVENTS_KEPT - 1)) == 0, "a power of two");

/* Names of events: one table for each kind of engine. */
struct event_kinds {
    const char *room;        /* its name in TRIB_LOG */
    const char *const *name; /* [n], by number; the first "%u" in a name prints a, the second b */
    uint16_t n;
};

struct event {
    int64_t ps; /* fabric time */
    uint32_t a, b;
    uint16_t kind;
};

struct events {
    const struct event_kinds *kinds;
    char who[EVENTS_NAMED]; /* which engine of its kind: a node, a queue pair, a rank */
    bool printed;           /* print events as they happen, too */
    uint32_t n;             /* recorded so far */
    struct event last[EVENTS_KEPT];
    struct events *next, **prev;
};

/* kinds must outlive the ring. who is copied, and truncated if it is long. */
void events_init(struct events *r, const struct event_kinds *kinds, const char *who);
void events_fini(struct events *r); /* a zeroed ring: does nothing */
void events_print(const struct events *r, const struct event *e);
/* Dumps every ring of the process, oldest event first; empty rings are left out. */
void events_dump(FILE *out);

/* ps: fabric time; a, b: values for the "%u" of the event's name. */
static inline void events_add(struct events *r, int64_t ps, uint16_t kind, uint32_t a, uint32_t b)
{
    struct event *e = &r->last[r->n++ % EVENTS_KEPT];

    T_ASSERT_HOT(r->kinds && kind < r->kinds->n, "an event of no kind, or in a ring without kinds");
    *e = (struct event){ps, a, b, kind};
    if (__builtin_expect(r->printed, 0))
        events_print(r, e);
}

#endif
