/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nodes that run apart, before they do: what each has of its own, on which side of the fabric it
 * is, and whose share it is. A share is what one thread runs; how nodes are shared out changes
 * nothing but the time that a slice takes.
 *
 * Frames should stay in the caches of one core: hosts in a row are one share, and so is a switch
 * that has most of its hosts there, as NVSwitches have theirs. Other switches go to whoever has the
 * least to do on their side so far, by ports that are used. Hosts without processes do nothing, so
 * they do not count.
 */
#include "switch/net/net_priv.h"

#include "base/cacheline.h"
#include "switch/nic.h"

#include <errno.h>
#include <stdlib.h>

/* ---- what each node has ---- */

/* Sources are gone through by their number, so a place has them in order. */
static int fill_places(struct net *n)
{
    struct apart *a = n->apart;
    bool data = rte_pktmbuf_data_room_size(n->cfg.pool) >= FRAME_ROOM;
    uint32_t at = 0;
    int rc = 0;

    for (uint32_t i = 0; i < n->n_src; i++)
        if (n->src[i].e) {
            n->src[i].starts = a->place[n->src[i].node].tick++;
            n->src[i].arrives = a->place[n->src[i].peer].tick++;
            n->src[i].of_host = n->cfg.fab->nodes[n->src[i].node].kind == FAB_HOST;
            n->src[i].read = data && n->cfg.fab->nodes[n->src[i].peer].kind == FAB_HOST;
        }
    for (uint16_t i = 0; i < n->cfg.fab->n_nodes && !rc; i++) {
        struct place *p = &a->place[i];

        p->src = a->all + at;
        at += p->tick;
        rc = heap_init(&p->heap, p->tick + 1);
    }
    for (uint32_t i = 0; i < n->n_src && !rc; i++) {
        struct source *s = &n->src[i];

        if (s->e)
            a->place[s->node].src[s->starts] = a->place[s->peer].src[s->arrives] = s;
    }
    return rc;
}

/* ---- sides ---- */

/* Those an odd number of links away from a host are far. queue: room for all nodes. False: some
 * neighbours are of one side, or a node is not connected to any host. */
static bool find_far(const struct fabric *f, uint8_t *side, uint16_t *queue)
{
    uint32_t n = 0, next = 0;

    for (uint16_t i = 0; i < f->n_nodes; i++)
        if (f->nodes[i].kind == FAB_HOST) {
            side[i] = SIDE_NEAR;
            queue[n++] = i;
        }
    for (; next < n; next++) {
        const struct fab_node *nd = &f->nodes[queue[next]];
        uint8_t mine = side[queue[next]];

        for (uint16_t p = 0; p < nd->n_ports; p++) {
            uint16_t peer = nd->ports[p].peer_node;

            if (nd->ports[p].link == FAB_NONE)
                continue;
            if (side[peer] == mine)
                return false;
            if (side[peer] == SIDE_UNKNOWN) {
                side[peer] = mine == SIDE_NEAR ? SIDE_FAR : SIDE_NEAR;
                queue[n++] = peer;
            }
        }
    }
    return n == f->n_nodes;
}

/* ---- shares ---- */

static void share_hosts(struct net *n)
{
    const struct fabric *f = n->cfg.fab;
    struct apart *a = n->apart;
    uint32_t used = 0, k = 0;

    for (uint16_t i = 0; i < f->n_nodes; i++)
        used += f->nodes[i].kind == FAB_HOST && nic_is_used(n->node[i]);
    for (uint16_t i = 0; i < f->n_nodes; i++)
        if (f->nodes[i].kind == FAB_HOST) {
            a->place[i].share = &a->share[used ? k * a->n_shares / used : 0];
            k += k + 1 < used && nic_is_used(n->node[i]);
        }
}

/* Ports of a switch that lead to hosts, to those of each share, and how many may be used. */
struct ties {
    uint32_t hosts, used, of[NET_SHARES];
};

static struct ties find_ties(const struct net *n, uint16_t node)
{
    const struct fab_node *nd = &n->cfg.fab->nodes[node];
    struct ties t = {0};
    uint32_t others = 0;

    for (uint16_t p = 0; p < nd->n_ports; p++) {
        uint16_t peer = nd->ports[p].peer_node;

        if (nd->ports[p].link == FAB_NONE)
            continue;
        if (n->cfg.fab->nodes[peer].kind != FAB_HOST) {
            others++;
            continue;
        }
        t.hosts++;
        t.used += nic_is_used(n->node[peer]);
        t.of[n->apart->place[peer].share->id]++;
    }
    t.used += t.used || !t.hosts ? others : 0;
    return t;
}

static void share_switches(struct net *n)
{
    struct apart *a = n->apart;
    uint32_t load[SIDE_FAR + 1][NET_SHARES] = {{0}};

    for (uint16_t i = 0; i < n->cfg.fab->n_nodes; i++) {
        uint32_t *mine = load[a->side[i]];
        struct ties t;
        unsigned k = 0;

        if (n->cfg.fab->nodes[i].kind == FAB_HOST)
            continue;
        t = find_ties(n, i);
        while (k < a->n_shares && 2 * t.of[k] <= t.hosts)
            k++;
        if (k == a->n_shares) {
            k = 0;
            for (unsigned o = 1; o < a->n_shares; o++)
                if (mine[o] < mine[k])
                    k = o;
        }
        mine[k] += t.used;
        a->place[i].share = &a->share[k];
    }
}

