/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/draw_schedule.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 8, UNITS = 64, STEPS = 256, EVENTS = 512, AFTER = 16 };
enum kind { ALL_REDUCE, REDUCE, BROADCAST, ALL_GATHER, REDUCE_SCATTER, ALLTOALL, GATHER, SCATTER };
enum buf { NONE, IN, OUT, SCRATCH };
enum op { SEND, RECV, RECV_REDUCE, REDUCE_OP, COPY };

/* `w` chunks of a rank's memory from `at` on. */
struct ref {
    enum buf buf;
    unsigned at;
};
struct event {  /* a message, or a step of one rank */
    enum op op; /* RECV, RECV_REDUCE: the message */
    unsigned from, to, w;
    struct ref src, with, dst;
};
struct step {
    enum op op;
    unsigned peer, w;
    struct ref a, b, dst;
    struct step *after[AFTER];
    unsigned n_after, number;
};
struct unit { /* events of chunks that nothing else touches, in order */
    struct event ev[4 * RANKS];
    unsigned n, next;
};
struct draw {
    uint64_t seed;
    enum kind kind;
    unsigned n, chunks, root, scratch[RANKS], n_units;
    struct unit unit[UNITS];
    struct step step[RANKS][STEPS], *order[RANKS][STEPS];
    unsigned n_steps[RANKS];
    char *p;
};

static unsigned below(struct draw *d, unsigned n)
{
    d->seed = d->seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)((d->seed >> 33) % n);
}

static bool chance(struct draw *d, unsigned percent)
{
    return below(d, 100) < percent;
}

/* ---- what happens to some chunks ---- */

static struct ref scratch(struct draw *d, unsigned rank, unsigned w)
{
    d->scratch[rank] += w;
    return (struct ref){SCRATCH, d->scratch[rank] - w};
}

static void put(struct unit *u, struct event e)
{
    u->ev[u->n++] = e;
}

/* Every rank's parent in a tree whose root is `root`; order: parents before children. */
static void tree(struct draw *d, unsigned root, unsigned *parent, unsigned *order)
{
    for (unsigned i = 0; i < d->n; i++)
        order[i] = i;
    for (unsigned i = d->n; i > 1; i--) {
        unsigned k = below(d, i), swap = order[i - 1];

        order[i - 1] = order[k], order[k] = swap;
    }
    for (unsigned i = 0; i < d->n; i++)
        if (order[i] == root)
            order[i] = order[0], order[0] = root;
    for (unsigned i = 1; i < d->n; i++)
        parent[order[i]] = order[below(d, i)];
}

/* The sum of all ranks' `in` to `result` at the root. */
static void reduce(struct draw *d, struct unit *u, unsigned root, struct ref in, struct ref result,
                   unsigned w)
{
    unsigned parent[RANKS], order[RANKS];
    struct ref sum[RANKS];

    for (unsigned r = 0; r < RANKS; r++)
        sum[r] = in;
    tree(d, root, parent, order);
    for (unsigned i = d->n; --i;) {
        unsigned from = order[i], to = parent[from];
        struct ref dst = sum[to].buf != IN       ? sum[to]
                         : to == root            ? result
                         : d->kind != ALL_REDUCE ? scratch(d, to, w)
                         : chance(d, 30)         ? scratch(d, to, w)
                                                 : (struct ref){OUT, in.at};

        if (chance(d, 70)) {
            put(u, (struct event){RECV_REDUCE, from, to, w, sum[from], sum[to], dst});
        } else {
            struct ref box = scratch(d, to, w);

            put(u, (struct event){RECV, from, to, w, sum[from], {NONE, 0}, box});
            put(u, (struct event){REDUCE_OP, to, to, w, sum[to], box, dst});
        }
        sum[to] = dst;
    }
}

/* `have` of the root to `want` of every rank: [RANKS]. Some get it in scratch memory first. */
static void spread(struct draw *d, struct unit *u, unsigned root, struct ref have,
                   const struct ref *want, unsigned w)
{
    unsigned parent[RANKS], order[RANKS];
    struct ref at[RANKS];

    tree(d, root, parent, order);
    at[root] = have;
    if (have.buf != want[root].buf)
        put(u, (struct event){COPY, root, root, w, have, {NONE, 0}, want[root]});
    for (unsigned i = 1; i < d->n; i++) {
        unsigned to = order[i];
        bool box = chance(d, 20);

        at[to] = box ? scratch(d, to, w) : want[to];
        put(u, (struct event){RECV, parent[to], to, w, at[parent[to]], {NONE, 0}, at[to]});
        if (box)
            put(u, (struct event){COPY, to, to, w, at[to], {NONE, 0}, want[to]});
    }
}

