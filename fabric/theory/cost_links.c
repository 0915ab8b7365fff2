/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/theory/cost_links.h"
#include "fabric/tree_rails.h"
#include "fabric/tree_rate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CHANNELS FAB_MAX_HOST_PORTS
#define HOPS     32u

/* Bytes beyond the payload on the link: Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4, of the link 24. The last
 * frame of a message has 4 more; an acknowledgement has 4 instead of payload. Long blocks are sent in slices. */
#define HEADERS   82.0
#define IMMEDIATE 4.0
#define ACK       86.0
#define SLICE     65536.0

struct link_count {
    const struct fabric *f;
    struct cost_axis a;
    unsigned local; /* members of a group in each node */
    double *flows;  /* [2 * links] over each direction */
    bool *seen;     /* [nodes] */
    fab_id *leaf;   /* [members of a group] the first member behind the same switches */
    uint32_t *many; /* [members of a group] members behind them, but in other nodes */
};

/* The host of a member of a group. */
static unsigned host_at(const struct link_count *k, unsigned group, unsigned member)
{
    return group + member * (unsigned)k->a.inner;
}

static bool is_plane(const struct fabric *f, const struct fab_port *p)
{
    return f->nodes[p->peer_node].role == FAB_ROLE_NVSWITCH;
}

/* Adds n flows from host to host, divided among their channels by rate. to_leaf: without the last link.
 * Leaves out the planes of a node, which no flows share. */
static void add_flows(struct link_count *k, unsigned from, unsigned to, double n, bool to_leaf)
{
    const struct fabric *f = k->f;
    const struct fab_node *a = &f->nodes[f->hosts[from]];
    struct fab_channel ch[CHANNELS];
    unsigned chans = fabric_channels(f, from, to, ch, CHANNELS);
    double rate = 0;

    chans = chans < CHANNELS ? chans : CHANNELS;
    for (unsigned i = 0; i < chans; i++)
        rate += (double)ch[i].rate_bps;
    for (unsigned i = 0; i < chans && rate > 0; i++) {
        uint32_t d[HOPS];
        unsigned hops;

        if (is_plane(f, &a->ports[ch[i].port_a]))
            return;
        hops =
            fabric_path_ports(f, f->hosts[from], ch[i].port_a, f->hosts[to], ch[i].port_b, d, HOPS);
        for (unsigned h = 0; h + to_leaf < hops; h++)
            k->flows[d[h]] += n * (double)ch[i].rate_bps / rate;
    }
}

static bool same_switches(const struct fabric *f, unsigned x, unsigned z)
{
    const struct fab_node *a = &f->nodes[f->hosts[x]], *b = &f->nodes[f->hosts[z]];

    if (a->n_ports != b->n_ports)
        return false;
    for (unsigned p = 0; p < a->n_ports; p++)
        if (!is_plane(f, &a->ports[p]) && a->ports[p].peer_node != b->ports[p].peer_node)
            return false;
    return true;
}

static void find_leaves(struct link_count *k, unsigned group)
{
    for (unsigned i = 0; i < k->a.degree; i++) {
        k->leaf[i] = (fab_id)i;
        for (unsigned z = 0; z < i; z++)
            if (k->leaf[z] == z &&
                same_switches(k->f, host_at(k, group, i), host_at(k, group, z))) {
                k->leaf[i] = (fab_id)z;
                break;
            }
    }
}

static unsigned count_rails(struct link_count *k)
{
    unsigned n = 0;

    find_leaves(k, 0);
    for (unsigned i = 0; i < k->local; i++)
        n += k->leaf[i] == i;
    return n;
}

/* Adds flows from a member to all members of other nodes: one way up to those behind one leaf. */
static void add_to_all(struct link_count *k, unsigned group, unsigned from)
{
    unsigned n = (unsigned)k->a.degree, node = from / k->local;

    for (unsigned i = 0; i < n; i++)
        k->many[i] = 0;
    for (unsigned i = 0; i < n; i++)
        k->many[k->leaf[i]] += i / k->local != node;
    for (unsigned i = 0; i < n; i++) {
        unsigned to = i;

        while (k->many[i] && (k->leaf[to] != i || to / k->local == node))
            to++;
        if (k->many[i])
            add_flows(k, host_at(k, group, from), host_at(k, group, to), k->many[i], true);
    }
}

