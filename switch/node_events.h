/* SPDX-License-Identifier: BSD-3-Clause */
/* State changes recorded in a node's ring of events; for the files of switch/. */
#ifndef TRIB_SWITCH_NODE_EVENTS_H
#define TRIB_SWITCH_NODE_EVENTS_H

#include "base/events.h"
#include "switch/node.h"

/* The table of names in node.c explains a and b. */
enum node_event {
    NODE_EV_PORT_DOWN,
    NODE_EV_PORT_UP,
    NODE_EV_XOFF,
    NODE_EV_XON,
    NODE_EV_PAUSED,
    NODE_EV_RESUMED,
    NODE_EV_STUCK,
    NODE_EV_RELEASED,
    NODE_EV_GROUP_JOINED,
    NODE_EV_GROUP_LEFT,
    NODE_EV_GROUP_REFUSED,
    NODE_EV_ROUTES,
    NODE_EV_HOST_LOST,
    NODE_EV_RESTARTED,
    NODE_EV_STALLED,
    NODE_EV_TAKES_AGAIN,
    NODE_EV_SHUT,
    NODE_EV_OPENED,
    NODE_EV_KINDS
};

static inline void node_event(const struct node *nd, int64_t now_ps, enum node_event kind,
                              uint32_t a, uint32_t b)
{
    events_add(nd->events, now_ps, (uint16_t)kind, a, b);
}

#endif