/* From one rank to another, at times over a third. */
static void carry(struct draw *d, struct unit *u, unsigned from, struct ref src, unsigned to,
                  struct ref dst, unsigned w)
{
    unsigned by = below(d, d->n);

    if (from == to) {
        put(u, (struct event){COPY, from, from, w, src, {NONE, 0}, dst});
    } else if (by == from || by == to || chance(d, 70)) {
        put(u, (struct event){RECV, from, to, w, src, {NONE, 0}, dst});
    } else {
        struct ref box = scratch(d, by, w);

        put(u, (struct event){RECV, from, by, w, src, {NONE, 0}, box});
        put(u, (struct event){RECV, by, to, w, box, {NONE, 0}, dst});
    }
}

/* One unit: chunks k to k + w - 1 of block b, or of the vector. */
static void fill_unit(struct draw *d, struct unit *u, unsigned b, unsigned k, unsigned w)
{
    struct ref in = {IN, k}, out = {OUT, k}, block_in = {IN, b * d->chunks + k},
               block_out = {OUT, b * d->chunks + k}, all[RANKS];
    unsigned owner = below(d, d->n);

    switch (d->kind) {
    case ALL_REDUCE:
        reduce(d, u, owner, in, out, w);
        for (unsigned r = 0; r < RANKS; r++)
            all[r] = out;
        spread(d, u, owner, out, all, w);
        break;
    case REDUCE:
        reduce(d, u, d->root, in, out, w);
        break;
    case REDUCE_SCATTER:
        reduce(d, u, b, block_in, out, w);
        break;
    case BROADCAST:
        for (unsigned r = 0; r < RANKS; r++)
            all[r] = out;
        spread(d, u, d->root, in, all, w);
        break;
    case ALL_GATHER:
        for (unsigned r = 0; r < RANKS; r++)
            all[r] = block_out;
        spread(d, u, b, in, all, w);
        break;
    case ALLTOALL:
        for (unsigned r = 0; r < d->n; r++)
            carry(d, u, b, (struct ref){IN, r * d->chunks + k}, r, block_out, w);
        break;
    case GATHER:
        carry(d, u, b, in, d->root, block_out, w);
        break;
    case SCATTER:
        carry(d, u, d->root, block_in, b, out, w);
        break;
    }
}

static void fill_units(struct draw *d)
{
    unsigned blocks = d->kind >= ALL_GATHER ? d->n : 1;

    for (unsigned b = 0; b < blocks; b++)
        for (unsigned k = 0, w; k < d->chunks; k += w) {
            w = 1 + below(d, chance(d, 60) ? 1 : d->chunks - k);
            fill_unit(d, &d->unit[d->n_units++], b, k, w);
        }
}

/* ---- the ranks' steps ---- */

/* In place `in` and `out` may be one memory, which depends on the collective: they count as one. */
static bool meet(struct ref p, unsigned pw, struct ref q, unsigned qw)
{
    if (!p.buf || !q.buf || (p.buf == SCRATCH) != (q.buf == SCRATCH))
        return false;
    return p.buf != q.buf || (p.at < q.at + qw && q.at < p.at + pw);
}

static bool needs(const struct step *s, const struct step *before)
{
    return meet(before->dst, before->w, s->a, s->w) || meet(before->dst, before->w, s->b, s->w) ||
           meet(before->dst, before->w, s->dst, s->w) || meet(before->a, before->w, s->dst, s->w) ||
           meet(before->b, before->w, s->dst, s->w);
}

static void append(struct draw *d, unsigned rank, struct step s)
{
    struct step *at = &d->step[rank][d->n_steps[rank]];
    unsigned n = d->n_steps[rank]++;

    *at = s;
    d->order[rank][n] = at;
    for (unsigned i = n; i-- && at->n_after < AFTER;)
        if (needs(at, &d->step[rank][i]) ? chance(d, 97) : chance(d, 4))
            at->after[at->n_after++] = &d->step[rank][i];
}

static void take(struct draw *d, const struct event *e)
{
    if (e->op == RECV || e->op == RECV_REDUCE)
        append(d, e->from, (struct step){.op = SEND, .peer = e->to, .w = e->w, .a = e->src});
    if (e->op == RECV)
        append(d, e->to, (struct step){.op = RECV, .peer = e->from, .w = e->w, .dst = e->dst});
    else if (e->op == RECV_REDUCE)
        append(d, e->to,
               (struct step){.op = e->op, .peer = e->from, .w = e->w, .a = e->with, .dst = e->dst});
    else
        append(d, e->to,
               (struct step){.op = e->op, .w = e->w, .a = e->src, .b = e->with, .dst = e->dst});
}