/* The GPU at which ring c, in nodes of n GPUs, leaves a node that it entered at GPU c. */
static unsigned ring_exit(unsigned c, unsigned n)
{
    return (n % 2 ? c + (n + 1) / 2 : c + n / 2) % n;
}

static void add_rings(struct link_count *k, unsigned group)
{
    unsigned local = k->local, nodes = (unsigned)k->a.degree / local;

    for (unsigned d = 0; d < nodes; d++)
        for (unsigned c = 0; c < local; c++) {
            unsigned out = d % 2 ? c : ring_exit(c, local),
                     in = d + 1 == nodes && nodes % 2 ? c : out;

            add_flows(k, host_at(k, group, d * local + out),
                      host_at(k, group, (d + 1) % nodes * local + in), 1, false);
        }
}

/* Members of a group: `first` and every step-th one after it. */
struct cost_part {
    unsigned group, first, step;
};

/* Adds a vector's share in both directions of each edge between aggregation nodes of a group's tree. Leaves
 * out the members' own links, which the leaf level covers. */
static void add_tree(struct link_count *k, const struct fab_tree *t, fab_id top,
                     const struct fab_members *m, struct cost_part p, double share)
{
    const struct fabric *f = k->f;

    memset(k->seen, 0, f->n_nodes * sizeof(*k->seen));
    for (unsigned i = p.first; i < k->a.degree; i += p.step) {
        fab_id at = fab_group_leaf(f, t, host_at(k, p.group, i), m);

        for (; at != top && at != FAB_NONE && !k->seen[at]; at = t->parent[at]) {
            uint32_t d[HOPS];
            unsigned hops = fabric_path(f, at, t->parent[at], d, HOPS);

            k->seen[at] = true;
            for (unsigned h = 0; h < hops; h++)
                k->flows[d[h]] += share;
        }
    }
}

/* The trees of a job of all members: the first tree of each root that reaches all of them, or, if there is
 * no such root, of any root. */
static unsigned list_trees(const struct link_count *k, const struct fab_members *m,
                           fab_id tree[FAB_JOB_TREES])
{
    const struct fabric *f = k->f;
    unsigned n = 0;

    for (int any = 0; any < 2 && !n; any++)
        for (unsigned i = 0; i < f->n_trees && n < FAB_JOB_TREES; i++) {
            const struct fab_tree *t = &f->trees[i];

            if (t->domain == FAB_NONE && !t->turn && (any || fab_group_top(f, t, m) != FAB_NONE))
                tree[n++] = (fab_id)i;
        }
    return n;
}

/* Adds the trees of all rails: the members of one place in their nodes are a rail. */
static int add_trees(struct link_count *k, unsigned group)
{
    const struct fabric *f = k->f;
    unsigned n = (unsigned)k->a.degree, n_trees;
    fab_id *host = calloc(2ul * n, sizeof(*host)), *place = host + n, tree[FAB_JOB_TREES];
    unsigned *choice = calloc(k->local, sizeof(*choice));
    struct fab_members m = {.ranks_per_host = 1};
    int rc = host && choice ? 0 : -ENOMEM;

    for (unsigned i = 0; !rc && i < n; i++) {
        host[i] = (fab_id)host_at(k, group, i), place[i] = (fab_id)(i % k->local);
        fab_members_add(&m, host[i]);
    }
    n_trees = rc ? 0 : list_trees(k, &m, tree);
    if (!rc)
        rc = fabric_rail_trees(f, tree, n_trees, &(struct fab_rails){n, host, place}, k->local,
                               choice);
    for (unsigned p = 0; !rc && p < k->local; p++) {
        struct fab_members rail = {.ranks_per_host = 1};

        for (unsigned i = p; i < n; i += k->local)
            fab_members_add(&rail, host[i]);
        if (choice[p] < n_trees)
            add_tree(k, &f->trees[tree[choice[p]]],
                     fab_group_top(f, &f->trees[tree[choice[p]]], &rail), &rail,
                     (struct cost_part){group, p, k->local}, 1);
    }
    free(host);
    free(choice);
    return rc;
}

