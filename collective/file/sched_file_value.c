/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs a schedule on symbols instead of numbers. The value of a chunk of memory is: which chunk of
 * the vector it holds, the set of ranks whose contributions it includes, and a hash of the order in
 * which they were added. Steps on the same memory are in order (sched_file_race.c), so one order of
 * all steps stands for all.
 */
#include "collective/file/sched_file_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NOTHING UINT64_MAX

struct value {
    uint64_t chunk; /* index over all ranks' blocks; NOTHING: not written yet */
    uint64_t how;   /* hash of the order of its sum */
};

struct machine {
    struct sched_file *f;
    struct build *b;
    bool in_place;
    size_t words;    /* words of a set of ranks; 0: the collective does not reduce */
    size_t *base;    /* [nranks + 1] the first cell of each rank */
    struct value *v; /* of all ranks' cells */
    uint64_t *set;
    uint32_t *line; /* that wrote it; 0: none */
    bool stop;
};

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 31) * 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9ull;
    return x ^ x >> 32;
}

static size_t cell_of(const struct machine *m, unsigned rank, struct file_ref ref, uint32_t k)
{
    return m->base[rank] + file_cell(m->f, rank, ref, k, m->in_place);
}

static uint64_t *set_of(const struct machine *m, size_t cell)
{
    return m->set + cell * m->words;
}

/* ---- initial values, and expected results ---- */

/* Index, over all ranks' blocks, of the k-th chunk of a rank's `in` or `out`. */
static uint64_t chunk_in(const struct sched_file *f, unsigned rank, uint32_t k)
{
    switch (f->kind) {
    case COLL_ALLGATHER:
    case COLL_GATHER:
        return (uint64_t)rank * f->chunks + k;
    case COLL_ALLTOALL:
        return (uint64_t)rank * f->nranks * f->chunks + k;
    default:
        return k;
    }
}

static uint64_t chunk_out(const struct sched_file *f, unsigned rank, uint32_t k)
{
    switch (f->kind) {
    case COLL_REDUCE_SCATTER:
    case COLL_SCATTER:
        return (uint64_t)rank * f->chunks + k;
    case COLL_ALLTOALL:
        return ((uint64_t)(k / f->chunks) * f->nranks + rank) * f->chunks + k % f->chunks;
    default:
        return k;
    }
}

static void put_inputs(struct machine *m)
{
    const struct sched_file *f = m->f;

    for (size_t c = 0; c < m->base[f->nranks]; c++)
        m->v[c].chunk = NOTHING;
    for (unsigned r = 0; r < f->nranks; r++)
        for (uint32_t k = 0; k < file_chunks(f, r, FILE_IN); k++) {
            size_t c = cell_of(m, r, (struct file_ref){FILE_IN, 0}, k);

            m->v[c] = (struct value){chunk_in(f, r, k), mix(r + 1)};
            if (m->words)
                set_of(m, c)[r / 64] |= 1ull << r % 64;
        }
}

/* ---- steps ---- */

#define wrong(m, s, ...) ((m)->stop = true, build_error((m)->b, (int)(s)->line, __VA_ARGS__))

static const char *place_text(const struct machine *m)
{
    return m->in_place ? "in place: " : "";
}

/* The first rank that is in both sets; nranks: none. */
static unsigned set_common(const struct machine *m, size_t x, size_t y)
{
    for (size_t i = 0; i < m->words; i++)
        if (set_of(m, x)[i] & set_of(m, y)[i])
            return (unsigned)(64 * i +
                              (unsigned)__builtin_ctzll(set_of(m, x)[i] & set_of(m, y)[i]));
    return m->f->nranks;
}

static unsigned set_missing(const struct machine *m, size_t x)
{
    for (unsigned r = 0; m->words && r < m->f->nranks; r++)
        if (!(set_of(m, x)[r / 64] >> r % 64 & 1))
            return r;
    return m->f->nranks;
}

static bool is_there(struct machine *m, const struct file_step *s, size_t c, struct file_ref ref,
                     uint32_t k)
{
    if (m->v[c].chunk != NOTHING)
        return true;
    wrong(m, s,
          "%sfound %s:%u read before anything is written to it, expected a chunk with content",
          place_text(m), file_buf_name(ref.buf), ref.first + k);
    return false;
}

/* dst = x + y, or x if y is NOTHING. */
static void chunk_put(struct machine *m, struct file_step *s, uint32_t k, size_t x, size_t y)
{
    struct sched_file *f = m->f;
    size_t to = cell_of(m, s->rank, s->dst, k);
    struct value v = m->v[x], w = y == NOTHING ? v : m->v[y];
    uint32_t at = s->dst.first + k;
    bool was = y != NOTHING && m->words;

    if (w.chunk != v.chunk) {
        wrong(m, s, "%sfound a sum of chunk %llu and chunk %llu, expected the same chunk twice",
              place_text(m), (unsigned long long)v.chunk, (unsigned long long)w.chunk);
        return;
    }
    if (s->dst.buf != FILE_SCRATCH && v.chunk % f->chunks != at % f->chunks) {
        wrong(m, s,
              "%sfound chunk %llu written to %s:%u, expected scratch or a place of its length: "
              "chunks differ by an element",
              place_text(m), (unsigned long long)v.chunk, file_buf_name(s->dst.buf), at);
        return;
    }
    if (y != NOTHING && set_common(m, x, y) < f->nranks) {
        wrong(m, s,
              "%sfound the contribution of rank %u twice in a sum of chunk %llu, expected it "
              "once",
              place_text(m), set_common(m, x, y), (unsigned long long)v.chunk);
        return;
    }
    if (y != NOTHING)
        v.how = v.how < w.how ? mix(v.how + mix(w.how)) : mix(w.how + mix(v.how));
    for (size_t i = 0; i < m->words; i++)
        set_of(m, to)[i] = set_of(m, x)[i] | (y == NOTHING ? 0 : set_of(m, y)[i]);
    m->v[to] = v;
    m->line[to] = s->line;
    f->part[s->first_part + k] = (struct file_part){.chunk = (uint32_t)(v.chunk % f->chunks),
                                                    .last = was && set_missing(m, to) == f->nranks};
}

