/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bisection bandwidth: the most that one half of some hosts can send to the other half at once, as
 * the maximum flow through the graph (Dinic's algorithm: shortest augmenting paths by levels).
 * Cables are full duplex, so each direction is an edge. Flows may be split arbitrarily: the result
 * is the limit of the cables, whatever ECMP makes of it.
 */
#include "base/shortage/enough.h"
#include "fabric/build.h"

#include <stdlib.h>
#include <string.h>

/* Edges of node u are edge[first[u]..first[u + 1]), one per port. */
struct cut_flow {
    const struct fabric *f;
    uint64_t *residual;   /* [2 * n_links] residual capacity of each direction of a link */
    uint8_t *side;        /* [n_nodes] hosts: SEND, RECEIVE, NOT_IN */
    fab_id *level;        /* [n_nodes] FAB_NONE: not reached */
    fab_id *queue, *next; /* next: port to try first, per node */
    bool planes;
};
enum { NOT_IN, SEND, RECEIVE };

/* Whether the port belongs to the network that is measured. */
static bool port_counts(const struct cut_flow *k, const struct fab_port *p)
{
    const struct fab_node *v = p->link == FAB_NONE ? NULL : &k->f->nodes[p->peer_node];

    return v && (v->kind == FAB_SWITCH ? (v->role == FAB_ROLE_NVSWITCH) == k->planes
                                       : !k->planes && k->side[p->peer_node] != NOT_IN);
}

static uint64_t *room_of(const struct cut_flow *k, fab_id u, const struct fab_port *p)
{
    return &k->residual[2u * p->link + (k->f->links[p->link].a != u)];
}

/* Whether flow may pass through node u: switches forward, hosts only send or receive. */
static bool may_pass(const struct cut_flow *k, fab_id u, const struct fab_port *p)
{
    const struct fab_node *n = &k->f->nodes[u], *v;

    if (p->link == FAB_NONE || *room_of(k, u, p) == 0)
        return false;
    v = &k->f->nodes[p->peer_node];
    if (n->kind == FAB_HOST && (k->side[u] != SEND || !port_counts(k, p)))
        return false;
    return v->kind == FAB_SWITCH || k->side[p->peer_node] != NOT_IN;
}

static bool set_levels(struct cut_flow *k)
{
    unsigned n = 0;
    bool found = false;

    for (unsigned i = 0; i < k->f->n_nodes; i++) {
        k->level[i] = k->side[i] == SEND ? 0 : FAB_NONE;
        k->next[i] = 0;
        if (k->side[i] == SEND)
            k->queue[n++] = (fab_id)i;
    }
    for (unsigned i = 0; i < n; i++) {
        fab_id u = k->queue[i];

        for (unsigned p = 0; p < k->f->nodes[u].n_ports; p++) {
            const struct fab_port *q = &k->f->nodes[u].ports[p];

            if (!may_pass(k, u, q) || k->level[q->peer_node] != FAB_NONE)
                continue;
            k->level[q->peer_node] = k->level[u] + 1;
            found |= k->side[q->peer_node] == RECEIVE;
            if (k->f->nodes[q->peer_node].kind == FAB_SWITCH)
                k->queue[n++] = q->peer_node;
        }
    }
    return found;
}

/* Sends up to `most` from u along the levels; returns the amount that arrived. The depth of recursion is
 * twice the number of tiers, and more if flow is taken back. */
static uint64_t cut_flow_push(struct cut_flow *k, fab_id u, uint64_t most)
{
    const struct fab_node *n = &k->f->nodes[u];
    uint64_t sent = 0;

    if (k->side[u] == RECEIVE)
        return most;
    for (; k->next[u] < n->n_ports; k->next[u]++) {
        const struct fab_port *p = &n->ports[k->next[u]];
        uint64_t *residual, got;

        if (!may_pass(k, u, p) || k->level[p->peer_node] != k->level[u] + 1)
            continue;
        residual = room_of(k, u, p);
        got = cut_flow_push(k, p->peer_node, *residual < most - sent ? *residual : most - sent);
        *residual -= got;
        k->residual[(size_t)(residual - k->residual) ^ 1] += got;
        sent += got;
        if (sent == most)
            return sent; /* this port may have capacity left: try it first next time */
    }
    return sent;
}

static uint64_t max_flow(struct cut_flow *k)
{
    uint64_t sum = 0;

    while (set_levels(k))
        for (unsigned i = 0; i < k->f->n_nodes; i++)
            if (k->side[i] == SEND)
                sum += cut_flow_push(k, (fab_id)i, UINT64_MAX / 2);
    return sum;
}

uint64_t fabric_bisection(const struct fabric *f, const fab_id *host_index, unsigned n, bool planes)
{
    struct cut_flow k = {.f = f,
                         .residual = enough_memory(2u * f->n_links + 1, sizeof(*k.residual)),
                         .side = enough_memory(f->n_nodes + 1u, sizeof(*k.side)),
                         .level = enough_memory(f->n_nodes + 1u, sizeof(*k.level)),
                         .queue = enough_memory(f->n_nodes + 1u, sizeof(*k.queue)),
                         .next = enough_memory(f->n_nodes + 1u, sizeof(*k.next)),
                         .planes = planes};
    uint64_t sum;

    for (unsigned i = 0; i < 2u * f->n_links; i++)
        k.residual[i] = f->links[i / 2].rate_bps;
    for (unsigned i = 0; i < n; i++)
        k.side[f->hosts[host_index[i]]] = i < n / 2 ? SEND : RECEIVE;
    sum = max_flow(&k);
    free(k.residual);
    free(k.side);
    free(k.level);
    free(k.queue);
    free(k.next);
    return sum;
}