/* All units' events, mixed. */
static void mix(struct draw *d)
{
    unsigned left = 0;

    for (unsigned i = 0; i < d->n_units; i++)
        left += d->unit[i].n;
    while (left) {
        struct unit *u = &d->unit[below(d, d->n_units)];

        if (u->next == u->n)
            continue;
        take(d, &u->ev[u->next++]);
        left--;
    }
}

static bool is_message(const struct step *s)
{
    return s->op <= RECV_REDUCE;
}

/* Whether two steps that follow each other may change places: messages between two ranks keep their
 * order, and a step comes after what it names. */
static bool may_swap(const struct step *s, const struct step *t)
{
    for (unsigned i = 0; i < t->n_after; i++)
        if (t->after[i] == s)
            return false;
    return !(is_message(s) && is_message(t) && s->peer == t->peer &&
             (s->op == SEND) == (t->op == SEND));
}

static void shuffle(struct draw *d, unsigned rank)
{
    unsigned n = d->n_steps[rank];

    for (unsigned k = n > 1 ? below(d, 3 * n) : 0; k; k--) {
        struct step **p = &d->order[rank][below(d, n - 1)], *s = p[0];

        if (may_swap(s, p[1]))
            p[0] = p[1], p[1] = s;
    }
    for (unsigned i = 0; i < n; i++)
        d->order[rank][i]->number = i;
}

/* ---- text ---- */

static void put_ref(struct draw *d, struct ref r, unsigned w)
{
    static const char *const name[] = {"", "in", "out", "scratch"};

    if (!r.buf)
        return;
    d->p += sprintf(d->p, " %s:%u", name[r.buf], r.at);
    if (w > 1)
        d->p += sprintf(d->p, "-%u", r.at + w - 1);
}

static int by_number(const void *a, const void *b)
{
    const struct step *const *s = a, *const *t = b;

    return (int)(*s)->number - (int)(*t)->number;
}

static void put_step(struct draw *d, struct step *s)
{
    static const char *const name[] = {"send", "recv", "recv_reduce", "reduce", "copy"};

    d->p += sprintf(d->p, "%u %s", s->number, name[s->op]);
    if (is_message(s))
        d->p += sprintf(d->p, " %u", s->peer);
    put_ref(d, s->a, s->w);
    put_ref(d, s->b, s->w);
    put_ref(d, s->dst, s->w);
    qsort(s->after, s->n_after, sizeof(*s->after), by_number);
    for (unsigned i = 0; i < s->n_after; i++)
        d->p += sprintf(d->p, "%s%u", i ? "," : " after ", s->after[i]->number);
    d->p += sprintf(d->p, "\n");
}

static void put_header(struct draw *d)
{
    static const char *const name[] = {"all_reduce",     "reduce",   "broadcast", "all_gather",
                                       "reduce_scatter", "alltoall", "gather",    "scatter"};
    unsigned most = 0;

    for (unsigned r = 0; r < d->n; r++)
        most = d->scratch[r] > most ? d->scratch[r] : most;
    d->p += sprintf(d->p, "schedule drawn\ncollective %s\nranks %u\nchunks %u\n", name[d->kind],
                    d->n, d->chunks);
    if (most)
        d->p += sprintf(d->p, "scratch %u\n", most);
    if (d->kind == REDUCE || d->kind == BROADCAST || d->kind == GATHER || d->kind == SCATTER)
        d->p += sprintf(d->p, "root %u\n", d->root);
    if (d->kind == ALLTOALL)
        d->p += sprintf(d->p, "place out\n");
}

void draw_schedule(uint64_t seed, char *text)
{
    struct draw *d = calloc(1, sizeof(*d));

    d->seed = seed * 0x9e3779b97f4a7c15ULL + 1;
    below(d, 2);
    d->p = text;
    d->kind = below(d, SCATTER + 1);
    d->n = 2 + below(d, d->kind == ALLTOALL ? 4 : RANKS - 1);
    d->chunks = 1 + below(d, d->kind >= ALL_GATHER ? 3 : 6);
    d->root = below(d, d->n);
    fill_units(d);
    mix(d);
    put_header(d);
    for (unsigned r = 0; r < d->n; r++) {
        shuffle(d, r);
        d->p += sprintf(d->p, "rank %u\n", r);
        for (unsigned i = 0; i < d->n_steps[r]; i++)
            put_step(d, d->order[r][i]);
    }
    free(d);
}
