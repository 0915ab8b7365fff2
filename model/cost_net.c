/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Paths, and times of links. Messages of multimem are booked on their links at once, each as a
 * whole: it is forwarded to the next link as soon as its first frame has arrived, or its header
 * where a switch cuts through. ACKs and requests are small and overtake queued messages: they
 * lengthen a busy link's queue, and do not wait.
 */
#include "base/frame_size.h"
#include "model/cost_model.h"

#define HEADERS 58 /* Ethernet 14, IP 20, UDP 8, BTH 12, ICRC 4 */

static uint64_t frame_wire(uint64_t payload, bool imm)
{
    uint64_t n = HEADERS + (payload + 3) / 4 * 4 + (imm ? 4 : 0);

    return (n < FRAME_MIN_BYTES ? FRAME_MIN_BYTES : n) + FRAME_LINK_OVERHEAD;
}

struct model_msg model_message(uint64_t len, uint32_t mtu, bool imm)
{
    uint64_t full = len ? (len - 1) / mtu : 0; /* frames before the last */
    struct model_msg m = {.tail = frame_wire(len - full * mtu, imm)};

    m.frame = full ? frame_wire(mtu, false) : m.tail;
    m.wire = full * m.frame + m.tail;
    return m;
}

int64_t model_link_ps(const struct model *m, uint32_t dirlink, uint64_t bytes)
{
    const struct fabric *f = m->fab;
    uint64_t rate = dirlink < 2u * f->n_links
                        ? f->links[dirlink / 2].rate_bps
                        : f->nodes[f->hosts[dirlink - 2u * f->n_links]].ports[0].rate_bps;

    if (!rate)
        return 0;
    if (bytes < 1 << 20)
        return (int64_t)(bytes * 8000000000000ULL / rate);
    return (int64_t)((unsigned __int128)bytes * 8000000000000ULL / rate);
}

int64_t model_latency(const struct model *m, uint32_t dirlink)
{
    return dirlink < 2u * m->fab->n_links ? fabric_latency(m->fab, dirlink) : 0;
}

uint16_t model_node(const struct model *m, unsigned rank)
{
    return m->fab->hosts[m->host_of_rank[rank]];
}

/* Finds the path. From a host to itself it is the NIC's loop, as fast as the link but without
 * latency. */
void model_path(const struct model *m, uint16_t from, uint16_t from_port, uint16_t to,
                uint16_t to_port, struct model_path *p)
{
    const struct fabric *fab = m->fab;
    uint16_t at = from;

    p->crossings = 0;
    if (from == to) {
        p->n = fab->nodes[from].kind == FAB_HOST;
        p->link[0] = 2u * fab->n_links + fab->nodes[from].host_index;
        return;
    }
    p->n = fabric_path_ports(fab, from, from_port, to, to_port, p->link, MODEL_HOPS);
    for (unsigned i = 0; i < p->n; i++) {
        const struct fab_link *l = &fab->links[p->link[i] / 2];
        uint16_t next = p->link[i] & 1 ? l->a : l->b;

        p->crossings += fab->nodes[at].proc != fab->nodes[next].proc;
        at = next;
    }
}

int64_t model_post(struct model *m, const struct model_lane *l, uint32_t d, int64_t now)
{
    int64_t cost = m->fab->costs.hca_ps, t = l->back_to_back ? now - cost : now;

    m->fetch_ps[d] = (t > m->fetch_ps[d] ? t : m->fetch_ps[d]) + cost;
    return m->fetch_ps[d] > now ? m->fetch_ps[d] : now;
}

int64_t model_noticed(struct model_lane *l, uint64_t len, int64_t now)
{
    int64_t t = fab_noticed_ps(&l->notice, len, l->is_long, now, l->free_ps);

    l->noticed_ps = t > l->noticed_ps ? t : l->noticed_ps;
    return l->noticed_ps;
}

bool model_cuts(const struct model *m, uint32_t d)
{
    const struct fab_link *l = &m->fab->links[d / 2];

    return d < 2u * m->fab->n_links && m->fab->nodes[d & 1 ? l->a : l->b].cut_through;
}

int64_t model_behind_header(const struct model *m, uint32_t d, uint64_t bytes)
{
    return model_link_ps(m, d, bytes) - model_link_ps(m, d, FAB_CUT_BYTES);
}

/* Time from the start of a frame on link h of a path to its start on the next one, or its arrival. */
static int64_t small_hop_ps(const struct model *m, const struct model_path *p, unsigned h,
                            uint64_t wire)
{
    uint32_t d = p->link[h];
    int64_t ps = model_link_ps(m, d, wire);

    if (h + 1 < p->n && model_cuts(m, d)) {
        int64_t header = model_link_ps(m, d, FAB_CUT_BYTES);

        ps -= model_link_ps(m, p->link[h + 1], wire);
        ps = ps > header ? ps : header;
    }
    return ps + model_latency(m, d);
}

int64_t model_send_small(struct model *m, const struct model_path *p, int64_t t, uint64_t wire)
{
    for (unsigned h = 0; h < p->n; h++) {
        uint32_t d = p->link[h];

        m->bytes[d] += wire;
        if (m->free_ps[d] > t)
            m->free_ps[d] += model_link_ps(m, d, wire);
        t += small_hop_ps(m, p, h, wire);
    }
    return t;
}

static bool has_rank(const struct fabric *fab, unsigned nranks, const uint16_t *host_of_rank,
                     fab_id node)
{
    for (unsigned r = 0; r < nranks; r++)
        if (fab->hosts[host_of_rank[r]] == node)
            return true;
    return false;
}

/* Whether a switch on the path from this node to a destination has several next links. */
static bool has_choice(const struct fabric *fab, fab_id node, unsigned dest)
{
    fab_id port[2];
    unsigned n = 1;

    while (node != fab->dests[dest].node && fab->nodes[node].kind != FAB_HOST) {
        n = fabric_hops(fab, node, dest, port, 2);
        if (n != 1)
            break;
        node = fab->nodes[node].ports[port[0]].peer_node;
    }
    return n > 1;
}

bool model_is_hashed(const struct fabric *fab, unsigned nranks, const uint16_t *host_of_rank)
{
    const struct fab_node *host = &fab->nodes[fab->hosts[host_of_rank[0]]];

    if (fab->ecmp != FAB_ECMP_HASH)
        return false;
    for (unsigned i = 0; i < host->n_ports; i++)
        for (unsigned d = 0; d < fab->n_dests && host->ports[i].link != FAB_NONE; d++)
            if (fab->nodes[fab->dests[d].node].kind == FAB_HOST &&
                has_rank(fab, nranks, host_of_rank, fab->dests[d].node) &&
                has_choice(fab, host->ports[i].peer_node, d))
                return true;
    return false;
}
