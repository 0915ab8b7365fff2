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

static const char *const state_names[] = {
    [QP_RESET] = "RESET", [QP_INIT] = "INIT", [QP_RTR] = "RTR", [QP_RTS] = "RTS",
    [QP_SQD] = "SQD",     [QP_SQE] = "SQE",   [QP_ERR] = "ERR"};

const char *qp_state_name(enum qp_state s)
{
    return (unsigned)s < sizeof(state_names) / sizeof(state_names[0]) ? state_names[s] : "unknown";
}

void rnic_events_init(struct rnic *r)
{
    const uint32_t ip = r->cfg.ip;
    char who[EVENTS_NAMED];

    snprintf(who, sizeof(who), "rnic %u.%u.%u.%u", ip >> 24, ip >> 16 & 255, ip >> 8 & 255,
             ip & 255);
    events_init(&r->events, &kinds, who);
}
