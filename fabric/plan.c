/*
 * What `trib plan` prints: nodes, links, trees and what they need.
 */
#include "fabric/build.h"
#include "fabric/table.h"

#include <inttypes.h>
#include <string.h>

static const char *const role_names[] = {"host", "leaf", "spine", "core", "nvswitch", "switch"};

/* Largest unit of which v is a whole number. */
static const char *print_unit(uint64_t v, const char *const *units, uint64_t step, char *buf,
                              size_t n)
{
    for (; units[1] && v >= step && v % step == 0; units++)
        v /= step;
    snprintf(buf, n, "%" PRIu64 "%s", v, *units);
    return buf;
}

static const char *rate(uint64_t v, char *buf, size_t n)
{
    static const char *const units[] = {"b/s", "kb/s", "Mb/s", "Gb/s", NULL};

    return print_unit(v, units, 1000, buf, n);
}

static const char *duration(int64_t v, char *buf, size_t n)
{
    static const char *const units[] = {"ps", "ns", "us", "ms", "s", NULL};

    return v ? print_unit((uint64_t)v, units, 1000, buf, n) : "0";
}

static const char *size(uint64_t v, char *buf, size_t n)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", NULL};

    return v ? print_unit(v, units, 1024, buf, n) : "off";
}

static const char *address(uint32_t ip, char *buf, size_t n)
{
    snprintf(buf, n, "%u.%u.%u.%u", ip >> 24, ip >> 16 & 255, ip >> 8 & 255, ip & 255);
    return buf;
}

/* roce_mac_of_ip() in text; this room knows no other. */
static const char *mac(uint32_t ip, char *buf, size_t n)
{
    snprintf(buf, n, "02:54:%02x:%02x:%02x:%02x", ip >> 24, ip >> 16 & 255, ip >> 8 & 255,
             ip & 255);
    return buf;
}

