/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A switch: parse -> { for me? aggregation node | group address? replicate | fib } -> egress queue.
 *
 * It forwards at layer 2 and looks into IPv4 and UDP for the class and the flow only. Frames from
 * outside are classified here, whatever their meta says. Broadcast and unknown group addresses
 * follow the spanning tree; unicast to addresses that are not of the fabric goes to ports outside,
 * if there are any.
 */
#ifndef TRIB_SWITCH_SW_H
#define TRIB_SWITCH_SW_H

#include "switch/node.h"

/* The aggregation node is asked for so many frames at a time, and only when every egress queue has
 * room for them: what it cannot send yet it keeps, instead of having it dropped. */
#define SW_AN_BURST 32u

struct an;

int sw_create(struct node **nd, const struct node_cfg *cfg);
struct an *sw_an(struct node *nd); /* NULL: this switch does not reduce */
/* Puts another endpoint behind the switch's own address, in place of what is there (tests,
 * extensions). */
void sw_attach(struct node *nd, const struct endpoint *ep);
/* Routes and the spanning tree are those of another fabric of the same nodes (fabric/routing/reroute.h). */
void sw_reroute(struct node *nd, const struct fabric *f, int64_t now_ps);
/* Begins anew: nothing is left of its aggregation node's groups. Its links are down meanwhile
 * (net.h), so that memberships and what it learned are gone. 0 or -ENOMEM (it is as it was). */
int sw_restart(struct node *nd);
/* Timers that wait for others (the aggregation node's, the watchdog's) do not run out before that.
 */
void sw_excuse(struct node *nd, int64_t until_ps);
void sw_kick(struct node *nd); /* the endpoint has frames or a new deadline */

#endif
