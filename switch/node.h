/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node: a switch or a host's NIC. Frames enter by a port and leave by the egress queue of a port.
 * A node does not know the other end of a link: the net (net.h), or a port of io/, moves frames
 * between nodes.
 */
#ifndef TRIB_SWITCH_NODE_H
#define TRIB_SWITCH_NODE_H

#include "base/assert.h"
#include "base/cacheline.h"
#include "fabric/fabric.h"
#include "roce/endpoint.h"
#include "switch/own_room.h"
#include "switch/queue/drops.h"
#include "switch/queue/egress.h"
#include "switch/queue/pfc.h"
#include "switch/watchdog.h"

#define NODE_NO_PORT            0xffffu /* meta.in_port of a frame outside PFC's accounting */
#define NODE_BURST              32
#define NODE_LINK_DOWN_GRACE_PS (100 * PS_PER_MS) /* RC's peers try for half a second */

/* Why a port is down, bits: no peer at the other end, or its link was taken down. */
enum { NODE_CABLE_DOWN = 1, NODE_LINK_DOWN = 2 };

struct events;
struct node;

struct node_ops {
    /* Takes ownership of n frames that arrived on port at now_ps. */
    void (*input)(struct node *nd, uint16_t port, struct rte_mbuf **m, uint16_t n, int64_t now_ps);
    /* Runs timers and the endpoints behind the node (an AN's retransmissions, a NIC's processes) up
     * to now_ps. */
    void (*tick)(struct node *nd, int64_t now_ps);
    /* Time of the next tick; PS_NEVER: none. Called after every input, tick and event of an egress
     * queue of this node. */
    int64_t (*next)(struct node *nd);
    void (*port_state)(struct node *nd, uint16_t port, bool up, int64_t now_ps);
    void (*destroy)(struct node *nd);
};

/* Counters of one port; its egress queue counts what it sends. */
struct node_port_counters {
    uint64_t rx_frames, rx_bytes, pauses_sent, pauses_received;
    uint64_t watchdog_trips; /* times that its queue was stuck */
    uint64_t drops[DROP_REASONS];
};

/* Context of an egress queue's callbacks. */
struct node_port {
    struct node *nd;
    struct own_room own; /* of the egress queue */
    uint16_t port;
    uint8_t down;   /* NODE_*_DOWN: why; 0: up */
    bool cuts_up;   /* frames arrive here with their header, and may leave by a faster link */
    struct pfc pfc; /* ingress side */
    struct watchdog dog;
    uint8_t mac[6]; /* source of pause frames */
} CACHELINE_ALIGNED;
_Static_assert(offsetof(struct node_port, pfc.due_ps) == CACHELINE, "one cache line for a frame");

/* Fields in order of use: see struct egress. */
struct node {
    const struct node_ops *ops;
    uint16_t id; /* index in the fabric */
    uint16_t n_ports;
    uint32_t max_frame;             /* layer-2 bytes of the longest frame, for thresholds */
    int64_t pfc_due_ps;             /* earliest refresh of our pauses */
    struct egress **egress;         /* [n_ports]; NULL: nothing is connected */
    struct node_port_counters *cnt; /* [n_ports] */
    struct node_port *np;           /* [n_ports] */
    struct watchdogs dogs;
    struct rte_mempool *pool;
    const struct fabric *fab;
    /* Time that a host's own link may be down before the host counts as lost. */
    int64_t link_down_grace_ps;
    struct events *events; /* one ring (node_events.h) */
    char name[32];
};

struct node_cfg {
    const struct fabric *fab;
    uint16_t id;
    struct rte_mempool *pool, *parts;
    uint64_t seed;     /* of the fault generators */
    int64_t lag_ps;    /* real time: bound on the delay of frames and pauses beyond the link's
                       latency */
    uint32_t an_mbufs; /* mbufs that a switch's aggregation node may grant */
    struct rte_mbuf *(*pull)(void *ctx, int64_t now_ps,
                             bool lossless_paused); /* of every egress; ctx is struct node_port */
    /* As in struct net_cfg. */
    int64_t (*lateness_on_path)(void *ctx, uint32_t ip, uint32_t qpn, int64_t window_ps);
    void *ctx;
};

/* ---- for sw.c, nic.c and net ---- */

/* Creates queues, thresholds and counters of the node's ports from its links. 0 or -ENOMEM (then
 * node_fini has run). */
int node_init(struct node *nd, const struct node_ops *ops, const struct node_cfg *cfg);
void node_fini(struct node *nd);

/* Frees and counts a dropped frame. in_port NODE_NO_PORT counts at port 0. */
void node_drop(struct node *nd, uint16_t in_port, struct rte_mbuf *m, enum drop why);
/* Queues a frame, or drops and counts it. meta.in_port: the port that accounts for it. */
void node_send(struct node *nd, uint16_t port, struct rte_mbuf *m, int64_t now_ps);
/* The same for n frames of one class and ingress port, with `bytes` in total. */
void node_send_run(struct node *nd, uint16_t port, struct rte_mbuf **m, uint32_t n, uint32_t bytes,
                   int64_t now_ps);
/* Obeys and frees a received MAC control frame. */
void node_pause_input(struct node *nd, uint16_t port, struct rte_mbuf *m, int64_t now_ps);
/* Ingress accounting of frames that a node holds outside its egress queues. */
void node_hold(struct node *nd, uint16_t port, struct rte_mbuf *m, int64_t now_ps);
void node_release(struct node *nd, uint16_t port, uint32_t bytes, int64_t now_ps);
/* Repeats pauses that are due. */
void node_pfc_tick(struct node *nd, int64_t now_ps);
/* Reads anew which frames that are cut through may leave by a faster link. */
void node_rates_changed(struct node *nd);
/* Resets the pauses of a port whose link went down or came back. */
void node_port_reset(struct node *nd, uint16_t port, bool up, int64_t now_ps);

#endif
