/* SPDX-License-Identifier: BSD-3-Clause */
/* Internals of a net; for net*.c only. */
#ifndef TRIB_SWITCH_NET_NET_PRIV_H
#define TRIB_SWITCH_NET_NET_PRIV_H

#include "base/assert.h"
#include "base/cacheline.h"
#include "base/events.h"
#include "base/heap.h"
#include "switch/net/net.h"

#define NO_LINK UINT32_MAX

/* One direction of a link, or a port to the outside. */
struct transmitter {
    struct net *net;
    struct egress *e;
    struct node *nd, *to; /* to: the receiving node; NULL: not in this process */
    uint32_t id, dirlink; /* dirlink: NO_LINK for the outside */
    uint16_t node, port;
    uint16_t peer, peer_port; /* peer: FAB_NONE where `to` is NULL */
    /* net_logical_process.c */
    bool reads_body;          /* the peer reads the payloads of its frames */
    bool peer_is_far;         /* the peer runs in the far phase */
    uint8_t peer_partition;   /* the partition that runs the peer */
    uint32_t starts, arrives; /* index of its starts at its node, of its arrivals at its peer */
} CACHELINE_ALIGNED;
_Static_assert(sizeof(struct transmitter) == CACHELINE, "one cache line");

struct net {
    struct net_cfg cfg;
    int64_t now_ps;
    int64_t ahead_ps; /* net_set_ahead */
    bool in_event;    /* a node runs; its callbacks have time now_ps */
    struct heap heap;
    uint32_t n_tx;
    struct transmitter *tx;
    struct cacheline_list **lines; /* [n_tx] net_list_cachelines(), or NULL */
    struct node **node;            /* [n_nodes] NULL: not here */
    bool *link_down;               /* [n_links] */
    bool *cut;                     /* [n_links]: as set by net_cut_links() */
    struct fabric *around;         /* routes around links that are down; NULL: all are up */
    net_tap_fn tap;
    void *tap_ctx;
    uint64_t events;
    uint32_t faulty; /* number of directions with faults */
    int64_t lookahead_ps;
    struct apart *apart; /* net_logical_process.c; NULL: never ran apart */
    bool is_apart;       /* nodes have heaps of their own; the net's is stale */
    struct events ev;    /* NET_EV_*: of the control path's thread */
};

/* Changes of a net's state; the table of names in net.c explains a and b. */
enum net_event {
    NET_EV_LINK_DOWN,
    NET_EV_LINK_UP,
    NET_EV_PORT_DOWN,
    NET_EV_PORT_UP,
    NET_EV_ROUTES,
    NET_EV_ATTACHED,
    NET_EV_DETACHED,
    NET_EV_RESTARTED,
    NET_EV_PARTITIONED,
    NET_EV_APART,
    NET_EV_TOGETHER,
    NET_EV_KINDS
};

/* A node that runs apart, and the queues whose events it sees. */
struct logical_process {
    struct heap heap;
    uint32_t tick;           /* index of its timers: the last */
    struct transmitter **tx; /* [tick] by index: its own (starts), and others' (arrivals) */
    int64_t now_ps;          /* the node's own time */
    struct partition *partition;
} CACHELINE_ALIGNED;
_Static_assert(sizeof(struct logical_process) == CACHELINE, "one cache line");

#define PREFETCH_STEPS  7u               /* the next nodes, which are being prefetched */
#define PREFETCH_EVENTS 32u              /* prefetched events of a node; more are rare */
#define PREFETCH_NODE   (2u * CACHELINE) /* bytes of struct node */

/* The nodes of a partition that run in one phase of a slice, one after the other. */
struct phase {
    const uint16_t *node; /* [n] by number */
    uint32_t n;
};

/* Time at which the first frame on a link arrives at a node of another partition. */
struct cross_partition_message {
    int64_t t;
    uint32_t i; /* transmitter.arrives */
    uint16_t node;
};

/* Messages from one partition to another, kept until the receiver runs. */
struct mailbox {
    struct cross_partition_message *a; /* [room] */
    uint32_t n, room;                  /* room: links that lead there: a message of each */
};

/* The nodes that one thread runs. */
struct partition {
    struct phase hosts, near, far;    /* near: the other nodes of the hosts' phase; with one phase
                                      only, all other nodes */
    struct mailbox *to_near, *to_far; /* [n_partitions]: for hosts and near nodes; for far ones */
    int64_t sent_ps;                  /* earliest arrival in to_far */
    uint64_t events;
    unsigned id;
    bool ran_on; /* some of its hosts ran beyond the middle of the slice */

    /* net_prefetch.c: the nodes that run next, in turn */
    uint32_t turn, look; /* look: index in the phase from which to search the next node */
    struct prefetch {
        uint16_t node; /* FAB_NONE: there are no more */
        uint32_t n;
        struct transmitter **at[PREFETCH_EVENTS];
    } prefetch[PREFETCH_STEPS];
} CACHELINE_ALIGNED;

struct apart {
    int64_t *due; /* [n_nodes]: no later than the first event of each node */
    struct logical_process *process;
    struct transmitter **all; /* memory of all logical_process.tx */
    uint16_t *order;          /* memory of all phase.node */
    uint8_t *phase;           /* [n_nodes] PHASE_* */
    struct partition *partition;
    unsigned n_partitions;
    struct cross_partition_message *messages; /* memory of all mailboxes */
    bool two_phases;                  /* near and far: each advances by two lookaheads at a time */
    int64_t hosts_end_ps, far_end_ps; /* every event before that has run */

    /* the running slice */
    const struct net_turn *turn; /* NULL: none runs */
    int64_t mid_ps, end_ps;
};

/* Nodes an even number of links away from the hosts are near. */
enum { PHASE_UNKNOWN, PHASE_NEAR, PHASE_FAR };

/* net_prefetch.c: call it before the first node of a phase, and before each node that runs */
void prefetch_begin(struct net *n, struct partition *part, const struct phase *phase,
                    int64_t end_ps);
void prefetch_turn(struct net *n, struct partition *part, const struct phase *phase,
                   int64_t end_ps);

/* net_logical_process.c */
void apart_set_tick(struct net *n, uint16_t node, int64_t t);
int64_t apart_next(const struct net *n);
uint64_t apart_events(const struct net *n);

void apart_destroy(struct net *n); /* net_partition.c */

/* The time of a node. */
static inline int64_t net_now_of(const struct net *n, uint16_t node)
{
    return n->is_apart ? n->apart->process[node].now_ps : n->now_ps;
}

static inline void net_refresh(struct net *n, struct node *nd)
{
    int64_t t = nd->ops->next(nd);

    if (t != PS_NEVER)
        t = RTE_MAX(t, net_now_of(n, nd->id));
    if (unlikely(n->is_apart))
        apart_set_tick(n, nd->id, t);
    else
        heap_set(&n->heap, n->n_tx + nd->id, t);
}

static inline void net_refresh_node(struct net *n, uint16_t node)
{
    net_refresh(n, n->node[node]);
}

/* Passes frames that have arrived at the far end of a link to its node. */
void net_arrive(struct net *n, struct transmitter *s, struct rte_mbuf **m, uint16_t cnt);
void net_refresh_tx(struct transmitter *s);
void net_earlier(void *ctx); /* a queue's next event got earlier; ctx: struct transmitter */

/* Runs all events that are due before an input from outside. Returns the net's time. */
int64_t net_catch_up(struct net *n, int64_t now_ps);

#endif
