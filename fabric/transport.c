/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The window of the reliable transport, where the file sets none: twice the bandwidth-delay product
 * of the port for which that is largest, so that a queue pair alone fills its link while frames of
 * others wait before its own, but at least FAB_MIN_WINDOW.
 *
 * The delay is that of a frame of a full MTU to the farthest host, which every switch stores and
 * forwards, and as much for the way back. Frames take the fewest hops; of ways with equally many,
 * the slowest counts.
 */
#include "base/units.h"
#include "fabric/build.h"

#include <stdlib.h>

#define FRAME_OVERHEAD 82 /* headers (58) and link overhead (24) of a frame of full MTU */

struct walk {
    const struct fabric *f;
    uint32_t *seen; /* [n_nodes] the walk that saw the node last */
    uint32_t *hops;
    int64_t *time;
    uint16_t *queue;
    uint32_t walk;
};

static int64_t hop_ps(const struct fabric *f, const struct fab_port *p)
{
    return p->latency_ps + (p->rate_bps ? link_time_ps(f->mtu + FRAME_OVERHEAD, p->rate_bps) : 0);
}

/* The two hosts that are farthest from a switch: one for the host that is the other. */
struct far {
    uint16_t host;
    int64_t most, second; /* -1: not known yet */
};

static void note_host(struct far *far, uint16_t host, int64_t t)
{
    if (host == far->host) {
        far->most = t > far->most ? t : far->most;
    } else if (t > far->most) {
        far->second = far->most;
        far->most = t;
        far->host = host;
    } else if (t > far->second) {
        far->second = t;
    }
}

/* Times of a frame from a switch to its farthest hosts. */
static struct far farthest(struct walk *w, uint16_t from)
{
    const struct fabric *f = w->f;
    unsigned head = 0, tail = 0;
    struct far far = {FAB_NONE, 0, 0};

    w->walk++;
    w->seen[from] = w->walk, w->hops[from] = 0, w->time[from] = 0;
    w->queue[tail++] = from;
    while (head < tail) {
        uint16_t u = w->queue[head++];

        for (unsigned i = 0; i < f->nodes[u].n_ports; i++) {
            const struct fab_port *p = &f->nodes[u].ports[i];
            uint16_t v = p->peer_node;
            int64_t t = w->time[u] + hop_ps(f, p);

            if (p->link == FAB_NONE)
                continue;
            if (f->nodes[v].kind == FAB_HOST) {
                note_host(&far, v, t);
            } else if (w->seen[v] != w->walk) {
                w->seen[v] = w->walk, w->hops[v] = w->hops[u] + 1, w->time[v] = t;
                w->queue[tail++] = v;
            } else if (w->hops[v] == w->hops[u] + 1 && t > w->time[v]) {
                w->time[v] = t;
            }
        }
    }
    return far;
}

/* Packets of a full MTU that fill the port's link for ps. */
static uint64_t packets_in(const struct fabric *f, const struct fab_port *p, int64_t ps)
{
    int64_t frame = p->rate_bps ? link_time_ps(f->mtu + FRAME_OVERHEAD, p->rate_bps) : 0;

    return frame ? (uint64_t)((ps + frame - 1) / frame) : 0;
}

/* Every port of every host; a switch's farthest hosts are sought once. */
static void measure(struct walk *w, struct fab_transport *t, struct far *from_switch)
{
    const struct fabric *f = w->f;
    uint64_t window = FAB_MIN_WINDOW;

    for (unsigned h = 0; h < f->n_hosts; h++) {
        const struct fab_node *host = &f->nodes[f->hosts[h]];

        for (unsigned i = 0; i < host->n_ports; i++) {
            const struct fab_port *p = &host->ports[i];
            int64_t trip = hop_ps(f, p);
            uint64_t n;

            if (p->link == FAB_NONE)
                continue;
            if (f->nodes[p->peer_node].kind == FAB_SWITCH) {
                struct far *far = &from_switch[p->peer_node];

                if (far->most < 0)
                    *far = farthest(w, p->peer_node);
                trip += far->host == f->hosts[h] ? far->second : far->most;
            }
            trip *= 2;
            n = 2 * packets_in(f, p, trip);
            window = n > window ? n : window;
            t->round_trip_ps = trip > t->round_trip_ps ? trip : t->round_trip_ps;
        }
    }
    if (!t->window)
        t->window = (uint32_t)(window < FAB_MAX_WINDOW ? window : FAB_MAX_WINDOW);
}

void transport_build(struct build *b)
{
    struct fabric *f = b->f;
    unsigned n = f->n_nodes + 1u;
    struct walk w = {.f = f,
                     .seen = calloc(n, sizeof(*w.seen)),
                     .hops = calloc(n, sizeof(*w.hops)),
                     .time = calloc(n, sizeof(*w.time)),
                     .queue = calloc(n, sizeof(*w.queue))};
    struct far *from_switch = malloc(n * sizeof(*from_switch));

    for (unsigned i = 0; from_switch && i < n; i++)
        from_switch[i].most = -1;
    if (w.seen && w.hops && w.time && w.queue && from_switch)
        measure(&w, &f->transport, from_switch);
    else
        b->no_memory = true;
    free(w.seen);
    free(w.hops);
    free(w.time);
    free(w.queue);
    free(from_switch);
}
