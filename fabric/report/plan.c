/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Output of `trib plan`: nodes, links, trees and the resources that they need.
 */
#include "fabric/report/plan.h"
#include "base/shortage/enough.h"
#include "base/table.h"

#include <stdlib.h>
#include <string.h>

#define MANY 64 /* addresses that a plan lists one by one */

static void plan_nodes(const struct fabric *f, FILE *out)
{
    static const char *const heads[] = {"name", "role",    "port",      "address",
                                        "MAC",  "process", "reduction", NULL};
    struct table *t = table_new(heads);
    char a[24], m[24];

    for (unsigned d = 0; d < f->n_dests; d++) {
        const struct fab_node *n = &f->nodes[f->dests[d].node];

        table_cell(t, "%s", n->name);
        table_cell(t, "%s", fab_role_name(n->role));
        if (n->kind == FAB_HOST)
            table_cell(t, "%u of %u", f->dests[d].port, n->n_ports);
        else
            table_cell(t, "%u", n->n_ports);
        table_cell(t, "%s", plan_address(f->dests[d].ip, a, sizeof(a)));
        table_cell(t, "%s", plan_mac(f->dests[d].ip, m, sizeof(m)));
        table_cell(t, "%s", n->outside ? "outside" : f->procs[n->proc].name);
        if (n->reduce.on)
            table_cell(t, "%u groups, %u slots, window %u", n->reduce.max_groups,
                       n->reduce.max_slots, n->reduce.window);
        else
            table_cell(t, "%s", "");
    }
    fprintf(out, "\nNodes\n");
    table_print(t, out);
}

void plan_link_cells(struct table *t, const struct fab_link *l)
{
    char b[160];

    table_cell(t, "%s", plan_rate(l->rate_bps, b, sizeof(b)));
    table_cell(t, "%s", plan_duration(l->latency_ps, b, sizeof(b)));
    table_cell(t, "%s", plan_size(l->buffer_bytes, b, sizeof(b)));
    table_cell(t, "%u", l->buffer_pkts);
    table_cell(t, "%s", plan_size(l->ecn_bytes, b, sizeof(b)));
    table_cell(t, "%s", l->pfc ? "on" : "off");
    plan_faults(l, b, sizeof(b));
    table_cell(t, "%s", b);
}

static void plan_links(const struct fabric *f, FILE *out)
{
    static const char *const heads[] = {"name", PLAN_LINK_HEADS, NULL};
    struct table *t = table_new(heads);

    for (unsigned i = 0; i < f->n_links; i++) {
        const struct fab_link *l = &f->links[i];

        table_cell(t, "%s", l->name);
        plan_link_cells(t, l);
    }
    fprintf(out, "\nLinks\n");
    table_print(t, out);
}

static void plan_external(const struct fabric *f, FILE *out)
{
    static const char *const heads[] = {"port", "device", "host", "rate", "latency", NULL};
    struct table *t = NULL;
    char b[64];

    for (unsigned i = 0; i < f->n_nodes; i++) {
        for (unsigned p = 0; p < f->nodes[i].n_ports; p++) {
            const struct fab_port *port = &f->nodes[i].ports[p];

            if (!port->external[0])
                continue;
            t = t ? t : table_new(heads);
            table_cell(t, "%s:%u", f->nodes[i].name, p);
            table_cell(t, "%s", port->external);
            table_cell(t, "%s", port->link == FAB_NONE ? "" : f->nodes[port->peer_node].name);
            table_cell(t, "%s", plan_rate(port->rate_bps, b, sizeof(b)));
            table_cell(t, "%s", plan_duration(port->latency_ps, b, sizeof(b)));
        }
    }
    if (!t)
        return;
    fprintf(out, "\nPorts to the outside\n");
    table_print(t, out);
}

unsigned plan_tree_counts(const struct fabric *f, const struct fab_tree *t, fab_id *count)
{
    const fab_id *parent = fabric_tree_parents(f, t);
    unsigned hosts = 0;

    memset(count, 0, f->n_nodes * sizeof(*count));
    for (unsigned i = 0; i < f->n_nodes; i++) {
        if (parent[i] == FAB_NONE)
            continue;
        count[parent[i]]++;
        hosts += f->nodes[i].kind == FAB_HOST;
    }
    return hosts;
}

/*
 * One line per AN of a tree: the resources of a group of all its hosts with one rank each. Every
 * slot of the window holds at most the children's frames, then the result until each child has
 * acknowledged it.
 */
static void plan_tree(const struct fabric *f, const struct fab_tree *tree, fab_id *count,
                      struct table *t)
{
    unsigned hosts = plan_tree_counts(f, tree, count);
    const fab_id *parent = fabric_tree_parents(f, tree);
    char ports[64];

