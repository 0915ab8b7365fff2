/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds which steps are certainly over when another one begins. A step begins after the ends of
 * those that its line names. Messages between two ranks begin and end in order. A receive ends
 * after its send has begun, so the steps that the sender waited for are over then, too. A send has
 * read its memory once its message is received.
 *
 * Of two steps of a rank on the same chunk, one of which writes, the first in the file must be over
 * when the second begins. A receive begins, for this purpose, when its message is sent.
 */
#include "base/assert.h"
#include "collective/file/sched_file_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* For one rank: bits of its steps that are over at the beginning and at the end of every step. */
struct over {
    struct sched_file *f;
    struct build *b;
    const uint32_t *order;
    unsigned rank;
    bool in_place;
    size_t words;
    uint64_t *begin, *end; /* [n_steps][words] */
    /* Of each cell: the last step that wrote it, and a list of those that have read it since. */
    uint32_t *writer, *readers;
    struct reading {
        uint32_t step, next, chunk;
    } * reading;
    uint32_t n_reading;
    uint32_t reported; /* line of the last report, as there is one per step */
};

static uint64_t *step_bits(const struct over *o, uint64_t *of, uint32_t step)
{
    return of + (size_t)step * o->words;
}

static void bits_add(const struct over *o, uint64_t *to, const uint64_t *from)
{
    for (size_t i = 0; i < o->words; i++)
        to[i] |= from[i];
}

static void add_self(const struct over *o, uint64_t *to, uint32_t step)
{
    uint32_t k = step - o->f->first[o->rank];

    T_ASSERT(o->f->step[step].rank != o->rank || k / 64 < o->words,
             "a step of a rank without a bit");
    if (o->f->step[step].rank == o->rank)
        to[k / 64] |= 1ull << k % 64;
}

static void begin_step(const struct over *o, uint32_t i)
{
    const struct file_step *s = &o->f->step[i];
    uint64_t *at = step_bits(o, o->begin, i);

    memset(at, 0, o->words * sizeof(*at));
    for (uint32_t k = 0; k < s->n_after; k++)
        bits_add(o, at, step_bits(o, o->end, file_after(o->f, s, k)));
    if (s->prev != FILE_NONE)
        bits_add(o, at, step_bits(o, file_is_local(s) ? o->end : o->begin, s->prev));
}

static void end_step(const struct over *o, uint32_t i)
{
    const struct file_step *s = &o->f->step[i];
    uint64_t *at = step_bits(o, o->end, i);

    memcpy(at, step_bits(o, o->begin, i), o->words * sizeof(*at));
    if (s->prev != FILE_NONE)
        bits_add(o, at, step_bits(o, o->end, s->prev));
    if (file_is_recv(s)) {
        bits_add(o, at, step_bits(o, o->begin, s->match));
        add_self(o, at, s->match);
    }
    add_self(o, at, i);
}

static void find_over(const struct over *o)
{
    for (uint32_t k = 0; k < o->f->n_steps; k++) {
        uint32_t i = o->order[k];

        begin_step(o, i);
        if (o->f->step[i].match == FILE_NONE) {
            end_step(o, i);
        } else if (file_is_recv(&o->f->step[i])) {
            end_step(o, i);
            end_step(o, o->f->step[i].match);
        }
    }
}

/* ---- conflicts ---- */

static bool is_over(const struct over *o, uint32_t step, const uint64_t *at)
{
    uint32_t k = step - o->f->first[o->rank];

    return at[k / 64] >> k % 64 & 1;
}

struct verdict {
    bool any, named, sent; /* all of them are over when it begins; when its message is sent */
};

static void conflict(struct over *o, struct file_step *s, uint32_t i, uint32_t with,
                     struct file_ref ref, uint32_t chunk, struct verdict *v)
{
    const struct file_step *a = &o->f->step[with];
    bool named, sent;

    named = is_over(o, with, step_bits(o, o->begin, i));
    sent = file_is_recv(s) && is_over(o, with, step_bits(o, o->begin, s->match));
    v->any = true;
    v->named |= named;
    v->sent &= sent;
    if (named || sent || o->reported == s->line)
        return;
    o->reported = s->line;
    build_error(
        o->b, (int)s->line,
        "found %s:%u used%s while line %u (step %u) may not be done with it, expected after "
        "%u",
        file_buf_name(ref.buf), ref.first + chunk, o->in_place ? ", in place," : "", a->line,
        with - o->f->first[o->rank], with - o->f->first[o->rank]);
}

