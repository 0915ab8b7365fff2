/* SPDX-License-Identifier: BSD-3-Clause */
/* Fault plans as text. */
#include "fabric/conf/faults.h"

#include "base/units.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

struct plan_text {
    char *buf;
    size_t size, len;
};

static void plan_text_put(struct plan_text *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void plan_text_put(struct plan_text *t, const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(t->buf + t->len, t->size - t->len, fmt, ap);
    va_end(ap);
    t->len += n > 0 ? (size_t)n : 0;
    if (t->len >= t->size)
        t->len = t->size - 1;
}

/* Prints a time in the largest unit that gives a whole number. */
static void put_time(struct plan_text *t, const char *key, int64_t ps)
{
    static const struct {
        const char *name;
        int64_t ps;
    } units[] = {{"s", 1000000000000}, {"ms", 1000000000}, {"us", 1000000}, {"ns", 1000}};
    unsigned i = 0;

    if (ps < 0)
        return;
    while (i < 4 && (ps % units[i].ps || !ps))
        i++;
    plan_text_put(t, " %s = \"%" PRId64 "%s\";", key, i < 4 ? ps / units[i].ps : ps,
                  i < 4 ? units[i].name
                  : ps  ? "ps"
                        : "ns");
}

static void put_probability(struct plan_text *t, const char *key, double p)
{
    if (p >= 0)
        plan_text_put(t, " %s = %#.6g;", key, p);
}

static void put_flag(struct plan_text *t, const char *key, bool set)
{
    if (set)
        plan_text_put(t, " %s = true;", key);
}

static void put_number(struct plan_text *t, const char *key, int64_t v)
{
    if (v >= 0)
        plan_text_put(t, " %s = %" PRId64 ";", key, v);
}

void fault_event_text(const struct fault_event *e, const struct fabric *f, char *buf, size_t size)
{
    static const char *const names[] = {"link", "node", "host", "rank", "an"};
    struct plan_text t = {buf, size, 0};
    char rate[32];

    *buf = '\0';
    plan_text_put(&t, "{");
    put_time(&t, "at", e->at_ps);
    if (e->of == FAULT_RANK)
        put_number(&t, "rank", e->which);
    else
        plan_text_put(&t, " %s = \"%s\";", names[e->of],
                      e->of != FAULT_LINK     ? f->nodes[e->which].name
                      : e->which == FAULT_ALL ? "all"
                                              : f->links[e->which].name);
    put_flag(&t, "down", e->down);
    put_flag(&t, "up", e->up);
    put_flag(&t, "clear", e->clear);
    if (e->rate_bps) {
        print_rate(e->rate_bps, rate, sizeof(rate));
        plan_text_put(&t, " rate = \"%s\";", rate);
    }
    put_time(&t, "latency", e->latency_ps);
    put_probability(&t, "loss", e->loss);
    put_probability(&t, "dup", e->dup);
    put_probability(&t, "reorder", e->reorder);
    put_probability(&t, "corrupt", e->corrupt);
    put_time(&t, "jitter", e->jitter_ps);
    put_number(&t, "seed", e->seed);
    put_time(&t, "restart", e->restart_ps);
    if (e->slow)
        put_number(&t, "slow", e->slow);
    put_time(&t, "late", e->late_ps);
    put_flag(&t, "die", e->die);
    put_time(&t, "told", e->told_ps);
    put_number(&t, "mbufs", e->mbufs);
    plan_text_put(&t, " }");
}

void fault_plan_print(const struct fault_plan *p, const struct fabric *f, FILE *out)
{
    char line[512];

    fprintf(out, "faults = (");
    for (unsigned i = 0; i < p->n; i++) {
        fault_event_text(&p->e[i], f, line, sizeof(line));
        fprintf(out, "%s%s", i ? ",\n           " : "\n           ", line);
    }
    fprintf(out, " );\n");
}
