/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/live/top.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BAR  20u
#define NAME (FAB_NAME + 8)

/* The lines of a screen so far. */
struct page {
    struct top_line *lines;
    unsigned n, width, height;
};

const char *top_panel_name(unsigned panel)
{
    static const char *const names[] = {"links", "groups", "processes", NULL};

    return names[panel < TOP_PANELS ? panel : TOP_PANELS];
}

const char *top_sort_name(unsigned sort)
{
    static const char *const names[] = {"used", "queue", "pauses", "drops", "name", NULL};

    return names[sort < TOP_SORTS ? sort : TOP_SORTS];
}

static void page_add(struct page *p, enum top_look look, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void page_add(struct page *p, enum top_look look, const char *fmt, ...)
{
    struct top_line *l = &p->lines[p->n];
    va_list ap;

    if (p->n >= p->height)
        return;
    va_start(ap, fmt);
    vsnprintf(l->text, p->width + 1 < TOP_WIDTH ? p->width + 1 : TOP_WIDTH, fmt, ap);
    va_end(ap);
    l->look = look;
    p->n++;
}

/* ---- links ---- */

static const struct live_fabric *sorted_of; /* for by_key(): qsort passes no context */
static enum top_sort sorted_by;

static double key_of(unsigned d)
{
    switch (sorted_by) {
    case TOP_BY_QUEUE:
        return (double)live_count(sorted_of, d, PORT_queue_bytes);
    case TOP_BY_PAUSES:
        return (double)live_count(sorted_of, d, PORT_paused_ps);
    case TOP_BY_DROPS:
        return (double)live_drops(sorted_of, d);
    case TOP_BY_USED:
        return live_utilisation(sorted_of, d);
    default:
        return 0;
    }
}

/* Sorts the greatest first; keeps the conf's order of equals. */
static int by_key(const void *a, const void *b)
{
    unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
    double kx = key_of(x), ky = key_of(y);

    return kx != ky ? (kx < ky ? 1 : -1) : x < y ? -1 : 1;
}

static const char *bar(double used, char *buf)
{
    unsigned n = used <= 0 ? 0 : (unsigned)(used * BAR + 0.5);

    for (unsigned i = 0; i < BAR; i++)
        buf[i] = i < n ? '#' : ' ';
    buf[BAR] = 0;
    return buf;
}

static void link_line(struct page *p, const struct live_fabric *x, unsigned d, int name)
{
    char from[NAME], to[NAME], state[80], drops[160], used[BAR + 1], percent[8], q[16], s[16];
    double u = live_utilisation(x, d);
    enum top_look look = live_count(x, d, PORT_down)                         ? TOP_BAD
                         : live_count(x, d, PORT_paused) || live_drops(x, d) ? TOP_WARNING
                                                                             : TOP_PLAIN;

    live_names(x->f, d, from, to, sizeof(from));
    live_state_text(x, d, state, sizeof(state));
    live_drops_text(x, d, drops, sizeof(drops));
    snprintf(percent, sizeof(percent), u < 0 ? "-" : "%.0f%%", 100 * u);
    page_add(p, look, "%-*s %-*s %8.2f %5s [%s] %6s %6s %-8.20s %s", name, from, name, to,
             live_GBps(x, d), percent, bar(u, used),
             live_size((double)live_count(x, d, PORT_queue_bytes), q, sizeof(q)),
             live_size((double)live_count(x, d, PORT_pauses_received), s, sizeof(s)), state, drops);
}

static unsigned link_rows(struct top *t, struct page *p, const struct live_fabric *x)
{
    unsigned n = 0, all = 2u * x->f->n_links, *order = calloc(all ? all : 1, sizeof(*order));
    int name = 4;

    for (unsigned d = 0; order && d < all; d++) {
        char from[NAME], to[NAME];

        if (!x->now.dir[d].known)
            continue;
        live_names(x->f, d, from, to, sizeof(from));
        name = (int)strlen(from) > name ? (int)strlen(from) : name;
        order[n++] = d;
    }
    sorted_of = x;
    sorted_by = t->sort;
    if (order)
        qsort(order, n, sizeof(*order), by_key);
    t->scroll = n && t->scroll >= n ? n - 1 : t->scroll;
    page_add(p, TOP_HEADS, "%-*s %-*s %8s %5s %-*s %6s %6s %-8s %s", name, "from", name, "to",
             "GB/s", "used", (int)BAR + 2, "", "queue", "pauses", "state", "drops");
    for (unsigned i = t->scroll; i < n; i++)
        link_line(p, x, order[i], name);
    free(order);
    return n;
}

/* ---- groups and processes ---- */

static unsigned group_rows(struct top *t, struct page *p, const struct live_fabric *x)
{
    unsigned n = x->now.n_groups;

    t->scroll = n && t->scroll >= n ? n - 1 : t->scroll;
    page_add(p, TOP_HEADS, "%-8s %-9s %4s %5s %-12s %-8s %9s %13s %10s  %s", "job", "kind", "tree",
             "group", "owner", "state", "members", "slots used", "reduced", "nodes");
    for (unsigned i = t->scroll; i < n; i++) {
        const struct live_group *g = &x->now.group[i];
        unsigned long long slots = 0, used = 0, joined = 0;
        char nodes[120] = "", tree[24], members[32], of[48];

        for (unsigned k = 0; k < g->n_members; k++)
            joined += g->member[k].joined;
        for (unsigned k = 0; k < g->n_at; k++) {
            size_t len = strlen(nodes);

            slots += g->at[k].slots;
            used += g->at[k].slots_used;
            snprintf(nodes + len, sizeof(nodes) - len, "%s%s", k ? "," : "",
                     x->f->nodes[g->at[k].node].name);
        }
        snprintf(tree, sizeof(tree), g->kind == 1 ? "-" : "%llu", (unsigned long long)g->tree);
        snprintf(members, sizeof(members), "%llu of %u", joined, g->n_members);
        snprintf(of, sizeof(of), "%llu of %llu", used, slots);
        page_add(p, g->open ? TOP_PLAIN : TOP_WARNING,
                 "%08llx %-9s %4s %5llu %-12s %-8s %9s %13s %10llu  %s", (unsigned long long)g->job,
                 live_kind(x, g->kind), tree, (unsigned long long)g->id,
                 g->owner == FAB_NONE ? "-" : x->f->nodes[g->owner].name,
                 !g->open  ? "joining"
                 : g->busy ? "busy"
                           : "open",
                 members, of, (unsigned long long)g->reduced, nodes);
    }
    if (!n)
        page_add(p, TOP_PLAIN, "no groups");
    return n;
}

static unsigned process_rows(struct top *t, struct page *p, const struct live_fabric *x)
{
    unsigned n = x->n_procs, connected = 0;

    for (unsigned i = 0; i < x->now.n_slots; i++)
        connected += x->now.slot[i].v[SLOT_pid] != 0;
    n += connected;
    t->scroll = n && t->scroll >= n ? n - 1 : t->scroll;
    page_add(p, TOP_HEADS, "%-16s %8s %-16s %-9s %12s %12s", "host", "pid", "program", "state",
             "frames from", "frames to");
    for (unsigned i = t->scroll; i < x->n_procs; i++)
        page_add(p, x->proc[i].state == LIVE_READY ? TOP_PLAIN : TOP_BAD, "%-16s %8d %-16s %s", "-",
                 x->proc[i].pid == PROCESS_AWAY ? 0 : x->proc[i].pid, x->proc[i].name,
                 live_proc_state(&x->proc[i]));
    for (unsigned i = 0, k = x->n_procs; i < x->now.n_slots; i++) {
        const struct live_slot *s = &x->now.slot[i];

        if (!s->v[SLOT_pid] || k++ < t->scroll)
            continue;
        page_add(p, TOP_PLAIN, "%-16s %8llu %-16s %-9s %12llu %12llu",
                 x->f->nodes[s->v[SLOT_node]].name, (unsigned long long)s->v[SLOT_pid], s->program,
                 "connected", (unsigned long long)s->v[SLOT_rx_frames],
                 (unsigned long long)s->v[SLOT_tx_frames]);
    }
    return n;
}

/* ---- a frame ---- */

/* Prints one line: links, drops, jobs and programs. */
static void summary(struct page *p, const struct live_fabric *x)
{
    unsigned down = 0, paused = 0, jobs = 0, programs = 0;
    uint64_t drops = 0, queued = 0, marks = 0;
    char q[16];

    for (unsigned d = 0; d < 2u * x->f->n_links; d++) {
        down += !(d & 1) && live_count(x, d, PORT_down);
        paused += live_count(x, d, PORT_paused) != 0;
        drops += live_drops(x, d);
        queued += live_count(x, d, PORT_queue_bytes);
        marks += live_count(x, d, PORT_ecn_marks);
    }
    for (unsigned i = 0; i < x->now.n_groups; i++) {
        unsigned k = 0;

        while (k < i && x->now.group[k].job != x->now.group[i].job)
            k++;
        jobs += k == i;
    }
    for (unsigned i = 0; i < x->now.n_slots; i++)
        programs += x->now.slot[i].v[SLOT_pid] != 0;
    page_add(
        p,
        down              ? TOP_BAD
        : paused || drops ? TOP_WARNING
                          : TOP_GOOD,
        "links %u, down %u; paused %u, queued %sB, ECN marks %llu, drops %llu; groups %u, jobs %u, "
        "programs %u",
        x->f->n_links, down, paused, live_size((double)queued, q, sizeof(q)),
        (unsigned long long)marks, (unsigned long long)drops, x->now.n_groups, jobs, programs);
}

static void help(struct page *p)
{
    static const char *const text[] = {
        "l g p      links, groups, processes",
        "s          next order of links: used, queue, pauses, drops, name",
        "up down    scroll; PgUp PgDn Home",
        "f          next fabric",
        "+ -        look less often, more often",
        "space      hold, go on",
        "h          this help",
        "q          end",
        "",
        ("Rates, and what is used of a link, are of fabric time since the last look; other figures "
         "so far."),
    };

    for (unsigned i = 0; i < sizeof(text) / sizeof(text[0]); i++)
        page_add(p, TOP_PLAIN, "%s", text[i]);
}

unsigned top_lines(struct top *t, unsigned width, unsigned height, struct top_line *lines)
{
    struct page p = {lines, 0, width, height ? height : 1};
    const struct live_fabric *x;
    unsigned rows = 0, shown;
    char line[TOP_WIDTH];

    t->fabric = t->live.n ? t->fabric % t->live.n : 0;
    if (!t->live.n) {
        page_add(&p, TOP_BAD, "no fabric is up");
        return p.n;
    }
    x = t->live.fab[t->fabric];
    live_headline(x, line, sizeof(line));
    page_add(&p, TOP_TITLE, "%s", line);
    summary(&p, x);
    p.height = height > 1 ? height - 1 : 1; /* the last line counts the rows below */
    if (t->help)
        help(&p);
    else
        rows = t->panel == TOP_LINKS    ? link_rows(t, &p, x)
               : t->panel == TOP_GROUPS ? group_rows(t, &p, x)
                                        : process_rows(t, &p, x);
    shown = p.n > 3 ? p.n - 3 : 0;
    p.height = height;
    page_add(&p, TOP_HEADS,
             "%s%s%s, %u to %u of %u; every %g s%s; fabric %u of %u; h: help, q: end",
             top_panel_name(t->panel), t->panel == TOP_LINKS ? " by " : "",
             t->panel == TOP_LINKS ? top_sort_name(t->sort) : "", rows ? t->scroll + 1 : 0,
             rows ? t->scroll + shown : 0, rows, t->seconds, t->paused ? ", held" : "",
             t->fabric + 1, t->live.n);
    return p.n;
}
