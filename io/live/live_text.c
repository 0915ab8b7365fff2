/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/live/live.h"

#include "base/table.h"

#include <stdio.h>
#include <string.h>

#define NAME (FAB_NAME + 8)

static void link_row(const struct live_fabric *x, unsigned d, struct table *t)
{
    char from[NAME], to[NAME], text[256], a[16], b[16];
    double u = live_utilisation(x, d);

    live_names(x->f, d, from, to, sizeof(from));
    table_cell(t, "%s", from);
    table_cell(t, "%s", to);
    live_state_text(x, d, text, sizeof(text));
    table_cell(t, "%s", text);
    table_cell(t, "%.2f", live_GBps(x, d));
    if (u < 0)
        table_cell(t, "-");
    else
        table_cell(t, "%.1f%%", 100 * u);
    table_cell(t, "%s", live_size((double)live_count(x, d, PORT_link_bytes), a, sizeof(a)));
    table_cell(t, "%s", live_size((double)live_count(x, d, PORT_queue_bytes), a, sizeof(a)));
    table_cell(t, "%s", live_size((double)live_count(x, d, PORT_queue_peak_bytes), b, sizeof(b)));
    table_cell(t, "%llu", (unsigned long long)live_count(x, d, PORT_pauses_received));
    table_cell(t, "%.1f", (double)live_count(x, d, PORT_paused_ps) * 1e-6);
    table_cell(t, "%llu", (unsigned long long)live_count(x, d, PORT_ecn_marks));
    live_drops_text(x, d, text, sizeof(text));
    table_cell(t, "%s", text);
}

static void live_text_links(const struct live_fabric *x)
{
    static const char *const heads[] = {"from",  "to",    "state", "GB/s",   "used",
                                        "bytes", "queue", "peak",  "pauses", "paused (us)",
                                        "ECN",   "drops", NULL};
    struct table *t = table_new(heads);

    for (unsigned d = 0; d < 2u * x->f->n_links; d++)
        if (x->now.dir[d].known)
            link_row(x, d, t);
    table_print(t, stdout);
}

static void group_row(const struct live_fabric *x, const struct live_group *g, struct table *t)
{
    unsigned long long joined = 0, slots = 0, used = 0;
    char nodes[256] = "";

    for (unsigned i = 0; i < g->n_members; i++)
        joined += g->member[i].joined;
    for (unsigned i = 0; i < g->n_at; i++) {
        size_t len = strlen(nodes);

        slots += g->at[i].slots;
        used += g->at[i].slots_used;
        snprintf(nodes + len, sizeof(nodes) - len, "%s%s", i ? "," : "",
                 x->f->nodes[g->at[i].node].name);
    }
    table_cell(t, "%08llx", (unsigned long long)g->job);
    table_cell(t, "%s", live_kind(x, g->kind));
    if (g->kind == 1)
        table_cell(t, "-");
    else
        table_cell(t, "%llu", (unsigned long long)g->tree);
    table_cell(t, "%llu", (unsigned long long)g->id);
    table_cell(t, "%s", g->owner == FAB_NONE ? "-" : x->f->nodes[g->owner].name);
    table_cell(t, "%s", !g->open ? "joining" : g->busy ? "busy" : "open");
    table_cell(t, "%llu of %u", joined, g->n_members);
    table_cell(t, "%llu of %llu", used, slots);
    table_cell(t, "%llu", (unsigned long long)g->reduced);
    table_cell(t, "%s", nodes);
}

static void groups_print(const struct live_fabric *x)
{
    static const char *const heads[] = {"job",     "kind",  "tree",    "group",
                                        "owner",   "state", "members", "slots used",
                                        "reduced", "nodes", NULL};
    struct table *t;

    if (!x->now.n_groups) {
        puts("  no groups");
        return;
    }
    t = table_new(heads);
    for (unsigned i = 0; i < x->now.n_groups; i++)
        group_row(x, &x->now.group[i], t);
    table_print(t, stdout);
}

void live_text(const struct live *l, unsigned parts)
{
    char line[256];

    for (unsigned i = 0; i < l->n; i++) {
        live_headline(l->fab[i], line, sizeof(line));
        printf("fabric %s\n", line);
        if (parts & LIVE_LINKS)
            live_text_links(l->fab[i]);
        if (parts & LIVE_GROUPS)
            groups_print(l->fab[i]);
    }
    if (!l->n)
        puts("no fabric is up");
}
