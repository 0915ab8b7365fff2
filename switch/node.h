/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node: a switch or a host's NIC. Frames come in by ports, leave by the egress queue of a port. A
 * node never knows what is at the other end of a link; the net (net.h) or a port of the rim carries
 * frames on.
 */
#ifndef TRIB_SWITCH_NODE_H
#define TRIB_SWITCH_NODE_H

#include "fabric/fabric.h"
#include "roce/endpoint.h"
#include "switch/queue/drops.h"
#include "switch/queue/egress.h"
#include "switch/queue/pfc.h"
#include "switch/watchdog.h"

#define NODE_NO_PORT            0xffffu /* meta.in_port of a frame that no port's PFC accounts for */
#define NODE_BURST              32
#define NODE_LINK_DOWN_GRACE_PS (100 * PS_PER_MS) /* RC's peers try for half a second */

/* Why a port is down: nobody at the other end, or its link was taken down. */
enum { NODE_CABLE_DOWN = 1, NODE_LINK_DOWN = 2 };

struct node;

struct node_ops {
    /* Takes ownership of n frames that arrived on port at now_ps. */
    void (*input)(struct node *nd, uint16_t port, struct rte_mbuf **m, uint16_t n, int64_t now_ps);
    /* Timers and the endpoints behind the node (an AN's retransmissions, a NIC's processes): due
     * work up to now_ps. */
    void (*tick)(struct node *nd, int64_t now_ps);
    /* PS_NEVER, or when tick has work. Asked again after every input, tick and event of an egress
     * queue of this node. */
    int64_t (*next)(struct node *nd);
    /* Something comes to the port soon: what input and tick will look at is on its way into the
     * CPU's caches. Said four times, `within` 0 to 3, each for what the one before has made known;
     * 2 and 3 are for what hangs on the port, or on m, the frame that comes (NULL: not said). */
    void (*soon)(struct node *nd, uint16_t port, const struct rte_mbuf *m, unsigned within);
    void (*port_state)(struct node *nd, uint16_t port, bool up, int64_t now_ps);
    void (*destroy)(struct node *nd);
};

/* Counters of one port; those of what it sends are its egress queue's. */
struct port_counters {
    uint64_t rx_frames, rx_bytes, pauses_sent, pauses_received;
    uint64_t watchdog_trips; /* times that its queue was found stuck */
    uint64_t drops[DROP_REASONS];
};

/* What an egress queue's callbacks get. */
struct node_port {
    struct node *nd;
    uint16_t port;
    uint8_t down;   /* NODE_*_DOWN: why; 0: up */
    uint8_t mac[6]; /* source of pause frames */
    struct pfc pfc; /* ingress side */
    struct watchdog dog;
} __rte_cache_aligned;

/* In order of use: see struct egress. */
struct node {
    const struct node_ops *ops;
    uint16_t id; /* index in the fabric */
    uint16_t n_ports;
    uint32_t max_frame;        /* layer-2 bytes of the longest frame that thresholds reckon with */
    int64_t pfc_due_ps;        /* earliest refresh of a pause of ours */
    struct egress **egress;    /* [n_ports]; NULL: nothing is connected */
    struct port_counters *cnt; /* [n_ports] */
    struct node_port *np;      /* [n_ports] */
    struct watchdogs dogs;
    struct rte_mempool *pool;
    const struct fabric *fab;
    int64_t
        link_down_grace_ps; /* so long a host's own link may be down before the host counts as lost */
    char name[32];
};

struct node_cfg {
    const struct fabric *fab;
    uint16_t id;
    struct rte_mempool *pool, *parts;
    uint64_t seed;  /* of the fault generators */
    int64_t lag_ps; /* how late a frame or a pause may be carried on beyond the link's latency (real
                       time) */
    uint32_t an_mbufs; /* what a switch's aggregation node may promise */
    struct rte_mbuf *(*pull)(void *ctx, int64_t now_ps,
                             bool lossless_paused); /* of every egress; ctx is struct node_port */
    /* As in struct net_cfg. */
    int64_t (*late_on_way)(void *ctx, uint32_t ip, uint32_t qpn, int64_t window_ps);
    void *ctx;
};

/* ---- for sw.c and nic.c ---- */

/* Queues, thresholds and counters of the node's ports as its links say. 0 or -ENOMEM (then
 * node_fini has run). */
int node_init(struct node *nd, const struct node_ops *ops, const struct node_cfg *cfg);
void node_fini(struct node *nd);

/* Frees and counts. in_port NODE_NO_PORT counts at port 0. */
void node_drop(struct node *nd, uint16_t in_port, struct rte_mbuf *m, enum drop why);
/* Queues a frame, or drops and counts it. meta.in_port says whose PFC accounting it belongs to. */
void node_send(struct node *nd, uint16_t port, struct rte_mbuf *m, int64_t now_ps);
/* The same for n frames of one class that came in by one port, so many bytes together. */
void node_send_run(struct node *nd, uint16_t port, struct rte_mbuf **m, uint32_t n, uint32_t bytes,
                   int64_t now_ps);
/* A MAC control frame came in: obeys and frees it. */
void node_pause_input(struct node *nd, uint16_t port, struct rte_mbuf *m, int64_t now_ps);
/* Ingress accounting of what a node holds elsewhere than in an egress queue. */
void node_hold(struct node *nd, uint16_t port, struct rte_mbuf *m, int64_t now_ps);
void node_release(struct node *nd, uint16_t port, uint32_t bytes, int64_t now_ps);
/* Pauses that must be said again. */
void node_pfc_tick(struct node *nd, int64_t now_ps);
/* Forgets what PFC said on a port whose link went down or came back. */
void node_port_reset(struct node *nd, uint16_t port, bool up, int64_t now_ps);

#endif
