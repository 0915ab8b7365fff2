/* SPDX-License-Identifier: BSD-3-Clause */
/* Internals of the switch, shared by sw.c (frames and the endpoint), sw_group.c (group addresses) and
 * sw_ctl.c (ports, routes, set-up). */
#ifndef TRIB_SWITCH_SW_PRIV_H
#define TRIB_SWITCH_SW_PRIV_H

#include "base/cacheline.h"
#include "switch/arp.h"
#include "switch/fib.h"
#include "switch/mcast.h"
#include "switch/node_events.h"
#include "switch/protocol/protocol_node.h"
#include "switch/reduce/an.h"
#include "switch/sw.h"

enum {
    PORT_TREE = 1 /* floods leave by it */,
    PORT_BRIDGE = 2 /* leads to a switch or the outside, which hears of memberships */,
    PORT_OUTSIDE = 4 /* on the path to ports to the outside */,
    PORT_EXTERNAL = 8 /* to the outside itself */
};

struct sw {
    struct node nd;
    int64_t ep_next_ps;
    int64_t lost_due_ps; /* the earliest of lost_ps */
    int64_t held_ps;     /* sw_excuse() */
    uint16_t n_local;
    uint8_t mac[6];
    uint32_t ip;
    bool outside; /* the fabric has ports to the outside */
    bool blocked; /* the endpoint waits for room in an egress queue */
    bool has_ep;
    struct fib *fib;
    struct endpoint ep;
    uint8_t *flags; /* [n_ports] PORT_* */
    int64_t
        *lost_ps; /* [n_ports] when the host behind a link that is down counts as lost; PS_NEVER */
    struct mcast *mc;
    struct an *an;
    struct protocol_node *protocols; /* in front of it */
    struct an_cfg an_cfg;
    struct rte_mbuf *local[NODE_BURST]; /* n_local frames of this burst for the endpoint */
} CACHELINE_ALIGNED;

static inline struct sw *sw_of(struct node *nd)
{
    return (struct sw *)nd;
}

/* sw.c */
void sw_input(struct node *nd, uint16_t port, struct rte_mbuf **m, uint16_t n, int64_t now_ps);
void sw_tick(struct node *nd, int64_t now_ps);
int64_t sw_next(struct node *nd);
/* Sends what the endpoint has, as long as every egress queue has room. */
void sw_drain(struct sw *s, int64_t now_ps);

/* sw_ctl.c: the link to a neighbour is down: ends what was reduced with it. */
void sw_peer_down(struct sw *s, uint16_t peer_node, int64_t now_ps);
/* The host behind `port` counts as lost at at_ps unless its link comes back; PS_NEVER: never. */
void sw_set_lost(struct sw *s, uint16_t port, int64_t at_ps);

/* sw_group.c. All take ownership of the frame. in: NODE_NO_PORT for one of the switch's
 * endpoint. */

/* Copies by reference to all ports but `in` that have the flag; drops the frame as `why` if no port has
 * it. */
void sw_flood(struct sw *s, uint16_t in, struct rte_mbuf *m, uint8_t flag, enum drop why,
              int64_t now);
/* A frame to a group address. */
void sw_group_input(struct sw *s, uint16_t in, struct rte_mbuf *m, const struct packet_class *k,
                    int64_t now);
void sw_arp_input(struct sw *s, uint16_t in, struct rte_mbuf *m, const struct packet_class *k,
                  int64_t now);
/* Announces to neighbours how memberships change when a port comes up or goes down. */
void sw_group_port_state(struct sw *s, uint16_t port, bool up, int64_t now);
/* Call it before a port leaves the spanning tree, with its old flags: members behind the port leave. */
void sw_group_leave_tree(struct sw *s, uint16_t port, int64_t now);
/* Call it when a port to a neighbour joins the tree: announces our memberships and queries the
 * neighbour's. */
void sw_group_join_tree(struct sw *s, uint16_t port, int64_t now);

#endif
