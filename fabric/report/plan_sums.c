/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The plan of a large fabric: levels, and identical nodes, links and trees as one line each.
 */
#include "base/table.h"
#include "fabric/report/plan.h"

#include <stdlib.h>
#include <string.h>

/* Bytes per second, the unit of collectives: "51.2TB/s". */
static const char *bytes_rate(uint64_t bps, char *buf, size_t n)
{
    double gb = (double)bps / 8e9;

    if (gb >= 1000)
        snprintf(buf, n, "%.4gTB/s", gb / 1000);
    else
        snprintf(buf, n, "%.4gGB/s", gb);
    return buf;
}

void plan_levels(const struct fabric *f, FILE *out)
{
    static const char *const heads[] = {"level",   "groups",   "switches",  "cables",    "hosts",
                                        "members", "a member", "all of it", "bisection", NULL};
    struct fab_level lv[FAB_MAX_LEVELS];
    unsigned n = fabric_levels(f, lv, FAB_MAX_LEVELS);
    struct table *t = table_new(heads);
    char b[32];

    for (unsigned i = 0; i < n; i++) {
        table_cell(t, "%s", lv[i].switches ? fab_role_name(lv[i].role) : "mesh");
        table_cell(t, "%u", lv[i].groups);
        table_cell(t, "%u", lv[i].switches);
        table_cell(t, "%u", lv[i].cables);
        table_cell(t, "%u", lv[i].hosts);
        table_cell(t, "%u", lv[i].members);
        table_cell(t, "%s", bytes_rate(lv[i].member_bps, b, sizeof(b)));
        table_cell(t, "%s", bytes_rate(lv[i].total_bps, b, sizeof(b)));
        table_cell(t, "%s", bytes_rate(lv[i].bisection_bps, b, sizeof(b)));
    }
    fprintf(out,
            "\nLevels (from hosts on: of a group; bandwidths each way, bisection both ways)\n");
    table_print(t, out);
}

/* ---- lines of identical items ---- */

static bool same_node(const struct fabric *f, unsigned i, unsigned j)
{
    const struct fab_node *a = &f->nodes[i], *z = &f->nodes[j];

    return a->role == z->role && a->n_ports == z->n_ports && a->n_hosts == z->n_hosts &&
           a->proc == z->proc && a->outside == z->outside && a->multimem == z->multimem &&
           !memcmp(&a->reduce, &z->reduce, sizeof(a->reduce));
}

static bool same_link(const struct fabric *f, unsigned i, unsigned j)
{
    const struct fab_link *a = &f->links[i], *z = &f->links[j];

    return f->nodes[a->a].role == f->nodes[z->a].role &&
           f->nodes[a->b].role == f->nodes[z->b].role && a->rate_bps == z->rate_bps &&
           a->lanes == z->lanes && a->latency_ps == z->latency_ps &&
           a->buffer_bytes == z->buffer_bytes && a->buffer_pkts == z->buffer_pkts &&
           a->ecn_bytes == z->ecn_bytes && a->ecn_max_bytes == z->ecn_max_bytes &&
           a->ecn_prob == z->ecn_prob && a->pfc == z->pfc && a->loss == z->loss &&
           a->dup == z->dup && a->reorder == z->reorder && a->corrupt == z->corrupt &&
           a->jitter_ps == z->jitter_ps;
}

/* Trees with identical roots and equally many hosts. */
static bool same_tree(const struct fabric *f, unsigned i, unsigned j)
{
    const struct fab_tree *a = &f->trees[i], *z = &f->trees[j];

    return a->depth == z->depth && same_node(f, a->root, z->root);
}

/* Sorts 0..n-1 into kinds: first[k] is the first of kind k, count[k] their number. Mallocs *first
 * and *count; returns the number of kinds, 0 when out of memory. */