    for (unsigned u = 0; u < f->n_nodes; u++) {
        const struct fab_node *n = &f->nodes[u];

        if (!count[u])
            continue;
        table_cell(t, "%u", tree->id);
        table_cell(t, "%s", f->nodes[tree->root].name);
        table_cell(t, "%u", tree->depth);
        table_cell(t, "%u", hosts);
        if (plan_has_turns(f))
            table_cell(t, "%s", plan_tree_ports(f, tree, ports, sizeof(ports)));
        table_cell(t, "%s", n->name);
        table_cell(t, "%s", parent[u] == FAB_NONE ? "" : f->nodes[parent[u]].name);
        table_cell(t, "%u", count[u]);
        table_cell(t, "%u", n->reduce.window);
        table_cell(t, "%u", n->reduce.window * (count[u] + 1u));
    }
}

static void plan_trees(const struct fabric *f, FILE *out)
{
    static const char *const heads[] = {"tree",   "root",     "depth", "hosts", "node",
                                        "parent", "children", "slots", "mbufs", NULL};
    static const char *const turns[] = {"tree",       "root",  "depth",  "hosts",
                                        "host ports", "node",  "parent", "children",
                                        "slots",      "mbufs", NULL};
    fab_id *count = enough_memory(f->n_nodes + 1u, sizeof(*count));
    struct table *t = table_new(plan_has_turns(f) ? turns : heads);

    for (unsigned i = 0; i < f->n_trees; i++)
        plan_tree(f, &f->trees[i], count, t);
    table_print(t, out);
    free(count);
}

static void plan_processes(const struct fabric *f, FILE *out)
{
    static const char *const heads[] = {"process", "nodes", "runs", NULL};
    static const char *const spread[] = {"process", "nodes", "runs", "machine", NULL};
    struct table *t = table_new(f->n_machines ? spread : heads);

    for (unsigned i = 0; i < f->n_procs; i++) {
        char list[72] = "";
        size_t len = 0;

        for (unsigned j = 0; j < f->procs[i].n_nodes && len < sizeof(list); j++)
            len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s", j ? " " : "",
                                    f->nodes[f->procs[i].nodes[j]].name);
        if (len >= sizeof(list))
            memcpy(list + sizeof(list) - 4, "...", 4);
        table_cell(t, "%s", f->procs[i].name);
        table_cell(t, "%u", f->procs[i].n_nodes);
        table_cell(t, "%s", list);
        if (f->n_machines)
            table_cell(t, "%s", f->machines[f->procs[i].machine].name);
    }
    fprintf(out, "\nProcesses\n");
    table_print(t, out);
}

/* A link may stand for several cables. */
static unsigned cables(const struct fabric *f)
{
    unsigned n = 0;

    for (unsigned i = 0; i < f->n_links; i++)
        n += f->links[i].lanes;
    return n;
}

static unsigned count_cut_through(const struct fabric *f)
{
    unsigned n = 0;

    for (unsigned i = 0; i < f->n_switches; i++)
        n += f->nodes[f->switches[i]].cut_through;
    return n;
}

void fabric_plan(const struct fabric *f, bool all, FILE *out)
{
    bool brief = !all && f->n_dests > MANY;
    unsigned cut = count_cut_through(f);
    char dilation[16] = "auto";

    if (f->dilation)
        snprintf(dilation, sizeof(dilation), "%u", f->dilation);
    fprintf(out, "Fabric %s (%s): %u hosts, %u switches, %u cables, %u aggregation trees\n",
            f->name, f->path, f->n_hosts, f->n_switches, cables(f), f->n_trees);
    fprintf(out, "mtu %u, ecmp %s, dilation %s, %u processes can share a host\n", f->mtu,
            f->ecmp == FAB_ECMP_BALANCED ? "balanced" : "hash", dilation, f->slots_per_host);
    fprintf(out, "longest round trip %.2f us, window of a queue pair %u packets\n",
            (double)f->transport.round_trip_ps * 1e-6, f->transport.window);
    if (cut)
        fprintf(out, "%u of %u switches cut through: frames are forwarded from their header on\n",
                cut, f->n_switches);
    if (f->dcqcn.on)
        fprintf(out, "hosts slow down when they are told of congestion (DCQCN)\n");
    if (f->pfc_watchdog_ps)
        fprintf(out, "PFC watchdog after %g ms\n", (double)f->pfc_watchdog_ps * 1e-9);
    if (brief)
        fprintf(out, "Alike nodes, links and trees in one line; trib plan -v lists them all\n");
    plan_levels(f, out);
    (brief ? plan_node_sums : plan_nodes)(f, out);
    (brief ? plan_link_sums : plan_links)(f, out);
    plan_external(f, out);
    fprintf(out,
            "\nAggregation trees (slots and mbufs: for one group of all hosts, one rank each)\n");
    if (f->n_trees)
        (brief ? plan_tree_sums : plan_trees)(f, out);
    else
        fprintf(out, "  none: no switch has `reduce`\n");
    plan_processes(f, out);
}
