/* SPDX-License-Identifier: BSD-3-Clause */
#include "protocols/check/check_watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GUARD   16u /* bytes */
#define PATTERN 0xa5
#define TOUCHED 32u /* most slots to compare per packet */
#define ARRAYS  256u
/* Bytes of a slot that may change without being declared: flags, bitmaps, a head. */
#define FREE_BYTES 128u

struct array {
    struct trib_array *a;
    const struct trib_switch *s;
    const struct trib_job *job;
    char name[24];
    uint32_t n, bytes;
};

struct touch {
    const struct array *array;
    uint32_t i;
    uint8_t *at, *copy;
};

/* Global, because callbacks of the interface have no context but the switch. */
static struct {
    const struct trib_protocol *real;
    struct trib_protocol wrapped;
    struct trib_switch_half half;
    const struct trib_switch_api *host;
    struct trib_switch_api api;
    struct array array[ARRAYS];
    struct touch touch[TOUCHED];
    unsigned n_arrays, n_touched;
    bool guard, in_packet;
    uint32_t bytes, ops; /* work declared for this packet */
    struct watch_seen seen;
} w;

static void slot_wrong(const char *what, const struct array *a, uint32_t i, const char *more)
{
    if (!w.seen.why[0])
        snprintf(w.seen.why, sizeof(w.seen.why), "%s slot %u of array \"%s\"%s", what, i, a->name,
                 more);
}

/* ---- arrays ---- */

static const struct array *array_of(const struct trib_array *a)
{
    for (unsigned i = 0; i < w.n_arrays; i++)
        if (w.array[i].a == a)
            return &w.array[i];
    return NULL;
}

static struct trib_array *watch_array(struct trib_switch *s, struct trib_job *job, const char *name,
                                      uint32_t n, uint32_t bytes)
{
    uint32_t guarded = w.guard ? ((bytes + 7) & ~7u) + GUARD : bytes;
    struct trib_array *a = w.host->array(s, job, name, n, bytes ? guarded : 0);
    struct array *known;

    if (!a || w.n_arrays == ARRAYS)
        return a;
    known = &w.array[w.n_arrays++];
    *known = (struct array){a, s, job, "", n, (bytes + 7) & ~7u};
    snprintf(known->name, sizeof(known->name), "%s", name);
    for (uint32_t i = 0; w.guard && i < n; i++)
        memset((uint8_t *)w.host->at(s, a, i) + known->bytes, PATTERN, GUARD);
    return a;
}

static bool guard_holds(const uint8_t *slot, uint32_t bytes)
{
    for (unsigned k = 0; k < GUARD; k++)
        if (slot[bytes + k] != PATTERN)
            return false;
    return true;
}

/* Forgets the arrays of a job that ends, or of the switch (job NULL). */
static void check_watch_forget(struct trib_switch *s, const struct trib_job *job)
{
    unsigned left = 0;

    for (unsigned k = 0; k < w.n_arrays; k++) {
        const struct array *a = &w.array[k];

        if (a->s != s || (job && a->job != job)) {
            w.array[left++] = *a;
            continue;
        }
        for (uint32_t i = 0; w.guard && i < a->n; i++)
            if (!guard_holds(w.host->at(s, a->a, i), a->bytes))
                slot_wrong("a write behind the end of", a, i, "");
    }
    w.n_arrays = left;
}

static void *watch_at(struct trib_switch *s, struct trib_array *a, uint32_t i)
{
    const struct array *known = array_of(a);
    uint8_t *slot = w.host->at(s, a, i);
    struct touch *t = &w.touch[w.n_touched];

    /* Within a packet, the host reports it and ends the job. */
    if (known && i >= known->n && !w.in_packet)
        slot_wrong("there is no", known, i, "");
    if (!w.in_packet || !known || i >= known->n || w.n_touched == TOUCHED)
        return slot;
    for (unsigned k = 0; k < w.n_touched; k++)
        if (w.touch[k].at == slot)
            return slot;
    *t = (struct touch){known, i, slot, malloc(known->bytes)};
    if (!t->copy)
        return slot;
    memcpy(t->copy, slot, known->bytes);
    w.n_touched++;
    w.seen.touched++;
    return slot;
}

