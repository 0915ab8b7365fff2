/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages and their order. Message k of rank a to rank b is b's k-th receive from a. For deadlocks a
 * message is one event: a send ends when its message is received, and a receive is posted once all
 * steps that its line names have ended. In fact a queue pair has slots for early messages, so some
 * refused schedules would run; but which ones depends on the size and the fabric.
 */
#include "collective/file/sched_file_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- messages ---- */

struct end {
    unsigned from, to;
    uint32_t step;
};

static int by_edge(const void *a, const void *b)
{
    const struct end *x = a, *y = b;

    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    return x->step < y->step ? -1 : x->step > y->step;
}

static int edge_order(const struct end *x, const struct end *y)
{
    return x->from != y->from ? (x->from < y->from ? -1 : 1)
           : x->to != y->to   ? (x->to < y->to ? -1 : 1)
                              : 0;
}

/* Collects the sends, or the receives, sorted by pair of ranks. Returns their number. */
static uint32_t collect(const struct sched_file *f, bool recvs, struct end *e)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < f->n_steps; i++) {
        const struct file_step *s = &f->step[i];

        if (file_is_local(s) || file_is_recv(s) != recvs)
            continue;
        e[n++] = recvs ? (struct end){s->peer, s->rank, i} : (struct end){s->rank, s->peer, i};
    }
    qsort(e, n, sizeof(*e), by_edge);
    return n;
}

static void join(struct sched_file *f, struct build *b, const struct end *x, const struct end *y)
{
    struct file_step *s = &f->step[x->step], *r = &f->step[y->step];

    s->match = y->step;
    r->match = x->step;
    s->scratch = s->a.buf == FILE_SCRATCH || r->b.buf == FILE_SCRATCH || r->dst.buf == FILE_SCRATCH;
    r->scratch = s->scratch;
    if (s->n != r->n)
        build_error(b, (int)s->line,
                    "found %u chunk%s sent to rank %u, which receives %u in line %u, expected the "
                    "same count",
                    s->n, s->n > 1 ? "s" : "", s->peer, r->n, r->line);
    if (f->edge[f->n_edges].from != x->from || f->edge[f->n_edges].to != x->to)
        f->n_edges += f->edge[f->n_edges].from != f->edge[f->n_edges].to; /* 0, 0: none so far */
    f->edge[f->n_edges] = (struct file_edge){(uint16_t)x->from, (uint16_t)x->to};
}

static void join_all(struct sched_file *f, struct build *b, const struct end *x, uint32_t n,
                     const struct end *y, uint32_t m)
{
    for (uint32_t i = 0, k = 0; i < n || k < m;) {
        int o = i == n ? 1 : k == m ? -1 : edge_order(&x[i], &y[k]);

        if (!o)
            join(f, b, &x[i], &y[k]);
        else if (o < 0)
            build_error(b, (int)f->step[x[i].step].line,
                        "found a send to rank %u, which has no receive for it, expected one",
                        x[i].to);
        else
            build_error(b, (int)f->step[y[k].step].line,
                        "found a receive from rank %u, which has no send for it, expected one",
                        y[k].from);
        i += o <= 0;
        k += o >= 0;
    }
}

/* Finds each step's predecessor in its FIFO. The messages of one direction between two ranks are a
 * FIFO, and so are the steps that a rank computes itself. */
static int find_fifos(struct sched_file *f)
{
    uint32_t *last = malloc((2ul * f->nranks + 1) * sizeof(*last));

    if (!last)
        return -ENOMEM;
    for (unsigned r = 0; r < f->nranks; r++) {
        memset(last, 0xff, (2ul * f->nranks + 1) * sizeof(*last));
        for (uint32_t i = f->first[r]; i < f->first[r + 1]; i++) {
            struct file_step *s = &f->step[i];
            uint32_t *at = &last[file_is_local(s)  ? 2 * f->nranks
                                 : file_is_recv(s) ? f->nranks + s->peer
                                                   : s->peer];

            s->prev = *at;
            *at = i;
        }
    }
    free(last);
    return 0;
}

int file_match(struct sched_file *f, struct build *b)
{
    struct end *x = calloc(f->n_steps + 1ul, sizeof(*x)), *y = calloc(f->n_steps + 1ul, sizeof(*y));
    int rc = -ENOMEM;

    f->edge = calloc(f->n_steps + 1ul, sizeof(*f->edge));
    for (uint32_t i = 0; i < f->n_steps; i++) {
        struct file_step *s = &f->step[i];

        s->match = FILE_NONE;
        s->scratch =
            s->a.buf == FILE_SCRATCH || s->b.buf == FILE_SCRATCH || s->dst.buf == FILE_SCRATCH;
    }
    if (x && y && f->edge) {
        join_all(f, b, x, collect(f, false, x), y, collect(f, true, y));
        f->n_edges += f->edge[0].from != f->edge[0].to;
        rc = find_fifos(f);
    }
    free(x);
    free(y);
    return rc ? rc : b->errs->total ? -EINVAL : 0;
}

/* ---- order ---- */