static void plan_nodes(const struct fabric *f, FILE *out)
{
    static const char *const heads[] = {"name", "role",    "port",      "address",
                                        "MAC",  "process", "reduction", NULL};
    struct table *t = table_new(heads);
    char a[24], m[24];

    for (unsigned d = 0; d < f->n_dests; d++) {
        const struct fab_node *n = &f->nodes[f->dests[d].node];

        table_cell(t, "%s", n->name);
        table_cell(t, "%s", role_names[n->role]);
        if (n->kind == FAB_HOST)
            table_cell(t, "%u of %u", f->dests[d].port, n->n_ports);
        else
            table_cell(t, "%u", n->n_ports);
        table_cell(t, "%s", address(f->dests[d].ip, a, sizeof(a)));
        table_cell(t, "%s", mac(f->dests[d].ip, m, sizeof(m)));
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

/* "loss 0.01 dup 0.001", empty for a link without faults. */
static void faults(const struct fab_link *l, char *buf, size_t n)
{
    const struct {
        const char *name;
        double p;
    } f[] = {{"loss", l->loss}, {"dup", l->dup}, {"reorder", l->reorder}, {"corrupt", l->corrupt}};
    char d[32];
    size_t len = 0;

    *buf = 0;
    for (unsigned i = 0; i < sizeof(f) / sizeof(f[0]); i++)
        if (f[i].p > 0 && len < n)
            len +=
                (size_t)snprintf(buf + len, n - len, "%s%s %g", len ? " " : "", f[i].name, f[i].p);
    if (l->jitter_ps && len < n)
        snprintf(buf + len, n - len, "%sjitter %s", len ? " " : "",
                 duration(l->jitter_ps, d, sizeof(d)));
}

static void plan_links(const struct fabric *f, FILE *out)
{
    static const char *const heads[] = {"name", "rate", "latency", "buffer", "frames",
                                        "ECN",  "PFC",  "faults",  NULL};
    struct table *t = table_new(heads);
    char b[160];

    for (unsigned i = 0; i < f->n_links; i++) {
        const struct fab_link *l = &f->links[i];

        table_cell(t, "%s", l->name);
        table_cell(t, "%s", rate(l->rate_bps, b, sizeof(b)));
        table_cell(t, "%s", duration(l->latency_ps, b, sizeof(b)));
        table_cell(t, "%s", size(l->buffer_bytes, b, sizeof(b)));
        table_cell(t, "%u", l->buffer_pkts);
        table_cell(t, "%s", size(l->ecn_bytes, b, sizeof(b)));
        table_cell(t, "%s", l->pfc ? "on" : "off");
        faults(l, b, sizeof(b));
        table_cell(t, "%s", b);
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
            table_cell(t, "%s", rate(port->rate_bps, b, sizeof(b)));
            table_cell(t, "%s", duration(port->latency_ps, b, sizeof(b)));
        }
    }
    if (!t)
        return;
    fprintf(out, "\nPorts to the outside\n");
    table_print(t, out);
}

static unsigned hosts_of(const struct fabric *f, const struct fab_tree *t)
{
    unsigned n = 0;

    for (unsigned i = 0; i < f->n_hosts; i++)
        n += t->parent[f->hosts[i]] != FAB_NONE;
    return n;
}

static unsigned children_of(const struct fabric *f, const struct fab_tree *t, uint16_t node)
{
    unsigned n = 0;

    for (unsigned i = 0; i < f->n_nodes; i++)
        n += t->parent[i] == node;
    return n;
}

/*
 * One line per AN of a tree: what one group of all its hosts, one rank each, takes there. In every
 * slot of the window wait at most the children's frames, then the result until each child has
 * acknowledged it.
 */
static void plan_trees(const struct fabric *f, FILE *out)
{
    static const char *const heads[] = {"tree",   "root",     "depth", "hosts", "node",
                                        "parent", "children", "slots", "mbufs", NULL};
    struct table *t;

    fprintf(out,
            "\nAggregation trees (slots and mbufs: for one group of all hosts, one rank each)\n");
    if (!f->n_trees) {
        fprintf(out, "  none: no switch has `reduce`\n");
        return;
    }
    t = table_new(heads);
    for (unsigned i = 0; i < f->n_trees; i++) {
        const struct fab_tree *tree = &f->trees[i];

        for (unsigned u = 0; u < f->n_nodes; u++) {
            const struct fab_node *n = &f->nodes[u];
            unsigned children = n->kind == FAB_SWITCH ? children_of(f, tree, (uint16_t)u) : 0;

            if (!children)
                continue;
            table_cell(t, "%u", i);
            table_cell(t, "%s", f->nodes[tree->root].name);
            table_cell(t, "%u", tree->depth);
            table_cell(t, "%u", hosts_of(f, tree));
            table_cell(t, "%s", n->name);
            table_cell(t, "%s", tree->parent[u] == FAB_NONE ? "" : f->nodes[tree->parent[u]].name);
            table_cell(t, "%u", children);
            table_cell(t, "%u", n->reduce.window);
            table_cell(t, "%u", n->reduce.window * (children + 1));
        }
    }
    table_print(t, out);
}

static void plan_processes(const struct fabric *f, FILE *out)
{
    static const char *const heads[] = {"process", "nodes", "runs", NULL};
    struct table *t = table_new(heads);

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
    }
    fprintf(out, "\nProcesses\n");
    table_print(t, out);
}

void fabric_plan(const struct fabric *f, FILE *out)
{
    char dilation[16] = "auto";

    if (f->dilation)
        snprintf(dilation, sizeof(dilation), "%u", f->dilation);
    fprintf(out, "Fabric %s (%s): %u hosts, %u switches, %u cables, %u aggregation trees\n",
            f->name, f->path, f->n_hosts, f->n_switches, f->n_links, f->n_trees);
    fprintf(out, "mtu %u, ecmp %s, dilation %s, %u processes can share a host\n", f->mtu,
            f->ecmp == FAB_ECMP_BALANCED ? "balanced" : "hash", dilation, f->slots_per_host);
    plan_nodes(f, out);
    plan_links(f, out);
    plan_external(f, out);
    plan_trees(f, out);
    plan_processes(f, out);
}