/* All members share the vector among the scale-out trees that reach all of them; only if inner is 1. */
static void add_sharp(struct link_count *k)
{
    const struct fabric *f = k->f;
    struct fab_members m = {.ranks_per_host = 1};
    fab_id tree[FAB_TREES_AT_ONCE];
    uint64_t bps[FAB_TREES_AT_ONCE];
    unsigned n = 0;
    double all = 0;

    for (unsigned i = 0; i < k->a.degree; i++)
        fab_members_add(&m, host_at(k, 0, i));
    for (unsigned t = 0; t < f->n_trees && n < FAB_TREES_AT_ONCE; t++)
        if (f->trees[t].domain == FAB_NONE && fab_group_top(f, &f->trees[t], &m) != FAB_NONE)
            tree[n++] = (fab_id)t;
    if (!n || k->a.inner > 1 || !fabric_tree_rates(f, tree, n, &m, bps))
        return;
    for (unsigned i = 0; i < n; i++)
        all += (double)bps[i];
    for (unsigned i = 0; i < n && all > 0; i++) {
        const struct fab_tree *t = &f->trees[tree[i]];

        add_tree(k, t, fab_group_top(f, t, &m), &m, (struct cost_part){0, 0, 1},
                 (double)bps[i] / all);
    }
}

static int add_group(struct link_count *k, unsigned group, enum cost_flows flows)
{
    unsigned n = (unsigned)k->a.degree, local = k->local;

    if (flows == COST_FLOWS_RINGS)
        add_rings(k, group);
    if (flows == COST_FLOWS_TREES)
        return add_trees(k, group);
    if (flows == COST_FLOWS_SHARP)
        add_sharp(k);
    if (flows == COST_FLOWS_DIRECT)
        find_leaves(k, group);
    for (unsigned i = 0; i < n; i++)
        switch (flows) {
        case COST_FLOWS_RING:
            add_flows(k, host_at(k, group, i), host_at(k, group, (i + 1) % n), 1, false);
            break;
        case COST_FLOWS_RAILS:
            add_flows(k, host_at(k, group, i), host_at(k, group, (i + local) % n), 1, false);
            break;
        case COST_FLOWS_PXN:
            for (unsigned to = i % local; to < n; to += local)
                if (to != i)
                    add_flows(k, host_at(k, group, i), host_at(k, group, to), 1, false);
            break;
        case COST_FLOWS_DIRECT:
            add_to_all(k, group, i);
            break;
        default:
            return 0;
        }
    return 0;
}

/* Members of the first group in a node; 0: nodes differ. */
static unsigned members_of_node(const struct fabric *f, struct cost_axis a)
{
    unsigned local = 1, n = (unsigned)a.degree, inner = (unsigned)a.inner;
    fab_id node = fabric_domain(f, 0);

    while (node != FAB_NONE && local < n && fabric_domain(f, local * inner) == node)
        local++;
    for (unsigned i = 0; i < n; i++)
        if (fabric_domain(f, i * inner) != fabric_domain(f, i / local * local * inner))
            return 0;
    return n % local ? 0 : local;
}

/* The level of a tier in the scale-out network; l->n: there is none. */
static unsigned level_of_tier(const struct cost_levels *l, unsigned tier)
{
    unsigned i = 0;

    while (i < l->n && (l->lv[i].role == FAB_ROLE_NVSWITCH || l->lv[i].tier != tier))
        i++;
    return i;
}

static unsigned level_of(const struct link_count *k, const struct cost_levels *l, uint32_t d)
{
    const struct fab_link *x = &k->f->links[d / 2];
    unsigned a = k->f->nodes[x->a].tier, z = k->f->nodes[x->b].tier;

    return level_of_tier(l, a > z ? a : z);
}

static bool has_mesh(const struct cost_levels *l)
{
    for (unsigned i = 0; i < l->n; i++)
        if (l->lv[i].role == FAB_ROLE_HOST)
            return true;
    return false;
}

/* The share of the vector that a flow carries. */
static double flow_share(const struct link_count *k, enum cost_flows flows)
{
    double n = (double)k->a.degree, local = k->local, nodes = n / local,
           group = 1 / (double)k->a.inner;

    switch (flows) {
    case COST_FLOWS_RING:
        return (n - 1) / n * group;
    case COST_FLOWS_RINGS:
        return (n - 1) / n * group / local;
    case COST_FLOWS_RAILS:
        return (nodes - 1) / nodes * group / local;
    case COST_FLOWS_TREES:
        return group / local;
    case COST_FLOWS_SHARP:
        return 1;
    case COST_FLOWS_PXN:
        return local * group / (n * n);
    default:
        return group / (n * n);
    }
}

