/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Set-up of nodes that run apart: the logical process of each, its phase, and its partition. One
 * thread runs a partition; the partitioning changes only how long a slice takes.
 *
 * Frames should stay in the caches of one core: hosts in a row are one partition, and so is a
 * switch that has most of its hosts there, as NVSwitches have theirs. Each other switch goes to the
 * partition with the least load in its phase so far, counted by ports in use. Hosts without
 * processes do nothing and do not count.
 */
#include "switch/net/net_priv.h"

#include "base/cacheline.h"
#include "switch/nic.h"

#include <errno.h>
#include <stdlib.h>

/* ---- logical processes ---- */

/* Transmitters are added in order of their number, so each logical process has them in order. */
static int fill_processes(struct net *n)
{
    struct apart *a = n->apart;
    bool data = rte_pktmbuf_data_room_size(n->cfg.pool) >= FRAME_ROOM;
    uint32_t at = 0;
    int rc = 0;

    for (uint32_t i = 0; i < n->n_tx; i++)
        if (n->tx[i].e) {
            T_ASSERT(n->tx[i].peer != FAB_NONE, "a net with a way out has a lookahead");
            n->tx[i].starts = a->process[n->tx[i].node].tick++;
            n->tx[i].arrives = a->process[n->tx[i].peer].tick++;
            n->tx[i].reads_body = data && n->cfg.fab->nodes[n->tx[i].peer].kind == FAB_HOST;
        }
    for (uint16_t i = 0; i < n->cfg.fab->n_nodes && !rc; i++) {
        struct logical_process *p = &a->process[i];

        p->tx = a->all + at;
        at += p->tick;
        rc = heap_init(&p->heap, p->tick + 1);
    }
    T_ASSERT(rc || at <= 2 * n->n_tx, "nodes have more events than transmitters have ends");
    for (uint32_t i = 0; i < n->n_tx && !rc; i++) {
        struct transmitter *s = &n->tx[i];

        if (!s->e)
            continue;
        T_ASSERT(!a->process[s->node].tx[s->starts] && !a->process[s->peer].tx[s->arrives],
                 "two events of a node have one index");
        a->process[s->node].tx[s->starts] = a->process[s->peer].tx[s->arrives] = s;
    }
    return rc;
}

/* ---- phases ---- */

/* Nodes an odd number of links away from a host are far. queue: room for all nodes. False: two
 * neighbours would run in one phase, or a node has no path to a host. */
static bool find_far(const struct fabric *f, uint8_t *phase, uint16_t *queue)
{
    uint32_t n = 0, next = 0;

    for (uint16_t i = 0; i < f->n_nodes; i++)
        if (f->nodes[i].kind == FAB_HOST) {
            phase[i] = PHASE_NEAR;
            queue[n++] = i;
        }
    for (; next < n; next++) {
        const struct fab_node *nd = &f->nodes[queue[next]];
        uint8_t mine = phase[queue[next]];

        for (uint16_t p = 0; p < nd->n_ports; p++) {
            uint16_t peer = nd->ports[p].peer_node;

            if (nd->ports[p].link == FAB_NONE)
                continue;
            if (phase[peer] == mine)
                return false;
            if (phase[peer] == PHASE_UNKNOWN) {
                phase[peer] = mine == PHASE_NEAR ? PHASE_FAR : PHASE_NEAR;
                T_ASSERT(n < f->n_nodes, "a node is visited twice");
                queue[n++] = peer;
            }
        }
    }
    return n == f->n_nodes;
}

/* ---- partitions ---- */

static void partition_hosts(struct net *n)
{
    const struct fabric *f = n->cfg.fab;
    struct apart *a = n->apart;
    uint32_t used = 0, k = 0;

    for (uint16_t i = 0; i < f->n_nodes; i++)
        used += f->nodes[i].kind == FAB_HOST && nic_is_used(n->node[i]);
    for (uint16_t i = 0; i < f->n_nodes; i++)
        if (f->nodes[i].kind == FAB_HOST) {
            a->process[i].partition = &a->partition[used ? k * a->n_partitions / used : 0];
            k += k + 1 < used && nic_is_used(n->node[i]);
        }
}

/* Ports of a switch that lead to hosts: how many, to each partition, and how many may be in use. */
struct ties {
    uint32_t hosts, used, of[NET_PARTITIONS];
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
        t.of[n->apart->process[peer].partition->id]++;
    }
    t.used += t.used || !t.hosts ? others : 0;
    return t;
}

static void partition_switches(struct net *n)
{
    struct apart *a = n->apart;
    uint32_t load[PHASE_FAR + 1][NET_PARTITIONS] = {{0}};

    for (uint16_t i = 0; i < n->cfg.fab->n_nodes; i++) {
        uint32_t *mine = load[a->phase[i]];
        struct ties t;
        unsigned k = 0;

        if (n->cfg.fab->nodes[i].kind == FAB_HOST)
            continue;
        t = find_ties(n, i);
        while (k < a->n_partitions && 2 * t.of[k] <= t.hosts)
            k++;
        if (k == a->n_partitions) {
            k = 0;
            for (unsigned o = 1; o < a->n_partitions; o++)
                if (mine[o] < mine[k])
                    k = o;
        }
        T_ASSERT(k < a->n_partitions && k < NET_PARTITIONS, "a switch has no partition");
        mine[k] += t.used;
        a->process[i].partition = &a->partition[k];
    }
}

