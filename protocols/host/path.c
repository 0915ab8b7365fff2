/* SPDX-License-Identifier: BSD-3-Clause */
#include "protocols/host/path.h"

#include "base/units.h"

#include <stdlib.h>

#define MAX_HOPS  64u
#define FRAME_MIN 84u /* bytes of the shortest frame on a link */

static uint32_t wire_bytes(uint32_t bytes)
{
    uint32_t n = PROTO_OVERHEAD + (bytes + 3) / 4 * 4;

    return n < FRAME_MIN ? FRAME_MIN : n;
}

static int64_t link_ps(const struct fabric *f, uint32_t dirlink, uint32_t wire)
{
    uint64_t rate = f->links[dirlink / 2].rate_bps;

    return rate ? link_time_ps(wire, rate) : 0;
}

/* Time from the start of a frame on link h to its start on the next one, or its arrival. */
static int64_t hop_ps(const struct fabric *f, const uint32_t *d, unsigned h, unsigned n,
                      uint32_t wire)
{
    const struct fab_link *l = &f->links[d[h] / 2];
    int64_t ps = link_ps(f, d[h], wire);

    if (h + 1 < n && f->nodes[d[h] & 1 ? l->a : l->b].cut_through) {
        int64_t header = link_ps(f, d[h], FAB_CUT_BYTES);

        ps -= link_ps(f, d[h + 1], wire);
        ps = ps > header ? ps : header;
    }
    return ps + fabric_latency(f, d[h]);
}

int64_t proto_path_ps(const struct fabric *f, uint16_t from, uint16_t from_port, uint16_t to,
                      uint16_t to_port, uint32_t bytes)
{
    uint32_t d[MAX_HOPS], wire = wire_bytes(bytes);
    int64_t t = 0;
    unsigned n;

    if (from == to) /* the NIC's loop, as fast as its link */
        return link_time_ps(wire, f->nodes[from].ports[from_port].rate_bps);
    n = fabric_path_ports(f, from, from_port, to, to_port, d, MAX_HOPS);
    for (unsigned h = 0; h < n; h++)
        t += hop_ps(f, d, h, n, wire);
    return n ? t : -1;
}

uint16_t proto_host_port(const struct proto_ways *w, unsigned host)
{
    uint16_t p = w->tree ? fabric_tree_port(w->fab, w->tree, host) : 0;

    return p < w->fab->nodes[w->fab->hosts[host]].n_ports ? p : 0;
}

static unsigned next_member(const struct proto_ways *w, unsigned from)
{
    while (from < FAB_MAX_MEMBERS && !fab_members_has(w->members, from))
        from++;
    return from;
}

static unsigned host_of(const struct proto_ways *w, unsigned member)
{
    return member / w->members->ranks_per_host;
}