/* The step that stands for the event: of a message its send. */
static uint32_t event_of(const struct sched_file *f, uint32_t i)
{
    return file_is_recv(&f->step[i]) ? f->step[i].match : i;
}

typedef bool (*visit_fn)(void *ctx, uint32_t event);

/* Calls fn for each event that this end of an event waits for, until fn returns false. */
static bool each_wait(const struct sched_file *f, uint32_t i, visit_fn fn, void *ctx)
{
    const struct file_step *s = &f->step[i];

    if (s->prev != FILE_NONE && !fn(ctx, event_of(f, s->prev)))
        return false;
    for (uint32_t k = 0; k < s->n_after; k++)
        if (!fn(ctx, event_of(f, file_after(f, s, k))))
            return false;
    return true;
}

static bool each_wait_of(const struct sched_file *f, uint32_t event, visit_fn fn, void *ctx)
{
    uint32_t match = f->step[event].match;

    return each_wait(f, event, fn, ctx) && (match == FILE_NONE || each_wait(f, match, fn, ctx));
}

/* Successors of each event, in one array: those of e are next[at[e]] up to before next[at[e + 1]].
 */
struct graph {
    const struct sched_file *f;
    uint32_t *at, *next, *waits;
    uint32_t event;
    bool fill;
};

static bool add_arc(void *ctx, uint32_t before)
{
    struct graph *g = ctx;

    if (g->fill)
        g->next[g->at[before + 1]++] = g->event;
    else
        g->at[before + 2]++, g->waits[g->event]++;
    return true;
}

static int graph_make(struct graph *g)
{
    uint32_t n = g->f->n_steps;

    g->at = calloc(n + 3ul, sizeof(*g->at));
    g->waits = calloc(n + 1ul, sizeof(*g->waits));
    if (!g->at || !g->waits)
        return -ENOMEM;
    for (unsigned pass = 0; pass < 2; pass++) {
        g->fill = pass;
        for (g->event = 0; g->event < n; g->event++)
            if (!file_is_recv(&g->f->step[g->event]))
                each_wait_of(g->f, g->event, add_arc, g);
        for (uint32_t i = 2; !pass && i < n + 3; i++)
            g->at[i] += g->at[i - 1];
        if (!pass)
            g->next = calloc(g->at[n + 1] + 1ul, sizeof(*g->next));
        if (!g->next)
            return -ENOMEM;
    }
    return 0;
}

struct search {
    const struct graph *g;
    uint32_t found;
};

static bool still_waits(void *ctx, uint32_t event)
{
    struct search *s = ctx;

    if (!s->g->waits[event])
        return true;
    s->found = event;
    return false;
}

static const char *names[] = {"send", "recv", "recv_reduce", "reduce", "copy"};

/* Reports a deadlock: follows waiting events until one repeats, which is on a cycle. */
static void report_cycle(const struct sched_file *f, const struct graph *g, struct build *b,
                         uint32_t event)
{
    struct search s = {g, event};
    const struct file_step *first;
    char text[300];
    size_t at = 0;

    for (uint32_t i = 0; i < f->n_steps; i++) /* after this many moves it is on a cycle */
        each_wait_of(f, s.found, still_waits, &s);
    event = s.found;
    first = &f->step[event];
    do {
        each_wait_of(f, s.found, still_waits, &s);
        if (at < sizeof(text) - 60)
            at += (size_t)snprintf(text + at, sizeof(text) - at, "%s line %u (rank %u)",
                                   at ? ", that for" : "waits for", f->step[s.found].line,
                                   f->step[s.found].rank);
        else if (at < sizeof(text) - 10)
            at += (size_t)snprintf(text + at, sizeof(text) - at, ", ...");
    } while (s.found != event);
    build_error(b, (int)first->line,
                "found a deadlock, expected steps that can run: this %s %s; a send ends when it is "
                "received",
                names[first->op], text);
}

int file_order(const struct sched_file *f, struct build *b, uint32_t *order)
{
    struct graph g = {.f = f};
    uint32_t *queue = calloc(f->n_steps + 1ul, sizeof(*queue));
    uint32_t head = 0, tail = 0, n = 0, stuck = FILE_NONE;
    int rc = queue ? graph_make(&g) : -ENOMEM;

    for (uint32_t i = 0; !rc && i < f->n_steps; i++)
        if (!file_is_recv(&f->step[i]) && !g.waits[i])
            queue[tail++] = i;
    while (!rc && head < tail) {
        uint32_t e = queue[head++];

        order[n++] = e;
        if (f->step[e].match != FILE_NONE)
            order[n++] = f->step[e].match;
        for (uint32_t k = g.at[e]; k < g.at[e + 1]; k++)
            if (!--g.waits[g.next[k]])
                queue[tail++] = g.next[k];
    }
    for (uint32_t i = f->n_steps; !rc && n < f->n_steps && i-- > 0;)
        if (!file_is_recv(&f->step[i]) && g.waits[i])
            stuck = i;
    if (stuck != FILE_NONE) {
        report_cycle(f, &g, b, stuck);
        rc = -EINVAL;
    }
    free(queue);
    free(g.at);
    free(g.next);
    free(g.waits);
    return rc;
}
