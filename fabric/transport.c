/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The window of the reliable transport if the file sets none: twice the bandwidth-delay product of the port
 * for which that is largest, so that one queue pair fills its link even while frames of others wait before
 * its own; at least FAB_MIN_WINDOW.
 *
 * The delay is that of a frame of full MTU to the farthest host, which every switch stores and forwards
 * unless it cuts through, and as much for the way back. Frames take the fewest hops; of paths with equally
 * many, the slowest counts.
 */
#include "base/units.h"
#include "fabric/build.h"

#include <stdlib.h>

#define FRAME_OVERHEAD 82 /* headers (58) and link overhead (24) of a frame of full MTU */

/* Times of a frame at a node: when it may be forwarded, and when its last bit has arrived. */
struct arrival {
    int64_t head, tail;
};

struct transport_walk {
    const struct fabric *f;
    bool cut;       /* switches that can cut through do; false: all store frames */
    uint32_t *seen; /* [n_nodes] number of the last walk that saw the node */
    uint32_t *hops;
    struct arrival *at;
    fab_id *queue;
    uint32_t walk;
    fab_id last; /* switch whose farthest hosts were found last */
};

static int64_t frame_ps(const struct fabric *f, const struct fab_port *p)
{
    return p->rate_bps ? link_time_ps(f->mtu + FRAME_OVERHEAD, p->rate_bps) : 0;
}

static int64_t transport_later(int64_t a, int64_t z)
{
    return a > z ? a : z;
}

/* Sends a frame by a port of a node. It starts so late that its last bit has arrived when it has to
 * leave. */
static struct arrival hop(const struct transport_walk *w, struct arrival at,
                          const struct fab_port *p)
{
    const struct fab_node *to = &w->f->nodes[p->peer_node];
    int64_t frame = frame_ps(w->f, p), start = transport_later(at.head, at.tail - frame);
    struct arrival next = {.tail = start + frame + p->latency_ps};

    next.head = w->cut && to->cut_through && p->rate_bps
                    ? start + link_time_ps(FAB_CUT_BYTES, p->rate_bps) + p->latency_ps
                    : next.tail;
    return next;
}

/* The two hosts that are farthest from a switch; the second is for the host that is itself the first. */
struct far {
    fab_id host;
    int64_t most, second; /* -1: not known yet */
    int64_t tail;         /* of the frame at the switch: last bit after its header */
};

static void note_host(struct far *far, fab_id host, int64_t t)
{
    if (host == far->host) {
        far->most = transport_later(far->most, t);
    } else if (t > far->most) {
        far->second = far->most;
        far->most = t;
        far->host = host;
    } else {
        far->second = transport_later(far->second, t);
    }
}

/* Times of a frame from a switch to its farthest hosts, since the arrival of its header. */
static struct far farthest(struct transport_walk *w, fab_id from, int64_t tail)
{
    const struct fabric *f = w->f;
    unsigned head = 0, end = 0;
    struct far far = {FAB_NONE, 0, 0, tail};

    w->walk++;
    w->seen[from] = w->walk, w->hops[from] = 0, w->at[from] = (struct arrival){0, tail};
    w->queue[end++] = from;
    while (head < end) {
        fab_id u = w->queue[head++];

        for (unsigned i = 0; i < f->nodes[u].n_ports; i++) {
            const struct fab_port *p = &f->nodes[u].ports[i];
            fab_id v = p->peer_node;
            struct arrival at;

            if (p->link == FAB_NONE)
                continue;
            at = hop(w, w->at[u], p);
            if (f->nodes[v].kind == FAB_HOST) {
                note_host(&far, v, at.tail);
            } else if (w->seen[v] != w->walk) {
                w->seen[v] = w->walk, w->hops[v] = w->hops[u] + 1, w->at[v] = at;
                w->queue[end++] = v;
            } else if (w->hops[v] == w->hops[u] + 1) {
                w->at[v].head = transport_later(w->at[v].head, at.head);
                w->at[v].tail = transport_later(w->at[v].tail, at.tail);
            }
        }
    }
    return far;
}

/* Packets of full MTU that fill the port's link for ps. */
static uint64_t packets_in(const struct fabric *f, const struct fab_port *p, int64_t ps)
{
    int64_t frame = frame_ps(f, p);

    return frame ? (uint64_t)((ps + frame - 1) / frame) : 0;
}

/* Whether this is the host's only port in the network of the switch there. */
static bool is_only(const struct fabric *f, const struct fab_node *host, const struct fab_node *sw)
{
    unsigned n = 0;

    for (unsigned p = 0; p < host->n_ports; p++) {
        fab_id v = peer_switch(f, &host->ports[p]);

        n += v != FAB_NONE && f->nodes[v].network == sw->network;
    }
    return n == 1;
}