static int64_t path_longer(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Time between a host's port and the root, through every switch of the tree between them. */
static int64_t along_ps(const struct proto_ways *w, unsigned member, uint16_t top, bool up,
                        uint32_t bytes)
{
    const struct fabric *f = w->fab;
    unsigned host = host_of(w, member);
    uint16_t at = fab_group_leaf(f, w->tree, member, w->members), port = proto_host_port(w, host);
    int64_t t = up ? proto_path_ps(f, f->hosts[host], port, at, 0, bytes)
                   : proto_path_ps(f, at, 0, f->hosts[host], port, bytes);

    for (; at != top && at != FAB_NONE; at = w->tree->parent[at]) {
        uint16_t next = w->tree->parent[at];

        if (next != FAB_NONE)
            t += up ? proto_path_ps(f, at, 0, next, 0, bytes)
                    : proto_path_ps(f, next, 0, at, 0, bytes);
    }
    return t;
}

static int64_t longest_along(const struct proto_ways *w, bool up, uint32_t bytes)
{
    uint16_t top = w->tree ? fab_group_top(w->fab, w->tree, w->members) : FAB_NONE;
    int64_t most = 0;

    if (top == FAB_NONE)
        return 0;
    for (unsigned m = next_member(w, 0); m < FAB_MAX_MEMBERS; m = next_member(w, m + 1))
        most = path_longer(most, along_ps(w, m, top, up, bytes));
    return most;
}

int64_t proto_up_ps(const struct proto_ways *w, uint32_t bytes)
{
    return longest_along(w, true, bytes);
}

int64_t proto_down_ps(const struct proto_ways *w, uint32_t bytes)
{
    return longest_along(w, false, bytes);
}

/* Checks only paths from and to the first member, as fabrics look alike from all hosts. */
int64_t proto_across_ps(const struct proto_ways *w, uint32_t bytes)
{
    const struct fabric *f = w->fab;
    unsigned first = next_member(w, 0), host;
    uint16_t node, port;
    int64_t most = 0;

    if (first == FAB_MAX_MEMBERS)
        return 0;
    host = host_of(w, first);
    node = f->hosts[host], port = proto_host_port(w, host);
    for (unsigned m = next_member(w, first + 1); m < FAB_MAX_MEMBERS; m = next_member(w, m + 1)) {
        unsigned h = host_of(w, m);
        uint16_t p = proto_host_port(w, h);

        most = path_longer(most, proto_path_ps(f, node, port, f->hosts[h], p, bytes));
        most = path_longer(most, proto_path_ps(f, f->hosts[h], p, node, port, bytes));
    }
    return most;
}

int64_t proto_notice_ps(const struct proto_ways *w, uint32_t bytes, int64_t *every_ps)
{
    const struct fabric *f = w->fab;
    int64_t most = 0, every = 0;

    for (unsigned m = next_member(w, 0); m < FAB_MAX_MEMBERS; m = next_member(w, m + 1)) {
        unsigned h = host_of(w, m);
        struct fab_notice n = fabric_notice(f, &f->nodes[f->hosts[h]], proto_host_port(w, h));
        uint32_t len = PROTO_RECEIVED(bytes);
        int64_t busy = 0, t = fab_noticed_ps(&n, len, false, PS_PER_S, &busy);

        most = path_longer(most, t);
        every = path_longer(every, fab_noticed_ps(&n, len, false, PS_PER_S, &busy) - t);
    }
    if (every_ps)
        *every_ps = every;
    return most ? most - PS_PER_S : 0;
}

/* Whether hosts are cabled to each other: then they use another port for each neighbour. */
static bool has_cables(const struct fabric *f)
{
    for (unsigned i = 0; i < f->n_links; i++)
        if (f->nodes[f->links[i].a].kind == FAB_HOST && f->nodes[f->links[i].b].kind == FAB_HOST)
            return true;
    return false;
}

bool proto_all_reach(const struct proto_ways *w)
{
    const struct fabric *f = w->fab;

    if (!has_cables(f))
        return true;
    for (unsigned m = next_member(w, 0); m < FAB_MAX_MEMBERS; m = next_member(w, m + 1))
        for (unsigned o = next_member(w, 0); o < FAB_MAX_MEMBERS; o = next_member(w, o + 1)) {
            unsigned a = host_of(w, m), b = host_of(w, o);

            if (a != b && proto_path_ps(f, f->hosts[a], proto_host_port(w, a), f->hosts[b],
                                        proto_host_port(w, b), 0) < 0)
                return false;
        }
    return true;
}

int64_t proto_round_trip_ps(const struct proto_ways *w, uint32_t bytes)
{
    int64_t up = proto_up_ps(w, bytes);

    return up ? up + proto_down_ps(w, bytes) : 2 * proto_across_ps(w, bytes);
}

unsigned proto_levels(const struct proto_ways *w)
{
    uint16_t top = w->tree ? fab_group_top(w->fab, w->tree, w->members) : FAB_NONE;
    unsigned most = 0;

    for (unsigned m = next_member(w, 0); top != FAB_NONE && m < FAB_MAX_MEMBERS;
         m = next_member(w, m + 1)) {
        uint16_t at = fab_group_leaf(w->fab, w->tree, m, w->members);
        unsigned n = 1;

        for (; at != top && at != FAB_NONE; at = w->tree->parent[at])
            n++;
        most = n > most ? n : most;
    }
    return most;
}

/* A leaf's members need not follow each other. */
unsigned proto_leaves(const struct proto_ways *w)
{
    uint64_t seen[(FAB_MAX_NODES + 63) / 64] = {0};
    unsigned n = 0;

    for (unsigned m = next_member(w, 0); w->tree && m < FAB_MAX_MEMBERS;
         m = next_member(w, m + 1)) {
        uint16_t at = fab_group_leaf(w->fab, w->tree, m, w->members);

        if (at == FAB_NONE || seen[at / 64] >> at % 64 & 1)
            continue;
        seen[at / 64] |= 1ull << at % 64;
        n++;
    }
    return n;
}

uint64_t proto_rate_bps(const struct proto_ways *w, unsigned *ranks_a_link)
{
    uint64_t least = 0;
    unsigned here = 0, host = ~0u;

    *ranks_a_link = 1;
    for (unsigned m = next_member(w, 0); m < FAB_MAX_MEMBERS; m = next_member(w, m + 1)) {
        unsigned h = host_of(w, m);
        uint64_t rate = w->fab->nodes[w->fab->hosts[h]].ports[proto_host_port(w, h)].rate_bps;

        here = h == host ? here + 1 : 1;
        host = h;
        *ranks_a_link = here > *ranks_a_link ? here : *ranks_a_link;
        least = !least || rate < least ? rate : least;
    }
    return least;
}

/* Total rate of a switch's links to other switches. */
static uint64_t away_bps(const struct fabric *f, uint16_t node)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < f->n_links; i++) {
        const struct fab_link *l = &f->links[i];

        if ((l->a == node && f->nodes[l->b].kind == FAB_SWITCH) ||
            (l->b == node && f->nodes[l->a].kind == FAB_SWITCH))
            sum += l->rate_bps;
    }
    return sum;
}

