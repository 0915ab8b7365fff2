/* SPDX-License-Identifier: BSD-3-Clause */
#include "roce/rnic_events.h"

#include "roce/engine.h"

#include <stdio.h>

static const char *const names[] = {
#define X(n, t) t,
    RNIC_EVENTS(X)
#undef X
};

static const struct event_kinds kinds = {.room = "roce", .name = names, .n = RNIC_EV_COUNT};

void rnic_events_init(struct rnic *r)
{
    const uint32_t ip = r->cfg.ip;
    char who[EVENTS_NAMED];

    snprintf(who, sizeof(who), "rnic %u.%u.%u.%u", ip >> 24, ip >> 16 & 255, ip >> 8 & 255,
             ip & 255);
    events_init(&r->events, &kinds, who);
}
