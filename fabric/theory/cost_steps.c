/* SPDX-License-Identifier: BSD-3-Clause */
/* Times of algorithms in steps, with headers and latency, on an idle fabric. */
#include "fabric/theory/cost_links.h"

#include <math.h>

#define HOPS   32u
#define SLICES 8.0     /* of a block */
#define LONG   65536.0 /* largest slice in bytes */
/* Bytes beyond the payload on the link: Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4, of the link 24. The last
 * frame of a message has 4 more; an acknowledgement has 4 instead of payload, for eight frames of an
 * aggregation. */
#define HEADERS    82.0
#define IMMEDIATE  4.0
#define ACK        86.0
#define AGG_FRAMES 8.0
#define AGG_HEAD   32.0 /* header of a message, which has AGG_FRAMES frames */

/* ---- paths ---- */

static struct cost_route route_cost(const struct fabric *f, unsigned from, fab_id port_a,
                                    unsigned to, fab_id port_b)
{
    struct cost_route w = {0, 0, 0};
    uint32_t d[HOPS];
    unsigned hops = fabric_path_ports(f, f->hosts[from], port_a, f->hosts[to], port_b, d, HOPS);

    for (unsigned h = 0; h < hops; h++) {
        w.s += (double)fabric_latency(f, d[h]) * 1e-12;
        w.byte_s += 8 / (double)f->links[d[h] / 2].rate_bps;
        w.first_s = h ? w.first_s : w.byte_s;
    }
    return w;
}

struct cost_route cost_way_of(const struct fabric *f, unsigned from, unsigned to)
{
    struct fab_channel ch;

    if (from == to || !fabric_channels(f, from, to, &ch, 1))
        return (struct cost_route){0, 0, 0};
    return route_cost(f, from, ch.port_a, to, ch.port_b);
}

/* Adds an edge to the ring. False: there is no path, or there are too many kinds. */
static bool edge_add(const struct fabric *f, unsigned from, unsigned to, struct cost_ring *r)
{
    struct fab_channel ch[FAB_MAX_HOST_PORTS];
    unsigned n = fabric_channels(f, from, to, ch, FAB_MAX_HOST_PORTS), i = 0;
    struct cost_edge e = {.n = 1};
    double rate = 0;

    if (!n)
        return false;
    n = n < FAB_MAX_HOST_PORTS ? n : FAB_MAX_HOST_PORTS;
    for (unsigned c = 0; c < n; c++)
        rate += (double)ch[c].rate_bps;
    e.way = route_cost(f, from, ch[0].port_a, to, ch[0].port_b);
    e.share = rate > 0 ? (double)ch[0].rate_bps / rate : 1;
    while (i < r->n && (fabs(r->edge[i].way.s - e.way.s) > 1e-15 ||
                        fabs(r->edge[i].way.byte_s - e.way.byte_s) > 1e-18 ||
                        fabs(r->edge[i].share - e.share) > 1e-9))
        i++;
    if (!(e.way.byte_s > 0) || i == COST_EDGES)
        return false;
    if (i == r->n)
        r->edge[r->n++] = e;
    else
        r->edge[i].n++;
    return true;
}

void cost_find_ring(const struct fabric *f, unsigned n, unsigned apart, struct cost_ring *r)
{
    r->n = 0;
    for (unsigned i = 0; i < n; i++)
        if (!edge_add(f, i * apart, (i + 1) % n * apart, r)) {
            r->n = 0;
            return;
        }
}

/* ---- times ---- */

static double wire(double bytes, double mtu)
{
    return bytes + ceil(bytes / mtu) * HEADERS + IMMEDIATE;
}

/* The slices of a block on the edge where they take longest. */
static double slices_of(const struct cost_ring *r, double block, double mtu)
{
    double longest = 0, stripe = 0, slice;

    for (unsigned i = 0; i < r->n; i++) {
        double part = block * r->edge[i].share;

        if (part * r->edge[i].way.first_s > longest) {
            longest = part * r->edge[i].way.first_s;
            stripe = part;
        }
    }
    slice = fmin(fmax(ceil(stripe / (SLICES * mtu)), 1) * mtu, LONG);
    return ceil(stripe / slice);
}

/* Steps of a ring; *acked: what the last one's acknowledgement takes beyond them. */
static double ring_steps(const struct cost_ring *r, double mtu, unsigned steps, double block,
                         double *acked)
{
    double slices, around = 0, least = HUGE_VAL, send = 0, path = 0, ack = 0;
    unsigned edges = 0, rest;

    slices = slices_of(r, block, mtu);
    for (unsigned i = 0; i < r->n; i++) {
        const struct cost_edge *e = &r->edge[i];
        double stripe = block * e->share,
               bytes = wire(fmax(stripe / slices, fmin(stripe, mtu)), mtu),
               frame = fmin(bytes, mtu + HEADERS), s = bytes * e->way.first_s,
               way = e->way.s + frame * (e->way.byte_s - e->way.first_s);

        edges += e->n;
        around += e->n * (s + way);
        least = fmin(least, s + way);
        send = fmax(send, s);
        path = fmax(path, way);
        ack = fmax(ack, e->way.s + ACK * e->way.byte_s);
    }
    *acked = ack;
    if (!edges)
        return 0;
    rest = (edges - steps % edges) % edges; /* edges that the last round leaves out: the shortest */
    around = around * ((steps + rest) / edges) - rest * least + (slices - 1) * send;
    send = steps * slices * send + path;
    return fmax(around, send);
}

double cost_ring_wire(const struct cost_links *k, const struct cost *c, unsigned steps,
                      double block)
{
    double ack, s;

    if (!k->ring.n || !steps || !(block > 0))
        return 0;
    s = ring_steps(&k->ring, k->mtu, steps, block, &ack);
    return fmax(c->s, s) + ack;
}

#define PIECES_FROM 262144.0 /* bytes of a block that collective/hier.c sends in pieces */

double cost_hier_wire(const struct cost_links *k, double bytes)
{
    unsigned local = k->local, nodes = local ? k->members / local : 0;
    double node, rail, ack;

    if (!k->node_ring.n || !k->rail_ring.n || !(bytes > 0) || bytes / k->members >= PIECES_FROM)
        return 0;
    rail = ring_steps(&k->rail_ring, k->mtu, 2 * (nodes - 1), bytes / k->members, &ack);
    node = ring_steps(&k->node_ring, k->mtu, local - 1, bytes / local, &ack);
    return 2 * node + rail + ack;
}

double cost_sharp_wire(const struct cost_links *k, const struct cost *c, double bytes)
{
    double mtu = k->mtu, frames = ceil((bytes + ceil(bytes / (AGG_FRAMES * mtu)) * AGG_HEAD) / mtu),
           all = bytes + frames * (HEADERS + (AGG_HEAD + ACK) / AGG_FRAMES),
           frame = fmin(all, mtu + HEADERS);

    if (!(k->far.byte_s > 0) || !(bytes > 0))
        return 0;
    return c->s * all / bytes + k->far.s + frame * (k->far.byte_s - k->far.first_s);
}
