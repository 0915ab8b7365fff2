/* SPDX-License-Identifier: BSD-3-Clause */
/* A schedule from a file: the meaning of its numbers, and the order of its checks. */
#include "collective/file/sched_file_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *file_buf_name(enum file_buf buf)
{
    static const char *const name[] = {"?", "in", "out", "scratch"};

    return name[buf];
}

/* ---- memory ---- */

uint32_t file_chunks(const struct sched_file *f, unsigned rank, enum file_buf buf)
{
    uint32_t one = f->chunks, all = one * f->nranks;
    bool root = rank == f->root;

    if (buf == FILE_SCRATCH)
        return f->scratch;
    switch (f->kind) {
    case COLL_REDUCE:
        return buf == FILE_IN || root ? one : 0;
    case COLL_BROADCAST:
        return buf == FILE_OUT || root ? one : 0;
    case COLL_ALLGATHER:
        return buf == FILE_IN ? one : all;
    case COLL_REDUCE_SCATTER:
        return buf == FILE_IN ? all : one;
    case COLL_ALLTOALL:
        return all;
    case COLL_GATHER:
        return buf == FILE_IN ? one : root ? all : 0;
    case COLL_SCATTER:
        return buf == FILE_OUT ? one : root ? all : 0;
    default:
        return one;
    }
}

uint32_t file_cells(const struct sched_file *f, unsigned rank)
{
    return file_chunks(f, rank, FILE_IN) + file_chunks(f, rank, FILE_OUT) + f->scratch;
}

uint32_t file_cell(const struct sched_file *f, unsigned rank, struct file_ref r, uint32_t k,
                   bool in_place)
{
    uint32_t in = file_chunks(f, rank, FILE_IN), out = file_chunks(f, rank, FILE_OUT);
    uint32_t at = r.first + k, own = rank * f->chunks;

    if (r.buf == FILE_SCRATCH)
        return in + out + at;
    if (!in_place || !in || !out)
        return r.buf == FILE_IN ? at : in + at;
    if (in < out && r.buf == FILE_IN) /* `in` is the rank's block of `out` */
        at += own;
    if (out < in && r.buf == FILE_OUT)
        at += own;
    return at;
}

static int verify(struct sched_file *f, struct build *b)
{
    uint32_t *order = calloc(f->n_steps + 1ul, sizeof(*order));
    int rc = order ? file_match(f, b) : -ENOMEM;

    if (!rc)
        rc = file_order(f, b, order);
    for (int p = 0; p < 2 && !rc; p++) {
        if (f->place[p])
            rc = file_races(f, b, order, p);
        if (f->place[p] && !rc)
            rc = file_values(f, b, order, p);
    }
    free(order);
    return rc;
}

/* FNV-1a: ranks compare it (agree.c). */
static uint32_t hash_of(const char *text)
{
    uint32_t h = 2166136261u;

    for (; *text; text++)
        h = (h ^ (uint8_t)*text) * 16777619u;
    return h ? h : 1;
}

struct sched_file *sched_file_parse(const char *text, const char *path, struct fab_errors *errs)
{
    struct build b = {.errs = errs, .path = path};
    struct sched_file *f = calloc(1, sizeof(*f));
    char *copy = strdup(text);
    int rc = -ENOMEM;

    errs->n = errs->total = 0;
    if (f && copy) {
        f->place[0] = f->place[1] = true;
        f->text = strdup(text);
        f->hash = hash_of(text);
        f->first = calloc(SCHED_FILE_RANKS + 1, sizeof(*f->first));
        if (f->text && f->first)
            rc = strlen(text) > SCHED_FILE_BYTES ? -E2BIG : file_read(f, &b, copy);
    }
    if (rc == -E2BIG)
        build_error(&b, 0, "found a file of %zu bytes, expected at most %u", strlen(text),
                    SCHED_FILE_BYTES);
    if (!rc && !errs->total) {
        f->part = calloc(f->n_parts + 1ul, sizeof(*f->part));
        rc = f->part ? verify(f, &b) : -ENOMEM;
    }
    if (rc == -ENOMEM)
        build_error(&b, 0, "out of memory");
    fab_errors_sort(errs);
    free(copy);
    if (!errs->total)
        return f;
    sched_file_free(f);
    return NULL;
}

struct sched_file *sched_file_load(const char *path, struct fab_errors *errs)
{
    struct sched_file *f = NULL;
    char *text;

    errs->n = errs->total = 0;
    text = conf_text(path, "schedule", errs);
    if (text)
        f = sched_file_parse(text, path, errs);
    free(text);
    return f;
}

void sched_file_free(struct sched_file *f)
{
    if (!f)
        return;
    free(f->text);
    free(f->step);
    free(f->first);
    free(f->after);
    free(f->part);
    free(f->edge);
    free(f);
}