static int count_flows(struct link_count *k, const struct cost_levels *l, enum cost_flows flows,
                       double *s)
{
    const struct fabric *f = k->f;
    int rc = 0;

    memset(k->flows, 0, 2u * f->n_links * sizeof(*k->flows));
    for (unsigned g = 0; g < k->a.inner && !rc; g++)
        rc = add_group(k, g, flows);
    for (uint32_t d = 0; d < 2u * f->n_links; d++) {
        unsigned i = k->flows[d] > 0 ? level_of(k, l, d) : l->n;
        double t = k->flows[d] * flow_share(k, flows) * 8 / (double)f->links[d / 2].rate_bps;

        if (i < l->n && t > s[i])
            s[i] = t;
    }
    return rc;
}

static void find_rings(const struct fabric *f, unsigned n, unsigned local, struct cost_links *o)
{
    cost_find_ring(f, n, 1, &o->ring);
    if (local > 1 && n > local) {
        cost_find_ring(f, local, 1, &o->node_ring);
        cost_find_ring(f, n / local, local, &o->rail_ring);
    }
}

int cost_links(const struct fabric *f, const struct cost_levels *l, struct cost_axis a,
               struct cost_links *o)
{
    struct link_count k = {.f = f, .a = a, .local = members_of_node(f, a)};
    unsigned n = (unsigned)a.degree, local = k.local, inner = (unsigned)a.inner;
    int rc = 0;

    *o = (struct cost_links){.mtu = f->mtu,
                             .spine = level_of_tier(l, 2),
                             .members = n,
                             .local = local,
                             .far = cost_way_of(f, 0, (n - 1) * inner),
                             .rail = cost_way_of(f, 0, local ? (n - local) * inner : 0),
                             .plane = cost_way_of(f, 0, local > 1 ? inner : 0)};
    if (f->ecmp != FAB_ECMP_BALANCED || !k.local || has_mesh(l) || fabric_is_large(f))
        return 0;
    k.flows = calloc(2u * f->n_links + 1u, sizeof(*k.flows));
    k.seen = calloc(f->n_nodes + 1u, sizeof(*k.seen));
    k.leaf = calloc(a.degree + 1, sizeof(*k.leaf));
    k.many = calloc(a.degree + 1, sizeof(*k.many));
    if (!k.flows || !k.seen || !k.leaf || !k.many)
        rc = -ENOMEM;
    else
        o->rails = count_rails(&k);
    if (!rc && inner == 1)
        find_rings(f, n, local, o);
    for (unsigned i = COST_FLOWS_NONE + 1; i < COST_N_FLOWS && !rc; i++)
        rc = count_flows(&k, l, (enum cost_flows)i, o->s[i]);
    free(k.flows);
    free(k.seen);
    free(k.leaf);
    free(k.many);
    return rc;
}

void cost_raise(const struct cost_links *k, enum cost_flows flows, double bytes, struct cost *c)
{
    for (unsigned i = 0; i < FAB_MAX_LEVELS; i++)
        cost_record(c, i, k->s[flows][i] * bytes);
}

static double route_seconds(const struct cost_route *w, double bytes)
{
    return w->s + w->byte_s * bytes;
}

double cost_wire(const struct cost_links *k, enum cost_flows flows, const struct cost *c,
                 double bytes)
{
    double mtu = k->mtu,
           wire = bytes + ceil(bytes / mtu) * HEADERS + ceil(bytes / SLICE) * IMMEDIATE,
           frame = wire < mtu + HEADERS ? wire : mtu + HEADERS, stretch = wire / bytes,
           far = k->members - k->local; /* messages of one member that leave its node */
    const struct cost_route *w = flows == COST_FLOWS_PXN ? &k->rail : &k->far;
    double wait = 0;

    if (flows == COST_FLOWS_PXN && k->local)
        wait = route_seconds(&k->plane, frame) - c->s * stretch / k->local;
    else if (k->rails > 2 && far > 0)
        wait = (k->rails - 2) * c->level_s[k->spine] * stretch / far * frame / wire;
    return c->s * stretch + route_seconds(w, frame) + route_seconds(w, ACK) + (wait > 0 ? wait : 0);
}
