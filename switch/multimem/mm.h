/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Multimem of an NVSwitch-like node: groups of members, ld_reduce and multicast st as RDMA READ and
 * WRITE (mm_proto.h). A state machine behind the aggregation node's rnic (an.c), which passes it
 * its control messages and the callbacks of queue pairs in protection domain AN_PD_MM.
 */
#ifndef TRIB_SWITCH_MULTIMEM_MM_H
#define TRIB_SWITCH_MULTIMEM_MM_H

#include "aggregation/group_view.h"
#include "fabric/fabric.h"
#include "roce/rnic.h"
#include "switch/multimem/mm_counters.h"

#include <stdbool.h>
#include <stdint.h>

/* Quotas; zero: the default. */
struct mm_cfg {
    bool on;
    uint32_t max_groups;
    uint64_t max_bytes; /* buffers for data read from members, all groups together */
    uint32_t max_mbufs; /* mbufs that hold WRITEs until they are acknowledged, all groups
                           together */
};
#define MM_DEFAULT_GROUPS 16u
#define MM_DEFAULT_BYTES  (64ULL << 20)
/* At most so many slices of a member's WRITEs are in flight; of a group's READs at most MM_LOADS. */
#define MM_STORES 32u /* slices of MM_SLICE: as many bytes as the READs' window */

/* Resources of a group of n members at a switch: bytes of a READ's slice (a multiple of every path MTU),
 * the number of such slices at a time, a member's window of WRITE slices of MM_SLICE, and the buffers for
 * all of them, in bytes and in mbufs. */
struct mm_size {
    uint32_t slice, loads, stores;
    uint64_t bytes, mbufs;
};
struct mm_size mm_size(const struct fabric *f, const struct fab_node *me, unsigned n, uint32_t mtu);

/* ---- for an.c and control.c ---- */

struct an;
struct an_addr;
struct mm;

extern const struct deferred_ops mm_deferred_ops;

int mm_create(struct mm **mm, struct an *a, const struct mm_cfg *cfg);
void mm_destroy(struct mm *mm);
uint32_t mm_max_qps(const struct mm_cfg *cfg);
bool mm_idle(const struct mm *mm);
unsigned mm_groups_of(const struct mm *mm, uint64_t key);        /* groups under this key */
void mm_view(const struct mm *mm, group_view_fn *fn, void *ctx); /* for each member of each group */
void mm_check_all(const struct mm *mm); /* asserts the invariants between two calls */
const struct mm_counters *mm_counters(const struct mm *mm);
void mm_counters_print(const struct mm *mm, void (*emit)(void *ctx, const char *name, uint64_t v),
                       void *ctx);

/* The rnic's callbacks for queue pairs of AN_PD_MM. */
int mm_memory(struct qp *qp, bool remote, uint32_t key, uint64_t addr, uint64_t len,
              unsigned access, void **p);
void mm_complete(const struct cqe *c);
void mm_event(struct qp *qp, enum qp_event ev);

/* Handles a control message of multimem, checked by agg_ctl_check(). */
void mm_control(struct mm *mm, const struct an_addr *from, const void *p);
/* The same for a switch without multimem. */
void mm_refuse_all(struct an *a, const struct an_addr *from, const void *p);
/* Call it when a process has ended, or a node with all its processes. */
void mm_peer_down(struct mm *mm, uint32_t ip, uint32_t space);
void mm_node_down(struct mm *mm, uint16_t node);
void mm_cut_off(struct mm *mm); /* all links are down */

/* Does the work that callbacks recorded; true: deadlines may have changed. */
bool mm_settle(struct mm *mm);
void mm_tick(struct mm *mm);
int64_t mm_deadline(const struct mm *mm);

#endif
