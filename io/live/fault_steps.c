/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/live/fault_steps.h"

#include "base/units.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is refused ---- */

static const char *refusal(const struct fault_event *e, bool machines)
{
    switch (e->of) {
    case FAULT_LINK:
        return NULL;
    case FAULT_NODE:
        return machines ? "found a node of a fabric of several machines, expected its links" : NULL;
    case FAULT_HOST:
        return e->die
                   ? "found the death of a host, expected node with down = true, which takes its "
                     "links; its programs are ended by whoever started them"
                   : "found a slow host, expected link or node: programs on a fabric that is up "
                     "run as fast as they do";
    case FAULT_RANK:
        return "found a rank, expected link or node: who is a rank is known to its job alone";
    default:
        return "found an aggregation node's buffers, expected link or node: they are fixed while a "
               "fabric is up";
    }
}

static void fault_steps_report(struct fab_errors *errs, const char *path, unsigned line,
                               const char *text)
{
    struct fab_error *e;

    errs->total++;
    if (errs->n == FAB_MAX_ERRORS)
        return;
    e = &errs->e[errs->n++];
    e->line = (int)line;
    snprintf(e->file, sizeof(e->file), "%s", path);
    snprintf(e->text, sizeof(e->text), "%s", text);
}

/* ---- commands ---- */

static void word(struct fault_step *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void word(struct fault_step *s, const char *fmt, ...)
{
    size_t len = strlen(s->params);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(s->params + len, sizeof(s->params) - len, fmt, ap);
    va_end(ap);
}

static void probability(struct fault_step *s, const char *name, double p)
{
    if (p >= 0)
        word(s, ",%s=%.9g", name, p);
}

static void duration(struct fault_step *s, const char *name, int64_t ps)
{
    char text[32];

    if (ps < 0)
        return;
    print_time(ps, text, sizeof(text));
    word(s, ",%s=%s", name, text);
}

/* Writes the words in the order in which trib sim applies them: the state last. */
static void link_words(struct fault_step *s, const struct fault_event *e, const struct fabric *f)
{
    char rate[32];

    s->command = "/trib/link";
    word(s, "%s%s", e->which == FAULT_ALL ? "all" : f->links[e->which].name,
         e->clear ? ",clear" : "");
    if (e->seed >= 0)
        word(s, ",seed=%" PRId64, e->seed);
    probability(s, "loss", e->loss);
    probability(s, "dup", e->dup);
    probability(s, "reorder", e->reorder);
    probability(s, "corrupt", e->corrupt);
    duration(s, "jitter", e->jitter_ps);
    if (e->rate_bps) {
        print_rate(e->rate_bps, rate, sizeof(rate));
        word(s, ",rate=%s", rate);
    }
    duration(s, "latency", e->latency_ps);
    word(s, "%s", e->down ? ",down" : e->up ? ",up" : "");
}

/* Inserts a step by time, after steps of the same time. */
static struct fault_step *fault_steps_add(struct fault_steps *s, const struct fault_event *e,
                                          int64_t at_ps)
{
    unsigned i = s->n++;

    for (; i && s->a[i - 1].at_ps > at_ps; i--)
        s->a[i] = s->a[i - 1];
    s->a[i] = (struct fault_step){.at_ps = at_ps, .line = e->line};
    return &s->a[i];
}

static void add_node(struct fault_steps *s, const struct fault_event *e, const struct fabric *f,
                     int64_t at_ps, const char *what)
{
    struct fault_step *n = fault_steps_add(s, e, at_ps);

    n->command = "/trib/node";
    word(n, "%s,%s", f->nodes[e->which].name, what);
}

static void add_event(struct fault_steps *s, const struct fault_event *e, const struct fabric *f)
{
    if (e->of == FAULT_LINK) {
        link_words(fault_steps_add(s, e, e->at_ps), e, f);
        return;
    }
    add_node(s, e, f, e->at_ps, e->up ? "up" : "down");
    if (e->restart_ps < 0)
        return;
    add_node(s, e, f, e->at_ps, "forget");
    add_node(s, e, f, (e->at_ps < 0 ? 0 : e->at_ps) + e->restart_ps, "up");
}

int fault_steps_make(struct fault_steps *s, const struct fault_plan *p, const struct fabric *f,
                     const char *path, bool machines, struct fab_errors *errs)
{
    *s = (struct fault_steps){.a = calloc(3u * p->n + 1, sizeof(*s->a))};
    errs->n = errs->total = 0;
    if (!s->a)
        return -ENOMEM;
    for (unsigned i = 0; i < p->n; i++) {
        const char *why = refusal(&p->e[i], machines);

        if (why)
            fault_steps_report(errs, path, p->e[i].line, why);
        else
            add_event(s, &p->e[i], f);
    }
    if (!errs->total)
        return 0;
    fault_steps_free(s);
    return -EINVAL;
}

void fault_steps_free(struct fault_steps *s)
{
    free(s->a);
    *s = (struct fault_steps){0};
}
