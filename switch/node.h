/*
 * A node: a switch or a host's NIC. Frames come in by ports, leave by the egress queue of a port. A node
 * never knows what is at the other end of a link; the net (net.h) or a port of the rim carries frames on.
 */
#ifndef TRIB_SWITCH_NODE_H
#define TRIB_SWITCH_NODE_H

#include "roce/endpoint.h"
#include "switch/drops.h"
#include "switch/egress.h"

struct node;

struct node_ops {
    /* Takes ownership of n frames that arrived on port at now_ps. */
    void (*input)(struct node *nd, uint16_t port, struct rte_mbuf **m, uint16_t n, int64_t now_ps);
    /* Timers and the endpoints behind the node (an AN's retransmissions, a NIC's processes): due work up to now_ps. */
    void (*tick)(struct node *nd, int64_t now_ps);
    int64_t (*next)(struct node *nd);                       /* PS_NEVER, or when tick has work */
    void (*port_state)(struct node *nd, uint16_t port, bool up, int64_t now_ps);
    void (*destroy)(struct node *nd);
};

/* Counters of one port. */
struct port_counters { uint64_t rx_frames, rx_bytes, tx_frames, tx_bytes, ecn_marks, pauses_sent, pauses_received; uint64_t drops[DROP_REASONS]; };

struct node {
    const struct node_ops *ops;
    char name[32];
    uint16_t id;                /* index in the fabric */
    uint16_t n_ports;
    struct egress **egress;     /* [n_ports] */
    struct port_counters *cnt;  /* [n_ports] */
    struct rte_mempool *pool;
};

#endif