static bool ports_alike(const struct fabric *f, const struct fab_node *u, const struct fab_port *p,
                        const struct fab_port *q)
{
    const struct fab_node *a, *z;

    if (p->link == FAB_NONE || q->link == FAB_NONE)
        return p->link == q->link;
    a = &f->nodes[p->peer_node], z = &f->nodes[q->peer_node];
    if (p->rate_bps != q->rate_bps || p->latency_ps != q->latency_ps || a->kind != z->kind)
        return false;
    if (a->kind == FAB_HOST)
        return is_only(f, a, u) && is_only(f, z, u);
    return a == z && a->ports[p->peer_port].rate_bps == z->ports[q->peer_port].rate_bps &&
           a->ports[p->peer_port].latency_ps == z->ports[q->peer_port].latency_ps;
}

/* Whether frames take the same times from both switches: swapping them and their hosts would change
 * nothing. */
static bool alike(const struct fabric *f, fab_id u, fab_id v)
{
    const struct fab_node *a = &f->nodes[u], *z = &f->nodes[v];

    if (a->n_ports != z->n_ports || a->cut_through != z->cut_through)
        return false;
    for (unsigned i = 0; i < a->n_ports; i++)
        if (!ports_alike(f, a, &a->ports[i], &z->ports[i]))
            return false;
    return true;
}

/* The longest path from a port of a host. Searches the farthest hosts of a switch once for all frames that
 * arrive alike. */
static int64_t way_ps(struct transport_walk *w, fab_id host, const struct fab_port *p,
                      struct far *from_switch)
{
    struct arrival at = hop(w, (struct arrival){0, 0}, p);
    struct far *far = &from_switch[p->peer_node];

    if (w->f->nodes[p->peer_node].kind != FAB_SWITCH)
        return at.tail;
    if (far->most < 0 || far->tail != at.tail - at.head) {
        const struct far *last = w->last == FAB_NONE ? NULL : &from_switch[w->last];

        if (last && last->tail == at.tail - at.head && last->most == last->second &&
            alike(w->f, w->last, p->peer_node))
            *far = (struct far){FAB_NONE, last->most, last->second, last->tail};
        else
            *far = farthest(w, p->peer_node, at.tail - at.head);
        w->last = p->peer_node;
    }
    return at.head + (far->host == host ? far->second : far->most);
}

/* Measures every port of every host. Returns the longest round trip, and sets the window. */
static int64_t transport_walk_measure(struct transport_walk *w, struct far *from_switch,
                                      uint64_t *window)
{
    const struct fabric *f = w->f;
    int64_t longest = 0;

    for (unsigned i = 0; i < f->n_nodes; i++)
        from_switch[i].most = -1;
    w->last = FAB_NONE;
    *window = FAB_MIN_WINDOW;
    for (unsigned h = 0; h < f->n_hosts; h++) {
        const struct fab_node *host = &f->nodes[f->hosts[h]];

        for (unsigned i = 0; i < host->n_ports; i++) {
            const struct fab_port *p = &host->ports[i];
            int64_t trip;
            uint64_t n;

            if (p->link == FAB_NONE)
                continue;
            trip = 2 * way_ps(w, f->hosts[h], p, from_switch);
            n = 2 * packets_in(f, p, trip);
            *window = n > *window ? n : *window;
            longest = transport_later(longest, trip);
        }
    }
    return longest;
}

static void set_transport(struct transport_walk *w, struct fab_transport *t,
                          struct far *from_switch)
{
    uint64_t window;
    bool cut = false;

    for (unsigned i = 0; i < w->f->n_nodes; i++)
        cut |= w->f->nodes[i].cut_through;
    t->round_trip_ps = t->stored_round_trip_ps = transport_walk_measure(w, from_switch, &window);
    w->cut = cut;
    if (cut)
        t->round_trip_ps = transport_walk_measure(w, from_switch, &window);
    if (!t->window)
        t->window = (uint32_t)(window < FAB_MAX_WINDOW ? window : FAB_MAX_WINDOW);
}

void transport_build(struct build *b)
{
    struct fabric *f = b->f;
    unsigned n = f->n_nodes + 1u;
    struct transport_walk w = {.f = f,
                               .seen = calloc(n, sizeof(*w.seen)),
                               .hops = calloc(n, sizeof(*w.hops)),
                               .at = calloc(n, sizeof(*w.at)),
                               .queue = calloc(n, sizeof(*w.queue))};
    struct far *from_switch = malloc(n * sizeof(*from_switch));

    if (w.seen && w.hops && w.at && w.queue && from_switch)
        set_transport(&w, &f->transport, from_switch);
    else
        b->no_memory = true;
    free(w.seen);
    free(w.hops);
    free(w.at);
    free(w.queue);
    free(from_switch);
}
