/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts of the events in an aggregation node's ring. */
#include "switch/reduce/an_priv.h"

static const char *const names[] = {
#define X(name, text) [AN_EV_##name] = text,
    AN_EVENTS(X)
#undef X
#define X(name) [AN_EV_EDGE + EDGE_##name] = "group %u: child %u is " #name,
        EDGE_STATES(X)
#undef X
#define X(name) [AN_EV_GROUP + GROUP_##name] = "group %u is " #name ", window %u",
            GROUP_STATES(X)
#undef X
};

const struct event_kinds an_event_kinds = {"switch", names, sizeof(names) / sizeof(names[0])};