static unsigned sort_out(const struct fabric *f, unsigned n,
                         bool (*same)(const struct fabric *, unsigned, unsigned), unsigned **first,
                         unsigned **count)
{
    unsigned kinds = 0, last = 0;

    *first = calloc(n + 1u, sizeof(**first));
    *count = calloc(n + 1u, sizeof(**count));
    for (unsigned i = 0; *first && *count && i < n; i++) {
        unsigned k = last; /* most items equal the previous one */

        if (!kinds || !same(f, (*first)[k], i))
            for (k = 0; k < kinds && !same(f, (*first)[k], i);)
                k++;
        if (k == kinds)
            (*first)[kinds++] = i;
        (*count)[k]++;
        last = k;
    }
    return kinds;
}

void plan_node_sums(const struct fabric *f, FILE *out)
{
    static const char *const heads[] = {"nodes", "first",    "role",      "ports",
                                        "hosts", "multimem", "reduction", NULL};
    unsigned *first, *count, kinds = sort_out(f, f->n_nodes, same_node, &first, &count);
    struct table *t = table_new(heads);

    for (unsigned k = 0; k < kinds; k++) {
        const struct fab_node *n = &f->nodes[first[k]];

        table_cell(t, "%u", count[k]);
        table_cell(t, "%s", n->name);
        table_cell(t, "%s", n->outside ? "outside" : fab_role_name(n->role));
        table_cell(t, "%u", n->n_ports);
        if (n->kind == FAB_SWITCH)
            table_cell(t, "%u", n->n_hosts);
        else
            table_cell(t, "%s", "");
        table_cell(t, "%s", n->multimem ? "yes" : "");
        if (n->reduce.on)
            table_cell(t, "%u groups, %u slots, window %u", n->reduce.max_groups,
                       n->reduce.max_slots, n->reduce.window);
        else
            table_cell(t, "%s", "");
    }
    fprintf(out, "\nNodes\n");
    table_print(t, out);
    free(first);
    free(count);
}

void plan_link_sums(const struct fabric *f, FILE *out)
{
    static const char *const heads[] = {"links", "first", "cables", PLAN_LINK_HEADS, NULL};
    unsigned *first, *count, kinds = sort_out(f, f->n_links, same_link, &first, &count);
    struct table *t = table_new(heads);

    for (unsigned k = 0; k < kinds; k++) {
        const struct fab_link *l = &f->links[first[k]];

        table_cell(t, "%u", count[k]);
        table_cell(t, "%s", l->name);
        table_cell(t, "%u each", l->lanes);
        plan_link_cells(t, l);
    }
    fprintf(out, "\nLinks\n");
    table_print(t, out);
    free(first);
    free(count);
}

void plan_tree_sums(const struct fabric *f, FILE *out)
{
    static const char *const heads[] = {"trees",       "first root",       "depth",         "hosts",
                                        "nodes of it", "children at most", "mbufs at most", NULL};
    unsigned *first, *count, kinds = sort_out(f, f->n_trees, same_tree, &first, &count);
    fab_id *children = calloc(f->n_nodes + 1u, sizeof(*children));
    struct table *t = table_new(heads);

    for (unsigned k = 0; children && k < kinds; k++) {
        const struct fab_tree *tree = &f->trees[first[k]];
        unsigned hosts = plan_tree_counts(f, tree, children), nodes = 0, most = 0, mbufs = 0;

        for (unsigned u = 0; u < f->n_nodes; u++) {
            unsigned need = f->nodes[u].reduce.window * (children[u] + 1u);

            nodes += children[u] > 0;
            most = children[u] > most ? children[u] : most;
            mbufs = children[u] && need > mbufs ? need : mbufs;
        }
        table_cell(t, "%u", count[k]);
        table_cell(t, "%s", f->nodes[tree->root].name);
        table_cell(t, "%u", tree->depth);
        table_cell(t, "%u", hosts);
        table_cell(t, "%u", nodes);
        table_cell(t, "%u", most);
        table_cell(t, "%u", mbufs);
    }
    table_print(t, out);
    free(children);
    free(first);
    free(count);
}
