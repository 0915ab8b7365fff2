/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A switch: classify -> { own address: aggregation node | group: replicate | fib } -> egress queue.
 *
 * It forwards at layer 2 and reads IPv4 and UDP for the class and the flow only. It classifies
 * every incoming frame and ignores its meta. Broadcasts and unknown group addresses follow the
 * spanning tree; unicast to addresses outside the fabric goes to the ports to the outside, if any.
 */
#ifndef TRIB_SWITCH_SW_H
#define TRIB_SWITCH_SW_H

#include "switch/node.h"

/* Burst of the aggregation node. It is polled only when every egress queue has room for a burst, so
 * its frames wait there and are not dropped. */
#define SW_AN_BURST 32u

struct an;

int sw_create(struct node **nd, const struct node_cfg *cfg);
struct an *sw_an(struct node *nd); /* NULL: this switch does not reduce */
struct protocol_node;
struct protocol_node *sw_protocols(struct node *nd); /* NULL: there are none */
/* Replaces the endpoint behind the switch's own address (tests, extensions). */
void sw_attach(struct node *nd, const struct endpoint *ep);
/* Uses the routes and spanning tree of another fabric with the same nodes
 * (fabric/routing/reroute.h). */
void sw_reroute(struct node *nd, const struct fabric *f, int64_t now_ps);
/* Restarts the aggregation node, without its groups. The caller has taken the links down (net.h),
 * so memberships and learned addresses are gone. Returns 0, or -ENOMEM (nothing has changed). */
int sw_restart(struct node *nd, int64_t now_ps);
/* Timers that wait for others (the aggregation node's, the watchdog's) do not expire before until_ps. */
void sw_excuse(struct node *nd, int64_t until_ps);
void sw_kick(struct node *nd); /* the endpoint has frames or a new deadline */

#endif
