/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Assigns ports to links: first those that the file names, then the lowest free port to every other
 * end, in order of the file.
 */
#include "fabric/build.h"

#include <errno.h>
#include <stdlib.h>

#define WORDS (FAB_MAX_PORTS / 64)

/* Ports of a node in use; full: a lack of ports was reported. */
struct ports_used {
    uint64_t bits[WORDS];
    bool full;
};

static unsigned port_limit(const struct build *b, fab_id node)
{
    if (b->want_ports[node])
        return b->want_ports[node];
    return b->f->nodes[node].kind == FAB_HOST ? FAB_MAX_HOST_PORTS : FAB_MAX_PORTS;
}

static bool ports_used_take(struct ports_used *u, unsigned port)
{
    uint64_t bit = 1ull << (port % 64);
    bool is_free = !(u->bits[port / 64] & bit);

    u->bits[port / 64] |= bit;
    return is_free;
}

/* The line of the first other link at that port. */
static int other_line(const struct build *b, const struct draft_link *l, fab_id node, int port)
{
    for (unsigned i = 0; i < b->n_links; i++) {
        const struct draft_link *o = &b->links[i];

        if (o != l && ((o->a == node && o->a_port == port) || (o->b == node && o->b_port == port)))
            return o->line;
    }
    return 0;
}

static void take_named(struct build *b, struct ports_used *used, const struct draft_link *l,
                       fab_id node, int port)
{
    const char *name = b->f->nodes[node].name;

    if ((unsigned)port >= port_limit(b, node)) {
        build_error(b, l->line, "found port %d of \"%s\", expected 0 to %u", port, name,
                    port_limit(b, node) - 1);
        b->graph_broken = true;
    } else if (!ports_used_take(&used[node], (unsigned)port)) {
        build_error(b, l->line, "found a second link on port %d of \"%s\", expected one (line %d)",
                    port, name, other_line(b, l, node, port));
        b->graph_broken = true;
    }
}

static int take_free(struct build *b, struct ports_used *used, const struct draft_link *l,
                     fab_id node)
{
    unsigned limit = port_limit(b, node);

    for (unsigned w = 0; w < WORDS; w++) {
        uint64_t free_bits = ~used[node].bits[w];
        unsigned port;

        if (!free_bits)
            continue;
        port = w * 64 + (unsigned)__builtin_ctzll(free_bits);
        if (port >= limit)
            break;
        ports_used_take(&used[node], port);
        return (int)port;
    }
    if (!used[node].full)
        build_error(b, l->line,
                    "found more links at \"%s\" than its %u ports, expected at most as many",
                    b->f->nodes[node].name, limit);
    used[node].full = true;
    b->graph_broken = true;
    return -ENOSPC;
}

static void number_ports(struct build *b, struct ports_used *used)
{
    for (unsigned i = 0; i < b->n_links; i++) {
        const struct draft_link *l = &b->links[i];

        if (l->a_port != PORT_AUTO)
            take_named(b, used, l, l->a, l->a_port);
        if (l->b != FAB_NONE && l->b_port != PORT_AUTO)
            take_named(b, used, l, l->b, l->b_port);
    }
    for (unsigned i = 0; i < b->n_links; i++) {
        struct draft_link *l = &b->links[i];

        if (l->a_port == PORT_AUTO)
            l->a_port = take_free(b, used, l, l->a);
        if (l->b != FAB_NONE && l->b_port == PORT_AUTO)
            l->b_port = take_free(b, used, l, l->b);
    }
}

static int alloc_ports(struct build *b, const struct ports_used *used)
{
    for (unsigned i = 0; i < b->f->n_nodes; i++) {
        struct fab_node *n = &b->f->nodes[i];

        n->n_ports = (fab_id)b->want_ports[i];
        for (unsigned p = n->n_ports; p < FAB_MAX_PORTS; p++)
            if (used[i].bits[p / 64] >> (p % 64) & 1)
                n->n_ports = (fab_id)(p + 1);
        n->ports = build_alloc(b, n->n_ports, sizeof(*n->ports));
        if (!n->ports)
            return -ENOMEM;
        for (unsigned p = 0; p < n->n_ports; p++)
            n->ports[p] =
                (struct fab_port){.link = FAB_NONE, .peer_node = FAB_NONE, .peer_port = FAB_NONE};
    }
    return 0;
}

