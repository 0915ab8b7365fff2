/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/events.h"

#include "base/assert.h"
#include "base/log.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* All rings, for the dump when an assertion fails anywhere. Workers of a simulation create engines at the
 * same time: the lock is for that and for the dump, never for an event. */
static struct events *rings;
static pthread_mutex_t rings_lock = PTHREAD_MUTEX_INITIALIZER;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
void __sanitizer_set_death_callback(void (*callback)(void));

static void dump_at_death(void)
{
    events_dump(stderr);
}

static void watch_sanitizer(void)
{
    __sanitizer_set_death_callback(dump_at_death);
}
#else
static void watch_sanitizer(void)
{
}
#endif

void events_init(struct events *r, const struct event_kinds *kinds, const char *who)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    T_ASSERT(kinds && kinds->n, "a ring of events has no kinds");
    pthread_once(&once, watch_sanitizer);
    *r = (struct events){.kinds = kinds, .printed = log_on(kinds->room, LOG_DEBUG)};
    snprintf(r->who, sizeof(r->who), "%s", who);
    pthread_mutex_lock(&rings_lock);
    r->next = rings;
    r->prev = &rings;
    if (rings)
        rings->prev = &r->next;
    rings = r;
    pthread_mutex_unlock(&rings_lock);
}

void events_fini(struct events *r)
{
    if (!r->prev)
        return;
    pthread_mutex_lock(&rings_lock);
    T_ASSERT(*r->prev == r, "a ring of events has left the list of rings or was moved in memory");
    *r->prev = r->next;
    if (r->next)
        r->next->prev = r->prev;
    pthread_mutex_unlock(&rings_lock);
    r->prev = NULL;
}

static void events_describe(const struct events *r, const struct event *e, char *text, size_t size)
{
    if (e->kind >= r->kinds->n)
        snprintf(text, size, "event %u (no such kind) %u %u", e->kind, e->a, e->b);
    else
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(text, size, r->kinds->name[e->kind], e->a, e->b);
#pragma GCC diagnostic pop
}

void events_print(const struct events *r, const struct event *e)
{
    char text[160];

    events_describe(r, e, text, sizeof(text));
    log_line(r->kinds->room, LOG_DEBUG, "%s at %lld ps: %s", r->who, (long long)e->ps, text);
}

static void dump_ring(const struct events *r, FILE *out)
{
    uint32_t kept = r->n < EVENTS_KEPT ? r->n : EVENTS_KEPT;
    char text[160];

    fprintf(out, "%s %s: the last %u of %u events\n", r->kinds->room, r->who, kept, r->n);
    for (uint32_t i = r->n - kept; i != r->n; i++) {
        const struct event *e = &r->last[i % EVENTS_KEPT];

        events_describe(r, e, text, sizeof(text));
        fprintf(out, "  %15lld ps  %s\n", (long long)e->ps, text);
    }
}

void events_dump(FILE *out)
{
    /* This thread may hold the lock already, if an assertion failed while it held it. */
    int held = pthread_mutex_trylock(&rings_lock);

    for (const struct events *r = rings; r; r = r->next)
        if (r->n)
            dump_ring(r, out);
    if (!held)
        pthread_mutex_unlock(&rings_lock);
}