static void run_recv(struct machine *m, struct file_step *r)
{
    struct file_step *s = &m->f->step[r->match];

    for (uint32_t k = 0; k < r->n && !m->stop; k++) {
        size_t x = cell_of(m, s->rank, s->a, k), y = NOTHING;

        if (!is_there(m, s, x, s->a, k))
            return;
        m->f->part[s->first_part + k].chunk = (uint32_t)(m->v[x].chunk % m->f->chunks);
        if (r->b.buf) {
            y = cell_of(m, r->rank, r->b, k);
            if (!is_there(m, r, y, r->b, k))
                return;
        }
        chunk_put(m, r, k, x, y);
    }
}

static void run_local(struct machine *m, struct file_step *s)
{
    for (uint32_t k = 0; k < s->n && !m->stop; k++) {
        size_t x = cell_of(m, s->rank, s->a, k), y = NOTHING;

        if (!is_there(m, s, x, s->a, k))
            return;
        if (s->b.buf) {
            y = cell_of(m, s->rank, s->b, k);
            if (!is_there(m, s, y, s->b, k))
                return;
        }
        chunk_put(m, s, k, x, y);
    }
}

/* ---- results ---- */

/* The last line that wrote the chunk, else the last step of the rank or of any. */
static int line_of(const struct machine *m, unsigned rank, size_t c)
{
    const struct sched_file *f = m->f;
    uint32_t end = f->first[rank + 1];

    if (m->line[c] || !f->n_steps)
        return (int)m->line[c];
    return (int)f->step[end > f->first[rank] ? end - 1
                        : end < f->n_steps   ? end
                                             : f->n_steps - 1]
        .line;
}

static bool check_chunk(struct machine *m, unsigned rank, uint32_t k)
{
    const struct sched_file *f = m->f;
    size_t c = cell_of(m, rank, (struct file_ref){FILE_OUT, 0}, k);
    size_t like = cell_of(m, 0, (struct file_ref){FILE_OUT, 0}, k);
    uint64_t want = chunk_out(f, rank, k);
    unsigned lacks = set_missing(m, c);
    int line = line_of(m, rank, c);

    if (m->v[c].chunk == NOTHING)
        build_error(m->b, line,
                    "%sfound nothing in out:%u of rank %u at the end, expected chunk %llu",
                    place_text(m), k, rank, (unsigned long long)want);
    else if (m->v[c].chunk != want)
        build_error(m->b, line,
                    "%sfound chunk %llu in out:%u of rank %u at the end, expected chunk "
                    "%llu",
                    place_text(m), (unsigned long long)m->v[c].chunk, k, rank,
                    (unsigned long long)want);
    else if (lacks < f->nranks)
        build_error(m->b, line,
                    "%sfound out:%u of rank %u without the contribution of rank %u at "
                    "the end, expected all of them",
                    place_text(m), k, rank, lacks);
    else if (f->kind == COLL_ALLREDUCE && m->v[c].how != m->v[like].how)
        build_error(m->b, line,
                    "%sfound out:%u of rank %u summed in another order than at rank 0, "
                    "expected the same: floats would differ",
                    place_text(m), k, rank);
    else
        return true;
    return false;
}

/* Both ends of a message have to cut it alike. */
static void find_mixed(struct sched_file *f)
{
    for (uint32_t i = 0; i < f->n_steps; i++) {
        struct file_step *s = &f->step[i];

        for (uint32_t k = 1; k < s->n; k++)
            if (f->part[s->first_part + k].last != f->part[s->first_part].last) {
                s->mixed = true;
                if (s->match != FILE_NONE)
                    f->step[s->match].mixed = true;
            }
    }
}

static int check_results(struct machine *m)
{
    for (unsigned r = 0; r < m->f->nranks; r++)
        for (uint32_t k = 0; k < file_chunks(m->f, r, FILE_OUT); k++)
            if (!check_chunk(m, r, k))
                break; /* one mistake a rank */
    return m->b->errs->total ? -EINVAL : 0;
}

int file_values(struct sched_file *f, struct build *b, const uint32_t *order, bool in_place)
{
    struct machine m = {.f = f, .b = b, .in_place = in_place};
    int rc = -ENOMEM;

    m.words = coll_reduces(f->kind) ? (f->nranks + 63) / 64 : 0;
    m.base = calloc(f->nranks + 1ul, sizeof(*m.base));
    for (unsigned r = 0; m.base && r < f->nranks; r++)
        m.base[r + 1] = m.base[r] + file_cells(f, r);
    if (m.base) {
        m.v = calloc(m.base[f->nranks] + 1, sizeof(*m.v));
        m.set = calloc(m.base[f->nranks] * m.words + 1, sizeof(*m.set));
        m.line = calloc(m.base[f->nranks] + 1, sizeof(*m.line));
    }
    if (m.v && m.set && m.line) {
        put_inputs(&m);
        for (uint32_t k = 0; k < f->n_steps && !m.stop; k++) {
            struct file_step *s = &f->step[order[k]];

            if (file_is_recv(s))
                run_recv(&m, s);
            else if (file_is_local(s))
                run_local(&m, s);
        }
        rc = m.stop ? -EINVAL : check_results(&m);
        find_mixed(f);
    }
    free(m.base);
    free(m.v);
    free(m.set);
    free(m.line);
    return rc;
}
