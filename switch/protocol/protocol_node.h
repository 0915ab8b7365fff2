/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The protocols of a switch: an endpoint in front of the aggregation node, which takes frames for
 * PROTO_QPN and passes on the others. Like the aggregation node a state machine: takes frames and the
 * time, gives frames and a next deadline. protocols/host/protocol_wire.h has the messages.
 */
#ifndef TRIB_SWITCH_PROTOCOL_PROTOCOL_NODE_H
#define TRIB_SWITCH_PROTOCOL_PROTOCOL_NODE_H

#include "aggregation/group_view.h"
#include "fabric/fabric.h"
#include "roce/endpoint.h"

struct protocol_node;

struct protocol_node_cfg {
    const struct fabric *fab;
    uint16_t node;
    struct rte_mempool *pool;
    struct endpoint behind; /* the aggregation node */
    /* As in struct an_cfg. */
    bool (*linked)(void *ctx, uint16_t node);
    void *linked_ctx;
};

int protocol_node_create(struct protocol_node **p, const struct protocol_node_cfg *cfg);
void protocol_node_destroy(struct protocol_node *p);
struct endpoint protocol_node_endpoint(struct protocol_node *p);
/* Replaces the endpoint behind it and forgets all jobs, as after a restart of the switch. */
void protocol_node_restart(struct protocol_node *p, const struct endpoint *behind);
/* Like an_peer_down() and an_cut_off(). */
void protocol_node_peer_down(struct protocol_node *p, uint16_t peer_node, int64_t now_ps);
void protocol_node_cut_off(struct protocol_node *p, int64_t now_ps);
bool protocol_node_idle(const struct protocol_node *p); /* it holds no job, slot or frame */
unsigned protocol_node_jobs_of(const struct protocol_node *p, uint64_t key); /* with this key */
/* Calls fn for each child of each job. */
void protocol_node_view(const struct protocol_node *p, group_view_fn *fn, void *ctx);
/* Prints names and values for telemetry: "switchml_jobs" and so on; nothing before the first job. */
void protocol_node_print(const struct protocol_node *p,
                         void (*emit)(void *ctx, const char *name, uint64_t v), void *ctx);

#endif