static void read_cell(struct over *o, struct file_step *s, uint32_t i, struct file_ref ref,
                      uint32_t k, struct verdict *v)
{
    uint32_t c = file_cell(o->f, o->rank, ref, k, o->in_place);

    if (o->writer[c] != FILE_NONE)
        conflict(o, s, i, o->writer[c], ref, k, v);
    T_ASSERT(i >= o->f->first[o->rank] && i < o->f->first[o->rank + 1], "a step of another rank");
    o->reading[o->n_reading] = (struct reading){i, o->readers[c], k};
    o->readers[c] = o->n_reading++;
}

/* Reports a step that reads a chunk in the same memory in which it writes another one. */
static void overlap(struct over *o, const struct file_step *s, uint32_t k)
{
    if (o->reported == s->line)
        return;
    o->reported = s->line;
    build_error(o->b, (int)s->line,
                "found %s:%u written%s while the same step reads it as another chunk, expected "
                "chunks that do not overlap",
                file_buf_name(s->dst.buf), s->dst.first + k, o->in_place ? ", in place," : "");
}

static void write_cell(struct over *o, struct file_step *s, uint32_t i, uint32_t k,
                       struct verdict *v)
{
    uint32_t c = file_cell(o->f, o->rank, s->dst, k, o->in_place);

    if (o->writer[c] != FILE_NONE)
        conflict(o, s, i, o->writer[c], s->dst, k, v);
    for (uint32_t r = o->readers[c]; r != FILE_NONE; r = o->reading[r].next)
        if (o->reading[r].step != i)
            conflict(o, s, i, o->reading[r].step, s->dst, k, v);
        else if (o->reading[r].chunk != k)
            overlap(o, s, k);
    o->writer[c] = i;
    o->readers[c] = FILE_NONE;
}

/* Whether the step is left out in place, because its data is already there. */
static bool is_idle(const struct over *o, const struct file_step *s)
{
    return s->op == FILE_COPY && file_cell(o->f, s->rank, s->a, 0, o->in_place) ==
                                     file_cell(o->f, s->rank, s->dst, 0, o->in_place);
}

static void check_rank(struct over *o)
{
    struct sched_file *f = o->f;

    for (uint32_t i = f->first[o->rank]; i < f->first[o->rank + 1]; i++) {
        struct file_step *s = &f->step[i];
        struct verdict v = {.sent = true};

        for (uint32_t k = 0; k < s->n && !is_idle(o, s); k++) {
            if (s->a.buf)
                read_cell(o, s, i, s->a, k, &v);
            if (s->b.buf)
                read_cell(o, s, i, s->b, k, &v);
        }
        for (uint32_t k = 0; k < s->n && s->dst.buf && !is_idle(o, s); k++)
            write_cell(o, s, i, k, &v);
        s->caused[o->in_place] = v.any && v.sent && !v.named;
    }
}

int file_races(struct sched_file *f, struct build *b, const uint32_t *order, bool in_place)
{
    struct over o = {.f = f, .b = b, .order = order, .in_place = in_place};
    uint32_t most = 0, cells = 0;
    int rc = 0;

    for (unsigned r = 0; r < f->nranks; r++) {
        uint32_t n = f->first[r + 1] - f->first[r], c = file_cells(f, r);

        most = n > most ? n : most;
        cells = c > cells ? c : cells;
    }
    o.words = (most + 63) / 64;
    o.begin = calloc(f->n_steps * o.words + 1, sizeof(*o.begin));
    o.end = calloc(f->n_steps * o.words + 1, sizeof(*o.end));
    o.writer = malloc(2ul * cells * sizeof(*o.writer) + 1);
    o.readers = o.writer + cells;
    o.reading = malloc((2ul * f->n_parts + 1) * sizeof(*o.reading));
    if (!o.begin || !o.end || !o.writer || !o.reading)
        rc = -ENOMEM;
    for (o.rank = 0; !rc && o.rank < f->nranks; o.rank++) {
        o.words = (f->first[o.rank + 1] - f->first[o.rank] + 63) / 64;
        o.n_reading = 0;
        memset(o.writer, 0xff, 2ul * cells * sizeof(*o.writer));
        find_over(&o);
        check_rank(&o);
    }
    free(o.begin);
    free(o.end);
    free(o.writer);
    free(o.reading);
    return rc ? rc : b->errs->total ? -EINVAL : 0;
}
