/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The aggregation node of a switch: groups, slots, reduction. A state machine behind its own rnic:
 * frames and the time in, frames and a next deadline out (struct endpoint).
 */
#ifndef TRIB_SWITCH_REDUCE_AN_H
#define TRIB_SWITCH_REDUCE_AN_H

#include "fabric/fabric.h"
#include "roce/endpoint.h"
#include "switch/multimem/mm.h"

struct an;

struct an_cfg {
    const struct fabric *fab;
    uint16_t node; /* the switch that it is part of; address, quotas and place in the trees come
                      from fab */
    struct rte_mempool *pool;
    struct rte_mempool *parts; /* for results by reference (rnic_cfg); NULL: each is a copy */
    uint32_t mbuf_budget;      /* mbufs that grants may promise in all */
    /* As in struct net_cfg. */
    int64_t (*late_on_way)(void *ctx, uint32_t ip, uint32_t qpn, int64_t window_ps);
    void *late_ctx;
    uint32_t life;    /* how often the switch has begun anew: PSNs of each life are its own */
    struct mm_cfg mm; /* multimem, where the switch is NVSwitch-like */
};

int an_create(struct an **a, const struct an_cfg *cfg);
void an_destroy(struct an *a);
struct endpoint an_endpoint(struct an *a);
/* Nothing held: no group, slot or mbuf (the oracle's leak check). */
int an_idle(const struct an *a);
/* The link to a child or parent node is down (wall-clock liveness of the rim). */
void an_peer_down(struct an *a, uint16_t peer_node, int64_t now_ps);
/* Every link is: no member's or neighbour's fault. */
void an_cut_off(struct an *a, int64_t now_ps);

/* From now on grants may promise so many mbufs in all; what was granted stays. */
void an_set_budget(struct an *a, uint32_t mbufs);

/* named counters by an X-macro: joins granted/refused, groups, slots in use and peak, operations,
 * aborts, bytes in and out; for telemetry */
struct an_counters;
struct roce_counters;
const struct an_counters *an_counters(const struct an *a); /* switch/reduce/an_counters.h */
const struct roce_counters *an_roce_counters(const struct an *a);
struct mm *an_mm(const struct an *a); /* NULL: no multimem */
void an_counters_print(const struct an *a, void (*emit)(void *ctx, const char *name, uint64_t v),
                       void *ctx);

#endif