/* The nodes of one kind in order of their number. */
static uint16_t *fill_side(struct net *n, bool hosts, bool far, const struct share *sh,
                           struct side *side, uint16_t *at)
{
    const struct fabric *f = n->cfg.fab;
    struct apart *a = n->apart;

    side->node = at;
    for (uint16_t i = 0; i < f->n_nodes; i++)
        if ((f->nodes[i].kind == FAB_HOST) == hosts && a->place[i].share == sh &&
            (a->two && a->side[i] == SIDE_FAR) == far)
            *at++ = i;
    side->n = (uint32_t)(at - side->node);
    return at;
}

static int fill_shares(struct net *n)
{
    struct apart *a = n->apart;
    uint16_t *at = a->order;

    for (unsigned k = 0; k < a->n_shares; k++)
        a->share[k].id = k;
    share_hosts(n);
    share_switches(n);
    for (unsigned k = 0; k < a->n_shares; k++) {
        struct share *sh = &a->share[k];

        at = fill_side(n, true, false, sh, &sh->hosts, at);
        at = fill_side(n, false, false, sh, &sh->near, at);
        at = fill_side(n, false, true, sh, &sh->far, at);
        sh->near_of = cacheline_alloc(a->n_shares * sizeof(struct notes));
        sh->far_of = cacheline_alloc(a->n_shares * sizeof(struct notes));
        if (!sh->near_of || !sh->far_of)
            return -ENOMEM;
    }
    return 0;
}

static struct notes *notes_of(const struct net *n, const struct source *s)
{
    const struct share *from = n->apart->place[s->node].share;

    return &(s->to_far ? from->far_of : from->near_of)[s->peer_share];
}

/* Room for one of each link that leads from one share to another. */
static int fill_notes(struct net *n)
{
    struct apart *a = n->apart;
    struct note *at;

    at = a->notes = calloc(n->n_src + 1u, sizeof(*a->notes));
    if (!a->notes)
        return -ENOMEM;
    for (uint32_t i = 0; i < n->n_src; i++) {
        struct source *s = &n->src[i];

        if (!s->e)
            continue;
        s->to_far = a->two && a->side[s->peer] == SIDE_FAR;
        s->peer_share = (uint8_t)a->place[s->peer].share->id;
        notes_of(n, s)->n += a->n_shares > 1;
    }
    for (unsigned k = 0; k < 2 * a->n_shares * a->n_shares; k++) {
        struct share *from = &a->share[k / 2 / a->n_shares];
        struct notes *l = &(k % 2 ? from->far_of : from->near_of)[k / 2 % a->n_shares];

        l->a = at;
        at += l->n;
        l->n = 0;
    }
    return 0;
}

/* ---- all of it ---- */

static int create(struct net *n, unsigned shares)
{
    struct apart *a = n->apart = calloc(1, sizeof(*a));
    uint16_t nodes = n->cfg.fab->n_nodes;
    int rc = -ENOMEM;

    if (a) {
        a->due = calloc(nodes + 1u, sizeof(*a->due));
        a->place = cacheline_alloc((nodes + 1u) * sizeof(*a->place));
        a->all = calloc(2u * n->n_src + 1u, sizeof(struct source *));
        a->order = calloc(nodes + 1u, sizeof(*a->order));
        a->side = calloc(nodes + 1u, sizeof(*a->side));
        a->share = cacheline_alloc(shares * sizeof(*a->share));
    }
    if (a && a->due && a->place && a->all && a->order && a->side && a->share) {
        a->two = find_far(n->cfg.fab, a->side, a->order);
        a->n_shares = a->two ? shares : 1;
        rc = fill_places(n);
    }
    if (!rc)
        rc = fill_shares(n);
    if (!rc)
        rc = fill_notes(n);
    if (rc)
        apart_destroy(n);
    return rc;
}

int net_share(struct net *n, unsigned shares)
{
    int rc = n->apart || !n->lookahead_ps ? 0 : create(n, RTE_MIN(shares, NET_SHARES));

    return rc ? rc : n->apart ? (int)n->apart->n_shares : 1;
}

void apart_destroy(struct net *n)
{
    struct apart *a = n->apart;

    if (!a)
        return;
    for (uint16_t i = 0; a->place && i < n->cfg.fab->n_nodes; i++)
        heap_fini(&a->place[i].heap);
    for (unsigned k = 0; a->share && k < a->n_shares; k++) {
        free(a->share[k].near_of);
        free(a->share[k].far_of);
    }
    free(a->due);
    free(a->place);
    free(a->all);
    free(a->order);
    free(a->side);
    free(a->share);
    free(a->notes);
    free(a);
    n->apart = NULL;
}
