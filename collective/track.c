/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs of bytes with the same history, in sorted lists, a list for each of some thousand equal
 * parts of the buffer, so that the search is short however many there are. Runs are split where a
 * step begins or ends and never joined: steps on the same bytes mostly have the same bounds.
 */
#include "collective/track.h"

#include "base/assert.h"

#include <errno.h>
#include <stdlib.h>

#define PARTS    4096u
#define PART_MIN 4096u
/* Number of parts of buffers below PARTS_SMALL * PART_MIN bytes, as short vectors of many ranks
 * have many runs. */
#define PARTS_SMALL 32u
#define SMALL_MIN   256u
#define PER_CHUNK   256u
/* Readers of a run that are searched for an earlier step of the same lane. The number is limited,
 * because a block that is sent to all ranks has as many readers, of as many lanes. */
#define LATEST 8u

struct track_reader {
    struct track_reader *next;
    struct dep d;
};

struct track_run {
    struct track_run *next;
    struct track_reader *readers;
    uint64_t start, end;
    struct dep writer;
};

union node {
    struct track_run run;
    struct track_reader reader;
};

struct chunk {
    struct chunk *next;
    unsigned used;
    union node node[PER_CHUNK];
};

struct track {
    uint64_t bytes, part;
    struct chunk *mem;
    struct track_run **list;
};

struct track *track_new(uint64_t bytes)
{
    struct track *t = calloc(1, sizeof(*t));

    if (!t)
        return NULL;
    t->bytes = bytes;
    t->part = bytes / PARTS + 1;
    if (t->part < PART_MIN)
        t->part = bytes / PARTS_SMALL < PART_MIN ? bytes / PARTS_SMALL : PART_MIN;
    t->part = t->part < SMALL_MIN ? SMALL_MIN : t->part;
    t->list = calloc(bytes / t->part + 1, sizeof(*t->list));
    if (t->list)
        return t;
    free(t);
    return NULL;
}

void track_free(struct track *t)
{
    while (t && t->mem) {
        struct chunk *next = t->mem->next;

        free(t->mem);
        t->mem = next;
    }
    if (t)
        free(t->list);
    free(t);
}

static union node *node_new(struct track *t)
{
    if (!t->mem || t->mem->used == PER_CHUNK) {
        struct chunk *c = malloc(sizeof(*c));

        if (!c)
            return NULL;
        c->next = t->mem;
        c->used = 0;
        t->mem = c;
    }
    return &t->mem->node[t->mem->used++];
}

static struct track_run *run_new(struct track *t, struct track_run **at, uint64_t start,
                                 uint64_t end)
{
    union node *n = node_new(t);

    if (!n)
        return NULL;
    n->run = (struct track_run){.next = *at, .start = start, .end = end};
    *at = &n->run;
    return &n->run;
}

/* Cuts the run at `at` into two with the same history. */
static int run_split(struct track *t, struct track_run *r, uint64_t at)
{
    struct track_run *rest = run_new(t, &r->next, at, r->end);

    if (!rest)
        return -ENOMEM;
    T_ASSERT_HOT(r->start < at && at < r->end, "a run is split outside of itself");
    rest->writer = r->writer;
    r->end = at;
    for (struct track_reader *x = r->readers; x; x = x->next) {
        union node *n = node_new(t);

        if (!n)
            return -ENOMEM;
        n->reader = (struct track_reader){.next = rest->readers, .d = x->d};
        rest->readers = &n->reader;
    }
    return 0;
}

typedef int (*run_fn)(struct track *t, struct track_run *r, void *arg);

/* Calls fn for runs that make up [off, end), all in one part. */
static int in_part(struct track *t, struct track_run **at, uint64_t off, uint64_t end, run_fn fn,
                   void *arg)
{
    int rc = 0;

    while (!rc && off < end) {
        struct track_run *r;

        while (*at && (*at)->end <= off)
            at = &(*at)->next;
        r = *at;
        if (!r || r->start > off)
            r = run_new(t, at, off, r && r->start < end ? r->start : end);
        if (!r)
            return -ENOMEM;
        if (r->start < off) {
            rc = run_split(t, r, off);
            continue;
        }
        if (r->end > end)
            rc = run_split(t, r, end);
        if (!rc)
            rc = fn(t, r, arg);
        off = r->end;
    }
    return rc;
}

static int each_run(struct track *t, uint64_t off, uint64_t len, run_fn fn, void *arg)
{
    uint64_t end = off + len;
    int rc = 0;

    T_ASSERT(end >= off && end <= t->bytes, "a step uses bytes beyond its buffer");
    while (!rc && off < end) {
        uint64_t k = off / t->part, stop = (k + 1) * t->part;

        stop = stop < end ? stop : end;
        rc = in_part(t, &t->list[k], off, stop, fn, arg);
        off = stop;
    }
    return rc;
}

struct question {
    track_fn fn;
    void *arg;
    bool write;
    struct dep d;
};

static int ask_run(struct track *t, struct track_run *r, void *arg)
{
    struct question *q = arg;

    (void)t;
    if (r->writer.count)
        q->fn(q->arg, r->writer);
    for (struct track_reader *x = q->write ? r->readers : NULL; x; x = x->next)
        q->fn(q->arg, x->d);
    return 0;
}

int track_ask(struct track *t, uint64_t off, uint64_t len, bool write, track_fn fn, void *arg)
{
    struct question q = {.fn = fn, .arg = arg, .write = write};

    return each_run(t, off, len, ask_run, &q);
}

static int note_run(struct track *t, struct track_run *r, void *arg)
{
    struct question *q = arg;
    struct track_reader *x = r->readers;
    union node *n;

    if (q->write) {
        r->writer = q->d;
        r->readers = NULL;
        return 0;
    }
    for (unsigned i = 0; x && i < LATEST; i++, x = x->next)
        if (x->d.lane == q->d.lane) {
            T_ASSERT_HOT(x->d.count <= q->d.count, "steps of a lane are noted out of order");
            x->d.count = q->d.count; /* the later step counts, and steps are noted in order */
            return 0;
        }
    n = node_new(t);
    if (!n)
        return -ENOMEM;
    n->reader = (struct track_reader){.next = r->readers, .d = q->d};
    r->readers = &n->reader;
    return 0;
}

int track_note(struct track *t, uint64_t off, uint64_t len, bool write, struct dep d)
{
    struct question q = {.write = write, .d = d};

    return each_run(t, off, len, note_run, &q);
}
