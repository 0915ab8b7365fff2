/* SPDX-License-Identifier: BSD-3-Clause */
/* The ports by which two hosts reach each other. */
#include "base/assert.h"
#include "fabric/build.h"

struct port_pair {
    const struct fabric *f;
    const struct fab_node *a, *b;
    struct fab_channel *ch;
    unsigned max, n;
    bool turned; /* the caller's hosts are b and a */
};

static void port_pair_add(struct port_pair *k, unsigned p, unsigned q)
{
    uint64_t ra = k->a->ports[p].rate_bps, rb = k->b->ports[q].rate_bps;
    unsigned from = k->turned ? q : p, to = k->turned ? p : q;

    T_ASSERT(p < k->a->n_ports && q < k->b->n_ports,
             "a channel joins ports that its hosts do not have");
    if (k->n < k->max)
        k->ch[k->n] = (struct fab_channel){(fab_id)from, (fab_id)to, ra < rb ? ra : rb};
    k->n++;
}

static void add_cables(struct port_pair *k)
{
    for (unsigned p = 0; p < k->a->n_ports; p++)
        if (&k->f->nodes[k->a->ports[p].peer_node] == k->b)
            port_pair_add(k, p, k->a->ports[p].peer_port);
}

static bool ports_joined(const struct port_pair *k, unsigned p, unsigned q)
{
    fab_id port[FAB_MAX_HOST_PORTS];
    unsigned n =
        fabric_hops(k->f, fabric_node_index(k->f, k->a), k->b->dest + q, port, FAB_MAX_HOST_PORTS);

    for (unsigned i = 0; i < n; i++)
        if (port[i] == p)
            return true;
    return false;
}

static bool on_plane(const struct fabric *f, const struct fab_port *p)
{
    fab_id v = peer_switch(f, p);

    return v != FAB_NONE && f->nodes[v].role == FAB_ROLE_NVSWITCH;
}

/* Ports of the two hosts that already have a partner. */
struct channels_used {
    uint32_t a, b;
};

/* Finds the fastest pair of free ports that reach each other, the first of equal ones. Returns its rate; 0:
 * there is none. */
static uint64_t pair_fastest(const struct port_pair *k, bool planes, const struct channels_used *u,
                             unsigned *pa, unsigned *pb)
{
    uint64_t best = 0;

    for (unsigned p = 0; p < k->a->n_ports; p++) {
        uint64_t most = k->a->ports[p].rate_bps;

        if (u->a >> p & 1 || most <= best || on_plane(k->f, &k->a->ports[p]) != planes)
            continue;
        for (unsigned q = 0; q < k->b->n_ports && best < most; q++) {
            uint64_t rate = k->b->ports[q].rate_bps < most ? k->b->ports[q].rate_bps : most;

            if (u->b >> q & 1 || rate <= best || on_plane(k->f, &k->b->ports[q]) != planes ||
                !ports_joined(k, p, q))
                continue;
            best = rate, *pa = p, *pb = q;
        }
    }
    return best;
}

/* Pairs planes in order; or all other ports, fast ones with fast ones before slow ones, so that a ring
 * through many hosts has a fast channel and a slow one, whatever the order of their ports. */
static void add_ports(struct port_pair *k, bool planes)
{
    unsigned mate[FAB_MAX_HOST_PORTS], p = 0, q = 0;
    struct channels_used u = {0};

    _Static_assert(FAB_MAX_HOST_PORTS <= 32, "a bit per port");
    while (pair_fastest(k, planes, &u, &p, &q)) {
        T_ASSERT(!(u.a >> p & 1) && !(u.b >> q & 1),
                 "a port is in two channels of a pair of hosts");
        u.a |= 1u << p;
        u.b |= 1u << q;
        mate[p] = q;
        if (!planes)
            port_pair_add(k, p, q);
    }
    for (p = 0; planes && p < k->a->n_ports; p++)
        if (u.a >> p & 1)
            port_pair_add(k, p, mate[p]);
}

unsigned fabric_channels(const struct fabric *f, unsigned host_a, unsigned host_b,
                         struct fab_channel *ch, unsigned max)
{
    struct port_pair k = {.f = f, .ch = ch, .max = max};

    if (host_a >= f->n_hosts || host_b >= f->n_hosts)
        return 0;
    /* Pairs from the lower host on, so that both ends see the same pairs in the same order, even if the two
     * are wired to the same leaves in different order. */
    k.turned = host_a > host_b;
    k.a = &f->nodes[f->hosts[k.turned ? host_b : host_a]];
    k.b = &f->nodes[f->hosts[k.turned ? host_a : host_b]];
    if (k.a == k.b) {
        port_pair_add(&k, 0, 0);
        return k.n;
    }
    add_cables(&k);
    if (!k.n && k.a->domain != FAB_NONE && k.a->domain == k.b->domain)
        add_ports(&k, true);
    if (!k.n)
        add_ports(&k, false);
    if (!k.n) /* GPU nodes whose NVSwitches have links to each other */
        add_ports(&k, true);
    return k.n;
}