/* The nodes of one phase, in order of their number. */
static uint16_t *fill_phase(struct net *n, bool hosts, bool far, const struct partition *part,
                            struct phase *phase, uint16_t *at)
{
    const struct fabric *f = n->cfg.fab;
    struct apart *a = n->apart;

    phase->node = at;
    for (uint16_t i = 0; i < f->n_nodes; i++)
        if ((f->nodes[i].kind == FAB_HOST) == hosts && a->process[i].partition == part &&
            (a->two_phases && a->phase[i] == PHASE_FAR) == far) {
            T_ASSERT(at < a->order + f->n_nodes, "a node is in two phases");
            *at++ = i;
        }
    phase->n = (uint32_t)(at - phase->node);
    return at;
}

static int fill_partitions(struct net *n)
{
    struct apart *a = n->apart;
    uint16_t *at = a->order;

    for (unsigned k = 0; k < a->n_partitions; k++)
        a->partition[k].id = k;
    partition_hosts(n);
    partition_switches(n);
    for (unsigned k = 0; k < a->n_partitions; k++) {
        struct partition *part = &a->partition[k];

        at = fill_phase(n, true, false, part, &part->hosts, at);
        at = fill_phase(n, false, false, part, &part->near, at);
        at = fill_phase(n, false, true, part, &part->far, at);
        part->to_near = cacheline_alloc(a->n_partitions * sizeof(struct mailbox));
        part->to_far = cacheline_alloc(a->n_partitions * sizeof(struct mailbox));
        if (!part->to_near || !part->to_far)
            return -ENOMEM;
    }
    T_ASSERT(at == a->order + n->cfg.fab->n_nodes, "a node is in no phase");
    return 0;
}

/* The mailbox for messages of a transmitter. */
static struct mailbox *mailbox_of(const struct net *n, const struct transmitter *s)
{
    const struct partition *from = n->apart->process[s->node].partition;

    return &(s->peer_is_far ? from->to_far : from->to_near)[s->peer_partition];
}

/* Room for one message of each link that leads to another partition. */
static int fill_mailboxes(struct net *n)
{
    struct apart *a = n->apart;
    struct cross_partition_message *at;

    at = a->messages = calloc(n->n_tx + 1u, sizeof(*a->messages));
    if (!a->messages)
        return -ENOMEM;
    for (uint32_t i = 0; i < n->n_tx; i++) {
        struct transmitter *s = &n->tx[i];

        if (!s->e)
            continue;
        s->peer_is_far = a->two_phases && a->phase[s->peer] == PHASE_FAR;
        s->peer_partition = (uint8_t)a->process[s->peer].partition->id;
        mailbox_of(n, s)->room += a->process[s->node].partition->id != s->peer_partition;
    }
    for (unsigned k = 0; k < 2 * a->n_partitions * a->n_partitions; k++) {
        struct partition *from = &a->partition[k / 2 / a->n_partitions];
        struct mailbox *l = &(k % 2 ? from->to_far : from->to_near)[k / 2 % a->n_partitions];

        l->a = at;
        at += l->room;
    }
    T_ASSERT(at <= a->messages + n->n_tx, "mailboxes have room for more messages than links");
    return 0;
}

/* ---- all of it ---- */

static int net_partition_create(struct net *n, unsigned shares)
{
    struct apart *a = n->apart = calloc(1, sizeof(*a));
    uint16_t nodes = n->cfg.fab->n_nodes;
    int rc = -ENOMEM;

    if (a) {
        a->due = calloc(nodes + 1u, sizeof(*a->due));
        a->process = cacheline_alloc((nodes + 1u) * sizeof(*a->process));
        a->all = calloc(2u * n->n_tx + 1u, sizeof(struct transmitter *));
        a->order = calloc(nodes + 1u, sizeof(*a->order));
        a->phase = calloc(nodes + 1u, sizeof(*a->phase));
        a->partition = cacheline_alloc(shares * sizeof(*a->partition));
    }
    if (a && a->due && a->process && a->all && a->order && a->phase && a->partition) {
        a->two_phases = find_far(n->cfg.fab, a->phase, a->order);
        a->n_partitions = a->two_phases ? shares : 1;
        rc = fill_processes(n);
    }
    if (!rc)
        rc = fill_partitions(n);
    if (!rc)
        rc = fill_mailboxes(n);
    if (rc)
        apart_destroy(n);
    return rc;
}

int net_partition(struct net *n, unsigned shares)
{
    bool fresh = !n->apart && n->lookahead_ps;
    int rc;

    T_ASSERT(shares > 0, "a net in no partitions");
    T_ASSERT(!n->is_apart, "net_partition() while nodes run apart");
    rc = fresh ? net_partition_create(n, RTE_MIN(shares, NET_PARTITIONS)) : 0;
    if (fresh && !rc)
        events_add(&n->ev, n->now_ps, NET_EV_PARTITIONED, n->apart->n_partitions,
                   n->apart->two_phases ? 2 : 1);
    return rc ? rc : n->apart ? (int)n->apart->n_partitions : 1;
}

void apart_destroy(struct net *n)
{
    struct apart *a = n->apart;

    if (!a)
        return;
    for (uint16_t i = 0; a->process && i < n->cfg.fab->n_nodes; i++)
        heap_fini(&a->process[i].heap);
    for (unsigned k = 0; a->partition && k < a->n_partitions; k++) {
        free(a->partition[k].to_near);
        free(a->partition[k].to_far);
    }
    free(a->due);
    free(a->process);
    free(a->all);
    free(a->order);
    free(a->phase);
    free(a->partition);
    free(a->messages);
    free(a);
    n->apart = NULL;
}
