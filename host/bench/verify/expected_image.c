/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contents of buffers at the sampled elements. Every step moves or reduces ranges of whole buffers,
 * so the content of a buffer is a list of ranges, each a range of the ranks' streams (elements are
 * reduced only with those of the same position). Moving one costs no work for its samples.
 */
#include "host/bench/verify/expected_priv.h"
#include "host/bench/verify/rule.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

unsigned image_samples(const struct expected *x, uint64_t from)
{
    return samples_from(x->samples, (from + x->size - 1) / x->size);
}

/* Bytes [skip, skip + len) of a run. */
static struct expected_run part_of(const struct expected *x, const struct expected_run *r,
                                   uint64_t skip, uint64_t len)
{
    struct expected_run p = {.len = len, .from = r->from + skip, .v = r->v};

    if (skip)
        p.v += (size_t)(image_samples(x, p.from) - image_samples(x, r->from)) * x->size;
    return p;
}

/* Index of the first extent that ends after off. */
static unsigned extent_at(const struct space *s, uint64_t off)
{
    unsigned from = 0, to = s->n;

    while (from < to) {
        unsigned mid = (from + to) / 2;

        if (s->e[mid].off + s->e[mid].run.len <= off)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

/* Makes room for `more` extents in place of those in [first, end). */
static int expected_image_resize(struct space *s, unsigned first, unsigned end, unsigned more)
{
    unsigned n = s->n - (end - first) + more;

    if (n > s->room) {
        unsigned room = 2 * n + 8;
        void *p = realloc(s->e, room * sizeof(*s->e));

        if (!p)
            return -ENOMEM;
        s->e = p;
        s->room = room;
    }
    if (s->n > end)
        memmove(&s->e[first + more], &s->e[end], (s->n - end) * sizeof(*s->e));
    s->n = n;
    return 0;
}

int space_put(struct expected *x, struct space *s, uint64_t off, const struct image *what)
{
    struct extent before = {0}, after = {0};
    unsigned first, last;
    uint64_t end = off;

    for (unsigned i = 0; i < what->n; i++)
        end += what->run[i].len;
    first = last = extent_at(s, off);
    while (last < s->n && s->e[last].off < end)
        last++;
    if (first < last && s->e[first].off < off)
        before = (struct extent){s->e[first].off,
                                 part_of(x, &s->e[first].run, 0, off - s->e[first].off)};
    if (first < last && s->e[last - 1].off + s->e[last - 1].run.len > end)
        after = (struct extent){end, part_of(x, &s->e[last - 1].run, end - s->e[last - 1].off,
                                             s->e[last - 1].off + s->e[last - 1].run.len - end)};
    if (expected_image_resize(s, first, last, what->n + (before.run.len > 0) + (after.run.len > 0)))
        return -ENOMEM;
    if (before.run.len)
        s->e[first++] = before;
    for (unsigned i = 0; i < what->n; i++) {
        s->e[first++] = (struct extent){off, what->run[i]};
        off += what->run[i].len;
    }
    if (after.run.len)
        s->e[first] = after;
    return 0;
}

int space_get(struct expected *x, const struct space *s, uint64_t off, uint64_t len,
              struct image *what)
{
    unsigned first = extent_at(s, off), last = first;
    uint64_t end = off + len;

    *what = (struct image){0};
    while (last < s->n && s->e[last].off < end)
        last++;
    what->run = arena_alloc(&x->arena, last - first + 1, sizeof(*what->run));
    if (!what->run)
        return -ENOMEM;
    for (unsigned i = first; i < last; i++) {
        const struct extent *e = &s->e[i];
        uint64_t to = e->off + e->run.len < end ? e->off + e->run.len : end;

        if (e->off > off)
            return -EINVAL;
        what->run[what->n++] = part_of(x, &e->run, off - e->off, to - off);
        off = to;
    }
    return off == end ? 0 : -EINVAL;
}

/* Position in one of several images that are walked together. */
struct cursor {
    unsigned run;
    uint64_t skip;
};

/* Length of the part from the cursors on that lies within one run of each image. 0: it belongs to
 * no single stream. */
static uint64_t run_common(const struct expected *x, const struct image *in, unsigned n,
                           const struct cursor *at, const void **v, uint64_t *from)
{
    uint64_t len = UINT64_MAX;

    for (unsigned k = 0; k < n; k++) {
        const struct expected_run *r;

        if (at[k].run == in[k].n)
            return 0;
        r = &in[k].run[at[k].run];
        if (k && r->from + at[k].skip != *from)
            return 0;
        *from = r->from + at[k].skip;
        len = r->len - at[k].skip < len ? r->len - at[k].skip : len;
        v[k] = part_of(x, r, at[k].skip, 0).v;
    }
    return len;
}

static void cursors_advance(const struct image *in, unsigned n, struct cursor *at, uint64_t len)
{
    for (unsigned k = 0; k < n; k++) {
        at[k].skip += len;
        if (at[k].skip == in[k].run[at[k].run].len)
            at[k] = (struct cursor){at[k].run + 1, 0};
    }
}

int image_reduce(struct expected *x, const struct image *in, unsigned n, image_fn fn,
                 const void *ctx, uint64_t off, struct image *out)
{
    struct cursor *at = calloc(n + 1, sizeof(*at));
    const void **v = calloc(n + 1, sizeof(*v));
    unsigned most = 1;
    int rc = at && v ? 0 : -ENOMEM;

    for (unsigned k = 0; k < n; k++)
        most += in[k].n;
    *out = (struct image){.run = arena_alloc(&x->arena, most, sizeof(*out->run))};
    rc = out->run ? rc : -ENOMEM;
    while (!rc && at[0].run < in[0].n) {
        uint64_t from = 0, len = run_common(x, in, n, at, v, &from);
        unsigned first = image_samples(x, from), count = image_samples(x, from + len) - first;
        uint8_t *values = arena_alloc(&x->arena, count + 1, x->size);

        rc = !values ? -ENOMEM : len ? 0 : -EINVAL;
        if (rc)
            break;
        if (count)
            fn(x, ctx, values, v, n, count, first, off / x->size - from / x->size);
        out->run[out->n++] = (struct expected_run){len, from, values};
        cursors_advance(in, n, at, len);
        off += len;
    }
    free(at);
    free(v);
    return rc;
}

static void divide(struct expected *x, const void *ctx, void *out, const void *const *v, unsigned n,
                   size_t count, unsigned first, uint64_t index)
{
    (void)ctx, (void)n, (void)first, (void)index;
    rule_divide(x->type, out, v[0], x->job->nranks, count);
}

int image_divide(struct expected *x, const struct image *in, struct image *out)
{
    const struct image sum = *in;

    return image_reduce(x, &sum, 1, divide, NULL, 0, out);
}