uint64_t proto_share_bps(const struct proto_ways *w)
{
    uint16_t below[FAB_MAX_NODES] = {0};
    uint64_t least = 0;

    for (unsigned m = next_member(w, 0); w->tree && m < FAB_MAX_MEMBERS;
         m = next_member(w, m + 1)) {
        uint16_t at = fab_group_leaf(w->fab, w->tree, m, w->members);

        if (at != FAB_NONE)
            below[at]++;
    }
    for (uint16_t at = 0; at < w->fab->n_nodes; at++) {
        uint64_t share = below[at] ? away_bps(w->fab, at) / below[at] : 0;

        least = share && (!least || share < least) ? share : least;
    }
    return least;
}

/* ---- load of links ---- */

/* Adds a packet to the load of all links of its path. */
static void add_way(const struct proto_ways *w, unsigned from, unsigned to, uint32_t *load)
{
    const struct fabric *f = w->fab;
    uint32_t d[MAX_HOPS];
    unsigned n = fabric_path_ports(f, f->hosts[from], proto_host_port(w, from), f->hosts[to],
                                   proto_host_port(w, to), d, MAX_HOPS);

    for (unsigned h = 0; h < n; h++)
        load[d[h]]++;
}

double proto_busiest(const struct proto_ways *w, unsigned servers, bool back, uint64_t rate_bps,
                     double *one)
{
    uint32_t *load = calloc(2ul * w->fab->n_links + 1, sizeof(*load));
    unsigned first = next_member(w, 0);
    double most = 0, packet = 1;

    for (unsigned s = first; load && servers && s < FAB_MAX_MEMBERS; s = next_member(w, s + 1)) {
        for (unsigned m = first; m < FAB_MAX_MEMBERS; m = next_member(w, m + 1)) {
            if (host_of(w, m) == host_of(w, s))
                continue;
            add_way(w, host_of(w, m), host_of(w, s), load);
            if (back)
                add_way(w, host_of(w, s), host_of(w, m), load);
        }
        servers--;
    }
    for (unsigned d = 0; load && d < 2 * w->fab->n_links; d++) {
        uint64_t rate = w->fab->links[d / 2].rate_bps;
        double ratio = rate ? (double)rate_bps / (double)rate : 0;

        if (load[d] * ratio > most) {
            most = load[d] * ratio;
            packet = ratio;
        }
    }
    free(load);
    if (one)
        *one = packet;
    return most;
}

/* Adds packets between a first switch and a server, in both directions. */
static void add_sums(const struct proto_ways *w, uint16_t leaf, unsigned host, double packets,
                     double *load)
{
    const struct fabric *f = w->fab;
    uint16_t port = proto_host_port(w, host);
    uint32_t d[MAX_HOPS];
    unsigned n = fabric_path_ports(f, leaf, 0, f->hosts[host], port, d, MAX_HOPS);

    for (unsigned h = 0; h < n; h++)
        load[d[h]] += packets;
    n = fabric_path_ports(f, f->hosts[host], port, leaf, 0, d, MAX_HOPS);
    for (unsigned h = 0; h < n; h++)
        load[d[h]] += 1;
}

static bool between_switches(const struct fabric *f, const struct fab_link *l)
{
    return f->nodes[l->a].kind == FAB_SWITCH && f->nodes[l->b].kind == FAB_SWITCH;
}

double proto_between(const struct proto_ways *w, unsigned servers, double packets,
                     uint64_t rate_bps)
{
    const struct fabric *f = w->fab;
    double *load = calloc(2ul * f->n_links + 1, sizeof(*load)), most = 0;
    bool *leaf = calloc(f->n_nodes + 1ul, sizeof(*leaf));

    for (unsigned m = next_member(w, 0); load && leaf && w->tree && m < FAB_MAX_MEMBERS;
         m = next_member(w, m + 1)) {
        uint16_t at = fab_group_leaf(f, w->tree, m, w->members);

        leaf[at == FAB_NONE ? f->n_nodes : at] = true;
    }
    for (unsigned s = next_member(w, 0); load && leaf && w->tree && servers && s < FAB_MAX_MEMBERS;
         s = next_member(w, s + 1), servers--)
        for (uint16_t at = 0; at < f->n_nodes; at++)
            if (leaf[at] && at != fab_group_leaf(f, w->tree, s, w->members))
                add_sums(w, at, host_of(w, s), packets, load);
    for (unsigned d = 0; load && d < 2 * f->n_links; d++) {
        const struct fab_link *l = &f->links[d / 2];
        double n = between_switches(f, l) ? load[d] * (double)rate_bps / (double)l->rate_bps : 0;

        most = n > most ? n : most;
    }
    free(load);
    free(leaf);
    return most;
}
