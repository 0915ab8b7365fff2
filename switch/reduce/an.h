/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The aggregation node of a switch: groups, slots, reduction. A state machine behind its own rnic:
 * frames and the time in, frames and a next deadline out (struct endpoint).
 */
#ifndef TRIB_SWITCH_REDUCE_AN_H
#define TRIB_SWITCH_REDUCE_AN_H

#include "aggregation/group_view.h"
#include "fabric/fabric.h"
#include "roce/endpoint.h"
#include "switch/multimem/mm.h"

struct an;

struct an_cfg {
    const struct fabric *fab;
    uint16_t node; /* the switch's node; fab has its address, quotas and position in the trees */
    struct rte_mempool *pool;
    struct rte_mempool *parts; /* for results by reference (rnic_cfg); NULL: each is a copy */
    uint32_t mbuf_budget;      /* mbufs that all grants together may promise */
    /* As in struct net_cfg. */
    int64_t (*lateness_on_path)(void *ctx, uint32_t ip, uint32_t qpn, int64_t window_ps);
    void *late_ctx;
    /* Whether a link to a neighbour is up; NULL: they always are. */
    bool (*linked)(void *ctx, uint16_t node);
    void *linked_ctx;
    uint32_t life;    /* restarts of the switch so far: each life draws new PSNs */
    struct mm_cfg mm; /* multimem, where the switch is NVSwitch-like */
};

#define AN_FLIGHT_MARGIN 16u

/* Mbufs that a group of n children can hold at an AN: those of the children in its slots, and in each
 * direction those that are not acknowledged or wait to be sent. top: the AN has no parent. */
static inline uint32_t an_group_mbufs(uint32_t n, bool top, uint32_t window)
{
    return n * window + (top ? 1 : 2) * (2 * window + AN_FLIGHT_MARGIN);
}

int an_create(struct an **a, const struct an_cfg *cfg);
void an_destroy(struct an *a);
struct endpoint an_endpoint(struct an *a);
/* Whether no group, slot or mbuf is held (the oracle's leak check). */
int an_idle(const struct an *a);
/* Number of groups with this key, of trees and of multimem. */
unsigned an_groups_of(const struct an *a, uint64_t key);
/* Calls fn for each child of each group. */
void an_view(const struct an *a, group_view_fn *fn, void *ctx);
/* Call it when the link to a child or parent node is down (io/ detects that in wall time). */
void an_peer_down(struct an *a, uint16_t peer_node, int64_t now_ps);
/* Call it when all links are down: no member or neighbour is blamed. */
void an_cut_off(struct an *a, int64_t now_ps);

/* Sets the total of mbufs that later grants may promise; earlier grants stay valid. */
void an_set_budget(struct an *a, uint32_t mbufs);

/* Counters for telemetry: JOINs granted and refused, groups, slots in use and their peak,
 * operations, aborts, bytes in and out. */
struct an_counters;
struct roce_counters;
const struct an_counters *an_counters(const struct an *a); /* switch/reduce/an_counters.h */
const struct roce_counters *an_roce_counters(const struct an *a);
struct mm *an_mm(const struct an *a); /* NULL: no multimem */
void an_counters_print(const struct an *a, void (*emit)(void *ctx, const char *name, uint64_t v),
                       void *ctx);

#endif
