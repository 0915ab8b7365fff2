/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Selects one of several equal-cost next hops for a flow.
 *
 *   hash      by the caller's hash of the flow, mixed with the node, so that two tiers choose
 *             independently (else half of the second tier's links would be idle)
 *   balanced  by the source; a: its ordinal among the hosts of its leaf; n: number of next hops
 *               up from the leaf   a mod n: every host of a leaf has its own uplink, if there are
 *                                  enough
 *               up from above      the source's ordinal among all hosts whose frames come up to
 *                                  this switch that way (leaf by leaf) mod n
 *               sideways and down  a mod n
 *
 * Sources that send to one leaf have different a in every shift of the ranks (a ring, an exchange
 * at distance k), so their frames come down different links, too. Choosing by the destination
 * would do as well going down and worse going up, where a host sends to several hosts.
 */
#include "base/assert.h"
#include "fabric/build.h"

static uint32_t ecmp_mix(uint32_t h)
{
    h ^= h >> 16;
    h *= 0x7feb352du;
    h ^= h >> 15;
    h *= 0x846ca68bu;
    return h ^ h >> 16;
}

/* The host port that owns the source address. */
static fab_id host_port(const struct fab_node *n, const fab_id *port, unsigned k, uint32_t src_ip)
{
    for (unsigned i = 0; i < k; i++)
        if (n->ip_of_port[port[i]] == src_ip)
            return port[i];
    return port[0];
}

/* For frames between aggregation nodes and their neighbours: spreads by the ordinals of both ends. */
static unsigned select_between_switches(const struct fabric *f, const struct fab_dest *src,
                                        int dest)
{
    return f->nodes[src->node].ordinal + f->nodes[f->dests[dest].node].ordinal;
}

/* The ordinal of a host among those whose frames come up to `node` from leaves: c of a leaf's n uplinks
 * lead there, so c of every n hosts of that leaf use them. */
static unsigned ordinal_above(const struct fabric *f, fab_id node, int dest,
                              const struct fab_node *leaf, unsigned a)
{
    fab_id buf[FAB_MAX_HOST_PORTS];
    const fab_id *up;
    unsigned k = hops_find(f, fabric_node_index(f, leaf), (unsigned)dest, buf, &up);
    unsigned n = k ? k : 1, c = 0, before = 0;

    for (unsigned i = 0; i < k; i++) {
        if (leaf->ports[up[i]].peer_node != node)
            continue;
        before += i < a % n;
        c++;
    }
    T_ASSERT_HOT(c <= n && before <= c, "more of a leaf's hosts come up to a switch than it has");
    c = c ? c : 1; /* for nodes that are two tiers or more above the leaf */
    return leaf->ordinal * ((leaf->n_hosts + n - 1) / n) * c + a / n * c + before;
}

/* The balanced choice. first: the first of the next hops. */
static unsigned balanced(const struct fabric *f, fab_id node, int dest, uint32_t src_ip,
                         fab_id first)
{
    const struct fab_node *n = &f->nodes[node], *host, *leaf;
    const struct fab_dest *src;
    int s = fabric_dest_of_ip(f, src_ip);
    fab_id leaf_index;
    unsigned a;

    if (s < 0)
        return 0;
    src = &f->dests[s];
    T_ASSERT_HOT(src->ip == src_ip, "a destination of another address was found");
    host = &f->nodes[src->node];
    if (host->kind == FAB_SWITCH)
        return select_between_switches(f, src, dest);
    leaf_index = host->ports[src->port].peer_node;
    leaf = &f->nodes[leaf_index];
    a = leaf->ports[host->ports[src->port].peer_port].ordinal;
    if (leaf_index == node || leaf->kind == FAB_HOST)
        return a;
    if (f->nodes[n->ports[first].peer_node].tier <= n->tier)
        return a;
    return ordinal_above(f, node, dest, leaf, a);
}

fab_id fabric_next_port(const struct fabric *f, fab_id node, int dest, uint32_t flow_hash,
                        uint32_t src_ip)
{
    fab_id buf[FAB_MAX_HOST_PORTS];
    const fab_id *port;
    unsigned n = dest >= 0 && (unsigned)dest < f->n_dests
                     ? hops_find(f, node, (unsigned)dest, buf, &port)
                     : 0;

    if (!n)
        return FAB_NONE;
    if (n == 1)
        return port[0];
    if (f->nodes[node].kind == FAB_HOST)
        return host_port(&f->nodes[node], port, n, src_ip);
    if (f->ecmp == FAB_ECMP_BALANCED)
        return port[balanced(f, node, dest, src_ip, port[0]) % n];
    return port[((uint64_t)ecmp_mix(flow_hash ^ (node + 1u) * 0x9e3779b1u) * n) >> 32];
}

fab_id ecmp_balanced_port(const struct fabric *f, fab_id node, int dest, uint32_t src_ip)
{
    fab_id buf[FAB_MAX_HOST_PORTS];
    const fab_id *port;
    unsigned n = hops_find(f, node, (unsigned)dest, buf, &port);

    if (!n)
        return FAB_NONE;
    if (f->nodes[node].kind == FAB_HOST)
        return host_port(&f->nodes[node], port, n, src_ip);
    return port[balanced(f, node, dest, src_ip, port[0]) % n];
}