/* ---- work ---- */

static void watch_work(struct trib_switch *s, uint32_t bytes, uint32_t ops)
{
    w.bytes += bytes;
    w.ops += ops;
    w.host->work(s, bytes, ops);
}

static void watch_reduce(struct trib_switch *s, void *dst, const void *src, uint32_t n,
                         enum trib_type type, enum trib_sum op)
{
    w.bytes += n * trib_size(type);
    w.ops += n;
    w.host->reduce(s, dst, src, n, type, op);
}

static void check_watch_settle(void)
{
    uint32_t changed = 0;

    for (unsigned k = 0; k < w.n_touched; k++) {
        struct touch *t = &w.touch[k];
        uint32_t before = changed;

        for (uint32_t i = 0; i < t->array->bytes; i++)
            changed += t->copy[i] != t->at[i];
        if (changed > before && changed > w.bytes + (w.bytes || w.ops ? FREE_BYTES : 0)) {
            char more[96];

            snprintf(more, sizeof(more),
                     " has changed in %u bytes; work on this packet is declared as %u bytes",
                     changed - before, w.bytes);
            slot_wrong("work:", t->array, t->i, more);
        }
        if (w.guard && !guard_holds(t->at, t->array->bytes))
            slot_wrong("a write behind the end of", t->array, t->i, "");
        free(t->copy);
    }
    w.n_touched = 0;
    if (w.bytes > w.seen.most_bytes)
        w.seen.most_bytes = w.bytes;
    if (w.ops > w.seen.most_ops)
        w.seen.most_ops = w.ops;
}

/* ---- the half ---- */

static int watch_open(struct trib_switch *s)
{
    w.host = s->api;
    w.api = *s->api;
    w.api.array = watch_array;
    w.api.at = watch_at;
    w.api.work = watch_work;
    w.api.reduce = watch_reduce;
    s->api = &w.api;
    return w.real->sw->open ? w.real->sw->open(s) : 0;
}

static void watch_close(struct trib_switch *s)
{
    check_watch_forget(s, NULL);
    if (w.real->sw->close)
        w.real->sw->close(s);
}

static int watch_job_open(struct trib_switch *s, struct trib_job *job)
{
    int rc = w.real->sw->job_open(s, job);

    if (rc)
        check_watch_forget(s, job);
    return rc;
}

static void watch_job_close(struct trib_switch *s, struct trib_job *job)
{
    w.real->sw->job_close(s, job);
    check_watch_forget(s, job);
}

static void watch_packet(struct trib_switch *s, struct trib_job *job, const struct trib_packet *p)
{
    w.in_packet = true;
    w.bytes = w.ops = 0;
    w.real->sw->packet(s, job, p);
    check_watch_settle();
    w.in_packet = false;
}

static void watch_timer(struct trib_switch *s)
{
    if (w.real->sw->timer)
        w.real->sw->timer(s);
}

const struct trib_protocol *watch_begin(const struct trib_protocol *p, bool limit, bool guard)
{
    memset(&w, 0, sizeof(w));
    w.real = p;
    w.guard = guard;
    w.wrapped = *p;
    if (!p->sw)
        return &w.wrapped;
    w.half = *p->sw;
    if (!limit)
        w.half.max_bytes = w.half.max_ops = UINT32_MAX;
    w.half.open = watch_open;
    w.half.close = watch_close;
    w.half.job_open = watch_job_open;
    w.half.job_close = watch_job_close;
    w.half.packet = watch_packet;
    w.half.timer = watch_timer;
    w.wrapped.sw = &w.half;
    return &w.wrapped;
}

const struct watch_seen *watch_seen(void)
{
    return &w.seen;
}

void watch_end(void)
{
    w.real = NULL;
}
