/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of a net; for net*.c only. */
#ifndef TRIB_SWITCH_NET_NET_PRIV_H
#define TRIB_SWITCH_NET_NET_PRIV_H

#include "base/heap.h"
#include "switch/net/net.h"

#define NO_LINK UINT32_MAX

/* One direction of a link, or a port to the outside. */
struct source {
    struct net *net;
    struct egress *e;
    struct node *nd, *to; /* to: NULL where it is not here */
    uint32_t id, dirlink; /* dirlink: NO_LINK for the outside */
    uint16_t node, port;
    uint16_t peer, peer_port; /* peer: FAB_NONE where it is not here */
    bool of_host;
    /* net_apart.c */
    bool read;                /* what its frames carry, at its peer */
    bool to_far;              /* its peer is of the far side */
    uint8_t peer_share;       /* who runs its peer */
    uint32_t starts, arrives; /* what its node and its peer call it */
} __rte_cache_aligned;

struct net {
    struct net_cfg cfg;
    int64_t now_ps;
    int64_t ahead_ps; /* net_set_ahead */
    bool in_event;    /* a node is being served; what it calls back happens at now_ps */
    struct heap heap;
    uint32_t n_src;
    struct source *src;
    struct node **node;    /* [n_nodes] NULL: not here */
    bool *link_down;       /* [n_links] */
    bool *cut;             /* [n_links]: what net_cut_links said */
    struct fabric *around; /* routes around links that are down; NULL: none is */
    net_tap_fn tap;
    void *tap_ctx;
    uint64_t events;
    uint32_t attached; /* endpoints, in all */
    uint32_t faulty;   /* directions of links that have faults */
    int64_t lookahead_ps;
    struct apart *apart; /* net_apart.c; NULL: never was */
    bool is_apart;       /* nodes have queues of their own; the heap is stale */
};

/* Of a net whose nodes run apart: what one of them sees. */
struct place {
    struct heap heap;
    uint32_t tick;       /* the last index */
    struct source **src; /* [tick] by index: its own, which start, and others', which arrive */
    int64_t now_ps;      /* nodes that run apart have each their own time */
    struct share *share; /* who runs it */
} __rte_cache_aligned;
_Static_assert(sizeof(struct place) == RTE_CACHE_LINE_SIZE, "a line of the CPU's caches");

#define SOON_STEPS     8u   /* nodes that are looked ahead */
#define SOON_NEAR      6u   /* of them steps without endpoints' lines */
#define SOON_MANY      64u  /* endpoints: what fewer look at stays in the CPU's caches */
#define SOON_PROCESSES 512u /* endpoints: so does what the processes behind fewer look at */
#define SOON_EVENTS    32u  /* of a node that are; more are rare */

/* Nodes that run one after the other. */
struct side {
    const uint16_t *node; /* [n] in order of their number */
    uint32_t n;
};

/* What comes first on a link that leads to a node of another share. */
struct note {
    int64_t t;
    uint32_t i; /* what the node calls the link */
    uint16_t node;
};

/* From one share to one other, until that one runs. */
struct notes {
    struct note *a; /* a link has one at most */
    uint32_t n;
};

/* Nodes that one thread runs. */
struct share {
    struct side hosts, near, far; /* near: other nodes of their side; without two, all others */
    struct notes *near_of,
        *far_of;      /* [n_shares] to hosts and near nodes, and to far ones, of each */
    int64_t noted_ps; /* the earliest in far_of */
    uint64_t events;
    unsigned id;
    bool went; /* hosts of it, beyond the middle of the slice */

    /* net_prefetch.c: nodes that come soon, the next one's at `turn` */
    uint32_t turn, look; /* look: the node of its side from which on the next is looked for */
    struct soon {
        uint16_t node; /* FAB_NONE: there are no more */
        uint32_t n;
        struct source **at[SOON_EVENTS];
    } soon[SOON_STEPS];
} __rte_cache_aligned;

struct apart {
    int64_t *due; /* [n_nodes] of each place, the first */
    struct place *place;
    struct source **all; /* behind all places' src */
    uint16_t *order;     /* behind all sides' node */
    uint8_t *side;       /* [n_nodes] SIDE_* */
    struct share *share;
    unsigned n_shares;
    struct note *notes;               /* behind all shares' */
    bool two;                         /* sides of the fabric: each goes two lookaheads at a time */
    int64_t hosts_end_ps, far_end_ps; /* they have done everything before that */

    /* of the slice that runs */
    const struct net_turn *turn;
    int64_t mid_ps, end_ps;
};

enum { SIDE_UNKNOWN, SIDE_NEAR, SIDE_FAR };

/* net_prefetch.c: before the first node of a side, and before each that runs */
void prefetch_begin(struct net *n, struct share *sh, const struct side *side, int64_t end_ps);
void prefetch_turn(struct net *n, struct share *sh, const struct side *side, int64_t end_ps);

/* net_apart.c */
void apart_set_tick(struct net *n, uint16_t node, int64_t t);
int64_t apart_next(const struct net *n);
uint64_t apart_events(const struct net *n);

void apart_destroy(struct net *n); /* net_share.c */

/* What time it is for a node. */
static inline int64_t net_now_of(const struct net *n, uint16_t node)
{
    return n->is_apart ? n->apart->place[node].now_ps : n->now_ps;
}

static inline void net_refresh(struct net *n, struct node *nd)
{
    int64_t t = nd->ops->next(nd);

    if (t != PS_NEVER)
        t = RTE_MAX(t, net_now_of(n, nd->id));
    if (unlikely(n->is_apart))
        apart_set_tick(n, nd->id, t);
    else
        heap_set(&n->heap, n->n_src + nd->id, t);
}

static inline void net_refresh_node(struct net *n, uint16_t node)
{
    net_refresh(n, n->node[node]);
}

/* What arrives at the far end of a link goes into its node. */
void net_arrive(struct net *n, struct source *s, struct rte_mbuf **m, uint16_t cnt);
void net_refresh_src(struct source *s);
void net_earlier(void *ctx); /* its queue's next event has become earlier; ctx: struct source */

/* What comes from outside comes after everything that was due before it. Returns the net's time. */
int64_t net_catch_up(struct net *n, int64_t now_ps);

#endif