static void connect_port(struct fabric *f, const struct draft_link *d, fab_id link, bool at_a)
{
    struct fab_port *p = at_a ? &f->nodes[d->a].ports[d->a_port] : &f->nodes[d->b].ports[d->b_port];

    p->link = link;
    p->peer_node = at_a ? d->b : d->a;
    p->peer_port = (fab_id)(at_a ? d->b_port : d->a_port);
    p->rate_bps = d->p.rate_bps;
    p->latency_ps = d->p.latency_ps;
    if (f->nodes[at_a ? d->a : d->b].kind == FAB_SWITCH)
        p->latency_ps += f->costs.switch_ps;
}

static void add_external(struct fabric *f, const struct draft_link *d)
{
    struct fab_port *p = &f->nodes[d->a].ports[d->a_port];

    p->rate_bps = d->p.rate_bps;
    p->latency_ps = d->p.latency_ps;
    snprintf(p->external, sizeof(p->external), "%s", d->external);
}

/* Sets a port to the outside: it is the switch's; the host at the other end is not emulated. */
static void leads_outside(struct fabric *f, const struct draft_link *d)
{
    bool at_a = f->nodes[d->a].kind == FAB_SWITCH;
    struct fab_port *p = at_a ? &f->nodes[d->a].ports[d->a_port] : &f->nodes[d->b].ports[d->b_port];

    snprintf(p->external, sizeof(p->external), "%s", d->external);
    f->nodes[at_a ? d->b : d->a].outside = true;
}

static void add_link(struct fabric *f, const struct draft_link *d)
{
    const struct link_props *p = &d->p;
    struct fab_link *l = &f->links[f->n_links];

    *l = (struct fab_link){.a = d->a,
                           .a_port = (fab_id)d->a_port,
                           .b = d->b,
                           .b_port = (fab_id)d->b_port,
                           .lanes = (uint16_t)(p->lanes ? p->lanes : 1),
                           .rate_bps = p->rate_bps,
                           .latency_ps = p->latency_ps,
                           .buffer_bytes = p->buffer_bytes,
                           .buffer_pkts = p->buffer_pkts,
                           .ecn_bytes = p->ecn_bytes,
                           .ecn_max_bytes = p->ecn_max_bytes,
                           .ecn_prob = p->ecn_prob,
                           .pfc = p->pfc,
                           .loss = p->loss,
                           .dup = p->dup,
                           .reorder = p->reorder,
                           .corrupt = p->corrupt,
                           .jitter_ps = p->jitter_ps};
    snprintf(l->name, sizeof(l->name), "%s:%d-%s:%d", f->nodes[d->a].name, d->a_port,
             f->nodes[d->b].name, d->b_port);
    connect_port(f, d, f->n_links, true);
    connect_port(f, d, f->n_links, false);
    if (d->external[0])
        leads_outside(f, d);
    f->n_links++;
}

/* Whether some ports of a host are emulated and others are not. */
static bool half_outside(const struct fabric *f, const struct fab_node *n)
{
    for (unsigned p = 0; p < n->n_ports && n->outside; p++) {
        const struct fab_port *q = &n->ports[p];

        if (q->link != FAB_NONE && !f->nodes[q->peer_node].ports[q->peer_port].external[0])
            return true;
    }
    return false;
}

/* Requires a link at each HCA port: without one its address would be unreachable. */
static void check_hosts(struct build *b)
{
    for (unsigned i = 0; i < b->f->n_nodes; i++) {
        const struct fab_node *n = &b->f->nodes[i];

        if (n->kind != FAB_HOST)
            continue;
        if (half_outside(b->f, n)) {
            build_error(b, b->node_line[i],
                        "found links of host \"%s\" with port and without, expected all or none",
                        n->name);
            b->graph_broken = true;
        }
        for (unsigned p = 0; p < n->n_ports || !n->n_ports; p++) {
            if (n->n_ports && n->ports[p].link != FAB_NONE)
                continue;
            build_error(b, b->node_line[i], "found no link at port %u of host \"%s\", expected one",
                        p, n->name);
            b->graph_broken = true;
            break;
        }
    }
}

void ports_build(struct build *b)
{
    struct fabric *f = b->f;
    struct ports_used *used = calloc(f->n_nodes + 1u, sizeof(*used));

    if (used)
        number_ports(b, used);
    else
        b->no_memory = true;
    if (!b->graph_broken && !b->no_memory && !alloc_ports(b, used)) {
        f->links = build_alloc(b, b->n_links, sizeof(*f->links));
        for (unsigned i = 0; f->links && i < b->n_links; i++) {
            if (b->links[i].b == FAB_NONE)
                add_external(f, &b->links[i]);
            else
                add_link(f, &b->links[i]);
        }
        check_hosts(b);
    }
    free(used);
}
